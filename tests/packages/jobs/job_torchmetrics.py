"""Metrics of classification, regression and of collections."""

import torch
import torchmetrics
from report import show

torch.manual_seed(0)
scores, labels = torch.randn(40, 3).softmax(1), torch.randint(0, 3, (40,))
metrics = torchmetrics.MetricCollection(
    [
        torchmetrics.Accuracy("multiclass", num_classes=3),
        torchmetrics.F1Score("multiclass", num_classes=3, average="macro"),
        torchmetrics.AUROC("multiclass", num_classes=3),
        torchmetrics.ConfusionMatrix("multiclass", num_classes=3),
    ]
)
for part in range(0, 40, 20):
    metrics.update(scores[part : part + 20], labels[part : part + 20])
for name, value in metrics.compute().items():
    show(name, value)
x, y = torch.randn(30), torch.randn(30)
for metric in (torchmetrics.MeanSquaredError(), torchmetrics.R2Score(), torchmetrics.PearsonCorrCoef()):
    show(type(metric).__name__, metric(x, y))
