"""The answering side of a benchmark: the spec is the program's argument, then one JSON request a line, one JSON answer a line."""
import json
import os
import sys
import time

for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "TRL_EXPERIMENTAL_SILENCE"):
    os.environ[name] = "1"

spec = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
_answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what libraries print is not an answer


def answer(**values):
    print(json.dumps(values), file=_answers, flush=True)


def ask():
    """The next request's point; the program ends when there are no more."""
    line = sys.stdin.readline()
    if not line:
        os._exit(0)  # threads of the libraries may still wait
    return json.loads(line)


def serve(measure, **versions):
    """Answers every request with what measure(point) returns."""
    answer(ready=True, versions=versions)
    while True:
        answer(values=measure(ask()))


def clock(work):
    """Seconds that work() takes, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def repeated(work, least=0.3):
    """Seconds of one call of work(), which is repeated for at least so many seconds."""
    calls, start = 0, time.perf_counter()
    while calls == 0 or time.perf_counter() - start < least:
        work()
        calls += 1
    return (time.perf_counter() - start) / calls


def synthetic(seed, n, vocab):
    """n token ids; the same function is in serve.go."""
    ids, x = [], seed
    for _ in range(n):
        x = (x * 1664525 + 1013904223) % 2**32
        ids.append(3 + (x >> 8) % (vocab - 3))
    return ids
