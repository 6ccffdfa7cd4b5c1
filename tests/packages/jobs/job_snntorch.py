"""Spiking neurons in time, with a surrogate gradient."""

import snntorch as snn
import torch
from report import show
from snntorch import spikegen, surrogate

torch.manual_seed(0)
spikes = spikegen.rate(torch.rand(4, 6), num_steps=8)
show("spikes", spikes)
layer, leaky = torch.nn.Linear(6, 3), snn.Leaky(beta=0.8, spike_grad=surrogate.fast_sigmoid())
membrane, total = leaky.init_leaky(), 0
for each in spikes:
    spike, membrane = leaky(layer(each), membrane)
    total = total + spike
torch.nn.functional.cross_entropy(total, torch.tensor([0, 1, 2, 0])).backward()
show("membrane", membrane), show("total", total), show("gradient", layer.weight.grad)
