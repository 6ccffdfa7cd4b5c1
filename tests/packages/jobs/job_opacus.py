"""Gradients of each sample, clipped and with noise."""

import torch
from opacus import PrivacyEngine
from opacus.grad_sample import GradSampleModule
from report import show
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv1d(1, 2, 3), torch.nn.Flatten(), torch.nn.Linear(8, 3))
x, y = torch.randn(12, 1, 6), torch.randint(0, 3, (12,))
each = GradSampleModule(model)
torch.nn.functional.cross_entropy(each(x), y).backward()
show("gradients", model[2].weight.grad_sample)
each.zero_grad(), each.to_standard_module()
network = torch.nn.Linear(6, 3)
loader = DataLoader(TensorDataset(x[:, 0], y), batch_size=4)
network, optimizer, loader = PrivacyEngine().make_private(
    module=network, optimizer=torch.optim.SGD(network.parameters(), 0.1), data_loader=loader, noise_multiplier=1.0,
    max_grad_norm=1.0, poisson_sampling=False,
)  # fmt: skip
for a, b in loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(network(a), b).backward()
    optimizer.step()
show("weight", network._module.weight)
