"""A variational autoencoder: encodes each handwritten digit as four numbers, and generates new digits.

    retrograd run examples/variational.py [--epochs 30] [--resume variational.pt]

The encoder returns a normal distribution over the four numbers, a sample from it (torch.distributions, rsample) is
decoded, and both are trained on the evidence lower bound (Kingma and Welling 2013, arXiv:1312.6114). Reads the digits
that scikit-learn contains; plots an interpolation between two digits and generated ones (variational.png). Ctrl-C saves
variational.pt for --resume. Needs scikit-learn and tqdm, and matplotlib for the picture: pip install ".[examples]".
"""

import argparse
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.distributions import Normal, kl_divergence
from tqdm import tqdm

NUMBERS, HIDDEN, BATCH = 4, 128, 64
STYLE = Path(__file__).resolve().parent / "data" / "pictures.mplstyle"


class Autoencoder(nn.Module):
    """An encoder from 64 pixels to a distribution over NUMBERS numbers, and a decoder."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, 2 * NUMBERS))
        self.decoder = nn.Sequential(nn.Linear(NUMBERS, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, 64))

    def encode(self, images):
        mean, spread = self.encoder(images).chunk(2, 1)
        return Normal(mean, F.softplus(spread) + 1e-3)

    def forward(self, images):
        """Return the two terms of the bound for each image: reconstruction loss and divergence of the code."""
        code = self.encode(images)
        odds = self.decoder(code.rsample())
        told = F.binary_cross_entropy_with_logits(odds, images, reduction="none").sum(1)
        return told, kl_divergence(code, Normal(0.0, 1.0)).sum(1)


@torch.no_grad()
def draw(model, images, losses, file):
    """Plot the loss, an interpolation between two digits, and digits decoded from random numbers."""
    try:
        from matplotlib import pyplot
    except ImportError:
        print("No picture without matplotlib: pip install matplotlib")
        return
    if STYLE.exists():
        pyplot.style.use(STYLE)
    ends = model.encode(images[:2]).mean
    walk = torch.sigmoid(model.decoder(torch.lerp(ends[0], ends[1], torch.linspace(0, 1, 10)[:, None])))
    fresh = torch.sigmoid(model.decoder(torch.randn(50, NUMBERS)))
    rows = F.pad(torch.cat([walk, fresh]).view(6, 10, 8, 8), (1, 1, 1, 1))
    figure, (left, right) = pyplot.subplots(1, 2)
    left.plot(range(1, len(losses) + 1), losses)
    left.set(title="bound (nats per image)", xlabel="epoch")
    right.imshow(rows.permute(0, 2, 1, 3).reshape(60, 100), aspect="auto")
    right.axhline(9.5, color="C1")
    right.set(title="top: between two digits; below: sampled", xticks=[], yticks=[])
    figure.savefig(file)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--epochs", type=int, default=30)
    options.add_argument("--resume", type=Path, help="checkpoint to resume from")
    options.add_argument("--folder", type=Path, default=Path(), help="output folder")
    chosen = options.parse_args()

    torch.manual_seed(0)
    images = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    model = Autoencoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    if chosen.resume:
        kept = torch.load(chosen.resume)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        losses = kept["losses"]
    print(f"{len(images)} digits of {images.shape[1]} pixels, each to be told by {NUMBERS} numbers")
    start = time.perf_counter()
    try:
        for epoch in range(len(losses), chosen.epochs):
            total = torch.zeros(2)
            for batch in tqdm(torch.randperm(len(images)).split(BATCH), desc=f"epoch {epoch + 1}", leave=False):
                optimizer.zero_grad()
                told, kept = model(images[batch])
                loss = (told + kept).mean()
                loss.backward()
                optimizer.step()
                total += torch.stack([told.sum(), kept.sum()]).detach()
            told, code = (total / len(images)).tolist()
            losses.append(told + code)
            if (epoch + 1) % 5 == 0:
                print(f"epoch {epoch + 1:2d}   bound {told + code:.2f} = image {told:.2f} + code {code:.2f} nats")
    except KeyboardInterrupt:
        file = chosen.folder / "variational.pt"
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses}, file)
        print(f"\nstopped in epoch {len(losses) + 1}; go on with --resume {file}")
        return
    print(f"{time.perf_counter() - start:.1f} seconds")
    draw(model, images, losses, chosen.folder / "variational.png")


if __name__ == "__main__":
    main()
