"""``torch.cuda.random``: the state of the random generator.

All random numbers are drawn by the CPU's generator and copied to the GPU, so that a seed gives the same numbers on
every device. Therefore the functions here that set a seed have no effect, and the state is that of the CPU's generator.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core import devices
from ..core.tensor import Tensor
from ..operations.creation.random import default_generator


def manual_seed(seed: int) -> None:
    """Check that ``seed`` is an integer, without other effect; ``torch.manual_seed`` seeds the only generator."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Check that ``seed`` is an integer, without other effect; the same as :func:`manual_seed`."""
    int(seed)


def seed() -> None:
    """Do nothing, because ``torch.seed`` seeds the only generator."""


def seed_all() -> None:
    """Do nothing, because ``torch.seed`` seeds the only generator."""


def initial_seed() -> int:
    """Return the seed of the CPU's generator.

    Raises AssertionError without CuPy, as PyTorch does without CUDA.
    """
    devices.cupy()
    return int(default_generator.initial_seed())


def get_rng_state(device: Any = "cuda") -> Tensor:
    """Return the state of the CPU's generator, for any ``device``.

    Raises AssertionError without CuPy, as PyTorch does without CUDA.
    """
    devices.cupy()
    state: Tensor = default_generator.get_state()
    return state


def get_rng_state_all() -> list[Tensor]:
    """Return a list with one item for each GPU, each of which is the state of the CPU's generator."""
    return [get_rng_state(index) for index in range(devices.gpu_count())]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Set the state of the CPU's generator to ``new_state``, a result of :func:`get_rng_state`.

    Without a GPU this has no effect.
    """
    if devices.gpu_count():
        default_generator.set_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Set the state of the CPU's generator to the last of ``new_states``."""
    for state in new_states:
        set_rng_state(state)


__all__ = ["get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
           "set_rng_state", "set_rng_state_all"]  # fmt: skip
