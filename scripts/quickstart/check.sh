#!/usr/bin/env bash
# Makes the first run with three seeds and checks what the README says of it: the held-out reward doubles or reaches
# 0.9, in at most two minutes (RUBICON_CHECK_SECONDS for a slower machine).
#
# usage: scripts/quickstart/check.sh OUT
set -euo pipefail
cd "$(dirname "$0")/../.."
export CGO_ENABLED=0
out=${1:?usage: scripts/quickstart/check.sh OUT}
mkdir -p "$out"
go build -o "$out/rubicon" ./cmd/rubicon
for seed in 0 1 2; do
	run=$out/seed-$seed
	began=$SECONDS
	"$out/rubicon" train -c configs/quickstart.yaml seed=$seed output_dir="$run"
	took=$((SECONDS - began))
	grep -o '"eval_reward":[0-9.]*' "$run/metrics.jsonl" | cut -d: -f2 |
		awk -v seed=$seed -v took=$took -v limit="${RUBICON_CHECK_SECONDS:-120}" '
			NR == 1 { first = $1 }
			{ last = $1 }
			END {
				printf "seed %d: held-out reward %.3f -> %.3f in %d s\n", seed, first, last, took
				if (NR < 2 || last < 0.9 && last < 2 * first) { print "the reward did not rise enough"; exit 1 }
				if (took > limit) { printf "that is more than %d s\n", limit; exit 1 }
			}'
done
