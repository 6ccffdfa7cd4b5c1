"""The smallest example: a cubic for exp(x), by gradient descent.

The best cubic on -1 ... 1 (in the mean square) is known in closed form from Legendre polynomials; gradient descent
finds it.
"""

import torch

x = (torch.arange(2000, dtype=torch.float64) + 0.5) / 1000 - 1
y = torch.exp(x)
a, b, c, d = (torch.zeros((), dtype=torch.float64, requires_grad=True) for _ in range(4))

for step in range(601):
    cubic = a + b * x + c * x**2 + d * x**3
    loss = ((cubic - y) ** 2).mean()
    if step % 150 == 0:
        print(f"step {step:4d}   mean square error {loss.item():.3e}")
    loss.backward()
    with torch.no_grad():
        for number in (a, b, c, d):
            assert number.grad is not None  # for type checkers
            number -= 0.7 * number.grad
            number.grad = None

print(f"\nfound   {a.item():.4f} + {b.item():.4f} x + {c.item():.4f} x² + {d.item():.4f} x³")
print("best    0.9963 + 0.9980 x + 0.5367 x² + 0.1761 x³   (Legendre)")
print("Taylor  1.0000 + 1.0000 x + 0.5000 x² + 0.1667 x³")
