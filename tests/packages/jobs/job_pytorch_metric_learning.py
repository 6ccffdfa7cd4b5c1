"""Losses, miners and distances of embeddings."""

import torch
from pytorch_metric_learning import distances, losses, miners
from report import show

torch.manual_seed(0)
x, labels = torch.randn(16, 8, requires_grad=True), torch.arange(16) % 4
pairs = miners.MultiSimilarityMiner(epsilon=0.2)(x, labels)
for loss in (losses.TripletMarginLoss(), losses.NTXentLoss(0.1), losses.ContrastiveLoss(), losses.SupConLoss()):
    show(type(loss).__name__, loss(x, labels))
mined = losses.TripletMarginLoss(distance=distances.CosineSimilarity())(x, labels, pairs)
mined.backward()
show("mined", mined), show("gradient", x.grad)
