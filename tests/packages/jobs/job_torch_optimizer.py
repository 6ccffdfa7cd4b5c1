"""A few optimizers on a valley."""

import torch
import torch_optimizer
from report import show

for name in ("RAdam", "DiffGrad", "AdaBound", "Yogi", "Lamb", "QHAdam", "SGDW"):
    x = torch.tensor([-1.5, 1.0], requires_grad=True)
    optimizer = getattr(torch_optimizer, name)([x], lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        ((1 - x[0]) ** 2 + 10 * (x[1] - x[0] ** 2) ** 2).backward()
        optimizer.step()
    show(name, x)
