"""``torch.utils.module_tracker``: which modules are running in a forward or backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self
from weakref import WeakKeyDictionary

from ..autograd.graph import register_multi_grad_hook
from ..core.engine import queue_callback, running_plan
from ..core.pytree import tree_leaves
from ..core.tensor import Tensor
from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

GLOBAL = "Global"


class ModuleTracker:
    """Context manager whose attribute ``parents`` is the set of the names of the running modules, and ``"Global"``.

    A module is called as its class if no module in which it is has been seen, and otherwise as that module with its
    attribute: ``Net.layers.0``. In a backward pass, a module is running from the gradients of its results to those of its
    arguments.

    >>> import retrograd as torch
    >>> class Net(torch.nn.Module):
    ...     def forward(self, x):
    ...         print(sorted(tracker.parents))
    ...         return x
    >>> with ModuleTracker() as tracker:
    ...     y = Net()(torch.ones(2))
    ['Global', 'Net']
    """

    __module__ = "torch.utils.module_tracker"

    def __init__(self) -> None:
        self.parents = {GLOBAL}
        self._names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._handles: list[Any] = []
        self._awaits_end = False

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass is running."""
        return running_plan() is not None

    def __enter__(self) -> Self:
        self._handles += [
            register_module_forward_pre_hook(self._begins),
            register_module_forward_hook(self._ends, always_call=True),
        ]
        return self

    def __exit__(self, *error: Any) -> None:
        for each in self._handles:
            each.remove()
        self._handles.clear()

    def _name(self, module: Any) -> str:
        """Return the name of ``module``, and give names to the modules in it."""
        if module not in self._names:
            self._names[module] = type(module).__name__
        name = self._names[module]
        for key, child in module.named_children():
            if child not in self._names:
                self._names[child] = f"{name}.{key}"
                self._name(child)
        return name

    def _begins(self, module: Any, args: Any) -> None:
        name = self._name(module)
        self.parents.add(name)
        self._when_computed(args, lambda *grads: self.parents.discard(name))

    def _ends(self, module: Any, args: Any, result: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)

        def enter(*grads: Any) -> None:
            if not self._awaits_end:
                self._awaits_end = True
                queue_callback(self._backward_ends)
            self.parents.add(name)

        self._when_computed(result, enter)

    def _backward_ends(self) -> None:
        self._awaits_end = False
        self.parents = {GLOBAL}

    def _when_computed(self, values: Any, function: Callable[..., Any]) -> None:
        """Call ``function`` when a backward pass has computed the gradients of the tensors in ``values``."""
        tensors = [each for each in tree_leaves(values) if isinstance(each, Tensor) and each.requires_grad]
        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, function))


__all__ = ["ModuleTracker"]
