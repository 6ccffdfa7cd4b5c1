"""``torch.distributed.algorithms.ddp_comm_hooks``: hooks that reduce the gradients of ``DistributedDataParallel``."""

from __future__ import annotations

from enum import Enum
from typing import Any

from . import debugging_hooks as debugging
from . import default_hooks as default
from . import post_localSGD_hook as post_localSGD  # noqa: F401 - an attribute of the package in PyTorch
from . import powerSGD_hook as powerSGD


class _Registration:
    """Function ``register(model, state)``, which registers a communication hook of ``model``."""

    def __init__(self, hook: Any, **options: Any) -> None:
        self.hook, self.options = hook, options

    def __call__(self, model: Any, state: Any = None) -> None:
        if self.options:
            state = powerSGD.PowerSGDState(process_group=state, **self.options)
        model.register_comm_hook(state, self.hook)


class DDPCommHookType(Enum):
    """Names of the hooks of this package; the values are functions that register a hook."""

    ALLREDUCE = _Registration(default.allreduce_hook)
    FP16_COMPRESS = _Registration(default.fp16_compress_hook)
    BF16_COMPRESS = _Registration(default.bf16_compress_hook)
    POWER_SGD = _Registration(powerSGD.powerSGD_hook, matrix_approximation_rank=1)
    POWER_SGD_RANK2 = _Registration(powerSGD.powerSGD_hook, matrix_approximation_rank=2)
    BATCHED_POWER_SGD = _Registration(powerSGD.batched_powerSGD_hook, matrix_approximation_rank=1)
    BATCHED_POWER_SGD_RANK2 = _Registration(powerSGD.batched_powerSGD_hook, matrix_approximation_rank=2)
    NOOP = _Registration(debugging.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Register the hook ``comm_hook_type`` of ``model``, a ``DistributedDataParallel``.

    ``state`` is a process group, or None for the default group.
    """
    comm_hook_type.value(model=model, state=state)


__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]
