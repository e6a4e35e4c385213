#!/usr/bin/env bash
# llamacpp.sh WORK BASE: what rubicon exports as GGUF, loaded by llama.cpp. WORK keeps the Python environment, BASE is SmolLM2's
# folder.
set -euo pipefail
work=$1 base=$2
here=$(dirname "$0")
mkdir -p "$work"
if ! test -x "$work/llamacpp-venv/bin/python"; then
	python3 -m venv "$work/llamacpp-venv"
	"$work/llamacpp-venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/llamacpp-requirements.txt"
fi
go build -o "$work/rubicon" ./cmd/rubicon
for type in f32 f16 bf16 q8_0; do
	rm -f "$work/$type.gguf"
	"$work/rubicon" export gguf --model "$base" --type $type "$work/$type.gguf"
	"$work/rubicon" generate --model "$work/$type.gguf" --temperature 0 --max-new-tokens 40 "$here/llamacpp.jsonl" >"$work/$type.jsonl"
done
"$work/llamacpp-venv/bin/python" "$here/llamacpp.py" "$work"
