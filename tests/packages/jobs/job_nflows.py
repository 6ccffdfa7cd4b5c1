"""A flow of autoregressive transforms: density, samples and a step of training."""

import torch
from nflows.distributions.normal import StandardNormal
from nflows.flows.base import Flow
from nflows.transforms import CompositeTransform, MaskedAffineAutoregressiveTransform, ReversePermutation
from report import show

torch.manual_seed(0)
layers = [each for _ in range(2) for each in (ReversePermutation(2), MaskedAffineAutoregressiveTransform(2, 8))]
flow = Flow(CompositeTransform(layers), StandardNormal([2]))
optimizer = torch.optim.Adam(flow.parameters(), 0.01)
x = torch.randn(50, 2) * 0.5 + 1
for _ in range(4):
    optimizer.zero_grad()
    loss = -flow.log_prob(x).mean()
    loss.backward(), optimizer.step()
show("loss", loss), show("samples", flow.sample(4))
