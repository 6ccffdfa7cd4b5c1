"""Message passing on a graph: index_add, scatter_reduce, a softmax over neighbours."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
N, E = 12, 40
ei = torch.randint(0, N, (2, E))
x = torch.randn(N, 5)
y = torch.randint(0, 3, (N,))


def scatter_mean(src, idx, n):
    s = torch.zeros(n, src.size(1)).index_add_(0, idx, src)
    c = torch.zeros(n).scatter_add_(0, idx, torch.ones_like(idx, dtype=torch.float))
    return s / c.clamp(min=1).unsqueeze(1)


def seg_softmax(a, idx, n):
    m = torch.full((n,), float("-inf")).scatter_reduce(0, idx, a, "amax", include_self=False)
    e = (a - m[idx]).exp()
    return e / torch.zeros(n).index_add(0, idx, e)[idx]


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2 = nn.Linear(5, 8), nn.Linear(8, 3)
        self.att = nn.Parameter(torch.empty(16))
        nn.init.normal_(self.att, std=0.1)

    def forward(self, x, ei):
        s, d = ei
        h = F.elu(self.l1(x))
        h = h + scatter_mean(h[s], d, len(x))
        a = F.leaky_relu((torch.cat([h[s], h[d]], 1) * self.att).sum(1), 0.2)
        w = seg_softmax(a, d, len(x))
        h = torch.zeros_like(h).index_add(0, d, w.unsqueeze(1) * h[s])
        return F.log_softmax(self.l2(F.dropout(h, 0.3, self.training)), 1)


net = GCN()
opt = torch.optim.Adamax(net.parameters(), lr=0.05)
mask = torch.zeros(N, dtype=torch.bool)
mask[torch.randperm(N)[:8]] = True
for e in range(6):
    net.train()
    l = F.nll_loss(net(x, ei)[mask], y[mask])
    opt.zero_grad()
    l.backward()
    opt.step()
    print(e, f"{l.item():.5f}")
A = torch.zeros(N, N)
A[ei[0], ei[1]] = 1
A = ((A + A.T) > 0).float().fill_diagonal_(1)
D = A.sum(1).rsqrt()
L = torch.eye(N) - D[:, None] * A * D
print(torch.linalg.eigvalsh(L)[1:4], A.sum(), torch.linalg.matrix_rank(A))
print(
    torch.zeros(3, 2).index_put((torch.tensor([0, 0, 2]),), torch.ones(3, 2), accumulate=True),
    torch.bucketize(torch.tensor([0.1, 2.5]), torch.tensor([0.0, 1.0, 2.0])),
    torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 6])),
)
adj = torch.triu(torch.rand(4, 4) > 0.5, 1)
print(adj.nonzero().T, torch.combinations(torch.arange(3)), torch.cartesian_prod(torch.arange(2), torch.arange(2)))
x.requires_grad_()
out = torch.zeros(4).scatter_reduce(0, torch.tensor([0, 1, 1, 3, 0]), x[0], "sum")
out.sum().backward()
print(x.grad[0])
