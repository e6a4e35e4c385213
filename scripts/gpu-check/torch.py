"""Times a model of random weights in torch and transformers: a shape as JSON on stdin, tokens a second as JSON on stdout."""
import json
import sys
import time

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config


class LoRA(torch.nn.Module):
    """A frozen linear layer with a low-rank part in float32."""

    def __init__(self, base, rank):
        super().__init__()
        self.base = base
        self.a = torch.nn.Parameter(torch.randn(rank, base.in_features, device="cuda") * 0.01)
        self.b = torch.nn.Parameter(torch.zeros(base.out_features, rank, device="cuda"))

    def forward(self, x):
        return self.base(x) + 2 * (x @ self.a.T.to(x.dtype)) @ self.b.T.to(x.dtype)


def best(times, f):
    least = float("inf")
    for i in range(times + 1):
        torch.cuda.synchronize()
        began = time.perf_counter()
        f()
        torch.cuda.synchronize()
        if i:
            least = min(least, time.perf_counter() - began)
    return least


def main():
    shape = json.load(sys.stdin)
    sequences, length, rank = (shape.pop(k) for k in ("sequences", "length", "rank"))
    config = {"llama": LlamaConfig, "qwen2": Qwen2Config}[shape.pop("arch")](max_position_embeddings=8192, **shape)
    with torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
        torch.set_default_dtype(torch.float32)
    model.requires_grad_(False)
    for layer in model.model.layers:
        for parent in (layer.self_attn, layer.mlp):
            for name, child in list(parent.named_children()):
                if isinstance(child, torch.nn.Linear):
                    setattr(parent, name, LoRA(child, rank))
    ids = torch.randint(0, config.vocab_size, (sequences, length), device="cuda")

    def logp():
        hidden = model.model(ids).last_hidden_state[:, :-1]
        total = 0
        for i in range(sequences):  # the logits of one sequence at a time
            total = total + torch.log_softmax(model.lm_head(hidden[i]).float(), -1).gather(-1, ids[i, 1:, None]).mean()
        return total

    with torch.no_grad():
        forward = best(3, logp)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.train()
    train = best(3, lambda: logp().backward())
    n = sequences * length
    print(json.dumps({"forward": n / forward, "train": n / train}))


main()
