#!/usr/bin/env bash
# check-rare.sh DIR [SEED ...]: RARE and its easy rubric left alone, with each seed, on the checks of the held-out tasks that neither
# rubric begins with. RARE must end at least 0.2 above.
set -euo pipefail
dir=$1
shift
mkdir -p "$dir"
go build -o "$dir/rubicon" ./cmd/rubicon
go build -o "$dir/quickstart" ./scripts/quickstart
full() { # RUN: the score on all checks
	"$dir/quickstart" -measure "$1/eval/step_100.jsonl" | awk '$1 == "full" { print $2 }'
}
for seed in "${@:-42}"; do
	for mode in sample static; do
		"$dir/rubicon" train -c configs/quickstart-rare.yaml seed="$seed" output_dir="$dir/$mode-$seed" reward.options.mode=$mode
	done
	rare=$(full "$dir/sample-$seed") static=$(full "$dir/static-$seed")
	echo "seed $seed: full $rare with RARE, $static with the static rubric"
	awk -v a="$rare" -v b="$static" 'BEGIN { exit !(a >= b + 0.2) }'
done
