"""Weight and spectral normalisation, orthogonal weights and a custom parametrization."""

import warnings

import torch
import torch.nn as nn
from torch.nn.utils import parametrizations as P
from torch.nn.utils import parametrize

warnings.simplefilter("ignore")
torch.manual_seed(0)
a = nn.utils.weight_norm(nn.Linear(4, 3))
b = P.weight_norm(nn.Conv1d(2, 2, 2))
c = P.spectral_norm(nn.Linear(4, 4))
d = nn.utils.spectral_norm(nn.Linear(4, 4))
e = P.orthogonal(nn.Linear(3, 3))
print(a, b, c, d, e, sep="\n")
x = torch.randn(5, 4)
net = nn.Sequential(a, nn.Tanh())
o = torch.optim.Adam(list(net.parameters()) + list(c.parameters()) + list(d.parameters()), lr=0.01)
for i in range(4):
    loss = (net(c(d(x))) ** 2).mean()
    o.zero_grad()
    loss.backward()
    o.step()
    print(loss.item())
print([n for n, _ in a.named_parameters()], [n for n, _ in c.named_parameters()], list(d.state_dict()))
print(a.weight_g.flatten(), b.parametrizations.weight.original0.flatten(), torch.linalg.svdvals(c.weight))
print((e.weight @ e.weight.T).round(decimals=4).abs())
nn.utils.remove_weight_norm(a)
print(a, sorted(a.state_dict()))
parametrize.remove_parametrizations(c, "weight")
print(c)


class Sym(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)


l = nn.Linear(3, 3)
parametrize.register_parametrization(l, "weight", Sym())
print(torch.equal(l.weight, l.weight.T), l)
with parametrize.cached():
    print(l.weight is l.weight)
print(parametrize.is_parametrized(l))
