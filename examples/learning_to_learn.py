"""Meta-learning: a network that fits a new sine wave after one training step on ten points.

    retrograd run examples/learning_to_learn.py [--steps 600] [--resume learning_to_learn.pt]

Model-agnostic meta-learning (Finn, Abbeel, Levine 2017, arXiv:1703.03400). In each step the network is adapted to
each of several waves by one step of gradient descent, and the loss after these steps is minimized: gradients go through
gradient steps (autograd.grad with create_graph=True, torch.func.functional_call). Plots an unseen wave before and after
adaptation (learning_to_learn.png). Ctrl-C saves learning_to_learn.pt for --resume.
Needs tqdm, and matplotlib for the picture: pip install ".[examples]".
"""

import argparse
import math
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call
from tqdm import tqdm

WAVES, POINTS, RATE = 8, 10, 0.02
STYLE = Path(__file__).resolve().parent / "data" / "pictures.mplstyle"


def wave():
    """Return a sine wave of random height and phase."""
    height, phase = 0.5 + 4 * torch.rand(()), math.pi * torch.rand(())
    return lambda x: height * torch.sin(x + phase)


def points(count):
    return 10 * torch.rand(count, 1) - 5


def adapted(network, weights, x, y, steps=1):
    """Return the weights after ``steps`` of gradient descent, as differentiable functions of ``weights``."""
    for _ in range(steps):
        loss = F.mse_loss(functional_call(network, weights, (x,)), y)
        slopes = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
        weights = {name: each - RATE * slope for (name, each), slope in zip(weights.items(), slopes, strict=True)}
    return weights


def after(network, weights, steps):
    """Return the mean error on new waves after ``steps`` of adaptation."""
    errors = []
    for _ in range(50):
        truth, x, new = wave(), points(POINTS), points(100)
        own = adapted(network, weights, x, truth(x), steps)
        errors.append(F.mse_loss(functional_call(network, own, (new,)), truth(new)).item())
    return sum(errors) / len(errors)


def draw(network, weights, losses, file):
    """Plot the loss of every step and its mean over 20 steps, and a new wave before and after adaptation."""
    try:
        from matplotlib import pyplot
    except ImportError:
        print("No picture without matplotlib: pip install matplotlib")
        return
    if STYLE.exists():
        pyplot.style.use(STYLE)
    window = min(20, len(losses))
    truth, x, line = wave(), points(POINTS), torch.linspace(-5, 5, 200)[:, None]
    figure, (left, right) = pyplot.subplots(1, 2)
    left.plot(losses, linewidth=0.5, color="C2", label="each step")
    left.plot(
        range(window - 1, len(losses)), torch.tensor(losses).unfold(0, window, 1).mean(1), label="mean of 20 steps"
    )
    left.set(title="loss after adaptation", xlabel="step", ylim=(0, None))
    left.legend()
    right.plot(line, truth(line), "k", linewidth=1)
    right.plot(x, truth(x), "ko", markersize=4, label="new wave")
    for steps, look in ((0, ":"), (1, "--"), (5, "-")):
        own = adapted(network, weights, x, truth(x), steps)
        fitted = functional_call(network, own, (line,)).detach()
        right.plot(line, fitted, look, label=f"{steps} steps" if steps != 1 else "1 step")
    right.set(title="a new wave, fitted")
    right.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.12), frameon=False)
    figure.savefig(file)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--steps", type=int, default=600)
    options.add_argument("--resume", type=Path, help="checkpoint to resume from")
    options.add_argument("--folder", type=Path, default=Path(), help="output folder")
    chosen = options.parse_args()

    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1)).double()
    torch.set_default_dtype(torch.float64)
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    losses = []
    if chosen.resume:
        kept = torch.load(chosen.resume)
        network.load_state_dict(kept["network"])
        optimizer.load_state_dict(kept["optimizer"])
        losses = kept["losses"]
    weights = dict(network.named_parameters())
    start = time.perf_counter()
    try:
        for step in tqdm(range(len(losses), chosen.steps), initial=len(losses), total=chosen.steps, leave=False):
            optimizer.zero_grad()
            total = 0.0
            for _ in range(WAVES):
                truth, x, new = wave(), points(POINTS), points(POINTS)
                own = adapted(network, weights, x, truth(x))
                loss = F.mse_loss(functional_call(network, own, (new,)), truth(new)) / WAVES
                loss.backward()
                total += loss.item()
            optimizer.step()
            losses.append(total)
            if (step + 1) % 100 == 0:
                tqdm.write(f"step {step + 1:4d}   loss after adapting {sum(losses[-100:]) / 100:.3f}")
    except KeyboardInterrupt:
        file = chosen.folder / "learning_to_learn.pt"
        torch.save({"network": network.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses}, file)
        print(f"\nstopped after step {len(losses)}; go on with --resume {file}")
        return
    print(f"{time.perf_counter() - start:.1f} seconds")
    for steps in (0, 1, 5):
        print(f"error on waves never seen, after {steps} steps: {after(network, weights, steps):.3f}")
    draw(network, weights, losses, chosen.folder / "learning_to_learn.png")


if __name__ == "__main__":
    main()
