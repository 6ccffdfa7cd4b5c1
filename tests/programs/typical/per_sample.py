"""Per-sample gradients, ensembles and Hessians with torch.func."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap

torch.manual_seed(0)


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(1, 4, 3)
        self.f = nn.Linear(64, 3)

    def forward(self, x):
        return F.log_softmax(self.f(torch.flatten(F.relu(self.c(x)), 1)), 1)


m = CNN()
data, targets = torch.randn(5, 1, 6, 6), torch.randint(0, 3, (5,))
params = {k: v.detach() for k, v in m.named_parameters()}
buffers = {k: v.detach() for k, v in m.named_buffers()}


def loss(p, b, s, t):
    return F.nll_loss(functional_call(m, (p, b), (s.unsqueeze(0),)), t.unsqueeze(0))


g = vmap(grad(loss), in_dims=(None, None, 0, 0))(params, buffers, data, targets)
print({k: (v.shape, v.flatten(1).norm(dim=1)) for k, v in g.items()})


def per(s, t):
    return torch.autograd.grad(F.nll_loss(m(s.unsqueeze(0)), t.unsqueeze(0)), list(m.parameters()))


ref = [torch.stack(z) for z in zip(*[per(data[i], targets[i]) for i in range(5)])]
print([torch.allclose(a, b, atol=1e-5) for a, b in zip(ref, g.values())])
models = [nn.Linear(3, 2) for _ in range(4)]
ps, bs = stack_module_state(models)
base = nn.Linear(3, 2)
print(vmap(lambda p, b, x: functional_call(base, (p, b), (x,)), in_dims=(0, 0, None))(ps, bs, torch.ones(1, 3)))
f = lambda x: (x.sin() * x.sum()).tanh()
x = torch.tensor([0.1, 0.5, -0.7])
print(jacrev(f)(x), jacfwd(f)(x), hessian(lambda v: f(v).sum())(x))
print(vjp(f, x)[1](torch.ones(3)), jvp(f, (x,), (torch.ones(3),)), torch.func.grad_and_value(lambda v: f(v).sum())(x))
print(
    vmap(torch.dot)(torch.arange(6.0).view(2, 3), torch.ones(2, 3)),
    vmap(lambda v: torch.randn(2) + v, randomness="different")(torch.zeros(3)).shape,
)
