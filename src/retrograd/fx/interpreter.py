"""``torch.fx.interpreter``: running the nodes of a graph one by one."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from typing import Any

from ..nn import Module
from ._symbolic_trace import Tracer
from .codegen import last_uses
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, Node, Target, map_aggregate, map_arg
from .proxy import Proxy

#: Keys of ``Node.meta`` that a transformed node keeps.
_KEPT = ("nn_module_stack", "torch_fn", "source_fn_stack", "from_node", "custom", "stack_trace")


class Interpreter:
    """Runs a graph node by node. A subclass redefines the method for an opcode, or :meth:`run_node`.

    Args:
        module: Module with the graph and its attributes.
        garbage_collect_values: Whether values are deleted after their last use; otherwise ``env`` has all of them.
        graph: Graph to run instead of ``module.graph``.

    ``env`` maps nodes to their values.

    >>> import retrograd as torch
    >>> class Count(torch.fx.Interpreter):
    ...     calls = 0
    ...     def call_function(self, target, args, kwargs):
    ...         self.calls += 1
    ...         return super().call_function(target, args, kwargs)
    >>> counting = Count(torch.fx.symbolic_trace(lambda x: torch.exp(x) + 1))
    >>> counting.run(torch.zeros(2)), counting.calls
    (tensor([2., 2.]), 2)
    """

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        if garbage_collect_values:
            self.user_to_last_uses = last_uses(reversed(self.graph.nodes))

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Run the graph with the arguments ``args``, which are passed by position, and return its result.

        Nodes in ``initial_env`` have the values that it states, and are not run. With ``enable_io_processing`` the
        arguments and results are those of the generated function, otherwise those of the graph. An error states the
        node that raised it.
        """
        self.env = {} if initial_env is None else initial_env
        self.args_iter: Iterator[Any] = iter(self.graph.process_inputs(*args) if enable_io_processing else args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    where = f"While executing {node.format_node()}\nOriginal traceback:\n{node.stack_trace}"
                    error.args = (f"{error.args[0]}\n\n{where}" if error.args else where, *error.args[1:])
                    if isinstance(error, KeyError):
                        raise RuntimeError(*error.args) from error
                raise
            if self.garbage_collect_values:
                for each in self.user_to_last_uses.get(node, ()):
                    del self.env[each]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Run the graph with the arguments in ``args_list``, which is emptied so that they can be freed."""
        parameters = [each for each in self.graph.nodes if each.op == "placeholder"]
        given, wanted = len(args_list), len(parameters)
        if given != wanted:
            raise RuntimeError(
                f"Interpreter.boxed_run expected {wanted} arguments for placeholders but received {given} "
                f"({'extra' if given > wanted else 'missing'} arguments)"
            )
        values = dict(zip(parameters, args_list, strict=True))
        args_list.clear()
        return self.run(initial_env=values)

    def run_node(self, n: Node) -> Any:
        """Return the value of one node, from the method with the name of its opcode."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the next argument of :meth:`run`, or the default value; the rest of them for ``*args``."""
        if str(target).startswith("*"):
            return list(self.args_iter)
        for value in self.args_iter:
            return value
        if args:
            return args[0]
        raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!")

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the attribute ``target`` of the module."""
        return self.fetch_attr(str(target))

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of the function ``target``."""
        assert not isinstance(target, str), "target should not be a string for call_function"
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of the method ``target`` of ``args[0]``."""
        return getattr(args[0], str(target))(*args[1:], **kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of the submodule ``target``."""
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of the graph."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """Return the attribute ``target``, a path, of the module; RuntimeError is raised if there is none."""
        path = target.split(".")
        found: Any = self.module
        for index, name in enumerate(path):
            if not hasattr(found, name):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(path[: index + 1])}")
            found = getattr(found, name)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of ``n``, in which nodes are replaced by their values."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Any:
        """Return ``args``, arguments of ``n``, in which nodes are replaced by their values."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value)


class _TransformerTracer(Tracer):
    """Tracer of a :class:`Transformer`, which keeps calls of modules."""

    def __init__(self, graph: Graph, root: Module) -> None:
        super().__init__()
        self.graph, self.root = graph, root
        self.tensor_attrs = {}
        self.meta: dict[str, Any] = {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True

    def create_node(self, *args: Any, **kwargs: Any) -> Node:
        node = super().create_node(*args, **kwargs)
        node.meta.update({key: copy.copy(self.meta[key]) for key in _KEPT if key in self.meta})
        return node


class Transformer(Interpreter):
    """Interpreter that makes a new module: what the methods do with the values is recorded.

    >>> import retrograd as torch
    >>> class Sines(torch.fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         return super().call_function(torch.sin if target is torch.exp else target, args, kwargs)
    >>> print(Sines(torch.fx.symbolic_trace(lambda x: torch.exp(x) + 1)).transform().code.strip())
    def forward(self, x):
        sin = torch.sin(x);  x = None
        add = sin + 1;  sin = None
        return add
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph, module)

    def run_node(self, n: Node) -> Any:
        """Return the recorded value for ``n``, whose entries of ``meta`` new nodes get."""
        self.tracer.meta = n.meta
        return super().run_node(n)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Insert a parameter into the new graph, and return its value."""
        default = args[0] if args else inspect.Parameter.empty
        return Proxy(self.new_graph.placeholder(str(target), default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Insert an attribute into the new graph, and return its value."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Insert a call of a module into the new graph, and return its result."""
        submodule = self.fetch_attr(str(target))
        return self.tracer.call_module(submodule, submodule.forward, args, kwargs)

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Insert a call of a function into the new graph, and return its result."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Run the graph with recorded values, and return the new module."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            strip = map_aggregate(result, lambda each: each.node if isinstance(each, Proxy) else each)
            self.new_graph.output(strip).meta.update(self.graph.output_node().meta)
        return GraphModule(self.module, self.new_graph)


__all__ = ["Interpreter", "Transformer"]
