"""``torch._C._functorch``: what packages ask about transforms, and the levels and batches of ``vmap`` by hand.

A gradient transform (``grad``, ``vjp``, ``jacrev``) does not wrap tensors in retrograd: only its arguments, not the
results computed from them, count as tensors that track gradients.
"""

from __future__ import annotations

from enum import Enum

from ..autograd.dual import Dual
from ..core.tensor import Tensor
from ..dispatch.transform_tensor import INTERNAL_LEAVES, TransformLevel, TransformTensor, active_levels
from ..func.batched_tensor import Batch, VmapRun, batch, expand_over_slices, move_dim
from ..func.transforms import GradRun
from ..func.vmap import check_randomness


class TransformType(Enum):
    """Kinds of transforms."""

    Torch = 0
    Vmap = 1
    Grad = 2
    Jvp = 3
    Functionalize = 4

    __module__ = "torch._C._functorch"


class RandomnessType(Enum):
    """Settings of ``vmap(randomness=)``."""

    Error = 0
    Same = 1
    Different = 2

    __module__ = "torch._C._functorch"


class CInterpreter:
    """An active transform, with its kind (``key()``) and its depth among the active ones (``level()``)."""

    __module__ = "torch._C._functorch"

    def __init__(self, run: TransformLevel) -> None:
        self._run = run

    def key(self) -> TransformType:
        """Return the kind of the transform."""
        if self._run.sliced:
            return TransformType.Vmap
        return TransformType.Grad if isinstance(self._run, GradRun) else TransformType.Jvp

    def level(self) -> int:
        """Return the depth of the transform, 1 for the outermost."""
        return self._run.depth


def _active() -> list[TransformLevel]:
    return [each for each in active_levels() if each.strict]


def get_interpreter_stack() -> list[CInterpreter] | None:
    """Return the active transforms, the outermost first, or None if there is none."""
    return [CInterpreter(each) for each in _active()] or None


def peek_interpreter_stack() -> CInterpreter | None:
    """Return the innermost active transform, or None if there is none."""
    active = _active()
    return CInterpreter(active[-1]) if active else None


def get_dynamic_layer_stack_depth() -> int:
    """Return the number of active transforms."""
    return len(_active())


def maybe_current_level() -> int | None:
    """Return the depth of the innermost active transform, or None if there is none."""
    active = _active()
    return active[-1].depth if active else None


def current_level() -> int:
    """Return the depth of the innermost active transform; raise RuntimeError if there is none."""
    level = maybe_current_level()
    if level is None:
        raise RuntimeError("no transform is active")
    return level


# -- Tensors -----------------------------------------------------------------------------------------------------------


def is_batchedtensor(tensor: Tensor) -> bool:
    """Whether ``tensor`` is a batch of ``vmap``."""
    return isinstance(tensor, Batch)


def is_gradtrackingtensor(tensor: Tensor) -> bool:
    """Whether ``tensor`` is a dual tensor of ``jvp``, or an argument that a gradient transform has passed."""
    return isinstance(tensor, Dual) or (
        not isinstance(tensor, TransformTensor) and tensor._grad_edge in INTERNAL_LEAVES
    )


def is_functorch_wrapped_tensor(tensor: Tensor) -> bool:
    """Whether ``tensor`` belongs to a transform."""
    return isinstance(tensor, TransformTensor) or is_gradtrackingtensor(tensor)


def is_functionaltensor(tensor: Tensor) -> bool:
    """Return False: there are no functional tensors."""
    return False


def is_legacy_batchedtensor(tensor: Tensor) -> bool:
    """Return False: ``vmap`` has one kind of batches."""
    return False


def is_dead_tensor_wrapper(tensor: Tensor) -> bool:
    """Whether ``tensor`` belongs to a transform that has returned."""
    return isinstance(tensor, TransformTensor) and not tensor._run.alive


def unwrap_if_dead(tensor: Tensor) -> Tensor:
    """Return the tensor in ``tensor`` if this belongs to a transform that has returned, otherwise ``tensor``."""
    return tensor._inner if isinstance(tensor, TransformTensor) and not tensor._run.alive else tensor


def get_unwrapped(tensor: Tensor) -> Tensor:
    """Return the tensor that ``tensor`` wraps; raise RuntimeError if it belongs to no transform."""
    if isinstance(tensor, TransformTensor):
        return tensor._inner
    if is_gradtrackingtensor(tensor):
        return tensor.detach()
    raise RuntimeError("No wrappers present!")


def maybe_get_bdim(tensor: Tensor) -> int:
    """Return the batch dimension of ``tensor``, or -1 if it is no batch."""
    return tensor._dim if isinstance(tensor, Batch) else -1


def maybe_get_level(tensor: Tensor) -> int:
    """Return the depth of the transform to which ``tensor`` belongs, or -1 if it belongs to none."""
    if isinstance(tensor, TransformTensor):
        return tensor._run.depth
    if not is_gradtrackingtensor(tensor):
        return -1
    return max((each.depth for each in _active() if isinstance(each, GradRun)), default=-1)


# -- Levels of vmap ----------------------------------------------------------------------------------------------------


def _vmap_increment_nesting(batch_size: int, randomness: str) -> int:
    """Begin a level of ``vmap`` with ``batch_size`` slices, and return its depth."""
    check_randomness(randomness)
    run = VmapRun(batch_size, randomness)
    run.__enter__()
    return run.depth


def _vmap_decrement_nesting() -> int:
    """End the innermost level, which must be one of ``vmap``, and return its depth."""
    active = _active()
    if not active or not isinstance(active[-1], VmapRun):
        raise RuntimeError("the innermost transform is not vmap")
    active[-1].__exit__(None, None, None)
    return active[-1].depth


def _level(depth: int) -> VmapRun:
    for each in _active():
        if each.depth == depth and isinstance(each, VmapRun):
            return each
    raise RuntimeError(f"no level of vmap has the depth {depth}")


def _add_batch_dim(tensor: Tensor, batch_dim: int, level: int) -> Tensor:
    """Return ``tensor`` as a batch of the ``vmap`` of depth ``level``, whose slices are along ``batch_dim``."""
    made: Tensor = batch(_level(level), tensor, batch_dim % max(tensor._array.ndim, 1))
    return made


def _remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    """Return the slices of ``tensor``, a batch of the ``vmap`` of depth ``level``, along dimension ``out_dim``.

    A tensor that is no batch of this level is repeated for each slice.
    """
    run = _level(level)
    own = isinstance(tensor, Batch) and tensor._run is run
    value, source = (tensor._inner, tensor._dim) if own else (expand_over_slices(tensor, run), 0)
    moved: Tensor = move_dim(value, source, out_dim % value._array.ndim)
    return moved


def _set_vmap_fallback_warning_enabled(enabled: bool) -> None:
    """Set whether ``vmap`` warns of an operation that it runs slice by slice; this holds for the whole process."""
    VmapRun.warns = enabled


def _is_vmap_fallback_enabled() -> bool:
    """Return True: an operation without a rule for batches runs slice by slice."""
    return True


__all__ = [
    "CInterpreter", "RandomnessType", "TransformType", "current_level", "get_dynamic_layer_stack_depth",
    "get_interpreter_stack", "get_unwrapped", "is_batchedtensor", "is_dead_tensor_wrapper", "is_functionaltensor",
    "is_functorch_wrapped_tensor", "is_gradtrackingtensor", "is_legacy_batchedtensor", "maybe_current_level",
    "maybe_get_bdim", "maybe_get_level", "peek_interpreter_stack", "unwrap_if_dead",
]  # fmt: skip
