"""The default random generator, as ``torch.random``."""

from .compat.missing_names import absent, listed
from .operations.creation.random import (  # noqa: F401 - PyTorch's module has it too, and does not name it
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
__getattr__, __dir__ = absent(__name__), listed(globals())
