"""A Gaussian process on the carbon dioxide of Mauna Loa, with fitted hyperparameters and a forecast with error bars.

    retrograd run examples/gaussian_process.py [--steps 60]

The covariance is a sum of a slow trend, a yearly cycle of changing shape, and noise (as in Rasmussen and Williams,
Gaussian Processes for Machine Learning, 5.4.3). Its eight hyperparameters maximize the marginal likelihood: a Cholesky
factorization of the covariance of all months up to 1985, and the gradients through it, with Adam. The months after that
are forecast with their standard deviation and plotted beside the measurements (gaussian_process.png). Ctrl-C ends the
optimization; the forecast is then made with the current hyperparameters.
Needs tqdm, and matplotlib for the picture: pip install ".[examples]".
"""

import argparse
import csv
import math
import time
from pathlib import Path

import torch
from tqdm import tqdm

RECORD = Path(__file__).resolve().parent / "data" / "mauna_loa_co2.csv"
UNTIL = 1985.0
STYLE = Path(__file__).resolve().parent / "data" / "pictures.mplstyle"
#: Initial hyperparameters: sizes in ppm, lengths in years.
BEGIN = {
    "size of the rise": 30.0, "length of the rise": 30.0, "size of the breath": 1.0, "its form lasts": 30.0,
    "its roughness": 1.0, "size of what else": 1.0, "length of what else": 1.0, "noise": 1.0,
}  # fmt: skip


def load():
    """Return the months of the record as fractional years, and the monthly means (ppm)."""
    with RECORD.open(encoding="utf-8") as lines:
        rows = [(int(row["year"]), int(row["month"]), float(row["co2_ppm"])) for row in csv.DictReader(lines)]
    year, month, level = torch.tensor(rows, dtype=torch.float64).unbind(1)
    return year + (month - 0.5) / 12, level


def covariance(logs, a, b):
    """Return the covariance between the times ``a`` and ``b``, without the noise."""
    rise, rise_length, breath, lasting, rough, rest, rest_length, _ = logs.exp()
    apart = a[:, None] - b[None, :]
    return (
        rise**2 * torch.exp(-0.5 * (apart / rise_length) ** 2)
        + breath**2 * torch.exp(-0.5 * (apart / lasting) ** 2 - 2 * (torch.sin(math.pi * apart) / rough) ** 2)
        + rest**2 * torch.exp(-0.5 * (apart / rest_length) ** 2)
    )


def factor(logs, t):
    """Return the Cholesky factor of the covariance of the measurements."""
    return torch.linalg.cholesky(
        covariance(logs, t, t) + (logs[-1].exp() ** 2 + 1e-6) * torch.eye(len(t), dtype=t.dtype)
    )


def surprise(logs, t, y):
    """Return the negative log marginal likelihood."""
    lower = factor(logs, t)
    weights = torch.cholesky_solve(y[:, None], lower)[:, 0]
    return 0.5 * y @ weights + lower.diagonal().log().sum() + 0.5 * len(t) * math.log(2 * math.pi)


def forecast(logs, t, y, new):
    """Return the mean and the standard deviation of the forecast at new times."""
    lower = factor(logs, t)
    across = covariance(logs, t, new)
    mean = across.T @ torch.cholesky_solve(y[:, None], lower)[:, 0]
    known = torch.linalg.solve_triangular(lower, across, upper=False).square().sum(0)
    return mean, (covariance(logs, new[:1], new[:1])[0, 0] - known + logs[-1].exp() ** 2).sqrt()


def draw(times, levels, said, doubt, file):
    """Plot the measurements, and the forecast with two standard deviations."""
    try:
        from matplotlib import pyplot
    except ImportError:
        print("No picture without matplotlib: pip install matplotlib")
        return
    if STYLE.exists():
        pyplot.style.use(STYLE)
    later = times[times >= UNTIL]
    figure, axes = pyplot.subplots()
    axes.fill_between(later, said - 2 * doubt, said + 2 * doubt, color="C1", alpha=0.35, linewidth=0)
    axes.plot(later, said, color="C1", linewidth=1.2, label="forecast, two standard deviations")
    axes.plot(times, levels, "k.", markersize=2, label="measured")
    axes.axvline(UNTIL, color="black", linestyle=":", linewidth=1)
    axes.set(title="carbon dioxide at Mauna Loa (ppm)", xlabel="year")
    axes.legend(loc="upper left", markerscale=3)
    figure.savefig(file)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--steps", type=int, default=80)
    options.add_argument("--folder", type=Path, default=Path(), help="output folder")
    chosen = options.parse_args()

    times, levels = load()
    past = times < UNTIL
    t, mean = times[past], levels[past].mean()
    y = levels[past] - mean
    logs = torch.tensor([math.log(each) for each in BEGIN.values()], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([logs], lr=0.05)
    losses = []
    print(f"{len(t)} months to learn from, {len(times) - len(t)} to foretell")
    start = time.perf_counter()
    try:
        for step in tqdm(range(chosen.steps), leave=False):
            optimizer.zero_grad()
            loss = surprise(logs, t, y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if (step + 1) % 20 == 0:
                tqdm.write(f"step {step + 1:3d}   surprise {losses[-1]:.1f}")
    except KeyboardInterrupt:
        print(f"\nstopped after {len(losses)} steps; the forecast is made from what was found")
    print(f"{time.perf_counter() - start:.1f} seconds")
    for name, begun, value in zip(BEGIN, BEGIN.values(), logs.exp().tolist(), strict=True):
        print(f"  {name:20s} {begun:7.2f} -> {value:7.2f}")
    with torch.no_grad():
        said, doubt = forecast(logs, t, y, times[~past])
    said, truth = said + mean, levels[~past]
    inside = ((said - truth).abs() < 2 * doubt).double().mean().item()
    for years in (1, 5, 20):
        near = times[~past] < UNTIL + years
        print(f"first {years:2d} years foretold: off by {(said - truth)[near].square().mean().sqrt().item():.2f} ppm")
    print(f"measured within two standard deviations: {100 * inside:.0f} %")
    draw(times, levels, said, doubt, chosen.folder / "gaussian_process.png")


if __name__ == "__main__":
    main()
