"""``torch.cuda.random``: seeds and state of the random generator for GPUs.

All random numbers are drawn by the random generator of the CPU and copied to the GPU, so that a seed leads to the same
numbers on every device. Therefore the functions of this module that set a seed have no effect, and the functions that
read or set the state use the generator of the CPU.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core import devices
from ..core.tensor import Tensor
from ..operations.creation.random import default_generator


def manual_seed(seed: int) -> None:
    """Raise an error if ``seed`` cannot be converted to an int; otherwise do nothing.

    GPUs have no random generator. ``torch.manual_seed`` sets the seed of the CPU's generator, which all devices use.
    """
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Raise an error if ``seed`` cannot be converted to an int; otherwise do nothing, see :func:`manual_seed`."""
    int(seed)


def seed() -> None:
    """Do nothing, because GPUs use the CPU's random generator, which ``torch.seed`` seeds."""


def seed_all() -> None:
    """Do nothing, because GPUs use the CPU's random generator, which ``torch.seed`` seeds."""


def initial_seed() -> int:
    """Return the seed of the CPU's random generator, which all devices use.

    Raises AssertionError without CuPy, as PyTorch does without CUDA.
    """
    devices.cupy()
    return int(default_generator.initial_seed())


def get_rng_state(device: Any = "cuda") -> Tensor:
    """Return the state of the CPU's random generator, which all devices use; ``device`` has no effect.

    Raises AssertionError without CuPy, as PyTorch does without CUDA.
    """
    devices.cupy()
    state: Tensor = default_generator.get_state()
    return state


def get_rng_state_all() -> list[Tensor]:
    """Return a list with one copy of the state of the CPU's random generator per GPU; it is empty without a GPU."""
    return [get_rng_state(index) for index in range(devices.gpu_count())]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Set the state of the CPU's random generator to ``new_state``, a result of :func:`get_rng_state`.

    The call has no effect without a GPU. ``device`` has no effect.
    """
    if devices.gpu_count():
        default_generator.set_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Set the state of the CPU's random generator to the last element of ``new_states``.

    The call has no effect without a GPU, or if ``new_states`` is empty.
    """
    for state in new_states:
        set_rng_state(state)


__all__ = ["get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
           "set_rng_state", "set_rng_state_all"]  # fmt: skip
