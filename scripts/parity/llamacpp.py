"""llamacpp.py WORK: rubicon's exports WORK/TYPE.gguf are what llama.cpp would have written, and say in it what they say in rubicon.

Each type's tensors have the bytes that the gguf package makes of the float32 ones, and llama.cpp continues the prompts of
llamacpp.jsonl, greedily, as rubicon does in WORK/TYPE.jsonl. llama.cpp rounds activations to a type like the weights', which
rubicon does not; the prompts are ones whose answers do not hang on that.
"""
import json
import pathlib
import sys

import numpy as np
import xllamacpp
from gguf import GGMLQuantizationType, GGUFReader
from gguf.quants import quantize

work = pathlib.Path(sys.argv[1])
prompts = pathlib.Path(__file__).with_suffix(".jsonl").read_text().splitlines()


def tensors(name):
    return {t.name: t for t in GGUFReader(work / f"{name}.gguf").tensors}


def same_bytes(name):
    plain, packed = tensors("f32"), tensors(name)
    assert plain.keys() == packed.keys(), plain.keys() ^ packed.keys()
    changed = 0
    for key, t in packed.items():
        values = plain[key].data
        vector = t.tensor_type == GGMLQuantizationType.F32
        assert vector == (values.ndim == 1), (key, t.tensor_type)
        want = values if vector else quantize(values, t.tensor_type)
        assert np.array_equal(np.ascontiguousarray(want).view(np.uint8).ravel(), np.ascontiguousarray(t.data).view(np.uint8).ravel()), (name, key)
        changed += not vector
    assert changed, name
    return changed


def complete(server, query):
    limits = {"max_tokens": 40, "temperature": 0, "cache_prompt": False}
    if "messages" in query:
        return server.handle_chat_completions(query | limits)["choices"][0]["message"]["content"]
    return server.handle_completions(query | limits)["choices"][0]["text"]


def same_text(name):
    params = xllamacpp.CommonParams()
    params.model.path = str(work / f"{name}.gguf")
    params.n_ctx, params.n_parallel, params.verbosity = 512, 1, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    replies = (work / f"{name}.jsonl").read_text().splitlines()
    for prompt, reply in zip(prompts, replies, strict=True):
        ours = json.loads(reply)["completions"][0]
        theirs = complete(server, json.loads(prompt))
        assert len(ours["ids"]) == 40 and ours["text"] == theirs, f"{name}: {prompt}\nrubicon   {ours['text']!r}\nllama.cpp {theirs!r}"


for name in ["f16", "bf16", "q8_0"]:
    count = same_bytes(name)
    same_text(name)
    print(f"{name}: {count} matrices have the gguf package's bytes, {len(prompts)} greedy continuations of 40 tokens are llama.cpp's")
