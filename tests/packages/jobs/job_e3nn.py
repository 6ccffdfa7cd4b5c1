"""Spherical harmonics, tensor products of representations and a gate, with gradients."""

import torch
from e3nn import nn, o3
from report import show

torch.manual_seed(0)
x = torch.randn(6, 3)
harmonics = o3.spherical_harmonics([0, 1, 2], x, normalize=True)
show("harmonics", harmonics)
product = o3.FullyConnectedTensorProduct("1x0e+1x1o+1x2e", "4x0e+2x1o", "3x0e+2x1o")
features = torch.randn(6, 10, requires_grad=True)
found = product(harmonics, features)
found.square().sum().backward()
show("product", found), show("gradient", features.grad)
gate = nn.Gate("2x0e", [torch.tanh], "2x0e", [torch.sigmoid], "2x1o")
show("gate", gate(torch.randn(3, gate.irreps_in.dim)))
show("matrix", o3.Irreps("1x1o").D_from_angles(torch.tensor(0.1), torch.tensor(0.2), torch.tensor(0.3)))
