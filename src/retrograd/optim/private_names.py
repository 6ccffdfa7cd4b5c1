"""Private names of ``torch.optim.optimizer`` that optimizers of packages import."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..core import dtypes
from ..core.grad_mode import recording, restore_recording, set_recording
from ..core.tensor import Tensor
from ..dispatch.op import FUNCTIONS

# -- Parts of the documentation of options, which packages put into docstrings -----------------------------------------

_foreach_doc = _fused_doc = _maximize_doc = _capturable_doc = _differentiable_doc = _params_doc = ""


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate ``step`` of an optimizer, which is recorded in the graph only if its option ``differentiable`` is true."""

    @functools.wraps(func)
    def step(*args: Any, **kwargs: Any) -> Any:
        before = recording()
        try:
            set_recording(bool(args[0].defaults["differentiable"]))
            return func(*args, **kwargs)
        finally:
            restore_recording(before)

    return step


def _default_to_fused_or_foreach(
    params: Sequence[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Return whether an optimizer uses one function, and functions of lists: on the CPU neither, as in PyTorch."""
    if differentiable:
        return False, False
    gpu = bool(params) and all(each is None or each.device.type == "cuda" for each in params)
    fused = use_fused and gpu and all(each is None or each.is_floating_point() for each in params)
    return fused, gpu and not fused


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Return the kinds of devices whose work PyTorch can capture in a graph."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Replace the complex tensors in ``params``, and those beside them in the other lists, by pairs of real numbers."""
    for index, each in enumerate(params):
        if each.is_complex():
            params[index] = FUNCTIONS["view_as_real"](each)
            for others in state_and_grads:
                others[index] = FUNCTIONS["view_as_real"](others[index])


def _get_value(x: Any) -> Any:
    """Return the number that ``x``, a tensor or a number, is."""
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: Any) -> Any:
    """Return the number that ``x`` is, or ``x`` itself as a tensor without dimensions."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def _stack_if_compiling(x: Any) -> Any:
    """Return ``x``."""
    return x


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    """Return the dtype in which steps are counted."""
    return dtypes.float32 if is_fused or dtypes.default.floating is not dtypes.float64 else dtypes.float64


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[Any], Any]:
    """Return a decorator that returns its function."""
    return lambda function: function


Groups = dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]


def _group_tensors_by_device_and_dtype(tensorlistlist: Sequence[Sequence[Any]], with_indices: bool = False) -> Groups:
    """Return the columns of lists of equal length in groups, by the device and dtype of the tensor in the first list.

    >>> import retrograd as torch
    >>> groups = _group_tensors_by_device_and_dtype([[torch.ones(1), torch.ones(2)], [None, None]], with_indices=True)
    >>> [(key[1], indices) for key, (lists, indices) in groups.items()]
    [(torch.float32, [0, 1])]
    """
    found: Groups = {}
    for index, first in enumerate(tensorlistlist[0]):
        key = (first.device, first.dtype)
        lists, indices = found.setdefault(key, ([[] for _ in tensorlistlist], []))
        for each, group in zip(tensorlistlist, lists, strict=True):
            if each:
                group.append(each[index])
        if with_indices:
            indices.append(index)
    return found


__all__: list[str] = []
