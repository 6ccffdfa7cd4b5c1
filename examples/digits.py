"""A small convolutional network that classifies handwritten digits: modules, Adam, a DataLoader, a checkpoint.

    retrograd run examples/digits.py [--epochs 12] [--resume digits.pt]

Reads the 1797 digits of 8 x 8 pixels that scikit-learn contains, holds out 360 of them as the test set, prints a line
per epoch, and plots the curves and the misclassified digits (digits.png). Ctrl-C saves digits.pt for --resume.
Needs scikit-learn and tqdm, and matplotlib for the picture: pip install ".[examples]".
"""

import argparse
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split
from tqdm import tqdm

STYLE = Path(__file__).resolve().parent / "data" / "pictures.mplstyle"


class Network(nn.Module):
    """Two convolutions, a pooling, two linear layers."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(32 * 4 * 4, 64), nn.ReLU(), nn.Dropout(0.25), nn.Linear(64, 10)
        )

    def forward(self, images):
        return self.head(self.features(images))


def load():
    """Return the training and the test set: images (1, 8, 8) with values between 0 and 1, and their digits."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(digits.target)
    return random_split(TensorDataset(images, labels), [1437, 360], generator=torch.Generator().manual_seed(1))


def accuracy(model, data):
    """Return the accuracy of the model on ``data``, the images, their labels and the predictions."""
    model.eval()
    images, labels = next(iter(DataLoader(data, batch_size=len(data))))
    with torch.no_grad():
        said = model(images).argmax(1)
    return (said == labels).float().mean().item(), images, labels, said


def draw(curves, file, images, labels, said):
    """Plot the loss of every step, the accuracy of every epoch, and up to six misclassified digits."""
    try:
        from matplotlib import pyplot
    except ImportError:
        print("No picture without matplotlib: pip install matplotlib")
        return
    if STYLE.exists():
        pyplot.style.use(STYLE)
    wrong = (said != labels).nonzero()[:6, 0].tolist()
    figure, (left, middle, right) = pyplot.subplots(1, 3)
    left.plot(curves["loss"], linewidth=0.8)
    left.set(yscale="log", title="loss", xlabel="step")
    middle.plot(range(1, len(curves["accuracy"]) + 1), curves["accuracy"], marker=".")
    middle.set(title="accuracy on the test set", xlabel="epoch")
    for place, index in enumerate(wrong):
        x, y = 11 * (place % 3), 14 * (place // 3)
        right.imshow(images[index, 0], extent=(x, x + 8, y + 8, y))
        right.text(x + 4, y + 11, f"{labels[index]}, not {said[index]}", fontsize=8, ha="center", va="center")
    right.set(title="misclassified", xlim=(-1, 31), ylim=(27, -1), aspect="auto")
    right.axis("off")
    figure.savefig(file)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--epochs", type=int, default=12)
    options.add_argument("--resume", type=Path, help="checkpoint to resume from")
    options.add_argument("--folder", type=Path, default=Path(), help="output folder")
    chosen = options.parse_args()

    torch.manual_seed(0)
    training, test = load()
    model = Network()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    curves: dict[str, list[float]] = {"loss": [], "accuracy": []}
    begun, shown = 0, []
    if chosen.resume:
        kept = torch.load(chosen.resume)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        curves, begun = kept["curves"], kept["epoch"]
    loader = DataLoader(training, batch_size=64, shuffle=True)
    print(f"{len(training)} digits to learn from, {sum(each.numel() for each in model.parameters())} weights")
    start, epoch = time.perf_counter(), begun
    try:
        for epoch in range(begun, chosen.epochs):
            model.train()
            for images, labels in tqdm(loader, desc=f"epoch {epoch + 1}", leave=False):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(images), labels)
                loss.backward()
                optimizer.step()
                curves["loss"].append(loss.item())
            right, *shown = accuracy(model, test)
            curves["accuracy"].append(right)
            mean = sum(curves["loss"][-len(loader) :]) / len(loader)
            print(f"epoch {epoch + 1:2d}   loss {mean:.3f}   right {100 * right:.1f} %")
    except KeyboardInterrupt:
        file = chosen.folder / "digits.pt"
        kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "curves": curves, "epoch": epoch}
        torch.save(kept, file)
        print(f"\nstopped in epoch {epoch + 1}; go on with --resume {file}")
        return
    print(f"{time.perf_counter() - start:.1f} seconds")
    if chosen.epochs > begun:
        draw(curves, chosen.folder / "digits.png", *shown)


if __name__ == "__main__":
    main()
