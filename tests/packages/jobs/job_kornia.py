"""Filters, colours, geometry and augmentation of images."""

import kornia
import torch
from report import show

torch.manual_seed(0)
x = torch.rand(2, 3, 12, 14, requires_grad=True)
show("blur", kornia.filters.gaussian_blur2d(x, (5, 5), (1.0, 1.0)))
show("sobel", kornia.filters.sobel(x)), show("lab", kornia.color.rgb_to_lab(x))
turned = kornia.geometry.transform.rotate(x, torch.tensor([20.0, -40.0]))
turned.sum().backward()
show("turned", turned), show("gradient", x.grad)
show("ssim", kornia.metrics.ssim(x, x.detach().flip(-1), 5))
augmentation = kornia.augmentation.AugmentationSequential(
    kornia.augmentation.RandomHorizontalFlip(p=0.5), kornia.augmentation.RandomAffine(15.0, p=1.0)
)
show("augmented", augmentation(x.detach()))
