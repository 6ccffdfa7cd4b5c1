"""weight_norm and remove_weight_norm: weight normalisation by a forward pre-hook.

``parametrizations.weight_norm`` supersedes these functions.
"""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...operations.creation.storage import norm_except_dim as norm
from ...runtime.user_frame import warn
from ..modules.module import Module
from ..parameter import Parameter


def norm_except_dim(v: Tensor, dim: int | None) -> Tensor:
    """Return the 2-norm of ``v`` over all dimensions except ``dim``; the reduced dimensions have size 1 in the result.

    With ``dim=None`` or ``dim=-1`` the norm is computed over all dimensions.
    """
    return norm(v, 2, -1 if dim is None else dim)


def weight_from_norm(v: Tensor, g: Tensor, dim: int | None) -> Tensor:
    """Return ``v`` scaled so that its norm at each index along ``dim`` is the corresponding element of ``g``."""
    return v * (g / norm_except_dim(v, dim))


class WeightNorm:
    """Forward pre-hook that computes the weight ``name`` of a module from its norm and its direction."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim: int = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """Return the weight, computed from the parameters ``<name>_g`` (norm) and ``<name>_v`` (direction)."""
        return weight_from_norm(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Add a WeightNorm hook for the parameter ``name`` to ``module`` and return the hook.

        The parameter is replaced by the parameters ``<name>_g`` (norm) and ``<name>_v`` (direction).
        """
        if any(isinstance(hook, WeightNorm) and hook.name == name for hook in module._forward_pre_hooks.values()):
            raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        created = WeightNorm(name, dim)
        weight = getattr(module, name)
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, created.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, created.compute_weight(module))
        module.register_forward_pre_hook(created)
        return created

    def remove(self, module: Module) -> None:
        """Replace the parameters for norm and direction of ``module`` by one parameter with the computed weight."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"], module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Replace the parameter ``name`` of ``module`` by its norm and its direction (Salimans and Kingma 2016).

    The norm is the parameter ``<name>_g``, and the direction is the parameter ``<name>_v``. The norm is computed for
    each index along ``dim``, or over the whole parameter if ``dim`` is None. A forward pre-hook computes the weight
    before each call of ``module``. Returns ``module``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.utils.weight_norm(nn.Linear(3, 4))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight_g', 'weight_v']
    """
    warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Remove the hook that :func:`weight_norm` added for the parameter ``name`` of ``module``; return ``module``.

    Norm and direction are replaced by a parameter with the computed weight.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.utils.remove_weight_norm(nn.utils.weight_norm(nn.Linear(3, 4)))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight']
    """
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")


__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]
