"""llamacpp.py WORK: rubicon's exports WORK/TYPE.gguf are what llama.cpp would have written, and say in it what they say in rubicon.

Each type's tensors have the bytes that the gguf package makes of the float32 ones. llama.cpp continues the prompts of
llamacpp.jsonl greedily, and so has rubicon in WORK/TYPE.jsonl. The prompts are not chosen by the result: they are the held-out rows
of configs/smollm2-rare, the first eight of the quickstart, and the texts of texts.jsonl that are no conversation.

In f32 and f16 the continuations are equal, up to places where two tokens are as likely: llama.cpp gives rubicon's token there at
most TIES nats less than its own. It rounds activations to the type of the weights, which rubicon does not, so under bf16 and q8_0
more of them part; how many, and where, is printed.
"""
import json
import pathlib
import sys

import numpy as np
import xllamacpp
from gguf import GGMLQuantizationType, GGUFReader
from gguf.quants import quantize

TIES = {"f32": 1e-3, "f16": 1e-2}
TOKENS = 40  # as in llamacpp.sh
work = pathlib.Path(sys.argv[1])
prompts = [json.loads(line) for line in pathlib.Path(__file__).with_suffix(".jsonl").read_text().splitlines()]


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
    print(f"{name}: {changed} matrices have the gguf package's bytes")


def start(name):
    """llama.cpp with keys and values in float32, as rubicon has them."""
    params = xllamacpp.CommonParams()
    params.model.path = str(work / f"{name}.gguf")
    params.n_ctx, params.n_parallel, params.verbosity = 512, 1, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    return xllamacpp.Server(params)


def complete(server, query):
    """The continuation's tokens: for each its id, and the log-probabilities of the likeliest ones by id."""
    limits = {"max_tokens": TOKENS, "temperature": 0, "cache_prompt": False}
    if "messages" in query:
        choice = server.handle_chat_completions(query | limits | {"logprobs": True, "top_logprobs": 5})["choices"][0]
    else:
        choice = server.handle_completions(query | limits | {"logprobs": 5})["choices"][0]
    return [(t["id"], {o["id"]: o["logprob"] for o in t["top_logprobs"]}) for t in choice["logprobs"]["content"]]


def compare(name):
    server = start(name)
    replies = (work / f"{name}.jsonl").read_text().splitlines()
    equal, parted, gaps = 0, [], []
    for i, (query, reply) in enumerate(zip(prompts, replies, strict=True)):
        ours, theirs = json.loads(reply)["completions"][0], complete(server, query)
        ids = ours["ids"]
        at = next((k for k, (a, b) in enumerate(zip(ids, theirs)) if a != b[0]), min(len(ids), len(theirs)))
        gaps += [abs(p - b[1][a]) for a, p, b in zip(ids[:at], ours["logprobs"], theirs)]
        if at == len(ids) == len(theirs):
            equal += 1
            continue
        assert at < min(len(ids), len(theirs)), f"{name}: prompt {i + 1} ends after {len(ids)} tokens in rubicon, {len(theirs)} in llama.cpp"
        likely = theirs[at][1]
        margin = likely[theirs[at][0]] - likely.get(ids[at], -np.inf)
        parted.append(f"prompt {i + 1} at token {at + 1} (by {margin:.2g} nats)")
        assert margin <= TIES.get(name, np.inf), f"{name}: {parted[-1]}: not a tie, which is at most {TIES[name]}"
    assert gaps, name
    print(f"{name}: {equal} of {len(prompts)} greedy continuations of up to {TOKENS} tokens are llama.cpp's to the last token; "
          f"log-probabilities of equal tokens differ by at most {max(gaps):.2g}; first differences: {', '.join(parted) or 'none'}")


for kind in ["f16", "bf16", "q8_0"]:
    same_bytes(kind)
for kind in ["f32", "f16", "bf16", "q8_0"]:
    compare(kind)
