"""Selective activation checkpointing: which operations of a checkpointed function keep their results."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from ..core.pytree import tree_map
from ..core.tensor import Tensor
from ..ops import OpOverload, aten
from .modes import TorchDispatchMode


class CheckpointPolicy(enum.Enum):
    """Policy for the result of an operation: it is kept (``*_SAVE``) or computed again (``*_RECOMPUTE``).

    The policies ``*_CPU_OFFLOAD`` keep it, on the CPU.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


KEPT = frozenset(each for each in CheckpointPolicy if "RECOMPUTE" not in each.name)
#: Operations that are never kept, because their results share the memory of operands or are numbers.
_NEVER = {aten.detach.default, aten._local_scalar_dense.default}


class SelectiveCheckpointContext:
    """First argument of a policy function; ``is_recompute`` is true while the function runs again."""

    __module__ = "torch.utils.checkpoint"

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


Policy = Callable[..., Any]
Kept = defaultdict[OpOverload, list[Any]]


def _kept(policy: Policy, is_recompute: bool, func: Any, args: Any, kwargs: Any) -> bool:
    """Whether ``policy`` keeps the result of ``func``."""
    if func in _NEVER:
        return False
    answer = policy(SelectiveCheckpointContext(is_recompute=is_recompute), func, *args, **kwargs)
    if isinstance(answer, bool):
        return answer
    return answer in KEPT


class _Keeping(TorchDispatchMode):
    """Mode of the forward pass, which keeps the results of operations in ``kept``."""

    def __init__(self, policy: Policy, kept: Kept) -> None:
        super().__init__()
        self.policy, self.kept = policy, kept

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        result = func(*args, **named)
        if _kept(self.policy, False, func, args, named):
            self.kept[func].append(tree_map(_with_version, result))
        return result


class _Reusing(TorchDispatchMode):
    """Mode of the recomputation, which returns the results in ``kept`` in their order."""

    def __init__(self, policy: Policy, kept: Kept, changes: bool) -> None:
        super().__init__()
        self.policy, self.kept, self.changes = policy, kept, changes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if not _kept(self.policy, True, func, args, named):
            return func(*args, **named)
        if not self.kept[func]:
            raise RuntimeError(
                f"{func} encountered during backward, but not found in storage"
                if func not in self.kept
                else "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        return tree_map(self._taken, self.kept[func].pop(0))

    def _taken(self, value: Any) -> Any:
        if value.__class__ is not _Saved:
            return value
        if not self.changes and value.tensor._version != value.version:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return value.tensor


class _Saved:
    """A kept tensor, with its version."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor, self.version = tensor, tensor._version


def _with_version(value: Any) -> Any:
    return _Saved(value.detach()) if isinstance(value, Tensor) else value


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Policy | Sequence[OpOverload], allow_cache_entry_mutation: bool = False
) -> tuple[TorchDispatchMode, TorchDispatchMode]:
    """Return the two contexts with which ``checkpoint`` keeps the results of some operations: its ``context_fn``.

    Args:
        policy_fn_or_list: Function ``policy(ctx, func, *args, **kwargs)`` that returns a :class:`CheckpointPolicy` for each
            operation, or the list of the operations, such as ``torch.ops.aten.mm.default``, whose results are kept.
        allow_cache_entry_mutation: If false, a kept tensor that was modified raises RuntimeError.

    Raises:
        ValueError: An item of the list is no overload of an operation.
        TypeError: The argument is neither a function nor a list.

    >>> import functools
    >>> import retrograd as torch
    >>> from retrograd.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> kept = functools.partial(create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
    >>> x = torch.ones(2, 2, requires_grad=True)
    >>> checkpoint(lambda t: (t @ t).sin().sum(), x, use_reentrant=False, context_fn=kept).backward()
    >>> x.grad[0, 0]
    tensor(-1.6646)
    """
    if isinstance(policy_fn_or_list, list):
        for each in policy_fn_or_list:
            if not isinstance(each, OpOverload):
                extra = (
                    "Please update the OpOverloadPacket to a specific OpOverload.For example, if you have `torch.ops.aten.mm`, "
                    "change it to `torch.ops.aten.mm.default`."
                    if hasattr(each, "overloads")
                    else ""
                )
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {each} of type {type(each)}. {extra}"
                )
        kept_operations = policy_fn_or_list

        def policy(context: Any, func: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            found = func in kept_operations
            return CheckpointPolicy.MUST_SAVE if found else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: Kept = defaultdict(list)
    return _Keeping(policy, kept), _Reusing(policy, kept, allow_cache_entry_mutation)


for _each in (CheckpointPolicy, create_selective_checkpoint_contexts):
    _each.__module__ = "torch.utils.checkpoint"
__all__ = ["CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"]
