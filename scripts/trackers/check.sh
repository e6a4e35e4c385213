#!/usr/bin/env bash
# check.sh WORK: a run with every tracker, read back by what their makers publish: TensorBoard, the client of wandb (offline), a real
# MLflow server; and /metrics while the run goes on. WORK keeps the Python environment.
set -euo pipefail
work=$1
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$work"
work=$(cd "$work" && pwd)
python=$work/venv/bin/python
if ! test -x "$python"; then
	python3 -m venv "$work/venv"
	"$work/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
fi
go build -o "$work/rubicon" ./cmd/rubicon
rm -rf "$work/run" "$work/server"
mkdir "$work/server"
uri=http://127.0.0.1:5907
export WANDB_MODE=offline MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false
setsid "$work/venv/bin/mlflow" server --backend-store-uri "sqlite:///$work/server/mlflow.db" --artifacts-destination "$work/server/artifacts" \
	--port 5907 --workers 1 >"$work/server/log" 2>&1 &
trap 'kill -- -'$! EXIT
for _ in $(seq 120); do
	curl --fail --silent --output /dev/null $uri/health && break
	sleep 1
done
"$work/rubicon" train -c configs/quickstart.yaml output_dir="$work/run" max_steps=40 \
	'track.to=[tensorboard,wandb,mlflow,prometheus]' track.mlflow_uri=$uri track.python="$python" track.prometheus_addr=127.0.0.1:9407 2>"$work/said" &
run=$!
until curl --fail --silent http://127.0.0.1:9407/metrics >"$work/exposition" && grep -q '^rubicon_reward{' "$work/exposition"; do
	kill -0 $run
	sleep 0.2
done
grep '^rubicon_reward{' "$work/exposition"
wait $run
if grep 'note: tracker' "$work/said"; then exit 1; fi
"$python" "$here/read_tensorboard.py" "$work/run"
"$python" "$here/read_wandb.py" "$work/run"
"$python" "$here/read_mlflow.py" "$work/run" $uri
