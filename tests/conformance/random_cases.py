"""Calls that generate random numbers, for both engines."""

from __future__ import annotations

from typing import Any

SIZES = (0, 1, 2, 3, 7, 15, 16, 17, 31, 33, 100)
DRAWS = [
    *(f"torch.{name}({size}, dtype=torch.{dtype})" for name in ("rand", "randn") for size in SIZES
      for dtype in ("float32", "float64", "float16", "bfloat16", "complex64")),
    *(f"torch.randperm({size})" for size in SIZES), *(f"torch.randint(-5, 17, ({size},))" for size in SIZES),
    "torch.randint(2**40, (5,))", "torch.randint(10, (2, 3), dtype=torch.uint8)", "torch.rand(2, 3).t().contiguous()",
    "torch.normal(2.0, 3.0, (5,))", "torch.normal(torch.arange(20.0), 0.1)", "torch.normal(0.0, torch.rand(4))",
    "torch.bernoulli(torch.rand(10))", "torch.bernoulli(torch.zeros(9), 0.3)", "torch.empty(20).bernoulli_(0.7)",
    "torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 2)", "torch.multinomial(torch.rand(3, 5), 6, replacement=True)",
    "torch.empty(7).uniform_(-3, 0.7)", "torch.empty(7, dtype=torch.float64).uniform_(2, 5)", "torch.empty(20).normal_(1, 2)",
    "torch.empty(5).exponential_(2.0)", "torch.empty(5).cauchy_()", "torch.empty(5).log_normal_(0, 1)", "torch.empty(5).geometric_(0.3)",
    "torch.empty(5, dtype=torch.int64).random_()", "torch.empty(5).random_(3, 9)", "torch.empty(4, dtype=torch.int8).random_()",
    "torch.nn.functional.dropout(torch.ones(12), 0.4)", "torch.poisson(torch.full((6,), 3.0))", "torch.poisson(torch.full((4,), 40.0))",
    "torch.rand_like(torch.zeros(3, 2))", "torch.randn_like(torch.zeros(20, dtype=torch.float64))", "torch.randint_like(torch.zeros(3), 9)",
    *(f"torch.empty(17, dtype=torch.{dtype}).{how}" for dtype in ("float64", "float16", "bfloat16")
      for how in ("exponential_(1.5)", "cauchy_(1, 2)", "log_normal_(0.5, 0.7)", "geometric_(0.3)", "random_(-3, 9)", "bernoulli_(0.4)")),
    "torch.binomial(torch.full((20,), 9.0), torch.linspace(0, 1, 20))", "torch.binomial(torch.tensor(200.0), torch.linspace(0, 1, 20))",
    "torch.binomial(torch.full((3, 1), 50.0, dtype=torch.float64), torch.linspace(0, 1, 4, dtype=torch.float64))",
    "torch.poisson(torch.linspace(0, 30, 9, dtype=torch.float64))", "torch.normal(torch.linspace(0, 1, 9, dtype=torch.float16), 0.5)",
    "torch.empty(5, dtype=torch.int64).random_(-2**63, None)", "torch.empty(5, dtype=torch.int64).random_(2**40)",
    "torch.empty(5).random_(3, None)", "torch.empty(9, dtype=torch.bool).random_()", "torch.empty(9, dtype=torch.uint8).geometric_(0.4)",
    "torch.zeros(2, 5).bernoulli_(torch.linspace(0, 1, 5))", "torch.empty(6, dtype=torch.complex64).normal_(1, 2)",
    "torch.nn.functional.dropout(torch.ones(9, dtype=torch.float16), 0.3)", "torch.empty(4, 5).t().exponential_()",
    "torch.empty(6, 4)[:, ::2].cauchy_()", "torch.rand(size=(3,))", "torch.bernoulli(torch.zeros(9), p=0.3)",
    "torch.empty(4, 5).t().normal_()", "torch.empty(6, 4)[:, ::2].uniform_()",
]  # fmt: skip
SEEDS = (0, 42, -3, 2**40 + 5)


def draw(torch: Any) -> list[list[Any]]:
    """Return the results of all calls in sequence from each seed, so that each continues the stream of the one before."""
    found = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        for line in DRAWS:
            drawn = eval(line, {"torch": torch})
            if drawn.is_complex():
                drawn = torch.view_as_real(drawn)
            found.append(drawn.to(torch.float64).reshape(-1).tolist()[:20])
        found.append(torch.get_rng_state()[:5016].tolist()[:40])
    return found
