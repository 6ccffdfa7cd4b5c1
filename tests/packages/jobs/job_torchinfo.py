"""The table of the layers of a network."""

import torch
from report import show
from torchinfo import summary

network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 5))
found = summary(network, input_size=(2, 3, 8, 8), verbose=0)
show("numbers", torch.tensor([found.total_params, found.total_mult_adds, found.total_output_bytes]).float())
print(len(str(found).splitlines()))
