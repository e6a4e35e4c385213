"""llama.cpp as the xllamacpp wheel brings it: its server, one thread of requests for each sequence."""
import threading
from importlib.metadata import version

from pipe import clock, serve, spec, synthetic

import xllamacpp

VOCAB = 49152


def open_server(batch):
    params = xllamacpp.CommonParams()
    params.model.path = spec["model"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = spec["threads"]
    params.n_parallel, params.n_ctx, params.n_batch, params.n_ubatch = batch, 256 * batch, 2048, 512
    params.cont_batching, params.cache_prompt, params.verbosity = True, False, 0
    return xllamacpp.Server(params)


def generate(server, prompts, new):
    def complete(prompt):
        server.handle_completions(
            {
                "prompt": prompt,
                "n_predict": new,
                "temperature": 1.0,
                "samplers": ["temperature"],
                "ignore_eos": True,
                "cache_prompt": False,
                "seed": 1,
            }
        )

    threads = [threading.Thread(target=complete, args=(p,)) for p in prompts]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def main():
    servers = {}

    def measure(point):
        batch, new = point["batch"], point["new"]
        if batch not in servers:
            servers.clear()  # a server waits by spinning; one at a time
            servers[batch] = open_server(batch)
        prompts = [synthetic(i + 1, point["prompt"], VOCAB) for i in range(batch)]
        one, _ = clock(lambda: generate(servers[batch], prompts, 1))
        all_, _ = clock(lambda: generate(servers[batch], prompts, new + 1))
        return {"tok_s": batch * new / (all_ - one), "prefill": one, "seconds": all_}

    serve(measure, xllamacpp=version("xllamacpp"))


main()
