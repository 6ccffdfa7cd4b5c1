"""Functions of the default random generator (``torch.random``)."""

from .operations.creation.random import (  # noqa: F401 - as in PyTorch, not all are in __all__
    Generator,
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
    "set_rng_state",
]  # fmt: skip
