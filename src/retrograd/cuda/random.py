"""Random state of GPUs, as ``torch.cuda.random``.

All random numbers are drawn by the CPU's generator and copied to the GPU, so that a seed gives the same numbers on
every device. The seeding functions have no effect here, and the state is the CPU generator's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core import devices
from ..core.tensor import Tensor
from ..operations.creation.random import default_generator


def manual_seed(seed: int) -> None:
    """Check that ``seed`` is an integer; ``torch.manual_seed`` seeds the only generator."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Check that ``seed`` is an integer, as :func:`manual_seed`."""
    int(seed)


def seed() -> None:
    """Do nothing; ``torch.seed`` seeds the only generator."""


def seed_all() -> None:
    """Do nothing, as :func:`seed`."""


def initial_seed() -> int:
    """Return the seed of the generator. Raises AssertionError without CuPy, as PyTorch does without CUDA."""
    devices.cupy()
    return int(default_generator.initial_seed())


def get_rng_state(device: Any = "cuda") -> Tensor:
    """Return the state of the generator. Raises AssertionError without CuPy, as PyTorch does without CUDA."""
    devices.cupy()
    state: Tensor = default_generator.get_state()
    return state


def get_rng_state_all() -> list[Tensor]:
    """Return a list with the generator's state for each GPU."""
    return [get_rng_state(index) for index in range(devices.gpu_count())]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Restore a state from :func:`get_rng_state`; without a GPU it has no effect."""
    if devices.gpu_count():
        default_generator.set_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Restore the last of these states."""
    for state in new_states:
        set_rng_state(state)


__all__ = ["get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
           "set_rng_state", "set_rng_state_all"]  # fmt: skip
