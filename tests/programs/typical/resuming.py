"""Save and resume a training run; load checkpoints that do not match."""

import os
import tempfile

import torch
import torch.nn as nn


def build():
    torch.manual_seed(10)
    m = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
    o = torch.optim.Adam(m.parameters(), lr=1e-2, amsgrad=True)
    return m, o, torch.optim.lr_scheduler.ExponentialLR(o, 0.9)


def epoch(m, o, s, x, y):
    m.train()
    o.zero_grad()
    l = nn.functional.smooth_l1_loss(m(x), y)
    l.backward()
    o.step()
    s.step()
    return l.item()


torch.manual_seed(0)
x = torch.randn(32, 4)
y = x.sum(1, keepdim=True)
m, o, s = build()
first = [epoch(m, o, s, x, y) for _ in range(3)]
path = os.path.join(tempfile.mkdtemp(), "ckpt.pth")
torch.save(
    {
        "epoch": 3,
        "model_state_dict": m.state_dict(),
        "optimizer_state_dict": o.state_dict(),
        "sched": s.state_dict(),
        "rng": torch.get_rng_state(),
        "loss": first[-1],
    },
    path,
)
rest = [epoch(m, o, s, x, y) for _ in range(3)]
m2, o2, s2 = build()
c = torch.load(path, weights_only=True)
print(m2.load_state_dict(c["model_state_dict"]))
o2.load_state_dict(c["optimizer_state_dict"])
s2.load_state_dict(c["sched"])
torch.set_rng_state(c["rng"])
again = [epoch(m2, o2, s2, x, y) for _ in range(3)]
print(first, rest, rest == again)
print(c.keys(), list(c["model_state_dict"]), c["optimizer_state_dict"]["param_groups"])
torch.save(m, path)
m3 = torch.load(path, weights_only=False)
print(m3, torch.equal(m3[0].weight, m[0].weight))
sd = {k.replace("0.", "first."): v for k, v in m.state_dict().items()}
try:
    m2.load_state_dict(sd)
except RuntimeError as e:
    print(e)
print(m2.load_state_dict(sd, strict=False))
try:
    nn.Linear(3, 16).load_state_dict({"weight": torch.ones(16, 4), "bias": torch.ones(16)})
except RuntimeError as e:
    print(e)
