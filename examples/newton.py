"""Newton's method with exact second derivatives: the nine resting places of Himmelblau's landscape.

f(x, y) = (x² + y - 11)² + (x + y² - 7)² has four valleys, four passes and one summit. Newton's method walks from each
point of a coarse grid to a place where the slope is zero; the Hessian there says which kind it is.
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
    """Newton's steps from ``start`` until the slope is gone: the place, or None if it takes more than 50."""
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
    """The signs of the curvatures: a 2 x 2 Hessian has trace and determinant of its two eigenvalues."""
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
