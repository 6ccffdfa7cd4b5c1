"""Random numbers on GPUs, as ``torch.cuda.random``. They are drawn by the CPU's generator and moved, so that a seed gives
the same numbers everywhere: what sets a state here has nothing to set, and what asks for one gets the CPU's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core import devices
from ..core.tensor import Tensor
from ..operations.creation.random import default_generator


def manual_seed(seed: int) -> None:
    """Accepted: ``torch.manual_seed`` seeds the one generator that there is."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Accepted, as :func:`manual_seed`."""
    int(seed)


def seed() -> None:
    """Accepted, as :func:`manual_seed`."""


def seed_all() -> None:
    """Accepted, as :func:`manual_seed`."""


def initial_seed() -> int:
    """The seed of the generator. Raises AssertionError without CuPy, as PyTorch does without CUDA."""
    devices.cupy()
    return int(default_generator.initial_seed())


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of the generator. Raises AssertionError without CuPy, as PyTorch does without CUDA."""
    devices.cupy()
    state: Tensor = default_generator.get_state()
    return state


def get_rng_state_all() -> list[Tensor]:
    """The state for each GPU."""
    return [get_rng_state(index) for index in range(devices.gpu_count())]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Set the state of the generator to what :func:`get_rng_state` gave; nothing happens without a GPU."""
    if devices.gpu_count():
        default_generator.set_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Set the state to the last of those given."""
    for state in new_states:
        set_rng_state(state)


__all__ = ["get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
           "set_rng_state", "set_rng_state_all"]  # fmt: skip
