"""A classifier of two interleaved half circles, with layers, loss and updates written by hand."""

import math

import torch

POINTS, HIDDEN, STEPS, RATE = 400, 16, 1000, 0.5


def moons(noise):
    """Return the points of two half circles, the second inverted and moved into the first, and their labels 0 and 1."""
    angle = torch.linspace(0, math.pi, POINTS // 2)
    upper = torch.stack([torch.cos(angle), torch.sin(angle)], dim=1)
    lower = torch.stack([1 - torch.cos(angle), 0.5 - torch.sin(angle)], dim=1)
    points = torch.cat([upper, lower]) + noise * torch.randn(POINTS, 2)
    return points, torch.cat([torch.zeros(POINTS // 2), torch.ones(POINTS // 2)])


def network(weights, points):
    """Return the log-odds that a point belongs to the second moon."""
    w1, b1, w2, b2, w3, b3 = weights
    h1 = torch.tanh(points @ w1 + b1)
    h2 = torch.tanh(h1 @ w2 + b2)
    return (h2 @ w3 + b3)[:, 0]


def surprise(odds, labels):
    """Return the mean of -log(probability of the right label), in a form that does not overflow."""
    return (odds.clamp(min=0) - odds * labels + torch.log1p(torch.exp(-odds.abs()))).mean()


def draw(weights, points, labels):
    """Print the predicted class over the plane (. and :), with some of the points (o and x)."""
    columns, rows = 66, 21
    left, right, low, high = -1.5, 2.5, -1.1, 1.6
    xs = torch.linspace(left, right, columns).expand(rows, columns)
    ys = torch.linspace(high, low, rows)[:, None].expand(rows, columns)
    second = network(weights, torch.stack([xs.reshape(-1), ys.reshape(-1)], dim=1)).reshape(rows, columns) > 0
    picture = [[":" if cell else "." for cell in row] for row in second.tolist()]
    for (x, y), label in zip(points[::4].tolist(), labels[::4].tolist(), strict=True):
        column = round((x - left) / (right - left) * (columns - 1))
        row = round((high - y) / (high - low) * (rows - 1))
        if 0 <= row < rows and 0 <= column < columns:
            picture[row][column] = "x" if label else "o"
    print("\n".join("".join(row) for row in picture))


def main():
    torch.manual_seed(0)
    points, labels = moons(noise=0.1)
    sizes = [(2, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 1)]
    weights = []
    for inputs, outputs in sizes:
        weights.append((torch.randn(inputs, outputs) / math.sqrt(inputs)).requires_grad_(True))
        weights.append(torch.zeros(outputs, requires_grad=True))
    print(f"{POINTS} points in two moons; a network of {sum(w.numel() for w in weights)} weights")

    for step in range(STEPS + 1):
        odds = network(weights, points)
        loss = surprise(odds, labels)
        if step % 200 == 0:
            right = ((odds > 0) == (labels > 0.5)).float().mean().item()
            print(f"step {step:4d}   surprise {loss.item():.4f}   right {100 * right:5.1f} %")
        loss.backward()
        with torch.no_grad():
            for w in weights:
                assert w.grad is not None  # for type checkers
                w -= RATE * w.grad
                w.grad.zero_()

    print()
    with torch.no_grad():
        draw(weights, points, labels)


if __name__ == "__main__":
    main()
