"""Peak memory of training steps: how far a step exceeds the memory after building model and optimizer and a warm step.

Every measurement runs in a new process. After the warm steps, memory that the engine and the C library keep for new
arrays is returned to the system. Linux resets the peak of a process by writing to ``/proc/self/clear_refs``, so the
increase is that of the measured steps alone.
"""

from __future__ import annotations

from pathlib import Path

from .footprint import Footprint, engines_of, measured

#: What every program begins with; ``loss_of`` returns the loss of ``model``.
_BEGIN = """
import ctypes
import {module} as torch
from {module}.utils.checkpoint import checkpoint
nn, F = torch.nn, torch.nn.functional
torch.manual_seed(0)
"""
#: What every program ends with: two warm steps, then the increase of the peak over three steps.
_END = """
optimizer = torch.optim.{optimizer}(model.parameters(), lr=1e-3)
def step():
    optimizer.zero_grad()
    loss_of().backward()
    optimizer.step()
def now():
    return int(open('/proc/self/status').read().split('VmRSS:')[1].split()[0]) * 1024 / 1e6
step()
step()
if hasattr(torch, 'empty_cache'):
    torch.empty_cache()
ctypes.CDLL(None).malloc_trim(0)
base = now()
open('/proc/self/clear_refs', 'w').write('5')
for _ in range(3):
    step()
print(max(peak() - base, 0.1))
"""
_MLP = """
model = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
x, y = torch.randn(512, 784), torch.randint(0, 10, (512,))
loss_of = lambda: F.cross_entropy(model(x), y)
"""
_CNN = """
model = nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(64 * 64, 10))
x, y = torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))
loss_of = lambda: F.cross_entropy(model(x), y)
"""
_GPT = """
width, layers, words, length = 128, 4, 96, 128
words_of, places = nn.Embedding(words, width), nn.Embedding(length, width)
blocks = nn.ModuleList([
    nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, 'gelu', batch_first=True, norm_first=True)
    for _ in range(layers)])
model = nn.ModuleList([words_of, places, blocks, nn.Linear(width, words)])
tokens = torch.randint(0, words, (16, length + 1))
mask = nn.Transformer.generate_square_subsequent_mask(length)
def loss_of():
    x = words_of(tokens[:, :-1]) + places(torch.arange(length))
    for block in blocks:
        x = {call}
    return F.cross_entropy(model[3](x).reshape(-1, words), tokens[:, 1:].reshape(-1))
"""
_PLAIN = "block(x, src_mask=mask, is_causal=True)"
_CHECKPOINT = "checkpoint(lambda x: block(x, src_mask=mask, is_causal=True), x, use_reentrant=False)"

#: name: (model and loss, optimizer).
PROGRAMS = {
    "MLP of 3 layers, batch 512, Adam": (_MLP, "Adam"),
    "CNN, 64 images of 3 × 32 × 32, SGD": (_CNN, "SGD"),
    "GPT of 4 layers, 16 × 128 characters, AdamW": (_GPT.replace("{call}", _PLAIN), "AdamW"),
    "GPT with checkpoints": (_GPT.replace("{call}", _CHECKPOINT), "AdamW"),
}


def rows(rounds: int, theirs: bool, against: Path | None = None) -> list[Footprint]:
    """Return all measurements of at most two rounds each; ``against`` is the folder that holds another tree's package."""
    rounds = min(rounds, 2)  # a peak of memory hardly varies
    engines = engines_of(theirs, against)
    return [
        Footprint(name, "MB", measured(_BEGIN + model + _END.replace("{optimizer}", optimizer), engines, rounds))
        for name, (model, optimizer) in PROGRAMS.items()
    ]
