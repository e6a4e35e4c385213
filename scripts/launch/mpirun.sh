#!/usr/bin/env bash
# A run of N processes under Open MPI or MPICH, on this machine or on the hosts of a host file:
#
#   scripts/launch/mpirun.sh 4 train -c run.yaml
#   scripts/launch/mpirun.sh 16 --hostfile hosts -- train -c run.yaml
#
# What stands before -- goes to mpirun. An interrupt or SIGTERM lets the run finish its step and save: mpirun itself would kill
# it, but passes SIGUSR1 on.
set -euo pipefail

n=${1:?number of processes}
shift
options=()
for word in "$@"; do
	if [ "$word" = -- ]; then
		while [ "$1" != -- ]; do
			options+=("$1")
			shift
		done
		shift
		break
	fi
done
if [ "$(id -u)" = 0 ] && [[ $(mpirun --version) == *"Open MPI"* ]]; then
	options+=(--allow-run-as-root)
fi
set -m # mpirun in a process group of its own, which an interrupt from the keyboard does not reach
mpirun -n "$n" "${options[@]}" rubicon "$@" --resume=auto &
mpirun=$!
trap 'kill -USR1 "$mpirun"' INT TERM USR1
code=0
wait "$mpirun" || code=$?
while kill -0 "$mpirun" 2>/dev/null; do # a signal has ended the wait, not mpirun
	code=0
	wait "$mpirun" || code=$?
done
exit "$code"
