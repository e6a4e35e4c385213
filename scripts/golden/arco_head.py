"""Writes rewards/arco/testdata/head.json: the score head's scores and gradients by PyTorch, in float64.

    python3 scripts/golden/arco_head.py
"""
import json
import torch
from arco_net import head, number

H, K, N = 6, 3, 5
torch.set_default_dtype(torch.float64)
net = head(H, K)
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
