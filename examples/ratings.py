"""Recommendation: ratings predicted by matrix factorization from a tenth of them.

    retrograd run examples/ratings.py [--epochs 30] [--resume ratings.pt]

300 people and 200 films have hidden vectors of three numbers; a rating is their product with noise. The model learns a
vector and a bias for each person and each film (embeddings) from the training ratings, and is tested on the others.
Plots predicted and true ratings (ratings.png). Ctrl-C saves ratings.pt for --resume.
Needs tqdm, and matplotlib for the picture: pip install ".[examples]".
"""

import argparse
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm

PEOPLE, FILMS, TASTES, WHIM = 300, 200, 3, 0.3
STYLE = Path(__file__).resolve().parent / "data" / "pictures.mplstyle"


class Factors(nn.Module):
    """A rating as a product of two vectors plus two biases."""

    def __init__(self):
        super().__init__()
        self.person, self.film = nn.Embedding(PEOPLE, TASTES), nn.Embedding(FILMS, TASTES)
        self.leaning, self.fame = nn.Embedding(PEOPLE, 1), nn.Embedding(FILMS, 1)
        self.mean = nn.Parameter(torch.zeros(()))
        for each in (self.person, self.film, self.leaning, self.fame):
            nn.init.normal_(each.weight, std=0.1)

    def forward(self, person, film):
        together = (self.person(person) * self.film(film)).sum(1)
        return self.mean + self.leaning(person)[:, 0] + self.fame(film)[:, 0] + together


def society():
    """Return all pairs of person and film in a random order, and their ratings."""
    tastes, films = torch.randn(PEOPLE, TASTES), torch.randn(FILMS, TASTES)
    pairs = torch.randperm(PEOPLE * FILMS)
    person, film = pairs // FILMS, pairs % FILMS
    liked = (tastes[person] * films[film]).sum(1) / TASTES**0.5
    return person, film, 3 + 0.7 * liked + WHIM * torch.randn(len(pairs))


def draw(errors, truth, said, file):
    """Plot the errors of every epoch, and the predicted over the true ratings."""
    try:
        from matplotlib import pyplot
    except ImportError:
        print("No picture without matplotlib: pip install matplotlib")
        return
    if STYLE.exists():
        pyplot.style.use(STYLE)
    training, test = zip(*errors, strict=True)
    figure, (left, right) = pyplot.subplots(1, 2)
    epochs = range(1, len(errors) + 1)
    left.plot(epochs, test, label="other ratings")
    left.plot(epochs, training, "--", label="training ratings")
    left.axhline(WHIM, color="black", linestyle=":", linewidth=1, label="noise")
    left.set(title="error (root mean square)", xlabel="epoch")
    left.legend()
    right.plot(truth, said, ".", markersize=2.5)
    right.axline((3, 3), slope=1, color="black", linestyle=":", linewidth=1)
    right.set(title="other ratings", xlabel="true", ylabel="predicted")
    figure.savefig(file)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--epochs", type=int, default=30)
    options.add_argument("--resume", type=Path, help="checkpoint to resume from")
    options.add_argument("--folder", type=Path, default=Path(), help="output folder")
    chosen = options.parse_args()

    torch.manual_seed(0)
    person, film, rating = society()
    shown = len(rating) // 10
    model = Factors()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=1e-3)
    errors = []
    if chosen.resume:
        kept = torch.load(chosen.resume)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        errors = kept["errors"]
    print(f"{shown} ratings of {len(rating)} are shown; the whim of people, which nobody can guess, is {WHIM}")
    start = time.perf_counter()
    try:
        for epoch in tqdm(range(len(errors), chosen.epochs), leave=False):
            for batch in torch.randperm(shown).split(256):
                optimizer.zero_grad()
                loss = F.mse_loss(model(person[batch], film[batch]), rating[batch])
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                said = model(person, film)
                both = [
                    (said - rating)[part].square().mean().sqrt().item() for part in (slice(shown), slice(shown, None))
                ]
            errors.append(both)
            if (epoch + 1) % 5 == 0:
                tqdm.write(f"epoch {epoch + 1:2d}   off by {both[0]:.3f} where it was told, by {both[1]:.3f} elsewhere")
    except KeyboardInterrupt:
        file = chosen.folder / "ratings.pt"
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "errors": errors}, file)
        print(f"\nstopped after epoch {len(errors)}; go on with --resume {file}")
        return
    print(f"{time.perf_counter() - start:.1f} seconds")
    draw(errors, rating[shown::50], said[shown::50], chosen.folder / "ratings.png")


if __name__ == "__main__":
    main()
