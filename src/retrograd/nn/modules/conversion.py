"""Conversion of modules: whether parameters get new data, are replaced, or are swapped (see ``torch.__future__``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.grad_mode import no_grad
from ...core.swap import swap_tensors
from ...core.tensor import Tensor
from ..parameter import Parameter

#: Whether ``module.to`` and similar methods replace parameters by new ones, instead of changing their data.
overwrite_parameters = False
#: Whether these methods and ``load_state_dict`` swap parameters with new ones (``torch.utils.swap_tensors``).
swap_parameters = False


def _swap(module: Any, name: str, tensor: Tensor, new: Tensor) -> None:
    try:
        swap_tensors(tensor, new)
    except Exception as error:
        raise RuntimeError(f"_apply(): Couldn't swap {module._get_name()}.{name}") from error


def convert_parameter(module: Any, name: str, param: Tensor, fn: Callable[[Tensor], Tensor]) -> None:
    """Convert ``param``, the parameter ``name`` of ``module``, and its gradient by ``fn``."""
    with no_grad():
        grad, new = param.grad, fn(param)
        new_grad = None if grad is None else fn(grad).requires_grad_(grad.requires_grad)
    if swap_parameters:
        _swap(module, name, param, Parameter(new, param.requires_grad))
        if grad is not None and new_grad is not None:
            _swap(module, name + ".grad", grad, new_grad)
        param.grad = grad
    elif overwrite_parameters:
        created = module._parameters[name] = Parameter(new, param.requires_grad)
        created.grad = new_grad
    else:
        param.data = new
        if grad is not None and new_grad is not None:
            grad.data = new_grad


def swap_loaded(param: Tensor, value: Tensor, assign: bool) -> None:
    """Swap ``param``, a parameter or buffer, with the tensor that its ``module_load`` makes of ``value``."""
    new = param.module_load(value, assign=assign)
    if new is value or new is param:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in "
            "module_load"
        )
    if isinstance(param, Parameter) and not isinstance(new, Parameter):
        new = Parameter(new, requires_grad=param.requires_grad)
    swap_tensors(param, new)


__all__ = ["convert_parameter", "overwrite_parameters", "swap_loaded", "swap_parameters"]
