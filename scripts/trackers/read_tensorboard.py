"""read_tensorboard.py RUN: compares what TensorBoard reads of RUN with RUN/metrics.jsonl; it keeps float32."""

import json
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

run = sys.argv[1]
events = EventAccumulator(run + "/tensorboard", size_guidance={"scalars": 0})
events.Reload()
want = {}
for line in open(run + "/metrics.jsonl"):
    values = json.loads(line)
    step = values.pop("step")
    for name, value in values.items():
        if value is not None:
            want.setdefault(name, []).append((step, struct.unpack("f", struct.pack("f", value))[0]))
assert set(want) == set(events.Tags()["scalars"]), set(want) ^ set(events.Tags()["scalars"])
for name, points in want.items():
    got = [(e.step, e.value) for e in events.Scalars(name)]
    assert got == points, (name, got, points)
(text,) = events.Tensors("config")
assert b"optim.learning_rate: " in text.tensor_proto.string_val[0]
print(f"tensorboard: {len(want)} metrics as in metrics.jsonl")
