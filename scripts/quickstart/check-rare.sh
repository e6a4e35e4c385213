#!/usr/bin/env bash
# check-rare.sh DIR [SEED ...]: RARE and its easy rubric left alone, with each seed, on the checks of the held-out tasks that neither
# rubric begins with. RARE must end at least 0.2 above.
set -euo pipefail
dir=$1
shift
. scripts/quickstart/lib.sh
for seed in "${@:-42}"; do
	for mode in sample static; do
		run "$mode-$seed" configs/quickstart-rare.yaml seed="$seed" reward.options.mode=$mode
	done
	rare=$(score "sample-$seed" eval/step_100.jsonl full) static=$(score "static-$seed" eval/step_100.jsonl full)
	echo "seed $seed: full $rare with RARE, $static with the static rubric"
	holds "$rare >= $static + 0.2"
done
