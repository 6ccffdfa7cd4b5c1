"""Gradient accumulation over batches, clipping, and a confusion matrix."""

import torch
import torch.nn as nn

torch.manual_seed(4)
model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 3))
opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
crit = nn.CrossEntropyLoss(label_smoothing=0.1, weight=torch.tensor([1.0, 2.0, 0.5]))
x, y = torch.randn(96, 8), torch.randint(0, 3, (96,))
accum = 4
opt.zero_grad()
for epoch in range(3):
    for i, (a, b) in enumerate(zip(x.split(8), y.split(8))):
        loss = crit(model(a), b) / accum
        loss.backward()
        if (i + 1) % accum == 0:
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5, error_if_nonfinite=True)
            nn.utils.clip_grad_value_(model.parameters(), clip_value=0.1)
            opt.step()
            opt.zero_grad()
            print(f"{epoch} {i} {loss.item() * accum:.6f} {norm:.6f}")
print({n: p.grad is None for n, p in model.named_parameters()})
logits = model(x)
acc = (logits.argmax(1) == y).float().mean()
print(acc, logits.softmax(-1).max(-1))
v = nn.utils.parameters_to_vector(model.parameters())
print(v.shape, v.norm())
nn.utils.vector_to_parameters(v * 0.5, model.parameters())
print(model[0].weight[0])
conf = torch.zeros(3, 3, dtype=torch.int64)
for t, p in zip(y, logits.argmax(1)):
    conf[t, p] += 1
print(conf, torch.bincount(y))
