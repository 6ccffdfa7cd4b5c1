"""``torch.fx.proxy``: values that record what is done with them as nodes of a graph."""

from __future__ import annotations

import copy
import enum
import operator
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn

from ..compat.module_names import shown_in
from ..core.pytree import tree_iter
from ..core.torch_function import register_class as _register  # before a function reads an attribute, which is recorded
from ..nn import Parameter
from ..overrides import is_tensor_method_or_property
from ..runtime.call_instructions import is_asserting, unpacked_count
from ..runtime.user_frame import MARK, mark_final
from .codegen import magic_methods, reflectable_magic_methods
from .graph import Graph
from .node import Argument, Node, Target, base_types, map_arg


class TraceError(ValueError):
    """Error raised when a program cannot be recorded, because its control flow depends on a recorded value."""

    __module__ = shown_in("torch.fx.proxy", __name__)


class Scope:
    """Path and class of the module whose ``forward`` is being traced."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """Context manager that sets the fields of ``scope`` to those of ``current_scope``, and sets them back at its end."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope, self._before = scope, copy.copy(scope)
        vars(scope).update(vars(current_scope))

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *error: object) -> None:
        vars(self._scope).update(vars(self._before))


class TracerBase:
    """Base class of tracers, which create the nodes of a graph and decide what happens with recorded values.

    A subclass may redefine the methods, and these class attributes: ``record_stack_traces`` stores the lines of the
    program in ``Node.stack_trace``, ``trace_asserts`` records assertions, ``proxy_buffer_attributes`` records buffers of
    modules when they are read, and ``traced_func_name`` is the name of the traced method.
    """

    graph: Graph
    record_stack_traces: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, type]]

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node to the graph and return it; see ``Graph.create_node``."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            node.stack_trace = _user_stack() or None
        return node

    def proxy(self, node: Node) -> Proxy:
        """Return the value that the program gets for ``node``."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Add a node to the graph, and return the value that the program gets for it.

        The arguments are those of :meth:`create_node`, except that ``args`` and ``kwargs`` are values of the program.
        ``proxy_factory_fn`` replaces the method :meth:`proxy`.
        """
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Argument:
        """Return the argument of a node for ``a``, a value of the program.

        Recorded values become their nodes, also inside containers. NotImplementedError is raised for a value of another
        type than those of constants.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(each) for each in a]
            return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
        if isinstance(a, list):
            return [self.create_arg(each) for each in a]
        if isinstance(a, dict):
            return {self._create_key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, (slice, range)):
            return type(a)(*(self.create_arg(each) for each in (a.start, a.stop, a.step)))
        if is_dataclass(a) and not isinstance(a, type):
            kwargs = {field.name: self.create_arg(getattr(a, field.name)) for field in fields(a)}
            return self.create_node("call_function", type(a), (), kwargs)
        if isinstance(a, (*base_types, enum.Enum)) or a is None or a is ...:
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _create_key(self, key: Any) -> Any:
        """Return the key of a dictionary that is an argument; RuntimeError is raised if a recorded value is in it."""

        def refuse(node: Node) -> NoReturn:
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {node}")

        if not isinstance(key, str):
            key = self.create_arg(key)
            map_arg(key, refuse)
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """Raise TraceError; called when a recorded value decides a branch. A subclass may return a bool."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Raise TraceError; called when a recorded value is iterated over. A subclass may return an iterator."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what "
            "types of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy "
            "iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Return the recorded result of the method ``keys``, which Python calls for ``**value``."""
        return Attribute(obj, "keys")()


def _user_stack() -> str:
    """Return the stack of calls from the first ``forward`` on, without frames of the package, as text."""
    frames = [each for each in traceback.walk_stack(sys._getframe(1)) if MARK not in each[0].f_globals]
    stack = list(traceback.StackSummary.extract(iter(reversed(frames))))
    start = next((index for index, each in enumerate(stack) if each.name == "forward"), len(stack))
    return "".join(traceback.format_list(stack[start:])).strip()


class GraphAppendingTracer(TracerBase):
    """Tracer of :class:`Proxy` objects that are made for the nodes of an existing graph, to which it appends."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.node_name_to_scope = {}


def assert_fn(x: Any) -> None:
    """Raise AssertionError unless ``x`` is true; calls of it are the recorded assertions."""
    assert x, "Assertion failed"


class Proxy:
    """Stand-in for a value while a program is traced: operators, methods and functions of it are recorded as nodes.

    ``node`` is the node with the value. Operators and methods return proxies again. A proxy has no value: it cannot
    decide a branch, be iterated over or converted to a number, unless the tracer allows it. It can be unpacked into a
    fixed number of variables.

    A proxy of a node can also be created to add nodes to a graph by writing expressions:

    >>> import retrograd as torch
    >>> graph = torch.fx.Graph()
    >>> x = torch.fx.Proxy(graph.placeholder("x"))
    >>> _ = graph.output((2 * x.sin()).node)
    >>> print(torch.fx.GraphModule({}, graph).code.strip())
    def forward(self, x):
        sin = x.sin();  x = None
        mul = 2 * sin;  sin = None
        return mul
    """

    __module__ = shown_in("torch.fx.proxy", __name__)

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        _register(type(self))
        self.node = node
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k in ("__array__", "__array_interface__", "__array_struct__"):  # which NumPy asks for endlessly
            raise mark_final(TypeError("`__cuda_array_interface__` must be a dict"))
        return Attribute(self, k)

    # Without these methods, __getattr__ would answer for them.
    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        result = Proxy.__new__(type(self))
        memo[id(self)] = result
        result.__dict__ = copy.deepcopy(self.__dict__, memo)
        return result

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        count = unpacked_count(sys._getframe(1))
        if count is not None:
            return iter([self[index] for index in range(count)])  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and is_asserting(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Return the recorded result of the method ``keys``."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        text = (
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )
        raise mark_final(RuntimeError(text))

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any:
        """Record a call of a public function or a method of Tensor, and return its proxy."""
        args, kwargs = args or (), kwargs or {}
        tracers = dict.fromkeys(each.tracer for each in tree_iter((args, kwargs)) if isinstance(each, Proxy))
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}"
            )
        tracer = next(iter(tracers))
        name = orig_method.__name__
        if is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=tracer.graph._target_to_str(name))


class Attribute(Proxy):
    """Attribute of a recorded value. It is recorded when it is used, and not at all if it is a method that is called."""

    __module__ = shown_in("torch.fx.proxy", __name__)

    def __init__(self, root: Proxy, attr: str) -> None:
        _register(type(self))
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """Node of the attribute, which is added to the graph when this property is first read."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """Proxy of a parameter whose shape and number of elements are known; see ``Tracer(param_shapes_constant=True)``."""

    __module__ = shown_in("torch.fx.proxy", __name__)

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Parameter) -> None:
        super().__init__(node, tracer)
        assert isinstance(param, Parameter), f"Expected Parameter, got {type(param)}"
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    shape = property(lambda self: self.param.shape, doc="Shape of the parameter.")
    ndim = property(lambda self: self.param.ndim, doc="Number of dimensions of the parameter.")

    def size(self) -> Any:
        """Return the shape of the parameter."""
        return self.param.size()

    def dim(self) -> int:
        """Return the number of dimensions of the parameter."""
        return self.param.dim()

    def numel(self) -> int:
        """Return the number of elements of the parameter."""
        return self.param.numel()

    nelement = numel


def _define_operators() -> None:
    """Define the operators of :class:`Proxy`, also the reflected ones."""

    def define(name: str, function: Callable[..., Any], reflected: bool) -> None:
        def method(self: Proxy, *others: Any) -> Any:
            args = (*others, self) if reflected else (self, *others)
            return self.tracer.create_proxy("call_function", function, args, {})

        method.__name__ = name
        setattr(Proxy, name, method)

    for name in magic_methods:
        function = operator.truediv if name == "div" else getattr(operator, name)
        define(f"__{name.strip('_')}__", function, False)
        if name in reflectable_magic_methods:
            define(f"__r{name.strip('_')}__", function, True)


_define_operators()

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError", "TracerBase"]
