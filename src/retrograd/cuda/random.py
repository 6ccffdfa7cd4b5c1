"""``torch.cuda.random``: seeds and state of the random generator for GPUs.

All random numbers are drawn by the random generator of the CPU and copied to the GPU, so that a seed leads to the same
numbers on every device. The functions of this module that set a seed or a state therefore set it for the generator of
the CPU. Without a GPU they have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core import devices
from ..core.tensor import Tensor
from ..operations.creation.random import default_generator


def manual_seed(seed: int) -> None:
    """Set the seed of the generator that GPUs and the CPU share to ``seed``; without a GPU, do nothing.

    Raises an error if ``seed`` cannot be converted to an int.
    """
    seed = int(seed)
    if devices.gpu_count():
        default_generator.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Do the same as :func:`manual_seed`, because all GPUs share one generator."""
    manual_seed(seed)


def seed() -> None:
    """Set the seed of the generator that GPUs and the CPU share to a random number; without a GPU, do nothing."""
    if devices.gpu_count():
        default_generator.seed()


def seed_all() -> None:
    """Do the same as :func:`seed`, because all GPUs share one generator."""
    seed()


def initial_seed() -> int:
    """Return the seed of the CPU's random generator, which all devices use.

    Raises AssertionError without CuPy, as PyTorch does without CUDA.
    """
    devices.cupy()
    return int(default_generator.initial_seed())


def get_rng_state(device: Any = "cuda") -> Tensor:
    """Return the state of the CPU's random generator, which the GPU ``device`` uses.

    Raises AssertionError without CuPy, as PyTorch does without CUDA.
    """
    devices.cupy()
    devices.gpu_index(device)
    state: Tensor = default_generator.get_state()
    return state


def get_rng_state_all() -> list[Tensor]:
    """Return a list with one copy of the state of the CPU's random generator per GPU; it is empty without a GPU."""
    return [get_rng_state(index) for index in range(devices.gpu_count())]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Set the state of the CPU's random generator to ``new_state``, a result of :func:`get_rng_state`.

    The call has no effect without a GPU.
    """
    if devices.gpu_count():
        devices.gpu_index(device)
        default_generator.set_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Set the state of the CPU's random generator to the last element of ``new_states``.

    The call has no effect without a GPU, or if ``new_states`` is empty.
    """
    for state in new_states:
        set_rng_state(state)


__all__ = ["get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
           "set_rng_state", "set_rng_state_all"]  # fmt: skip
