"""A recurrent network that learns addition: it reads two binary numbers bit by bit and predicts the bits of their sum.

    retrograd run examples/adding.py [--steps 400] [--resume adding.pt]

It is trained on sums of eight bits only; to be right on longer ones it must have learned to carry. It is tested on
numbers of up to 200 bits. Prints the fraction of correct sums and plots it (adding.png). Ctrl-C saves adding.pt for
--resume.
Needs tqdm, and matplotlib for the picture: pip install ".[examples]".
"""

import argparse
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm

LENGTH, BATCH, UNITS = 8, 64, 16
STYLE = Path(__file__).resolve().parent / "data" / "pictures.mplstyle"


class Adder(nn.Module):
    """A GRU over the pairs of bits, the least significant first."""

    def __init__(self):
        super().__init__()
        self.layer = nn.GRU(2, UNITS, batch_first=True)
        self.odds = nn.Linear(UNITS, 1)

    def forward(self, bits):
        states, _ = self.layer(bits)
        return self.odds(states)[..., 0]


def sums(count, length):
    """Return pairs of numbers as bits (count, length + 1, 2), least significant first, and the bits of their sums."""
    pairs = F.pad(torch.randint(2, (count, length, 2)), (0, 0, 0, 1))
    total, carry = torch.zeros(count, length + 1, dtype=torch.int64), torch.zeros(count, dtype=torch.int64)
    for place in range(length + 1):
        here = pairs[:, place].sum(1) + carry
        total[:, place], carry = here % 2, here // 2
    return pairs.float(), total.float()


@torch.no_grad()
def right(model, length):
    """Return the fraction of sums of ``length`` bits with every bit right."""
    pairs, total = sums(200, length)
    return ((model(pairs) > 0) == (total > 0.5)).all(1).float().mean().item()


def draw(losses, lengths, found, file):
    """Plot the loss of every step, and the fraction of correct sums by length."""
    try:
        from matplotlib import pyplot
    except ImportError:
        print("No picture without matplotlib: pip install matplotlib")
        return
    if STYLE.exists():
        pyplot.style.use(STYLE)
    figure, (left, right) = pyplot.subplots(1, 2)
    left.plot(losses, linewidth=0.8)
    left.set(yscale="log", title="loss", xlabel="step")
    right.bar([str(each) for each in lengths], [100 * each for each in found], width=0.6)
    right.set(title="sums with every bit right (%)", xlabel="bits of the numbers")
    right.grid(axis="x", visible=False)
    figure.savefig(file)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--steps", type=int, default=400)
    options.add_argument("--resume", type=Path, help="checkpoint to resume from")
    options.add_argument("--folder", type=Path, default=Path(), help="output folder")
    chosen = options.parse_args()

    torch.manual_seed(0)
    model = Adder()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    if chosen.resume:
        kept = torch.load(chosen.resume)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        losses = kept["losses"]
    start = time.perf_counter()
    try:
        for step in tqdm(range(len(losses), chosen.steps), initial=len(losses), total=chosen.steps, leave=False):
            pairs, total = sums(BATCH, LENGTH)
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(model(pairs), total)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if (step + 1) % 50 == 0:
                tqdm.write(
                    f"step {step + 1:4d}   loss {losses[-1]:.4f}   sums wholly right {100 * right(model, LENGTH):5.1f} %"
                )
    except KeyboardInterrupt:
        file = chosen.folder / "adding.pt"
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses}, file)
        print(f"\nstopped after step {len(losses)}; go on with --resume {file}")
        return
    print(f"{time.perf_counter() - start:.1f} seconds")
    lengths = (8, 16, 32, 64, 200)
    found = [right(model, length) for length in lengths]
    for length, share in zip(lengths, found, strict=True):
        print(f"numbers of {length:3d} bits: {100 * share:5.1f} % of the sums wholly right")
    draw(losses, lengths, found, chosen.folder / "adding.png")


if __name__ == "__main__":
    main()
