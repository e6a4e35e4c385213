"""read_mlflow.py RUN URI: compares what the tracking server at URI has of RUN with RUN/metrics.jsonl."""

import json
import sys

import mlflow

run, uri = sys.argv[1:]
client = mlflow.MlflowClient(uri)
experiment = client.get_experiment_by_name("rubicon")
(found,) = client.search_runs([experiment.experiment_id])
assert found.info.status == "FINISHED", found.info.status
want = {}
for line in open(run + "/metrics.jsonl"):
    values = json.loads(line)
    step = values.pop("step")
    for name, value in values.items():
        if value is not None:
            want.setdefault(name, {}).setdefault(step, []).append(value)
for name, steps in want.items():
    got = {}
    for m in sorted(client.get_metric_history(found.info.run_id, name), key=lambda m: m.timestamp):
        got.setdefault(m.step, []).append(m.value)
    assert {s: v[-1] for s, v in got.items()} == {s: v[-1] for s, v in steps.items()}, (name, got, steps)
assert found.data.params["track.project"] == "rubicon"
names = {a.path for a in client.list_artifacts(found.info.run_id)}
assert {"config.yaml", "metrics.jsonl", "health.jsonl", "adapter"} <= names, names
mlflow.set_tracking_uri(uri)
path = mlflow.artifacts.download_artifacts(run_id=found.info.run_id, artifact_path="metrics.jsonl")
assert open(path).read() == open(run + "/metrics.jsonl").read()
print(f"mlflow: {len(want)} metrics as in metrics.jsonl, artifacts {sorted(names)}")
