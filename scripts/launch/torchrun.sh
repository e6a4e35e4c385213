#!/usr/bin/env bash
# A run under torchrun, for clusters whose tools start that: the same flags, then rubicon's command.
#
#   scripts/launch/torchrun.sh --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint node0:29400 -- train -c run.yaml
#
# Without torch, rubicon launch does the same:
#
#   rubicon launch --nnodes 2 --node-rank 0 --nproc 8 --master-addr node0 --master-port 29400 -- train -c run.yaml
set -euo pipefail

flags=()
while [ "${1:?usage: torchrun flags -- rubicon command}" != -- ]; do
	flags+=("$1")
	shift
done
shift
exec torchrun "${flags[@]}" --no-python rubicon "$@" --resume=auto
