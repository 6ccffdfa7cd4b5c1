"""Losses, counts of parameters, schedules, and weights of initial layers."""

import torch
from fvcore.common.param_scheduler import CosineParamScheduler
from fvcore.nn import giou_loss, parameter_count, sigmoid_focal_loss, smooth_l1_loss, weight_init
from report import show

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(16, 5))
weight_init.c2_msra_fill(model[0])
show("weight", model[0].weight), show("parameters", parameter_count(model)[""])
x = torch.randn(4, 5, requires_grad=True)
loss = sigmoid_focal_loss(x, (torch.rand(4, 5) > 0.5).float(), 0.25, 2, "mean")
loss.backward()
show("loss", loss), show("gradient", x.grad), show("smooth", smooth_l1_loss(x, torch.zeros(4, 5), 0.5))
corners = torch.rand(3, 2)
show("giou", giou_loss(torch.cat([corners, corners + 1], 1), torch.cat([corners + 0.2, corners + 1.1], 1)))
show("schedule", [CosineParamScheduler(1.0, 0.1)(each / 4) for each in range(5)])
