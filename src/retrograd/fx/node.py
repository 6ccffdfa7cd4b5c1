"""``torch.fx.node``: the nodes of a graph, and functions that visit the nodes in their arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..core.devices import device
from ..core.dtypes import dtype
from ..core.tensor import Tensor, layout, memory_format
from ..operations.creation.conversion import typename
from ..ops import OpOverload, OpOverloadPacket
from ..private_names import SymBool, SymFloat, SymInt, _assert, _assert_async
from .immutable_collections import immutable_dict, immutable_list
from .names import is_from_torch, qualified_name, type_text

if TYPE_CHECKING:
    from .graph import Graph

Argument: TypeAlias = Any
Target: TypeAlias = Callable[..., Any] | str
Callee = TypeVar("Callee", bound=Callable[..., Any])

#: Types of the constants that may be arguments of nodes.
base_types = (
    str, int, float, bool, complex, dtype, Tensor, device, memory_format, layout, OpOverload, OpOverloadPacket, SymInt,
    SymBool, SymFloat,
)  # fmt: skip
OPCODES = ("placeholder", "get_attr", "call_function", "call_module", "call_method", "output")

_side_effectful_functions: set[Any] = {_assert, _assert_async, operator.setitem}
_RANDOM = frozenset({
    "bernoulli", "multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like",
    "randperm",
})  # fmt: skip


def has_side_effect(fn: Callee) -> Callee:
    """Return ``fn``, whose calls ``Graph.eliminate_dead_code`` keeps from now on even if the results are unused.

    >>> import retrograd as torch
    >>> def log(x):
    ...     return None
    >>> torch.fx.has_side_effect(log) is log
    True
    """
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Return a copy of ``a`` in which each element ``x`` of tuples, lists, dictionaries and slices is ``fn(x)``.

    Containers may be nested. Lists and dictionaries become immutable ones.

    >>> map_aggregate((1, [2, {"a": slice(3, None)}]), lambda x: x and 10 * x)
    (10, [20, {'a': slice(30, None, None)}])
    """
    if isinstance(a, tuple):
        items = [map_aggregate(each, fn) for each in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(each, fn) for each in a])
    if isinstance(a, dict):
        return immutable_dict([(key, map_aggregate(value, fn)) for key, value in a.items()])
    if isinstance(a, slice):
        return slice(*(map_aggregate(each, fn) for each in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Return a copy of ``a`` in which each node ``n`` in nested containers is replaced by ``fn(n)``.

    >>> import retrograd as torch
    >>> graph = torch.fx.symbolic_trace(lambda x: x + 1).graph
    >>> add = list(graph.nodes)[1]
    >>> torch.fx.map_arg(add.args, lambda node: node.name)
    ('x', 1)
    """
    assert callable(fn), "torch.fx.map_arg(a, fn): fn must be a callable"
    return map_aggregate(a, lambda each: fn(each) if isinstance(each, Node) else each)


class Node:
    """One step of a :class:`Graph`: a parameter, an attribute, a call, or the result.

    The meaning of ``target``, ``args`` and ``kwargs`` depends on ``op``:

    ============= ========================== ===============================================
    op            target                     args and kwargs
    ============= ========================== ===============================================
    placeholder   name of the parameter      its default value, if it has one
    get_attr      path of the attribute      none
    call_function the function               its arguments
    call_module   path of the module         its arguments
    call_method   name of the method         the object, then the arguments of the method
    output        ``"output"``               the result
    ============= ========================== ===============================================

    ``name`` is unique in the graph, ``users`` has the nodes that use the result as its keys, ``meta`` is a dictionary
    for passes over the graph, and ``type`` is an annotation or None. ``ValueError`` is raised if ``target`` does not
    fit ``op``.

    >>> import retrograd as torch
    >>> graph = torch.fx.symbolic_trace(torch.nn.ReLU()).graph
    >>> [(node.op, node.name) for node in graph.nodes]
    [('placeholder', 'input_1'), ('call_function', 'relu'), ('output', 'output')]
    """

    graph: Graph
    meta: dict[str, Any]

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        assert op in OPCODES or op == "root", f"op '{op}' is not in _legal_ops"
        if not (callable(target) if op == "call_function" else isinstance(target, str)):
            kind = "Callable" if op == "call_function" else "str"
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {typename(target)} but a {kind} is expected"
            )
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users: dict[Node, None] = {}
        self.meta = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self._set_arguments(args, kwargs)

    # -- place in the graph

    @property
    def next(self) -> Node:
        """Next node of the graph."""
        return self._next

    @property
    def prev(self) -> Node:
        """Previous node of the graph."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move ``x``, a node of the same graph, to the place before this node."""
        assert self.graph is x.graph, "Attempting to move a Node into a different Graph"
        if x is self:
            return
        x._remove_from_list()
        x._prev, x._next = self._prev, self
        self._prev._next = self._prev = x
        self.graph._positions = None

    def append(self, x: Node) -> None:
        """Move ``x``, a node of the same graph, to the place after this node."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev
        self.graph._positions = None

    def __lt__(self, other: Node) -> bool:
        return self.graph.position(self) < other.graph.position(other)

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return not other < self

    def __ge__(self, other: Node) -> bool:
        return not self < other

    # -- arguments

    @property
    def args(self) -> tuple[Argument, ...]:
        """Positional arguments: a tuple, in which lists and dictionaries are immutable. It can be assigned."""
        return self._args

    @args.setter
    def args(self, a: tuple[Argument, ...]) -> None:
        self._set_arguments(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """Keyword arguments: an immutable dictionary, which can be assigned."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Argument]) -> None:
        self._set_arguments(self._args, k)

    @property
    def all_input_nodes(self) -> list[Node]:
        """List of the nodes in ``args`` and ``kwargs``, each once."""
        return list(self._input_nodes)

    def _set_arguments(self, args: Any, kwargs: Any) -> None:
        for each in self._input_nodes:
            each.users.pop(self, None)
        found: dict[Node, None] = {}

        def seen(node: Node) -> Node:
            found[node] = node.users[self] = None
            return node

        self._args, self._kwargs = map_arg(tuple(args), seen), map_arg(dict(kwargs), seen)
        self._input_nodes = found

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace the positional argument ``idx`` by ``arg``."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Insert ``arg`` before the positional argument ``idx``."""
        assert 0 <= idx <= len(self.args), f"insert_args index must be between 0 and len(self.args), got {idx}"
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replace or add the keyword argument ``key``."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replace the node ``old_input`` by ``new_input`` wherever it is in the arguments."""

        def replaced(node: Node) -> Node:
            return new_input if node is old_input else node

        self._set_arguments(map_arg(self._args, replaced), map_arg(self._kwargs, replaced))

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] | None = None, *, propagate_meta: bool = False
    ) -> list[Node]:
        """Replace this node by ``replace_with`` in the arguments of its users, and return these users.

        Args:
            replace_with: Node that takes the place of this node.
            delete_user_cb: Function that returns for a user whether it is changed; None changes all of them.
            propagate_meta: Whether ``meta`` is copied to ``replace_with``, whose own must be empty.
        """
        if propagate_meta:
            assert not replace_with.meta, (
                "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has .meta keys"
            )
            replace_with.meta.update(self.meta)
        users = [each for each in self.users if delete_user_cb is None or delete_user_cb(each)]
        for each in users:
            each.replace_input_with(self, replace_with)
        return users

    # -- properties

    @property
    def stack_trace(self) -> str | None:
        """Text of the stack of calls at which the node was recorded, or None; see ``Tracer.record_stack_traces``."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node must be kept although its result is unused.

        This is the case for parameters and the result of the graph, functions of random numbers, functions registered
        by :func:`has_side_effect`, and modules with a true attribute ``_is_impure``.
        """
        if self.op == "call_module":
            assert self.graph.owning_module is not None, "self.graph.owning_module not set for purity check"
            return bool(getattr(self.graph.owning_module.get_submodule(str(self.target)), "_is_impure", False))
        if self.op == "call_function":
            random = is_from_torch(self.target) and getattr(self.target, "__qualname__", "") in _RANDOM
            return random or self.target in _side_effectful_functions
        return self.op in ("placeholder", "output")

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace.rename(self, self.name)

    # -- text

    def __repr__(self) -> str:
        return self.name if self._repr_fn is None else self._repr_fn(self)

    @staticmethod
    def _pretty_print_target(target: Any) -> str:
        if isinstance(target, str):
            return target
        module = {"builtins": "builtins", "_operator": "operator"}.get(getattr(target, "__module__", ""))
        return qualified_name(target) if module is None else f"{module}.{target.__name__}"

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """Return the line of this node in the text of its graph.

        If ``placeholder_names`` is not empty, a placeholder is appended to it, and the result is None. If
        ``maybe_return_typename`` is given, the annotation of the result is stored in it. With
        ``include_tensor_metadata`` the tensor in ``meta["val"]`` is described.
        """
        kind = f"{type_text(self.type)} " if self.type else ""
        start = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={self._pretty_print_target(self.target)}]"
        if self.op == "placeholder":
            if placeholder_names:
                placeholder_names.append(f"{self.target}: {type_text(self.type)}" if self.type else str(self.target))
                return None
            return f"{start}(default={self.args[0]})" if self.args else start
        if self.op == "get_attr":
            return start
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_text(self.type)}"
            return f"return {self.args[0]}"
        value = value_in_meta(self)
        if include_tensor_metadata and isinstance(value, Tensor):
            described = f'Tensor "{tensor_text(value)}{list(value.stride())}{value.device}"'
            start = start.replace(f" : {kind}", f" : {described}", 1)
        return f"{start}(args = {_argument_text(self.args)}, kwargs = {_argument_text(self.kwargs)})"


def _argument_text(value: Any) -> str:
    """Return the text of an argument in the text of a graph, where nodes have a percent sign."""
    if hasattr(value, "_custom_fx_repr_fn"):
        return str(value._custom_fx_repr_fn())
    if isinstance(value, list):
        return f"[{', '.join(map(_argument_text, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_argument_text, value))}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_argument_text(each)}' for key, each in value.items())}}}"
    return f"%{value}" if isinstance(value, Node) else str(value)


def value_in_meta(node: Node) -> Any:
    """Return the value, or its metadata, that a pass over the graph has stored in ``node.meta``, or None."""
    keys = ("val", "tensor_meta", "example_value")
    return next((node.meta[key] for key in keys if key in node.meta), None)


#: Short names of dtypes, where they are not an initial and the number of bits.
_SHORT = {"bfloat16": "bf16", "bool": "b8"}


def tensor_text(described: Any) -> str:
    """Return the dtype and the shape of ``described``, a tensor or its metadata: ``f32[2, 3]``."""
    name = str(described.dtype).rpartition(".")[2]
    short = _SHORT.get(name) or name[0] + name.lstrip("abcdefghijklmnopqrstuvwxyz").replace("_", "")
    return f"{short}[{', '.join(map(str, described.shape))}]"


__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]
