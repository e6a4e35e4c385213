#!/usr/bin/env bash
# Makes the model inside the binary from nothing: data, tokenizer, training from random weights, two gates, and the
# files of internal/embedded/quickstart. About 7 minutes on two cores. The same machine gives the same bytes.
#
# usage: scripts/quickstart/make.sh [WORK]   (default runs)
set -euo pipefail
cd "$(dirname "$0")/../.."
export CGO_ENABLED=0
work=${1:-runs}
steps=3000
world=$work/quickstart-world
run=$work/quickstart-sft
mkdir -p "$work"
go build -o "$work/rubicon" ./cmd/rubicon
go build -o "$work/world" ./scripts/quickstart

"$work/world" -out "$world" -steps $steps
"$work/rubicon" sft -c configs/quickstart-sft.yaml model.path="$world" data.train_files="$world/sft.jsonl" output_dir="$run"

# gate NAME MODEL: 64 answers to each held-out task, at temperature 1, must pass. Of 4,096 answers a share has a standard
# error below 0.01; with 4 to each task it would be 0.03, more than the distance to some limits.
gate() {
	"$work/rubicon" eval -c configs/quickstart.yaml model.path="$2" eval.files="$world/eval.jsonl" num_generations_eval=64 -o "$run/$1.jsonl"
	"$work/world" -measure "$run/$1.jsonl" -data "$world/eval.jsonl" -gate "$1"
}
gate competent "$run/checkpoints/step-$((steps * 4 / 5))"
rm -rf "$work/quickstart"
"$work/world" -out "$work/quickstart" -steps 0 -model "$run/checkpoints/step-$steps"
gate base "$work/quickstart"
cp "$work/quickstart/"* internal/embedded/quickstart/
