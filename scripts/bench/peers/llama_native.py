"""llama.cpp built for this machine (llama-cpp-python), through its C functions: decoding of a batch of sequences.

Each step samples every sequence from its full distribution at temperature 1, as the others do; bare_tok_s leaves sampling
out and feeds fixed tokens, as llama.cpp's own benchmark does.
"""
import time

from pipe import serve, spec, synthetic

import llama_cpp as lc

VOCAB = 49152


def open_model(path):
    lc.llama_backend_init()
    model = lc.llama_model_load_from_file(path.encode(), lc.llama_model_default_params())
    assert model, path
    return model


def open_context(model, point):
    params = lc.llama_context_default_params()
    params.n_ctx = point["batch"] * 256
    params.n_batch, params.n_ubatch, params.n_seq_max = point["batch"] * point["prompt"], 512, point["batch"]
    params.n_threads = params.n_threads_batch = spec["threads"]
    context = lc.llama_init_from_model(model, params)
    assert context
    return context


def fill(batch, entries):
    """entries: (token, position, sequence, whether its logits are wanted)."""
    batch.n_tokens = len(entries)
    for i, (token, position, sequence, wanted) in enumerate(entries):
        batch.token[i], batch.pos[i], batch.logits[i] = token, position, wanted
        batch.n_seq_id[i], batch.seq_id[i][0] = 1, sequence


def generate(context, sampler, prompts, new):
    """Draws a token for each prompt and then new more; sampler None: fixed ones. Returns the seconds of both."""
    start = time.perf_counter()
    lc.llama_memory_clear(lc.llama_get_memory(context), True)
    rows, length = len(prompts), len(prompts[0])
    batch = lc.llama_batch_init(rows * length, 0, 1)
    last = [length * (s + 1) - 1 for s in range(rows)]  # entries of the batch whose logits are wanted
    fill(batch, [(t, i, s, i == length - 1) for s, p in enumerate(prompts) for i, t in enumerate(p)])
    for step in range(new + 1):
        assert lc.llama_decode(context, batch) == 0
        lc.llama_synchronize(context)
        tokens = [lc.llama_sampler_sample(sampler, context, i) for i in last] if sampler else [100 + s for s in range(rows)]
        fill(batch, [(t, length + step, s, True) for s, t in enumerate(tokens)])
        last = range(rows)
        if step == 0:
            first = time.perf_counter()
    end = time.perf_counter()
    lc.llama_batch_free(batch)
    return first - start, end - first


def main():
    model = open_model(spec["model"])
    sampler = lc.llama_sampler_chain_init(lc.llama_sampler_chain_default_params())
    lc.llama_sampler_chain_add(sampler, lc.llama_sampler_init_temp(1.0))
    lc.llama_sampler_chain_add(sampler, lc.llama_sampler_init_dist(1))
    contexts = {}

    def measure(point):
        batch, new = point["batch"], point["new"]
        if batch not in contexts:
            contexts[batch] = open_context(model, point)
        context = contexts[batch]
        prompts = [synthetic(i + 1, point["prompt"], VOCAB) for i in range(batch)]
        prefill, decode = generate(context, sampler, prompts, new)
        _, bare = generate(context, None, prompts, new)
        tokens = batch * new
        return {"tok_s": tokens / decode, "bare_tok_s": tokens / bare, "prefill": prefill, "seconds": prefill + decode}

    serve(measure, **{"llama-cpp-python": lc.__version__, "llama.cpp": lc.llama_print_system_info().decode().strip()})


main()
