"""Gradient clipping: clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_ and get_total_norm."""

from __future__ import annotations

import functools
import math
import operator
import types
from collections.abc import Iterable

from ...compat.lazy_imports import load_part
from ...core import devices
from ...core.grad_mode import no_grad
from ...core.saved_tensor_hooks import before_modification
from ...core.tensor import Tensor, wrap
from ...dispatch.operand_promotion import PLAIN
from ...operations.creation.from_data import tensor
from ...operations.multi_tensor import arrays_on_gpu, clamp_, scale_
from ...operations.reductions.sums import vector_norm
from ...operations.shape.join import stack
from ...runtime.user_frame import warn

Tensors = Tensor | Iterable[Tensor]


def _gradients(parameters: Tensors) -> list[Tensor]:
    listed = [parameters] if isinstance(parameters, Tensor) else parameters
    return [each.grad for each in listed if each.grad is not None]


@no_grad()
def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """Return the norm of order ``norm_type`` of all ``tensors``, concatenated into one vector.

    If ``error_if_nonfinite`` is true and the norm is infinite or NaN, RuntimeError is raised. ``foreach`` is ignored.

    >>> import retrograd as torch
    >>> torch.nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
    tensor(5.)
    """
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not listed:
        return tensor(0.0)
    if norm_type == 2 and (arrays := arrays_on_gpu(listed)) is not None:
        total = wrap(load_part("kernels.cuda.many").norm(arrays))
    elif all(each.__class__ in PLAIN for each in listed):
        total = vector_norm(stack([vector_norm(each, norm_type).to(listed[0].device) for each in listed]), norm_type)
    else:  # methods, because they pass the call to the classes of the tensors
        total = _norm_of_norms([each.norm(norm_type).to(listed[0].device) for each in listed], norm_type)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. To "
            "disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def _norm_of_norms(norms: list[Tensor], norm_type: float) -> Tensor:
    """Return the norm of order ``norm_type`` of a vector of which ``norms`` are the norms of the parts."""
    if math.isinf(norm_type):
        return functools.reduce(lambda x, y: x.maximum(y) if norm_type > 0 else x.minimum(y), norms)
    if norm_type == 0:
        return functools.reduce(operator.add, [each.ne(0).to(each.dtype) for each in norms])
    return functools.reduce(operator.add, [each.pow(norm_type) for each in norms]).pow(1 / norm_type)


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Multiply the gradients of ``parameters`` in place by ``max_norm / total_norm`` if this factor is less than 1.

    ``foreach`` has no effect.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> w = torch.zeros(2, requires_grad=True)
    >>> w.grad = torch.tensor([3.0, 4.0])
    >>> nn.utils.clip_grads_with_norm_(w, 1.0, torch.tensor(5.0))
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    grads = _gradients(parameters)
    if not grads:
        return
    if total_norm.__class__ is Tensor and not before_modification:
        arrays = arrays_on_gpu([total_norm, *grads])
        if arrays is not None and not arrays[0].ndim:
            np, many = devices.array_module_of(arrays[0]), load_part("kernels.cuda.many")
            on_device = np.launch.computed(many.clip_factor, "clip_factor", (arrays[0], float(max_norm)), {})
            if scale_(grads, arrays[1:], on_device):
                return
    factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for grad in grads:
        grad.mul_(factor.to(grad.device))


@no_grad()
def clip_grad_norm_(
    parameters: Tensors, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """Scale the gradients of ``parameters`` in place so that their total norm is at most ``max_norm``.

    The total norm is the norm of order ``norm_type`` of all gradients, concatenated into one vector. Returns the total
    norm before scaling. If ``error_if_nonfinite`` is true and the total norm is infinite or NaN, RuntimeError is
    raised. ``foreach`` has no effect.

    >>> import retrograd as torch
    >>> w = torch.tensor([1.0, 1.0], requires_grad=True)
    >>> (w * torch.tensor([3.0, 4.0])).sum().backward()
    >>> torch.nn.utils.clip_grad_norm_(w, 1.0), w.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    max_norm = float(max_norm)
    if not isinstance(parameters, Tensor):
        was_generator = isinstance(parameters, types.GeneratorType)
        parameters = list(parameters)
        if was_generator and not parameters:
            warn("`parameters` is an empty generator, no gradient clipping will occur.")
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensors, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """Deprecated alias of :func:`clip_grad_norm_`; each call issues a FutureWarning."""
    warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@no_grad()
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp the gradients of ``parameters`` in place to the range from ``-clip_value`` to ``clip_value``.

    ``foreach`` has no effect.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> (w * torch.tensor([5.0, -0.5])).sum().backward()
    >>> nn.utils.clip_grad_value_(w, 1.0)
    >>> w.grad
    tensor([ 1.0000, -0.5000])
    """
    grads = _gradients(parameters)
    if len(grads) > 1 and clamp_(grads, -float(clip_value), float(clip_value)):
        return
    for grad in grads:
        grad.clamp_(min=-float(clip_value), max=float(clip_value))


__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm",
]  # fmt: skip
