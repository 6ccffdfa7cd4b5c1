"""A normalizing flow."""

import torch
import zuko
from report import show

torch.manual_seed(0)
flow = zuko.flows.NSF(3, 2, transforms=2, hidden_features=(16, 16))
x, context = torch.randn(6, 3), torch.randn(6, 2)
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
for _ in range(3):
    loss = -flow(context).log_prob(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
show("loss", loss)
show("samples", flow(context[0]).sample((4,)))
