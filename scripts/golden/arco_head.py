"""Writes rewards/arco/testdata/head.json: the score head's scores and gradients by PyTorch, in float64.

    python3 scripts/golden/arco_head.py
"""
import json
import torch

H, K, N = 6, 3, 5


def number(i):  # the same small pseudo-random numbers in Go: no weights need to be stored
    return ((i * 7919 + 104729) % 2003) / 2003 - 0.5


torch.set_default_dtype(torch.float64)
widths = [H, 512, 128, K]
layers, at = [], 0
for a, b in zip(widths, widths[1:]):
    l = torch.nn.Linear(a, b)
    scale = 2 / a**0.5
    with torch.no_grad():
        l.weight.copy_(torch.tensor([[scale * number(at + i * b + o) for i in range(a)] for o in range(b)]))
        l.bias.copy_(torch.tensor([scale * number(at + a * b + o) for o in range(b)]))
    at += (a + 1) * b
    layers += [l, torch.nn.GELU()]
net = torch.nn.Sequential(*layers[:-1], torch.nn.Tanh())
x = torch.tensor([[4 * number(9 * n + i) for i in range(H)] for n in range(N)], requires_grad=True)
g = torch.tensor([[number(31 * n + k) for k in range(K)] for n in range(N)])
y = net(x)
(y * g).sum().backward()
grads = []
for l in net:
    if isinstance(l, torch.nn.Linear):
        grads += l.weight.grad.T.flatten().tolist() + l.bias.grad.tolist()
out = {
    "scores": y.tolist(),
    "dx": x.grad.tolist(),
    "grad": {str(i): grads[i] for i in range(0, len(grads), 997)},
    "grad_norm": torch.tensor(grads).norm().item(),
    "torch": torch.__version__,
}
with open("rewards/arco/testdata/head.json", "w") as f:
    json.dump(out, f, indent=1)
