#!/bin/sh
# Compares the speed of policy/token with Hugging Face tokenizers:
#
#	scripts/bench-tokenizer/run.sh TOKENIZERS_DIR [NAME...]
#
# TOKENIZERS_DIR is what scripts/fetch-tokenizers.sh filled. The library goes into a private virtual environment.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet tokenizers==0.23.3
RAYON_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false CGO_ENABLED=0 "$venv/bin/python" "$here/run.py" "$@"
