"""Mixin ``LazyModuleMixin`` of modules that infer the shapes of their parameters from their first input."""

from __future__ import annotations

import itertools
from typing import Any

from ..parameter import is_lazy


class LazyModuleMixin:
    """Mixin of modules such as LazyLinear, which allocate their parameters when they are called for the first time.

    The first call of the module calls ``initialize_parameters`` and then changes the class of the module to the class
    attribute ``cls_to_become``, for example Linear.
    """

    cls_to_become: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)  # type: ignore[attr-defined]
        self._initialize_hook = self.register_forward_pre_hook(  # type: ignore[attr-defined]
            self._infer_parameters, with_kwargs=True
        )

    def _lazy_load_hook(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: Any, unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:  # fmt: skip
        """Allocate the uninitialized parameters and buffers with the shapes of their values in ``state_dict``.

        The method is a hook that ``load_state_dict`` calls before the values are loaded.
        """
        for name, param in itertools.chain(self._parameters.items(), self._buffers.items()):  # type: ignore[attr-defined]
            key = prefix + name
            if key in state_dict and param is not None and is_lazy(param) and not is_lazy(state_dict[key]):
                param.materialize(state_dict[key].shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Allocate the parameters; ``args`` and ``kwargs``, the arguments of the first call, determine their shapes.

        Subclasses override this method.
        """
        raise NotImplementedError(f"initialize_parameters is not implemented for {self.__class__.__name__}")

    def has_uninitialized_params(self) -> bool:
        """Return whether a parameter or buffer of this module is not initialised yet."""
        members = itertools.chain(self._parameters.values(), self._buffers.values())  # type: ignore[attr-defined]
        return any(is_lazy(each) for each in members)

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")  # type: ignore[attr-defined]
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become


__all__ = ["LazyModuleMixin"]
