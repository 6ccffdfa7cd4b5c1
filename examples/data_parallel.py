"""Data parallel training: the digits are shared out among several processes, whose gradients are averaged.

    retrograd launch --nproc-per-node 2 examples/data_parallel.py [--epochs 8] [--resume data_parallel.pt]

Each rank computes the gradient of its part of every batch, and DistributedDataParallel averages the gradients during the
backward pass. So the loss is the same with 1, 2 or 4 processes. Rank 0 prints a line per epoch, saves data_parallel.pt
after each, and plots the losses (data_parallel.png). After a failure with --max-restarts, training goes on from there.
Needs scikit-learn, tqdm and matplotlib: pip install ".[distributed,examples]".
"""

import argparse
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from tqdm import tqdm

BATCH = 64
STYLE = Path(__file__).resolve().parent / "data" / "pictures.mplstyle"


def start():
    """Create the process group, of one process if no launcher has started this one."""
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", init_method="tcp://127.0.0.1:0", rank=0, world_size=1)
    return dist.get_rank(), dist.get_world_size()


def load():
    """Return the training set and the test set: images (1, 8, 8) with values between 0 and 1, and their digits."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(digits.target)
    return TensorDataset(images[:1408], labels[:1408]), TensorDataset(images[1408:], labels[1408:])


def network():
    """Return a small convolutional network."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 4 * 4, 10),
    )  # fmt: skip


def accuracy(model, data, rank, size):
    """Return the accuracy on ``data``; each rank counts the right answers of its part."""
    images, labels = data.tensors[0][rank::size], data.tensors[1][rank::size]
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).sum()
    dist.all_reduce(right)
    return right.item() / len(data)


def draw(curves, file):
    """Plot the loss of every step, the mean of the ranks and each rank's own, and the accuracy of every epoch."""
    try:
        from matplotlib import pyplot
    except ImportError:
        print("No picture without matplotlib: pip install matplotlib")
        return
    if STYLE.exists():
        pyplot.style.use(STYLE)
    ranks = torch.tensor(curves["losses"])
    figure, (left, middle, right) = pyplot.subplots(1, 3)
    left.plot(ranks.mean(1), linewidth=0.8)
    left.set(yscale="log", title="mean loss", xlabel="step")
    for rank, losses in enumerate(ranks[:50].T):
        middle.plot(losses, linewidth=1.1, linestyle=("-", "--", ":", "-.")[rank % 4], label=f"rank {rank}")
    middle.set(title="loss of each rank", xlabel="step")
    middle.legend()
    right.plot(range(1, len(curves["accuracy"]) + 1), curves["accuracy"], marker=".")
    right.set(title="accuracy on the test set", xlabel="epoch")
    figure.savefig(file)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--epochs", type=int, default=8)
    options.add_argument("--resume", type=Path, help="checkpoint to resume from")
    options.add_argument("--folder", type=Path, default=Path(), help="output folder")
    chosen = options.parse_args()

    rank, size = start()
    training, test = load()
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    curves: dict[str, list[float]] = {"losses": [], "accuracy": []}
    begun = 0
    file = chosen.folder / "data_parallel.pt"
    restarted = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0" and file.exists()
    if chosen.resume or restarted:
        kept = torch.load(chosen.resume or file)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        curves, begun = kept["curves"], kept["epoch"]
    model = DistributedDataParallel(model)
    sampler = DistributedSampler(training, seed=1)
    loader = DataLoader(training, batch_size=BATCH // size, sampler=sampler)
    if rank == 0:
        weights = sum(each.numel() for each in model.parameters())
        print(f"{len(training)} digits to learn from, {weights} weights", flush=True)
    start_time = time.perf_counter()
    for epoch in range(begun, chosen.epochs):
        sampler.set_epoch(epoch)
        own = []
        for images, labels in tqdm(loader, desc=f"epoch {epoch + 1}", leave=False, disable=rank != 0):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            own.append(loss.item())
        losses = [torch.empty(len(own)) for _ in range(size)]
        dist.all_gather(losses, torch.tensor(own))
        curves["losses"] += torch.stack(losses, 1).tolist()
        curves["accuracy"].append(accuracy(model, test, rank, size))
        if rank == 0:
            mean = torch.stack(losses).mean().item()
            print(f"epoch {epoch + 1:2d}   loss {mean:.3f}   right {100 * curves['accuracy'][-1]:.1f} %", flush=True)
            state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**state, "curves": curves, "epoch": epoch + 1}, file)
    if rank == 0:
        print(f"{time.perf_counter() - start_time:.1f} seconds", flush=True)
        draw(curves, chosen.folder / "data_parallel.png")
        file.unlink(missing_ok=True)  # the run is complete
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
