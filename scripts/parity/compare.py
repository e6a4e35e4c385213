"""compare.py BASE ADAPTER: a trained adapter in transformers and PEFT gives the log-probabilities that rubicon gives.

Reads rubicon's answers to texts.jsonl on stdin (rubicon logprobs --model BASE --adapter ADAPTER < texts.jsonl).
"""
import json
import pathlib
import sys

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

BOUND = 1e-4  # float32 against float32 through 30 layers

base, adapter = sys.argv[1:3]
model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), adapter).eval()
moved = sum(p.abs().sum().item() for n, p in model.named_parameters() if "lora_B" in n)
assert moved > 0, "the adapter changes nothing: nothing is compared"
tokenizer = AutoTokenizer.from_pretrained(adapter)
texts = pathlib.Path(__file__).with_name("texts.jsonl").read_text().splitlines()
logprobs, entropies = [], []
for line, reply in zip(texts, sys.stdin, strict=True):
    ids = tokenizer.encode(json.loads(line)["text"], add_special_tokens=False)
    ours = json.loads(reply)
    assert len(ours["logprobs"]) == len(ids), (len(ours["logprobs"]), len(ids), line)
    with torch.no_grad():
        logp = torch.log_softmax(model(torch.tensor([ids])).logits[0, :-1].double(), -1)
    theirs = logp.gather(-1, torch.tensor(ids[1:])[:, None])[:, 0]
    logprobs.append(theirs - torch.tensor(ours["logprobs"][1:]))
    entropy = -(logp.exp() * logp).sum(-1)
    entropies.append(entropy - torch.tensor(ours["entropy"][1:]))
worst, worst_entropy = (torch.cat(d).abs().max().item() for d in (logprobs, entropies))
print(f"{len(texts)} texts: log-probabilities differ by at most {worst:.2g}, entropies by {worst_entropy:.2g} (bound {BOUND})")
sys.exit(not (worst <= BOUND and worst_entropy <= BOUND))  # NaN fails
