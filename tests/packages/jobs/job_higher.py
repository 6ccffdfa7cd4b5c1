"""Differentiating through steps of an optimizer."""

import higher
import torch
from report import show

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
rate = torch.tensor(0.1, requires_grad=True)
x, y = torch.randn(8, 3), torch.randn(8, 1)
with higher.innerloop_ctx(model, torch.optim.SGD(model.parameters(), lr=0.1), override={"lr": [rate]}) as (
    inner,
    steps,
):
    for _ in range(3):
        steps.step(torch.nn.functional.mse_loss(inner(x), y))
    loss = torch.nn.functional.mse_loss(inner(x), y)
    loss.backward()
show("loss", loss), show("rate", rate.grad), show("gradient", model.weight.grad)
