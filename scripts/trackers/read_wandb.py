"""read_wandb.py RUN: compares what the official client of wandb has recorded offline with RUN/metrics.jsonl."""

import glob
import json
import struct
import sys

from wandb.proto import wandb_internal_pb2 as pb


def records(path):
    """The records of a .wandb file: LevelDB's log format behind a header of seven bytes."""
    data = open(path, "rb").read()
    at, whole = 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # full, last
            record = pb.Record()
            record.ParseFromString(whole)
            yield record
            whole = b""


run = sys.argv[1]
want = [json.loads(line) for line in open(run + "/metrics.jsonl")]
(path,) = glob.glob(run + "/track/wandb/offline-run-*/*.wandb")
got, exit_code, files = [], None, []
for r in records(path):
    kind = r.WhichOneof("record_type")
    if kind == "history":
        got.append({"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in r.history.item})
    elif kind == "exit":
        exit_code = r.exit.exit_code
    elif kind == "files":
        files += [f.path for f in r.files.files]
    elif kind == "run":
        assert r.run.project == "rubicon", r.run.project
assert exit_code == 0, exit_code
assert "metrics.jsonl" in files and any(f.endswith("adapter_model.safetensors") for f in files), files
assert len(got) == len(want), (len(got), len(want))
for g, w in zip(got, want):
    assert g["global_step"] == w.pop("step"), (g, w)
    for name, value in w.items():
        if value is not None:
            assert g[name] == value, (name, g[name], value)
print(f"wandb: {len(got)} lines as in metrics.jsonl")
