"""A batch of ordinary differential equations by Dormand and Prince's method."""

import torch
import torchode
from report import show

times = torch.linspace(0, 3, 5).repeat(2, 1)
rate = torch.tensor([0.5], requires_grad=True)
term = torchode.ODETerm(lambda t, y: -rate * y)
method = torchode.Tsit5(term)
solver = torchode.AutoDiffAdjoint(method, torchode.IntegralController(1e-5, 1e-5, term=term))
found = solver.solve(torchode.InitialValueProblem(y0=torch.tensor([[1.0], [2.0]]), t_eval=times))
found.ys.sum().backward()
show("solution", found.ys), show("gradient", rate.grad), show("steps", found.stats["n_steps"])
