"""A neural differential equation, trained by the adjoint method."""

import torch
from report import show
from torchdiffeq import odeint, odeint_adjoint

torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.network = network

    def forward(self, t, y):
        return self.network(y**3)


times, start = torch.linspace(0, 1, 5), torch.tensor([[2.0, 0.0]])
show("dopri5", odeint(Field(), start, times))
loss = odeint_adjoint(Field(), start, times, method="rk4").pow(2).mean()
loss.backward()
show("gradient", network[0].weight.grad)
