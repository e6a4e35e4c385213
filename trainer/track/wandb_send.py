"""Sends a run of rubicon to Weights & Biases: python3 wandb_send.py < wandb.jsonl

The lines are what rubicon wrote: one that begins the run, one for each line of metrics, one that ends it. Needs the package wandb;
its environment variables (WANDB_API_KEY, WANDB_MODE, WANDB_ENTITY, ...) mean what they always mean.
"""

import json
import os
import signal
import sys

sys.path = sys.path[1:]  # the folder of this file has a folder wandb, which is not the package

try:
    import wandb
except ImportError:
    sys.exit(3)  # rubicon says what to do

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # of the run


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run ends first
    run, status = None, "failed"  # if no end comes
    for line in sys.stdin:
        event = json.loads(line)
        if "begin" in event:
            if run is None:  # a file holds one beginning for each time that the run was started
                run = wandb.init(dir=os.path.join(FOLDER, "track"), resume="allow", **event["begin"])
                run.define_metric("global_step")
                run.define_metric("*", step_metric="global_step", step_sync=True)
        elif "end" in event:
            status = event["end"]["status"]
            for path in event["end"]["files"]:
                run.save(os.path.join(FOLDER, path), base_path=FOLDER, policy="now")
        else:
            run.log({**event["values"], "global_step": event["step"], "_timestamp": event["time"]})
    if run is not None:
        run.finish(exit_code=1 if status == "failed" else 0)


if sys.argv[1:] != ["--check"]:
    main()
