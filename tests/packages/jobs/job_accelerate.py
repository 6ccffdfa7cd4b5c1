"""Accelerator: a training loop with gradient accumulation and clipping."""

import torch
from accelerate import Accelerator
from report import show
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
loader = DataLoader(TensorDataset(torch.randn(24, 6), torch.randn(24, 1)), batch_size=6)
model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), 0.01), loader)
for x, y in loader:
    with accelerator.accumulate(model):
        loss = torch.nn.functional.mse_loss(model(x), y)
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            show("norm", accelerator.clip_grad_norm_(model.parameters(), 0.5))
        optimizer.step(), optimizer.zero_grad()
    show("loss", accelerator.gather(loss))
