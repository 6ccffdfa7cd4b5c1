"""Optimizers without a schedule, by functions of lists of tensors."""

import torch
from report import show
from schedulefree import AdamWScheduleFree, SGDScheduleFree

for kind in (AdamWScheduleFree, SGDScheduleFree):
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 2)
    optimizer = kind(layer.parameters(), lr=0.02, warmup_steps=2)
    optimizer.train()
    for _ in range(4):
        optimizer.zero_grad()
        layer(torch.randn(3, 4)).pow(2).mean().backward()
        optimizer.step()
    optimizer.eval()
    show(kind.__name__, layer.weight)
