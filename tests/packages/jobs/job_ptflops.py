"""Counts of operations, by a mode of ``__torch_dispatch__``."""

import torch
from ptflops import get_model_complexity_info
from report import show

network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 5))
count, parameters = get_model_complexity_info(
    network, (3, 8, 8), backend="aten", as_strings=False, print_per_layer_stat=False, verbose=False
)
show("counts", torch.tensor([float(count), float(parameters)]))
