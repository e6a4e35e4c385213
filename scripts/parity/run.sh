#!/usr/bin/env bash
# run.sh WORK BASE RUN: what rubicon trained, loaded by transformers and PEFT, and what it exports, by llama.cpp. WORK keeps
# the Python environments, BASE is the model's folder, RUN that of a run with LoRA on it.
set -euo pipefail
work=$1 base=$2 run=$3
here=$(dirname "$0")
mkdir -p "$work"
if ! test -x "$work/venv/bin/python"; then
	python3 -m venv "$work/venv"
	"$work/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
fi
go build -o "$work/rubicon" ./cmd/rubicon
adapter=$(ls -d "$run"/checkpoints/step-* | sort -V | tail -n 1)
"$work/rubicon" logprobs --model "$base" --adapter "$adapter" <"$here/texts.jsonl" |
	HF_HUB_OFFLINE=1 "$work/venv/bin/python" "$here/compare.py" "$base" "$adapter"
rm -rf "$work/merged"
"$work/rubicon" export merged --model "$base" --adapter "$adapter" "$work/merged"
"$work/rubicon" logprobs --model "$work/merged" <"$here/texts.jsonl" |
	HF_HUB_OFFLINE=1 "$work/venv/bin/python" "$here/compare.py" "$base" "$adapter"
"$here/llamacpp.sh" "$work" "$base"
