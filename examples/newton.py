"""Newton's method with exact second derivatives: the nine stationary points of Himmelblau's function.

f(x, y) = (x² + y - 11)² + (x + y² - 7)² has four minima, four saddle points and one maximum. Newton's method goes from
each point of a coarse grid to a point with zero gradient; the Hessian there determines its kind.
"""

import torch


def landscape(p):
    x, y = p
    return (x**2 + y - 11) ** 2 + (x + y**2 - 7) ** 2


def slope_and_hessian(p):
    (slope,) = torch.autograd.grad(landscape(p), p, create_graph=True)
    rows = [torch.autograd.grad(part, p, retain_graph=True)[0] for part in slope]
    return slope.detach(), torch.stack(rows)


def walk(start, show=False):
    """Return the stationary point that Newton's method reaches from ``start``, or None after 50 steps."""
    p = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    for step in range(50):
        slope, hessian = slope_and_hessian(p)
        steepness = slope.abs().max().item()
        if show:
            print(f"  step {step}   at ({p[0].item():9.6f}, {p[1].item():9.6f})   slope {steepness:8.1e}")
        if steepness < 1e-9:
            return p.detach()
        with torch.no_grad():
            p -= torch.linalg.solve(hessian, slope)
    return None


def kind(p):
    """Return the kind of a stationary point, from the trace and the determinant of the Hessian."""
    _, h = slope_and_hessian(p.requires_grad_(True))
    determinant = (h[0, 0] * h[1, 1] - h[0, 1] * h[1, 0]).item()
    rising = (h[0, 0] + h[1, 1]).item() > 0
    return "pass" if determinant < 0 else "valley" if rising else "summit"


def main():
    print("One walk: each step doubles the number of right digits")
    walk([4.0, 3.0], show=True)

    found = {}
    for i in range(-5, 6):
        for j in range(-5, 6):
            place = walk([float(i), float(j)])
            if place is not None:
                found[tuple(round(value, 6) + 0.0 for value in place.tolist())] = place
    print(f"\n{len(found)} resting places, from a grid of 121 starts")
    for height, x, y in sorted((round(landscape(place).item(), 6), *key) for key, place in found.items()):
        print(f"  {kind(found[x, y]):<7} at ({x:9.6f}, {y:9.6f})   height {height:10.6f}")


if __name__ == "__main__":
    main()
