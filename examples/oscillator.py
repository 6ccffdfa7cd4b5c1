"""A network that solves a differential equation: the motion of a damped pendulum from its equation alone.

    retrograd run examples/oscillator.py [--steps 2000] [--resume oscillator.pt]

The network is a function u(t). Its loss is the residual of the equation u'' + 2 d u' + w^2 u = 0 at random times, with
u(0) = 1 and u'(0) = 0 built in, so it contains first and second derivatives with respect to t, which training
differentiates again (Raissi, Perdikaris, Karniadakis 2019, doi:10.1016/j.jcp.2018.10.045). The exact solution is used
for comparison only. Plots both (oscillator.png). Ctrl-C saves oscillator.pt for --resume.
Needs tqdm, and matplotlib for the picture: pip install ".[examples]".
"""

import argparse
import math
import time
from pathlib import Path

import torch
from torch import nn
from tqdm import tqdm

DAMPING, FREQUENCY, END, POINTS = 0.4, 3.0, 4.0, 64
STYLE = Path(__file__).resolve().parent / "data" / "pictures.mplstyle"


def exact(t):
    """Return the exact solution."""
    own = math.sqrt(FREQUENCY**2 - DAMPING**2)
    return torch.exp(-DAMPING * t) * (torch.cos(own * t) + DAMPING / own * torch.sin(own * t))


def solution(network, t):
    """Return u(t), with u(0) = 1 and u'(0) = 0 for any network."""
    return 1 + (t / (1 + t)) ** 2 * network(2 * t - END)


def residual(network, t):
    """Return the residual of the equation at each time."""
    t = t.requires_grad_()
    u = solution(network, t)
    (first,) = torch.autograd.grad(u.sum(), t, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), t, create_graph=True)
    return (second + 2 * DAMPING * first) / FREQUENCY**2 + u


def draw(losses, times, found, file):
    """Plot the loss of every step, and the network's solution with the exact one."""
    try:
        from matplotlib import pyplot
    except ImportError:
        print("No picture without matplotlib: pip install matplotlib")
        return
    if STYLE.exists():
        pyplot.style.use(STYLE)
    figure, (left, right) = pyplot.subplots(1, 2)
    left.plot(losses, linewidth=0.5)
    left.set(yscale="log", title="mean squared residual", xlabel="step")
    right.plot(times, found, color="C1", linewidth=3, label="network")
    right.plot(times, exact(times), "k--", linewidth=1.2, label="exact")
    right.set(title="solution u(t)", xlabel="t")
    right.legend()
    figure.savefig(file)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--steps", type=int, default=2000)
    options.add_argument("--resume", type=Path, help="checkpoint to resume from")
    options.add_argument("--folder", type=Path, default=Path(), help="output folder")
    chosen = options.parse_args()

    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)).double()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.02 ** (1 / chosen.steps))
    losses = []
    if chosen.resume:
        kept = torch.load(chosen.resume)
        for each, name in ((network, "network"), (optimizer, "optimizer"), (schedule, "schedule")):
            each.load_state_dict(kept[name])
        losses = kept["losses"]
    times = torch.linspace(0, END, 401, dtype=torch.float64)[:, None]
    start = time.perf_counter()
    try:
        for step in tqdm(range(len(losses), chosen.steps), initial=len(losses), total=chosen.steps, leave=False):
            optimizer.zero_grad()
            loss = residual(network, END * torch.rand(POINTS, 1, dtype=torch.float64)).square().mean()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            if (step + 1) % 250 == 0:
                with torch.no_grad():
                    off = (solution(network, times) - exact(times)).abs().max().item()
                tqdm.write(
                    f"step {step + 1:4d}   residual {math.sqrt(losses[-1]):.4f}   furthest from the truth {off:.4f}"
                )
    except KeyboardInterrupt:
        file = chosen.folder / "oscillator.pt"
        kept = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}
        torch.save({**kept, "losses": losses}, file)
        print(f"\nstopped after step {len(losses)}; go on with --resume {file}")
        return
    print(f"{time.perf_counter() - start:.1f} seconds")
    draw(losses, times, solution(network, times).detach(), chosen.folder / "oscillator.png")


if __name__ == "__main__":
    main()
