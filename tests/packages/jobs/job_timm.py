"""Networks for images with weights of a seed, and an optimizer with a schedule."""

import timm
import torch
from report import show
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler

torch.manual_seed(0)
for name in ("resnet18", "vit_tiny_patch16_224"):
    options = {"img_size": 32} if name.startswith("vit") else {}
    model = timm.create_model(name, pretrained=False, num_classes=4, **options).eval()
    with torch.no_grad():
        show(name, model(torch.randn(1, 3, 32, 32)))
head = torch.nn.Linear(6, 3)
optimizer = create_optimizer_v2(head, opt="lamb", lr=0.01, weight_decay=0.1)
schedule = CosineLRScheduler(optimizer, t_initial=4)
for epoch in range(3):
    optimizer.zero_grad()
    head(torch.randn(5, 6)).pow(2).mean().backward()
    optimizer.step()
    schedule.step(epoch)
show("lamb", head.weight)
