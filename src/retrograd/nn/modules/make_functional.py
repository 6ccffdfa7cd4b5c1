"""``make_functional`` and other names of the package ``functorch``, which PyTorch has deprecated."""

from __future__ import annotations

import copy
from typing import Any

from ...func.modules import functional_call, stack_module_state
from ...runtime.user_frame import warn
from .module import Module

_DEPRECATED = (
    "We've integrated functorch into PyTorch. As the final step of the integration, `functorch.{}` is deprecated as of "
    "PyTorch 2.0 and will be deleted in a future version of PyTorch >= 2.3. Please use `torch.func.{}` instead; see the "
    "PyTorch 2.0 release notes and/or the `torch.func` migration guide for more details "
    "https://pytorch.org/docs/main/func.migrating.html"
)


class FunctionalModuleWithBuffers(Module):
    """Module without parameters and buffers of its own: a call passes these as the first two arguments."""

    def __init__(self, model: Module) -> None:
        super().__init__()
        self.stateless_model = copy.deepcopy(model)
        self.param_names = tuple(name for name, _ in model.named_parameters())
        self.buffer_names = tuple(name for name, _ in model.named_buffers())
        for each in (*self.stateless_model.parameters(), *self.stateless_model.buffers()):
            each.requires_grad_(False)

    def forward(self, params: Any, buffers: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the module for the parameters ``params`` and the buffers ``buffers``."""
        values = dict(zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True))
        return functional_call(self.stateless_model, values, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """Module without parameters of its own: a call passes these as the first argument."""

    def forward(self, params: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the module for the parameters ``params``."""
        values = dict(zip(self.param_names, params, strict=True))
        return functional_call(self.stateless_model, values, args, kwargs)


def _parameters(model: Module, disable_autograd_tracking: bool) -> tuple[Any, ...]:
    params = tuple(copy.deepcopy(model).parameters())
    for each in params if disable_autograd_tracking else ():
        each.requires_grad_(False)
    return params


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple[Any, ...]]:
    """Return ``model`` as a function of its parameters and inputs, and a copy of its parameters (deprecated).

    If ``disable_autograd_tracking`` is true, the parameters do not require gradients.
    """
    warn(_DEPRECATED.format("make_functional", "functional_call"), FutureWarning)
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    return FunctionalModule(model), _parameters(model, disable_autograd_tracking)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """Return ``model`` as a function of its state and inputs, with copies of its parameters and buffers (deprecated).

    If ``disable_autograd_tracking`` is true, the parameters do not require gradients.
    """
    warn(_DEPRECATED.format("make_functional_with_buffers", "functional_call"), FutureWarning)
    buffers = tuple(copy.deepcopy(model).buffers())
    return FunctionalModuleWithBuffers(model), _parameters(model, disable_autograd_tracking), buffers


def combine_state_for_ensemble(models: Any) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """Return the first of ``models`` as a function, with the stacked parameters and buffers of all (deprecated)."""
    warn(_DEPRECATED.format("combine_state_for_ensemble", "stack_module_state"), FutureWarning)
    models = list(models)
    try:
        params, buffers = stack_module_state(models)
    except RuntimeError as error:
        raise RuntimeError(str(error).replace("stack_module_state", "combine_state_for_ensemble")) from None
    return FunctionalModuleWithBuffers(models[0]), tuple(params.values()), tuple(buffers.values())


__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "make_functional",
    "make_functional_with_buffers",
]  # fmt: skip
