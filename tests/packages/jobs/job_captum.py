"""Attributions of a small network: integrated gradients, DeepLift, occlusion and feature ablation."""

import torch
from captum.attr import DeepLift, FeatureAblation, IntegratedGradients, LayerConductance, Occlusion
from report import show

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 3)).eval()
x = torch.randn(3, 5)
for method in (IntegratedGradients(model), DeepLift(model), FeatureAblation(model)):
    show(type(method).__name__, method.attribute(x, target=1))
show("Occlusion", Occlusion(model).attribute(x, (2,), target=0))
show("LayerConductance", LayerConductance(model, model[0]).attribute(x, target=2, n_steps=20))
