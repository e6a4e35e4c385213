#!/usr/bin/env bash
# serve.sh WORK BASE: rubicon serve with OpenAI's Python client and lm-evaluation-harness. WORK keeps the Python environment of run.sh,
# BASE is the model's folder.
set -euo pipefail
work=$1 base=$2
here=$(dirname "$0")
"$work/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/serve-requirements.txt"
go build -o "$work/rubicon" ./cmd/rubicon
"$work/rubicon" serve --model "$base" --served-model-name tested --port 0 >"$work/url" &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
for _ in $(seq 300); do
	test -s "$work/url" && break
	sleep 0.1
done
url=$(cat "$work/url")
"$work/venv/bin/python" "$here/openai_client.py" "$url" tested
HF_HUB_OFFLINE=1 OPENAI_API_KEY=none "$work/venv/bin/python" "$here/lmeval.py" "$url" tested "$base" 2>"$work/lmeval.log" || { tail -n 20 "$work/lmeval.log"; exit 1; }
kill $server
wait $server
