"""What arco_head.py and arco_update.py share: ARCO's score head with weights that need not be stored."""
import torch


def number(i):  # the same small pseudo-random numbers in Go
    return ((i * 7919 + 104729) % 2003) / 2003 - 0.5


def head(width, k):
    """The head [width, 512, 128, k] with GELU between and tanh at the end."""
    widths = [width, 512, 128, k]
    layers, at = [], 0
    for a, b in zip(widths, widths[1:]):
        l = torch.nn.Linear(a, b)
        scale = 2 / a**0.5
        with torch.no_grad():
            l.weight.copy_(torch.tensor([[scale * number(at + i * b + o) for i in range(a)] for o in range(b)]))
            l.bias.copy_(torch.tensor([scale * number(at + a * b + o) for o in range(b)]))
        at += (a + 1) * b
        layers += [l, torch.nn.GELU()]
    return torch.nn.Sequential(*layers[:-1], torch.nn.Tanh())
