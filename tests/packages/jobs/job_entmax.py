"""Sparse alternatives of softmax, and their losses."""

import torch
from entmax import entmax15, entmax_bisect, sparsemax, sparsemax_loss
from report import show

torch.manual_seed(0)
x = torch.randn(3, 5, requires_grad=True)
show("sparsemax", sparsemax(x, dim=-1))
show("entmax15", entmax15(x, dim=-1))
show("bisection", entmax_bisect(x, alpha=1.3, dim=-1))
(sparsemax_loss(x, torch.tensor([0, 2, 4])).sum() + entmax15(x)[:, 0].sum()).backward()
show("gradient", x.grad)
