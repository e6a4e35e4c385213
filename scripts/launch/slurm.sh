#!/usr/bin/env bash
# A run on a Slurm cluster, one process for each GPU, that goes on by itself after a time limit or a preemption:
#
#   sbatch --nodes=2 --ntasks-per-node=8 --gpus-per-node=8 --time=24:00:00 scripts/launch/slurm.sh train -c run.yaml output_dir=/shared/run
#
# Slurm sends SIGTERM five minutes before the end; the run finishes its step, saves, and ends with code 130; the job is then
# queued again and resumes. output_dir, the model and the data are on a file system that all nodes see.
#SBATCH --job-name=rubicon
#SBATCH --signal=TERM@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log
set -euo pipefail

MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000)) # jobs that share a node do not meet
export MASTER_ADDR MASTER_PORT

code=0
srun --kill-on-bad-exit=1 --label rubicon "$@" --resume=auto || code=$?
if [ "$code" = 130 ]; then
	echo "queued again, to go on from the checkpoint"
	scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
