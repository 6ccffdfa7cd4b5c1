"""Optimization on manifolds."""

import geoopt
import torch
from report import show

torch.manual_seed(0)
ball = geoopt.PoincareBall()
point = geoopt.ManifoldParameter(ball.random(4, 2), manifold=ball)
target = ball.random(4, 2)
optimizer = geoopt.optim.RiemannianAdam([point], lr=0.05)
for _ in range(5):
    optimizer.zero_grad()
    ball.dist(point, target).sum().backward()
    optimizer.step()
show("points", point)
stiefel = geoopt.Stiefel()
show("retraction", stiefel.retr(stiefel.random(3, 2), torch.randn(3, 2) * 0.1))
