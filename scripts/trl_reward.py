#!/usr/bin/env python3
"""Run reward functions written for TRL's GRPOTrainer as a reward of kind exec, unchanged.

    reward:
      kind: exec
      options: {command: [python3, scripts/trl_reward.py, "my_rewards:correct"]}

MODULE is a Python module (the working directory is searched too) or a file that ends in .py. Several functions are
several rewards, weighed by --weights. A function gets keyword arguments as in TRL: prompts, completions, completion_ids,
the columns of the data as lists, log_extra and log_metric (which do nothing); there is no trainer_state. It may be async.
Prompts that are conversations and their completions are lists of {"role", "content"}. None or NaN means that a
completion cannot be scored. Needs nothing but Python's standard library.
"""

import argparse
import asyncio
import importlib
import importlib.util
import inspect
import json
import math
import os
import sys
import traceback

RESERVED = ("prompt", "completion", "completion_ids")  # columns that TRL does not pass on


def load(spec):
    """The function that MODULE:FUNCTION names."""
    module, _, path = spec.rpartition(":")
    if not module or not path:
        sys.exit(f"{spec!r} is not MODULE:FUNCTION")
    target = from_file(os.path.abspath(module)) if module.endswith(".py") else importlib.import_module(module)
    for name in path.split("."):
        target = getattr(target, name)
    if not callable(target):
        sys.exit(f"{spec} is not a function")
    return target


def from_file(path):
    """The module in a file, which is run once."""
    if path not in sys.modules:
        found = importlib.util.spec_from_file_location(path, path)
        sys.modules[path] = importlib.util.module_from_spec(found)
        found.loader.exec_module(sys.modules[path])
    return sys.modules[path]


def names_of(functions, specs):
    """Their names, as TRL has them in its metrics; the whole MODULE:FUNCTION where two are alike."""
    names = [getattr(f, "__name__", type(f).__name__) for f in functions]
    return [spec if names.count(name) > 1 else name for name, spec in zip(names, specs)]


def nothing(*args, **kwargs):
    """Stands in for log_extra and log_metric."""


def arguments(items):
    """What TRL passes to a reward function for these completions."""
    columns = {name for item in items for name in item["columns"] if name not in RESERVED}
    passed = {name: [item["columns"].get(name) for item in items] for name in sorted(columns)}
    passed["prompts"] = [item["messages"] if "messages" in item else item.get("prompt", "") for item in items]
    passed["completions"] = [
        [{"role": "assistant", "content": item["completion"]}] if "messages" in item else item["completion"] for item in items
    ]
    passed["completion_ids"] = [item["completion_ids"] for item in items]
    passed["log_extra"] = passed["log_metric"] = nothing
    return passed


def accepted(function, name, passed):
    """Those of the arguments that a function takes."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return passed
    keywords = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    missing = [p.name for p in keywords if p.default is p.empty and p.name not in passed]
    if missing:
        have = ", ".join(sorted(passed))
        raise TypeError(f"{name} asks for {', '.join(missing)}, but there is only {have}")
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return passed
    taken = {p.name for p in keywords}
    return {key: value for key, value in passed.items() if key in taken}


def numbers(values, name, count):
    """A function's values as floats, None for what cannot be scored."""
    if hasattr(values, "tolist"):  # an array
        values = values.tolist()
    values = list(values)
    if len(values) != count:
        raise ValueError(f"{name} returned {len(values)} values for {count} completions")
    out = []
    for i, value in enumerate(values):
        value = None if value is None else float(value)
        if value is not None and math.isinf(value):
            raise ValueError(f"{name} returned {value} for completion {i}; a reward must be finite")
        out.append(None if value is None or math.isnan(value) else value)
    return out


async def all_of(pending):
    return await asyncio.gather(*pending)


class Scorer:
    def __init__(self, functions, names, weights):
        self.functions, self.names, self.weights = functions, names, weights
        self.loop = asyncio.new_event_loop()  # one for all calls, so that async clients can be kept

    def values(self, items):
        """What each function gives for each completion."""
        passed = arguments(items)
        found = [f(**accepted(f, name, passed)) for f, name in zip(self.functions, self.names)]
        waiting = [i for i, value in enumerate(found) if inspect.isawaitable(value)]
        if waiting:
            for i, value in zip(waiting, self.loop.run_until_complete(all_of([found[i] for i in waiting]))):
                found[i] = value
        return [numbers(values, name, len(items)) for values, name in zip(found, self.names)]

    def results(self, items):
        if not items:
            return []
        values = self.values(items)
        if len(values) == 1 and self.weights == [1.0]:
            return [{"id": item["id"], "score": value} for item, value in zip(items, values[0])]
        results = []
        for item, row in zip(items, zip(*values)):
            rewards = [{"name": n, "weight": w, "value": v} for n, w, v in zip(self.names, self.weights, row)]
            results.append({"id": item["id"], "rewards": rewards})
        return results


def streams():
    """The requests and where replies go. What the functions print goes to standard error, and what they start does not read
    the requests."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, replies


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="+", metavar="MODULE:FUNCTION")
    parser.add_argument("--weights", help="one number for each function, with commas between them (1 for each)")
    options = parser.parse_args()
    weights = [float(w) for w in options.weights.split(",")] if options.weights else [1.0] * len(options.functions)
    if len(weights) != len(options.functions):
        parser.error(f"{len(weights)} weights for {len(options.functions)} functions")
    requests, replies = streams()
    sys.path.insert(0, os.getcwd())
    functions = [load(spec) for spec in options.functions]
    scorer = Scorer(functions, names_of(functions, options.functions), weights)
    for line in requests:
        try:
            reply = {"results": scorer.results(json.loads(line)["items"])}
        except Exception as error:  # ends the run, with this text
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
