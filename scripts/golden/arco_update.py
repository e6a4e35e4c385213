"""Writes rewards/arco/testdata/update.json: the loss of ARCO's rubric model and its gradients by PyTorch and transformers, in float64, on the
tiny Qwen2 of internal/golden.

    python3 scripts/golden/arco_update.py
"""
import json
import torch
from arco_net import head, number
from transformers import AutoModelForCausalLM

torch.set_default_dtype(torch.float64)
K, KL = 3, 0.3
PATH = "internal/golden/testdata/models/qwen2"


class LoRA(torch.nn.Module):
    def __init__(self, base, r, alpha):
        super().__init__()
        self.base, self.scale = base, alpha / r
        self.A = torch.nn.Parameter(torch.zeros(r, base.in_features))
        self.B = torch.nn.Parameter(torch.zeros(base.out_features, r))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.A.T @ self.B.T)


ref = AutoModelForCausalLM.from_pretrained(PATH, dtype=torch.float64).eval()
lm = AutoModelForCausalLM.from_pretrained(PATH, dtype=torch.float64).eval()
for p in lm.parameters():
    p.requires_grad_(False)
loras = {}
for n, layer in enumerate(lm.model.layers):
    for name in ("q_proj", "v_proj"):
        l = LoRA(getattr(layer.self_attn, name), 2, 32)
        setattr(layer.self_attn, name, l)
        prefix = f"base_model.model.model.layers.{n}.self_attn.{name}"
        loras[f"{prefix}.lora_A.weight"], loras[f"{prefix}.lora_B.weight"] = l.A, l.B
for t, name in enumerate(sorted(loras)):
    p = loras[name]
    with torch.no_grad():
        p.copy_(torch.tensor([0.2 * number(j + 1000 * t) for j in range(p.numel())]).view(p.shape))

H = lm.config.hidden_size
score = head(H, K)

# Three episodes of 2, 1 and 3 steps: a step is a prompt of its own and criteria; steps of an episode begin alike.
episodes, rewards = [], [1.0, 0.0, 0.0]
for e, steps in enumerate([2, 1, 3]):
    shared = [(37 * e + 5 * i + 11) % 990 for i in range(6)]
    episodes.append([])
    for s in range(steps):
        prompt = shared + [(91 * e + 17 * s + 3 * i + 7) % 990 for i in range(3 + s)]
        written = [(53 * e + 29 * s + 13 * i + 2) % 990 for i in range(4 + e)]
        episodes[-1].append((prompt, written))

n, positive = len(rewards), sum(r > 0.5 for r in rewards)
loss, kl_sum, scores = 0.0, 0.0, []
for steps, R in zip(episodes, rewards):
    total = 0.0
    for prompt, written in steps:
        ids = torch.tensor([prompt + written])
        out = lm(ids, output_hidden_states=True)
        y = score(out.hidden_states[-1][0].mean(0))
        scores.append(y.tolist())
        total = total + y.mean()
        where = slice(len(prompt) - 1, len(prompt) + len(written) - 1)
        cur = torch.log_softmax(out.logits[0, where], -1)
        with torch.no_grad():
            old = torch.log_softmax(ref(ids).logits[0, where], -1)
        kl_sum = kl_sum + torch.nn.functional.kl_div(cur, old, log_target=True, reduction="none").sum(-1).mean()
    weight = n / (2 * positive) if R > 0.5 else n / (2 * (n - positive))
    loss = loss + weight * (total - R) ** 2
loss = loss / n + KL * kl_sum / n
loss.backward()
grad = {name: p.grad.flatten().tolist()[::7] for name, p in loras.items()}
norm = torch.sqrt(sum((p.grad**2).sum() for p in loras.values())).item()
head_norm = torch.sqrt(sum((p.grad**2).sum() for p in score.parameters())).item()
with open("rewards/arco/testdata/update.json", "w") as f:
    json.dump({"loss": loss.item(), "kl": (kl_sum / n).item(), "scores": scores, "grad": grad, "grad_norm": norm, "head_grad_norm": head_norm,
               "torch": torch.__version__}, f)
print(loss.item(), norm, head_norm)
