"""The Keeling curve: 44 years of measured CO2, fitted by gradient descent written by hand.

    retrograd run examples/keeling_curve.py [another.csv]        or, where PyTorch is installed, python ...

The model is a constant level, an exponentially growing part, and the yearly cycle of the plants: two sine waves whose
amplitude may change over time. First derivatives fit its eight parameters, second derivatives give their uncertainty,
and the derivatives of derived quantities (growth, forecast) propagate the uncertainty to these.
"""

import csv
import datetime
import math
import sys
from pathlib import Path

import torch

MIDDLE, SPAN = 1980.0, 22.0  # time is counted from 1980 in units of 22 years, so that the record is in -1 ... 1
NAMES = ["level", "growth", "curving", "sine 1", "cosine 1", "sine 2", "cosine 2", "swelling"]
UNITS = ["ppm", "ppm/span", "ppm/span²", "ppm", "ppm", "ppm", "ppm", "1/span"]
STEPS, RATE, MOMENTUM = 300, 0.3, 0.9

# Later and independent measurements. Annual means at Mauna Loa: NOAA Global Monitoring Laboratory, rounded to 1 ppm.
# Pre-industrial level: air in Antarctic ice. Growth of the cycle's amplitude ("swelling"): Keeling, Chin and Whorf,
# Nature 382 (1996), "20 %" since 1960.
LATER = {2005: 380, 2010: 390, 2015: 401, 2020: 414, 2023: 421}


def read(path):
    """Return the times (years) and the concentrations (ppm) of a file of monthly means."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    years = torch.tensor([int(row["year"]) + (int(row["month"]) - 0.5) / 12 for row in rows], dtype=torch.float64)
    values = torch.tensor([float(row["co2_ppm"]) for row in rows], dtype=torch.float64)
    return years, values


def trend(theta, years):
    """Return the concentration without the seasons: level + growth (exp(k s) - 1) / k, where k = curving / growth."""
    s = (years - MIDDLE) / SPAN
    k = theta[2] / theta[1]
    return theta[0] + theta[1] * (torch.exp(k * s) - 1) / k


def season(theta, years):
    """Return the yearly cycle: a wave and its overtone, with linearly growing amplitude."""
    s = (years - MIDDLE) / SPAN
    angle = 2 * math.pi * years
    wave = theta[3] * torch.sin(angle) + theta[4] * torch.cos(angle)
    overtone = theta[5] * torch.sin(2 * angle) + theta[6] * torch.cos(2 * angle)
    return (1 + theta[7] * s) * (wave + overtone)


def residuals(theta, years, values):
    return trend(theta, years) + season(theta, years) - values


def descend(theta, years, values):
    """Fit ``theta`` by gradient descent with momentum, every update written out."""
    velocity = torch.zeros_like(theta)
    print("   step    loss (ppm²)   steepest slope")
    for step in range(STEPS + 1):
        loss = (residuals(theta, years, values) ** 2).mean()
        loss.backward()
        if step in (0, 1, 3, 10, 30, 100, STEPS):
            print(f"  {step:5d}   {loss.item():12.5f}   {theta.grad.abs().max().item():14.2e}")
        with torch.no_grad():
            velocity = MOMENTUM * velocity - RATE * theta.grad
            theta += velocity
        theta.grad.zero_()


def covariance(theta, years, values):
    """Return the covariance of the parameters (inverse Hessian of the negative log-likelihood), scatter, correlation.

    A month's error is correlated with that of the month before (a warm Pacific lasts longer than a month), so the
    likelihood uses the part of each error that the previous one does not predict.
    """
    e = residuals(theta, years, values)
    likeness = ((e[1:] * e[:-1]).sum() / (e * e).sum()).detach()
    news = e[1:] - likeness * e[:-1]
    variance = (news**2).mean().detach()
    (slope,) = torch.autograd.grad((news**2).sum() / (2 * variance), theta, create_graph=True)
    hessian = torch.stack([torch.autograd.grad(part, theta, retain_graph=True)[0] for part in slope])
    return torch.linalg.inv(hessian), (e**2).mean().sqrt().item(), likeness.item()


def known(quantity, theta, spread):
    """Return a function of the parameters and its uncertainty sqrt(g' C g), where g is its gradient."""
    (g,) = torch.autograd.grad(quantity, theta, retain_graph=True)
    return quantity.item(), (g @ spread @ g).sqrt().item()


def yearly_mean(theta, year):
    months = year + (torch.arange(12, dtype=torch.float64) + 0.5) / 12
    return (trend(theta, months) + season(theta, months)).mean()


def date(part):
    """Return a date such as ``13 May`` for a fraction of the year."""
    day = datetime.date(1981, 1, 1) + datetime.timedelta(days=int(365 * part))
    return f"{day.day} {day:%b}"


def plot(rows, low, high, title, width=66):
    """Print a vertical plot: each row is a label and its marks, a character at a value."""
    print(f"\n{title}")
    print(f"{'':8}{low:<{width // 2}g}{high:>{width - width // 2}g}")
    for label, marks in rows:
        line = [" "] * (width + 1)
        for character, value in marks:
            place = round((value - low) / (high - low) * width)
            if 0 <= place <= width:
                line[place] = character
        print(f"{label:>6} |{''.join(line).rstrip()}")


def plot_record(theta, years, values):
    """Print every third year: the measured range, the trend, and the measurements after the fitted period."""
    rows = []
    for year in range(1960, 2024, 3):
        inside = values[(years >= year) & (years < year + 1)]
        marks = (
            [("-", value) for value in torch.linspace(inside.min().item(), inside.max().item(), 40).tolist()]
            if len(inside)
            else []
        )
        marks.append((".", trend(theta, torch.tensor(year + 0.5)).item()))
        rows.append((year, [*marks, ("o", LATER[year])] if year in LATER else marks))
    plot(rows, 310, 430, "Every third year, in ppm: - measured, . the fitted trend, o measured later")


def plot_cycle(theta):
    """Print the yearly cycle of the middle year."""
    months = MIDDLE + (torch.arange(12, dtype=torch.float64) + 0.5) / 12
    rows = [(month, [("|", 0.0), ("*", wave)]) for month, wave in enumerate(season(theta, months).tolist(), 1)]
    plot(rows, -4, 4, f"The seasonal cycle in {MIDDLE:.0f}, month by month, in ppm")


def show_parameters(theta, spread):
    print("\nThe model's numbers")
    for number, (name, unit) in enumerate(zip(NAMES, UNITS, strict=True)):
        error = spread[number, number].sqrt().item()
        print(f"  {name:<10}{theta[number].item():10.3f} ± {error:6.3f} {unit}")


def show_consequences(theta, spread):
    """Print quantities derived from the parameters, beside independent measurements."""
    early, late = ((year - MIDDLE) / SPAN for year in (1960, 2000))
    k = theta[2] / theta[1]
    year = torch.arange(1460, dtype=torch.float64) / 1460
    cycle = season(theta, MIDDLE + year)
    larger = (1 + theta[7] * late) / (1 + theta[7] * early) - 1
    facts = [
        ("growth in 1960", theta[1] * torch.exp(k * early) / SPAN, "ppm a year", ""),
        ("growth in 2000", theta[1] * torch.exp(k * late) / SPAN, "ppm a year", ""),
        ("the growing part doubles in", SPAN * math.log(2) / k, "years", ""),
        ("level before it grew", theta[0] - theta[1] / k, "ppm", "280 ppm, in old ice"),
        ("seasonal cycle in 1980", cycle.max() - cycle.min(), "ppm", ""),
        ("its growth, 1960 to 2000", 100 * larger, "%", "20 %, Keeling 1996"),
    ]
    print(f"\n{'Derived quantities':<58}known from elsewhere")
    for name, quantity, unit, elsewhere in facts:
        value, error = known(quantity, theta, spread)
        print(f"  {name:<28}{value:8.2f} ± {error:5.2f} {unit:<12}{elsewhere}".rstrip())
    fullest, emptiest = (date(place.item() / len(year)) for place in (cycle.argmax(), cycle.argmin()))
    print(f"  the air is fullest about {fullest}, emptiest about {emptiest}")


def show_forecast(theta, spread):
    print(f"\n{'Forecast by a fit that ends with 2001':<58}measured later")
    for when, measured in LATER.items():
        value, error = known(yearly_mean(theta, when), theta, spread)
        print(f"  {f'mean of {when}':<28}{value:8.2f} ± {error:5.2f} {'ppm':<12}{measured} ppm")


def main():
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "data" / "mauna_loa_co2.csv"
    years, values = read(path)
    print(f"{path.name}: {len(years)} monthly means of CO2 from {years[0].item():.2f} to {years[-1].item():.2f},")
    print(f"from {values.min().item():.1f} to {values.max().item():.1f} ppm (millionths of the dry air)\n")

    theta = torch.tensor([values.mean().item(), 20.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    theta.requires_grad_(True)
    descend(theta, years, values)
    spread, scatter, likeness = covariance(theta, years, values)
    print(f"\nMonths scatter about the fit by {scatter:.2f} ppm; neighbours' errors are alike by {likeness:.2f}")
    show_parameters(theta, spread)
    show_consequences(theta, spread)
    show_forecast(theta, spread)

    with torch.no_grad():
        plot_record(theta, years, values)
        plot_cycle(theta)


if __name__ == "__main__":
    main()
