"""Reward functions as TRL's documentation has users write them, and some that are wrong."""

import asyncio
import os
import subprocess
import sys

print("a greeting at import, which must not reach the replies")


def length(completions, **kwargs):
    return [float(len(c)) for c in completions]


def correct(prompts, completions, answer, **kwargs):
    """None where there is no answer to compare with."""
    print("scoring", len(completions))
    os.system("echo to the file descriptor")
    return [None if a is None else 1.0 if c == str(a) else 0.0 for c, a in zip(completions, answer)]


def chat(prompts, completions, **kwargs):
    """The last user turn is asked to be repeated by a list of one assistant message."""
    scores = []
    for prompt, completion in zip(prompts, completions):
        assert [m["role"] for m in completion] == ["assistant"]
        scores.append(1.0 if completion[0]["content"] == prompt[-1]["content"] else 0.0)
    return scores


async def slow(completions, completion_ids, log_metric, log_extra, **kwargs):
    await asyncio.sleep(0)
    log_metric("mean", 1.0)
    log_extra("texts", completions)
    return [float("nan") if not ids else float(sum(ids)) for ids in completion_ids]


def undeclared(completions, answer):
    return [float(a or 0) for a in answer]


def columns(completions, **kwargs):
    """How many lists of the right length it gets beside the named ones."""
    assert "trainer_state" not in kwargs and "prompt" not in kwargs
    return [float(len(kwargs["answer"])) for _ in completions]


def reader(completions, **kwargs):
    """A program that reads its standard input must not eat the next request."""
    got = subprocess.run([sys.executable, "-c", "import sys; print(len(sys.stdin.read()))"], stdout=subprocess.PIPE, text=True)
    return [float(got.stdout) for _ in completions]


class Threshold:
    def __init__(self, least):
        self.least = least

    def __call__(self, completions, **kwargs):
        return [float(len(c) >= self.least) for c in completions]


threshold = Threshold(2)


def short(completions, **kwargs):
    return [1.0]


def infinite(completions, **kwargs):
    return [float("inf") for _ in completions]


def failing(completions, **kwargs):
    raise KeyError("solution")


def state(completions, trainer_state):
    return [0.0 for _ in completions]
