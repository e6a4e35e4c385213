#!/usr/bin/env bash
# run.sh [CACHE] [FLAGS]: rubicon's CPU engine side by side with its peers. CACHE keeps the Python environment and the models
# (6 GB; the first run takes half an hour, llama.cpp is compiled for this machine); "go doc ./scripts/bench" says what is
# measured and how, -help lists the flags. Nothing else should run on the machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=scripts/bench
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rubicon-bench
case ${1:-} in "" | -*) ;; *) cache=$1 && shift ;; esac
mkdir -p "$cache"
if ! cmp --silent "$here/requirements.txt" "$cache/venv/requirements.txt"; then
	python3 -m venv "$cache/venv"
	CMAKE_ARGS="-DGGML_NATIVE=ON -DLLAMA_CURL=OFF" "$cache/venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
	cp "$here/requirements.txt" "$cache/venv/"
fi
export CGO_ENABLED=0
if ! test -e "$cache/models/truth.json"; then
	gguf=$(scripts/fetch-smollm2.sh "$cache/smollm2")
	test -d "$cache/smollm2/hf" || go run ./cmd/rubicon import gguf "$gguf" "$cache/smollm2/hf"
	"$cache/venv/bin/python" "$here/prepare.py" "$gguf" "$cache/smollm2/hf" "$cache/models"
fi
go build -o "$cache/bench" "./$here"
exec "$cache/bench" -cache "$cache" "$@"
