#!/usr/bin/env bash
# check.sh DIR [SEED ...]: the README's first command with each seed; the held-out score must reach 0.9 or double.
set -euo pipefail
dir=$1
shift
for seed in "${@:-42}"; do
	go run ./cmd/rubicon train -c configs/quickstart.yaml seed="$seed" output_dir="$dir/seed-$seed"
	python3 - "$dir/seed-$seed/metrics.jsonl" <<'PY'
import json, sys
scores = [m["eval_reward"] for m in map(json.loads, open(sys.argv[1])) if "eval_reward" in m]
first, last = scores[0], scores[-1]
print(f"held out: {first:.3f} -> {last:.3f}")
sys.exit(not (last >= 0.9 or last >= 2 * first))
PY
done
