"""Pruning, as ``torch.nn.utils.prune``: selected elements of a parameter are set to 0 by a mask.

The parameter ``weight`` is renamed to ``weight_orig``, and the mask is the buffer ``weight_mask``. A forward pre-hook
computes ``weight = weight_orig * weight_mask`` before each call of the module. If a parameter is pruned several times,
the masks are combined.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from ...core.tensor import Tensor, contiguous_format
from ...operations.creation.factory import empty, empty_like, ones_like, zeros_like
from ...operations.indexing.sort import topk
from ...operations.reductions.sums import vector_norm
from ...operations.shape.join import cat
from ..modules.module import Module


class BasePruningMethod(ABC):
    """Base class of pruning methods. A subclass defines ``compute_mask``, which selects the elements to prune.

    >>> from retrograd.nn.utils import prune
    >>> class Below(prune.BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...     def compute_mask(self, t, default_mask):
    ...         return default_mask * (t > 2)
    >>> layer = torch.nn.Linear(2, 2, bias=False)
    >>> layer.weight.data = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    >>> _ = Below.apply(layer, "weight")
    >>> layer.weight_mask
    tensor([[0., 0.],
            [1., 1.]])
    """

    _tensor_name: str
    PRUNING_TYPE = "unstructured"

    def __call__(self, module: Module, inputs: Any) -> None:
        """Compute the pruned parameter of ``module``. The module calls this method as a forward pre-hook."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the new mask, which is 0 for the elements to prune and 1 for all other elements.

        ``t`` has the importance scores of the elements. ``default_mask`` is the mask of earlier prunings; the new mask
        must also be 0 where ``default_mask`` is 0.
        """

    def apply_mask(self, module: Module) -> Tensor:
        """Return the product of the original parameter ``<name>_orig`` of ``module`` and the mask ``<name>_mask``."""
        name = self._tensor_name
        mask, original = getattr(module, name + "_mask"), getattr(module, name + "_orig")
        pruned: Tensor = mask.to(dtype=original.dtype) * original
        return pruned

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> Any:
        """Prune the parameter ``name`` of ``module`` and return the pruning method, a forward pre-hook of ``module``.

        The elements to prune are selected by ``importance_scores``, by default the values of the parameter. Elements
        that are already pruned remain pruned. ``args`` and ``kwargs`` are passed to ``__init__`` of this class.
        """
        before = _hook_of(module, name)
        if before is not None:
            del module._forward_pre_hooks[before[0]]
        created = cls(*args, **kwargs)
        created._tensor_name = name
        method: BasePruningMethod = created
        if before is not None:
            method = before[1] if isinstance(before[1], PruningContainer) else PruningContainer(before[1])
            method.add_pruning_method(created)
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}")
        parameter = original
        if before is None:
            mask = ones_like(original, memory_format=contiguous_format)
        else:
            mask = getattr(module, name + "_mask").detach().clone(memory_format=contiguous_format)
            parameter = module._parameters[name + "_orig"]
        mask = method.compute_mask(scores, mask)
        if before is None:
            del module._parameters[name]
            module.register_parameter(name + "_orig", parameter)
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """Return the pruned tensor ``t``: ``t`` times the mask ``compute_mask(importance_scores, default_mask)``.

        The default of ``importance_scores`` is ``t``, and the default of ``default_mask`` is a mask of ones.
        """
        scores = t if importance_scores is None else importance_scores
        return t * self.compute_mask(scores, ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Replace the pruned parameter of ``module`` by an ordinary parameter with the pruned values."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        del module._buffers[name + "_mask"]
        assert original is not None
        original.data = weight.data
        setattr(module, name, original)


def _hook_of(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    """Return ``(id, hook)`` of the forward pre-hook that prunes the parameter ``name`` of ``module``.

    The result is None if the parameter is not pruned.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None


class PruningContainer(BasePruningMethod):
    """Pruning method that applies several methods to one parameter in order and combines their masks.

    >>> from retrograd.nn.utils import prune
    >>> layer = torch.nn.Linear(2, 2, bias=False)
    >>> layer.weight.data = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    >>> _ = prune.l1_unstructured(layer, "weight", amount=1)
    >>> _ = prune.ln_structured(layer, "weight", amount=1, n=2, dim=1)
    >>> (container,) = layer._forward_pre_hooks.values()
    >>> len(container), layer.weight_mask
    (2, tensor([[0., 1.],
            [0., 1.]]))
    """

    def __init__(self, *args: Any) -> None:
        methods = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in methods:
            if not self._pruning_methods:
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Append ``method``, which must prune the same parameter as this container.

        Raises TypeError if ``method`` is not a pruning method, and ValueError if the names of the parameters differ.
        """
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return ``default_mask`` with additional zeros at the elements that the last method in the container prunes.

        ``t`` has the importance scores of the elements. The attribute ``PRUNING_TYPE`` of the method determines the
        elements that it can select. With ``"unstructured"``, these are the elements that are not pruned yet. With
        ``"structured"``, these are the slices that are not completely pruned yet. With ``"global"``, these are all
        elements.
        """
        method, mask = self._pruning_methods[-1], default_mask.to(dtype=t.dtype)
        place: Any
        if method.PRUNING_TYPE == "unstructured":
            place = mask.eq(1)
        elif method.PRUNING_TYPE == "structured":
            dim = getattr(method, "dim", 0) % t.dim()
            others = [each for each in range(t.dim()) if each != dim]
            place = (slice(None),) * dim + (mask.sum(others).ne(0),)
        elif method.PRUNING_TYPE == "global":
            place = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask[place] = method.compute_mask(t[place], mask[place])
        return mask


class Identity(BasePruningMethod):
    """Pruning method that does not prune any element.

    >>> from retrograd.nn.utils import prune
    >>> layer = torch.nn.Linear(2, 2, bias=False)
    >>> layer.weight.data = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    >>> _ = prune.Identity.apply(layer, "weight")
    >>> layer.weight_mask
    tensor([[1., 1.],
            [1., 1.]])
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask ``default_mask`` unchanged."""
        return default_mask


class _AmountMethod(BasePruningMethod):
    """Base class of pruning methods with ``amount``: the fraction (float) or the number (int) of elements to prune."""

    def __init__(self, amount: float) -> None:
        _check_amount(amount)
        self.amount = amount

    def chosen(self, t: Tensor) -> int:
        """Return the number of elements of ``t`` to prune, computed from ``amount``."""
        return _count(self.amount, t.nelement())


class RandomUnstructured(_AmountMethod):
    """Pruning method that prunes random elements.

    >>> from retrograd.nn.utils import prune
    >>> layer = torch.nn.Linear(2, 2, bias=False)
    >>> layer.weight.data = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    >>> _ = prune.RandomUnstructured.apply(layer, "weight", amount=3)
    >>> layer.weight_mask.sum()
    tensor(1.)
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return a copy of ``default_mask`` with zeros at random positions."""
        mask, count = default_mask.clone(memory_format=contiguous_format), self.chosen(t)
        if count:
            mask.view(-1)[topk(empty_like(t, memory_format=contiguous_format).uniform_().view(-1), count).indices] = 0
        return mask


class L1Unstructured(_AmountMethod):
    """Pruning method that prunes the elements with the smallest absolute values.

    >>> from retrograd.nn.utils import prune
    >>> layer = torch.nn.Linear(2, 2, bias=False)
    >>> layer.weight.data = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    >>> _ = prune.L1Unstructured.apply(layer, "weight", amount=0.5)
    >>> layer.weight_mask
    tensor([[0., 0.],
            [1., 1.]])
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return a copy of ``default_mask`` with zeros where ``t`` has the smallest absolute values."""
        mask, count = default_mask.clone(memory_format=contiguous_format), self.chosen(t)
        if count:
            mask.view(-1)[topk(t.abs().view(-1), count, largest=False).indices] = 0
        return mask


class _Structured(_AmountMethod):
    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def channels(self, t: Tensor) -> int:
        """Return the number of slices along ``dim`` to prune, computed from ``amount``.

        A slice has all elements of ``t`` with the same index along ``dim``.
        """
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {t.dim()} dims"
            )
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        return _count(self.amount, t.shape[self.dim])

    def mask_of(self, t: Tensor, chosen: Tensor, default_mask: Tensor) -> Tensor:
        """Return a mask of the shape of ``t`` that keeps only the slices ``chosen`` along ``dim``.

        ``chosen`` is a tensor of indices, or a boolean tensor that is true for the slices to keep. The mask is equal to
        ``default_mask`` in these slices, and 0 in all others.
        """
        mask = zeros_like(t)
        mask[(slice(None),) * (self.dim % t.dim()) + (chosen,)] = 1
        return mask * default_mask.to(dtype=mask.dtype)


class RandomStructured(_Structured):
    """Pruning method that prunes random slices along ``dim``.

    A slice has all elements with the same index along ``dim``.

    >>> from retrograd.nn.utils import prune
    >>> layer = torch.nn.Linear(2, 2, bias=False)
    >>> layer.weight.data = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    >>> _ = prune.RandomStructured.apply(layer, "weight", amount=1, dim=0)
    >>> layer.weight_mask.sum()
    tensor(2.)
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return ``default_mask`` with zeros in random slices along ``dim``; the result has the shape of ``t``."""
        count = self.channels(t)
        if not count:
            return default_mask
        draws = empty(t.shape[self.dim]).uniform_()
        last = topk(draws, count, largest=False).values.max()
        return self.mask_of(t, draws.gt(last), default_mask)


class LnStructured(_Structured):
    """Pruning method that prunes the slices along ``dim`` with the smallest norms of order ``n``.

    A slice has all elements with the same index along ``dim``.

    >>> from retrograd.nn.utils import prune
    >>> layer = torch.nn.Linear(2, 2, bias=False)
    >>> layer.weight.data = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    >>> _ = prune.LnStructured.apply(layer, "weight", amount=1, n=2, dim=0)
    >>> layer.weight_mask
    tensor([[0., 0.],
            [1., 1.]])
    """

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return ``default_mask`` with zeros in the slices along ``dim`` in which ``t`` has the smallest norms."""
        count = self.channels(t)
        if not count:
            return default_mask
        others = [each for each in range(t.dim()) if each != self.dim % t.dim()]
        stored = topk(vector_norm(t, self.n, others), t.shape[self.dim] - count).indices
        return self.mask_of(t, stored, default_mask)


class CustomFromMask(BasePruningMethod):
    """Pruning method that uses the mask passed to ``__init__``.

    >>> from retrograd.nn.utils import prune
    >>> layer = torch.nn.Linear(2, 2, bias=False)
    >>> layer.weight.data = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    >>> _ = prune.CustomFromMask.apply(layer, "weight", mask=torch.tensor([[1, 0], [0, 1]]))
    >>> layer.weight.tolist()
    [[1.0, -0.0], [0.0, 4.0]]
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return ``default_mask`` times the mask passed to ``__init__``."""
        result: Tensor = default_mask * self.mask.to(dtype=default_mask.dtype)
        return result


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (not isinstance(amount, numbers.Integral) and float(amount) > 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _count(amount: Any, total: int) -> int:
    if isinstance(amount, numbers.Integral):
        if int(amount) > total:
            raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={total}")
        return int(amount)
    return round(float(amount) * total)


def identity(module: Module, name: str) -> Module:
    """Add a mask of ones for the parameter ``name`` to ``module``, without pruning elements; return ``module``."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune random elements of the parameter ``name`` of ``module``; return ``module``.

    ``amount`` is a fraction (float) or a number (int) of elements.
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Prune the elements of the parameter ``name`` of ``module`` with the smallest absolute values; return ``module``.

    ``amount`` is a fraction (float) or a number (int) of elements. If ``importance_scores`` is not None, the elements
    with the smallest absolute importance scores are pruned instead.

    >>> import retrograd as torch
    >>> layer = torch.nn.utils.prune.l1_unstructured(torch.nn.Linear(4, 1), "weight", amount=3)
    >>> layer.weight_mask.sum()
    tensor(1.)
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune random slices along ``dim`` of the parameter ``name`` of ``module``; return ``module``.

    A slice has all elements with the same index along ``dim``. ``amount`` is a fraction (float) or a number (int) of
    slices.
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune the slices along ``dim`` of the parameter ``name`` with the smallest norms of order ``n``.

    A slice has all elements with the same index along ``dim``. ``amount`` is a fraction (float) or a number (int) of
    slices. If ``importance_scores`` is not None, the norms of the slices of ``importance_scores`` are compared instead.
    Returns ``module``.
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune the parameter ``name`` of ``module`` where ``mask`` is 0; return ``module``."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any) -> None:
    """Prune several parameters together: the elements to prune are selected among the elements of all parameters.

    ``parameters`` is an iterable of pairs ``(module, name)``. ``pruning_method`` is a subclass of BasePruningMethod,
    whose ``__init__`` is called with ``kwargs``. ``importance_scores`` is a dictionary from pairs ``(module, name)`` to
    scores; the default scores of a parameter are its values.

    >>> from retrograd.nn.utils import prune
    >>> first, second = torch.nn.Linear(2, 1, bias=False), torch.nn.Linear(1, 2, bias=False)
    >>> first.weight.data, second.weight.data = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0]])
    >>> prune.global_unstructured([(first, "weight"), (second, "weight")], prune.L1Unstructured, amount=3)
    >>> first.weight_mask, second.weight_mask
    (tensor([[0., 0.]]), tensor([[0.],
            [1.]]))
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    given = list(parameters)
    scores = {} if importance_scores is None else dict(importance_scores)
    relevant = [scores.get((module, name), getattr(module, name)) for module, name in given]
    masks = [
        getattr(module, name + "_mask") if hasattr(module, name + "_mask") else ones_like(getattr(module, name))
        for module, name in given
    ]
    flat = cat([each.detach().reshape(-1) for each in relevant])
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for '
            f"the `pruning_method`. Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    mask = container.compute_mask(flat, cat([each.reshape(-1) for each in masks]))
    start = 0
    for (module, name), each in zip(given, relevant, strict=True):
        custom_from_mask(module, name, mask[start : start + each.numel()].view_as(each))
        start += each.numel()


def is_pruned(module: Module) -> bool:
    """Return whether any parameter of ``module`` or of a submodule is pruned."""
    return any(
        isinstance(hook, BasePruningMethod) for each in module.modules() for hook in each._forward_pre_hooks.values()
    )


def remove(module: Module, name: str) -> Module:
    """Replace the pruned parameter ``name`` of ``module`` by an ordinary parameter with the pruned values.

    The mask and the hook are removed. Returns ``module``.
    """
    result = _hook_of(module, name)
    if result is None:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    result[1].remove(module)
    del module._forward_pre_hooks[result[0]]
    return module


__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip
