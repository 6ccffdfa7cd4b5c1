"""The operators ``nms`` and ``roi_align`` of torchvision, with the gradient, and a detector that calls them."""

import torch
from report import show
from torchvision import ops
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

torch.manual_seed(0)
corners = torch.rand(30, 2) * 10
boxes = torch.cat([corners, corners + torch.rand(30, 2) * 8], 1)
show("nms", ops.nms(boxes, torch.rand(30), 0.3))
show("batched nms", ops.batched_nms(boxes, torch.rand(30), torch.arange(30) % 3, 0.3))
images = torch.randn(2, 3, 18, 20, requires_grad=True)
regions = torch.cat([torch.arange(30.0)[:, None] % 2, boxes], 1)
for aligned, ratio in ((False, -1), (True, 2), (True, -1)):
    images.grad = None
    pooled = ops.roi_align(images, regions, (3, 4), 0.9, ratio, aligned)
    (pooled * torch.randn(pooled.shape)).sum().backward()
    show("roi align", pooled), show("gradient", images.grad)
detector = fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None, num_classes=3).eval()
with torch.no_grad():
    show("detected", detector([torch.rand(3, 60, 80)])[0]["boxes"][:3])
