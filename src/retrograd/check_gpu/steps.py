"""Training steps that are timed: an MLP, a CNN and a small GPT.

Each function takes the module ``torch``, which is this package or PyTorch, and the name of a device, and returns a
function that trains one step and returns the loss. ``STEPS`` has them by name.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

Step = Callable[[], Any]


def mlp(torch: Any, device: str) -> Step:
    """Three linear layers on 64 images of 784 numbers, with SGD."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.rand(64, 784).to(device), torch.randint(0, 10, (64,)).to(device)
    return _step_of(torch, model, optimizer, lambda: nn.functional.cross_entropy(model(x), y))


def cnn(torch: Any, device: str) -> Step:
    """Two convolutions with batch normalization and pooling on 32 images of 3 × 32 × 32, with Adam."""
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 8 * 8, 10),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = torch.rand(32, 3, 32, 32).to(device), torch.randint(0, 10, (32,)).to(device)
    return _step_of(torch, model, optimizer, lambda: nn.functional.cross_entropy(model(x), y))


def gpt(torch: Any, device: str, words: int = 96, length: int = 64, width: int = 128, layers: int = 3) -> Step:
    """A transformer of three causal layers of width 128 on 8 sequences of 64 characters, with AdamW."""
    nn = torch.nn
    block = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
    model = nn.ModuleDict(
        {
            "words": nn.Embedding(words, width),
            "places": nn.Embedding(length, width),
            "blocks": nn.TransformerEncoder(block, layers, enable_nested_tensor=False),
            "head": nn.Linear(width, words),
        }
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.randint(0, words, (8, length + 1)).to(device)
    inputs, targets = tokens[:, :-1], tokens[:, 1:].reshape(-1)

    def loss() -> Any:
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=device)
        x = model["words"](inputs) + model["places"](torch.arange(length, device=device))
        scores = model["head"](model["blocks"](x, mask=mask, is_causal=True))
        return nn.functional.cross_entropy(scores.reshape(-1, words), targets)

    return _step_of(torch, model, optimizer, loss)


def _step_of(torch: Any, model: Any, optimizer: Any, loss_of: Callable[[], Any]) -> Step:
    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    return step


STEPS: dict[str, Callable[[Any, str], Step]] = {"MLP": mlp, "CNN": cnn, "GPT": gpt}


def timed(torch: Any, step: Step, device: str, seconds: float) -> tuple[float, float]:
    """Return the time of the first step, and the median of at most 50 others within ``seconds``, in milliseconds."""

    def once() -> float:
        started = time.perf_counter()
        step()
        if device == "cuda":
            torch.cuda.synchronize()
        return 1000 * (time.perf_counter() - started)

    first = once()
    times: list[float] = []
    until = time.monotonic() + seconds
    while len(times) < 3 or (len(times) < 50 and time.monotonic() < until):
        times.append(once())
    return first, statistics.median(times)


__all__ = ["STEPS", "Step", "gpt", "timed"]
