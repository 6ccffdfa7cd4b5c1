"""Small programs that compute on a device, as users write them, for comparison of a GPU with the CPU.

Each function takes the name of a device and returns numbers and texts, which are the same on every device up to
rounding: random numbers depend on the seed only. ``PROGRAMS`` has them by name.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import retrograd as torch
from retrograd import nn
from retrograd.nn import functional as F
from retrograd.utils.data import DataLoader, TensorDataset

Results = list[float | str]


class Program(NamedTuple):
    """Program, and the relative tolerance of its numbers."""

    run: Callable[[str], Results]
    tolerance: float


PROGRAMS: dict[str, Program] = {}


def _program(name: str, tolerance: float = 1e-3) -> Callable[[Callable[[str], Results]], Callable[[str], Results]]:
    def register(run: Callable[[str], Results]) -> Callable[[str], Results]:
        PROGRAMS[name] = Program(run, tolerance)
        return run

    return register


def _numbers(*tensors: Any) -> Results:
    """Return sum and root mean square of each tensor."""
    found: Results = []
    for each in tensors:
        plain = each.detach().float()
        found += [plain.sum().item(), plain.square().mean().sqrt().item()]
    return found


def _train(model: Any, optimizer: Any, batches: Any, loss_of: Callable[[Any, Any], Any], steps: int = 1) -> Results:
    losses = []
    for _ in range(steps):
        for x, y in batches:
            optimizer.zero_grad()
            loss = loss_of(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    return [each.item() for each in losses]


@_program("tensors")
def tensors(device: str) -> Results:
    """Create, index, join and multiply tensors, and change them in place."""
    x = torch.arange(12.0, device=device).reshape(3, 4)
    y = torch.ones_like(x)
    y[:, 1] = 0
    joined = torch.cat([x, y], dim=1)
    product = x @ y.T
    y.add_(5)
    total = joined.sum()
    back = x.cpu().numpy()
    return [
        total.item(),
        float(back[2, 3]),
        *_numbers(product, y * x, x[..., -1], x[1:, ::2], torch.stack([x, y]).mean(0)),
    ]


@_program("polynomial")
def polynomial(device: str) -> Results:
    """Fit a polynomial of third order to the sine by gradients and a learning rate."""
    x = torch.linspace(-math.pi, math.pi, 2000, device=device)
    y = torch.sin(x)
    a, b, c, d = [torch.full((), value, device=device, requires_grad=True) for value in (0.1, -0.2, 0.3, 0.4)]
    losses = []
    for _ in range(20):
        predicted = a + b * x + c * x**2 + d * x**3
        loss = (predicted - y).pow(2).sum()
        loss.backward()
        with torch.no_grad():
            for each in (a, b, c, d):
                each -= 1e-6 * each.grad
                each.grad = None
        losses.append(loss.item())
    return [losses[0], losses[-1], *[each.item() for each in (a, b, c, d)]]


@_program("mlp")
def mlp(device: str) -> Results:
    """Train a network of three linear layers on images with a loader, and count what it classifies correctly."""
    torch.manual_seed(0)
    data = TensorDataset(torch.rand(64, 1, 8, 8), torch.randint(0, 10, (64,)))
    loader = DataLoader(data, batch_size=16)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_fn = nn.CrossEntropyLoss()
    losses = _train(model, optimizer, [(x.to(device), y.to(device)) for x, y in loader], loss_fn, 3)
    model.eval()
    correct = 0.0
    with torch.no_grad():
        for x, y in loader:
            predicted = model(x.to(device))
            correct += (predicted.argmax(1) == y.to(device)).type(torch.float).sum().item()
    return [*losses, correct]


@_program("cnn", 5e-3)
def cnn(device: str) -> Results:
    """Train a convolutional network with pooling, dropout and Adam."""
    torch.manual_seed(0)
    x, y = torch.rand(8, 1, 12, 12).to(device), torch.randint(0, 4, (8,)).to(device)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Dropout(0.25), nn.Linear(32, 4),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = _train(model, optimizer, [(x, y)], lambda out, y: F.nll_loss(F.log_softmax(out, 1), y), 4)
    return [*losses, *_numbers(*model.parameters())]


@_program("lstm", 5e-3)
def lstm(device: str) -> Results:
    """Train an LSTM with two layers on sequences, with a schedule of the learning rate."""
    torch.manual_seed(0)
    x, y = torch.randn(5, 6, 3).to(device), torch.randn(5, 2).to(device)
    network, head = nn.LSTM(3, 8, num_layers=2, batch_first=True).to(device), nn.Linear(8, 2).to(device)
    optimizer = torch.optim.RMSprop([*network.parameters(), *head.parameters()], lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    losses: Results = []
    for _ in range(4):
        optimizer.zero_grad()
        out, (hidden, cell) = network(x)
        loss = F.mse_loss(head(out[:, -1]), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return [*losses, scheduler.get_last_lr()[0], *_numbers(out, hidden, cell)]


@_program("attention", 5e-3)
def attention(device: str) -> Results:
    """Train a layer of a transformer with a causal mask and AdamW."""
    torch.manual_seed(0)
    x = torch.randn(2, 5, 8).to(device)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).to(device)
    mask = nn.Transformer.generate_square_subsequent_mask(5, device=device)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-2)
    losses: Results = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = layer(x, src_mask=mask, is_causal=True).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    q = torch.randn(2, 2, 4, 3).to(device)
    return [*losses, *_numbers(F.scaled_dot_product_attention(q, q, q, is_causal=True))]


@_program("batch_norm")
def batch_norm(device: str) -> Results:
    """Normalise batches in training and in evaluation, with running statistics."""
    torch.manual_seed(0)
    x = torch.randn(6, 3, 4, 4).to(device)
    layer, other = nn.BatchNorm2d(3).to(device), nn.LayerNorm([4, 4]).to(device)
    for _ in range(3):
        out = layer(x * 2 + 1)
    out.square().sum().backward()
    layer.eval()
    return _numbers(
        out, layer(x), other(x), layer.running_mean, layer.running_var, layer.num_batches_tracked, layer.weight.grad
    )


@_program("embedding")
def embedding(device: str) -> Results:
    """Train word vectors by predicting the next word."""
    torch.manual_seed(0)
    words = torch.randint(0, 20, (4, 7)).to(device)
    table, bag, head = nn.Embedding(20, 6), nn.EmbeddingBag(20, 6, mode="mean"), nn.Linear(12, 20)
    model = nn.ModuleList([table, bag, head]).to(device)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    losses: Results = []
    for _ in range(3):
        optimizer.zero_grad()
        features = torch.cat([table(words[:, -2]), bag(words[:, :-1])], 1)
        loss = F.cross_entropy(head(features), words[:, -1])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [*losses, *_numbers(table.weight, bag.weight)]


@_program("autocast", 3e-2)
def autocast(device: str) -> Results:
    """Train in bfloat16 by autocast."""
    torch.manual_seed(0)
    x, y = torch.randn(16, 8).to(device), torch.randint(0, 4, (16,)).to(device)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses: Results = []
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16):
            out = model(x)
            loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        losses += [loss.item(), str(out.dtype), str(loss.dtype)]
    return losses


@_program("grad_scaler", 3e-2)
def grad_scaler(device: str) -> Results:
    """Train in float16 with scaled gradients; a step with an infinite gradient is left out."""
    torch.manual_seed(0)
    x, y = torch.randn(16, 8).to(device), torch.randn(16, 1).to(device)
    model = nn.Linear(8, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler(device, init_scale=1024.0, growth_interval=2)
    found: Results = []
    for step in range(4):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.float16):
            loss = F.mse_loss(model(x).float(), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        if step == 2:
            model.weight.grad.fill_(float("inf"))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        scaler.step(optimizer)
        scaler.update()
        found += [loss.item(), scaler.get_scale()]
    return found


@_program("masks")
def masks(device: str) -> Results:
    """Select and fill elements by masks and indices."""
    torch.manual_seed(0)
    x = torch.randn(5, 6).to(device)
    mask = x > 0
    filled = x.masked_fill(mask, 0.0)
    rows, columns = torch.nonzero(mask, as_tuple=True)
    lower = torch.tril(torch.ones(5, 5, device=device, dtype=torch.bool))
    scores = torch.where(lower, x[:, :5], torch.tensor(float("-inf"), device=device)).softmax(-1)
    x[~mask] *= 2
    x[torch.tensor([0, 2])] += 1
    gathered = x.gather(1, torch.tensor([[0, 1]] * 5, device=device)).scatter_add(
        1, torch.zeros(5, 1, dtype=torch.int64, device=device), x[:, :1]
    )
    return [mask.sum().item(), rows.sum().item(), columns.sum().item(), *_numbers(filled, x[mask], scores, x, gathered)]


@_program("clipping")
def clipping(device: str) -> Results:
    """Clip gradients by norm and by value, with momentum and weight decay."""
    torch.manual_seed(0)
    x, y = torch.randn(8, 4).to(device), torch.randn(8, 2).to(device)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-2)
    found: Results = []
    for _ in range(3):
        optimizer.zero_grad()
        (100 * F.mse_loss(model(x), y)).backward()
        found.append(nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        nn.utils.clip_grad_value_(model.parameters(), 0.1)
        optimizer.step()
    return [*found, *_numbers(*model.parameters())]


@_program("save_load")
def save_load(device: str) -> Results:
    """Save a model and its optimizer, load them on the CPU and on the device, and go on."""
    torch.manual_seed(0)
    x, y = torch.randn(8, 4).to(device), torch.randn(8, 2).to(device)
    model = nn.Linear(4, 2).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    _train(model, optimizer, [(x, y)], F.mse_loss, 2)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    expected = _train(model, optimizer, [(x, y)], F.mse_loss, 2)
    file.seek(0)
    on_cpu = torch.load(file, map_location="cpu")
    fresh = nn.Linear(4, 2).to(device)
    fresh.load_state_dict(on_cpu["model"])
    again = torch.optim.Adam(fresh.parameters(), lr=0.1)
    again.load_state_dict(on_cpu["optimizer"])
    resumed = _train(fresh, again, [(x, y)], F.mse_loss, 2)
    file.seek(0)
    kept = torch.load(file)["model"]["weight"]
    return [*expected, *resumed, str(on_cpu["model"]["weight"].device), kept.device.type.replace(device, "device")]


@_program("accuracy")
def accuracy(device: str) -> Results:
    """Count correct predictions, the best classes, and a table of confusion."""
    torch.manual_seed(0)
    scores, labels = torch.randn(30, 5).to(device), torch.randint(0, 5, (30,)).to(device)
    predicted = scores.argmax(dim=1)
    correct = (predicted == labels).float().mean()
    best = scores.topk(3, dim=1)
    among = (best.indices == labels[:, None]).any(1).sum()
    table = torch.bincount(labels * 5 + predicted, minlength=25).reshape(5, 5)
    ordered, where = scores.sort(1, descending=True)
    return [correct.item(), among.item(), *_numbers(best.values, table, table.diagonal(), ordered, where)]


@_program("print")
def printing(device: str) -> Results:
    """Print tensors; the name of the device is replaced."""
    x = torch.tensor([[1.0, -2.5], [1e-3, float("nan")]], device=device)
    shown = [repr(x), repr(x.to(torch.bfloat16)), repr(x > 0), f"{x[0, 0]:.2f}", repr(torch.zeros(0, 3, device=device))]
    return [each.replace(f", device='{device}:0'", "").replace("\n      ", "\n") for each in shown]


__all__ = ["PROGRAMS", "Program", "Results"]
