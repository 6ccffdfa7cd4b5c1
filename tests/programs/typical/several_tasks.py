"""Multi-task learning: one trunk, several heads, learned loss weights."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class Multi(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(7, 16), nn.SiLU())
        self.heads = nn.ModuleDict({"cls": nn.Linear(16, 3), "reg": nn.Linear(16, 1), "rank": nn.Linear(16, 1)})
        self.log_vars = nn.ParameterDict({k: nn.Parameter(torch.zeros(())) for k in self.heads})
        self.register_buffer("seen", torch.tensor(0))

    def forward(self, x):
        h = self.trunk(x)
        self.seen += len(x)
        return {k: f(h) for k, f in self.heads.items()}


m = Multi()
print(m)
opt = torch.optim.NAdam(m.parameters(), lr=0.02)
x = torch.randn(30, 7)
t = {"cls": torch.randint(3, (30,)), "reg": x.mean(1, keepdim=True), "rank": torch.sign(torch.randn(15, 1))}
for e in range(6):
    o = m(x)
    ls = {
        "cls": F.cross_entropy(o["cls"], t["cls"]),
        "reg": F.huber_loss(o["reg"], t["reg"], delta=0.5),
        "rank": F.margin_ranking_loss(o["rank"][:15], o["rank"][15:], t["rank"], margin=0.1),
    }
    total = sum(torch.exp(-m.log_vars[k]) * v + m.log_vars[k] for k, v in ls.items())
    opt.zero_grad()
    total.backward()
    opt.step()
    print(e, {k: round(v.item(), 5) for k, v in ls.items()}, f"{total:.5f}")
print(m.seen, {k: round(v.item(), 5) for k, v in m.log_vars.items()})
print(*(f"{n}: {tuple(b.shape)}" for n, b in m.state_dict().items()), sep="\n")
gs = torch.autograd.grad(F.mse_loss(m(x)["reg"], t["reg"]), m.trunk.parameters(), allow_unused=True)
print([g.norm() for g in gs])
