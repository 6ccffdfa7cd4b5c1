"""``torch.fx.graph``: the graph, an ordered list of nodes from which Python code is generated."""

# ruff: noqa: F401 - PyTorch has the classes of code generation here
from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from ..operations.creation.conversion import typename
from ..runtime.user_frame import warn
from .codegen import (
    CodeGen,
    Options,
    PythonCode,
    _PyTreeCodeGen,
    _PyTreeInfo,
    inplace_methods,
    magic_methods,
    reflectable_magic_methods,
)
from .names import Namespace, snake_case
from .node import OPCODES, Argument, Node, Target, map_arg

if TYPE_CHECKING:
    from .graph_module import GraphModule


class _NodeList:
    """Nodes of a graph in their order. The graph may be changed during an iteration."""

    def __init__(self, root: Node) -> None:
        self.root = root

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Node]:
        return self._walk("_next")

    def __reversed__(self) -> Iterator[Node]:
        return self._walk("_prev")

    def _walk(self, direction: str) -> Iterator[Node]:
        node = getattr(self.root, direction)
        while node is not self.root:
            if not node._erased:
                yield node
            node = getattr(node, direction)


class _InsertPoint:
    """Context manager that sets the place of new nodes back; the place is changed when it is created."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph, self.before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self.graph._insert = self.before


class Graph:
    """Program of a module as a list of nodes (:class:`Node`), each of which uses the results of previous ones.

    Its text has a line for each node. ``GraphModule`` makes it runnable.

    >>> import retrograd as torch
    >>> graph = torch.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(torch.relu, (x,))
    >>> _ = graph.output(y)
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        return relu
    """

    def __init__(
        self,
        owning_module: GraphModule | None = None,
        tracer_cls: type | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._positions: dict[Node, int] | None = None
        self._graph_namespace = Namespace()
        self.owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        #: File, line and name of the traced function.
        self._co_fields: dict[str, Any] = {}

    # -- nodes

    @property
    def nodes(self) -> Any:
        """Nodes in their order; an iterable with a length, which can be reversed."""
        return _NodeList(self._root)

    def output_node(self) -> Node:
        """Return the last node, which must be the output."""
        last = self._root._prev
        assert last.op == "output", f"Expected output node, got op={last.op}"
        return last

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """Return the nodes with the opcode ``op`` and, unless it is None, the target ``target``, in their order."""
        assert op != "call_function" or target is not None, "target must not be None for call_function op"
        return [each for each in self.nodes if each.op == op and (target is None or each.target == target)]

    def position(self, node: Node) -> int:
        """Return the position of ``node`` in the graph."""
        if self._positions is None:
            self._positions = {each: index for index, each in enumerate(self.nodes)}
        return self._positions[node]

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Return a new node, which is inserted at the end, or where ``inserting_before`` and ``inserting_after`` say.

        Args:
            op: Opcode, one of those of :class:`Node`.
            target: What the node gets or calls.
            args: Positional arguments.
            kwargs: Keyword arguments.
            name: Proposal for the name, by default made from ``target``; a number is appended if it is taken.
            type_expr: Annotation of the result.
        """
        assert not args or isinstance(args, tuple), f"args must be a tuple, got {type(args)}"
        assert not kwargs or isinstance(kwargs, dict), f"kwargs must be a dict, got {type(kwargs)}"
        candidate = self._target_to_str(target) if name is None else name
        unique = self._graph_namespace.create_name(candidate, None)
        node = Node(self, unique, op, target, args or (), kwargs or {}, type_expr)
        self._graph_namespace.rename(node, unique)
        self._insert(node)
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = inspect.Parameter.empty) -> Node:
        """Insert and return a parameter of the function."""
        args = () if default_value is inspect.Parameter.empty else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Insert and return the value of an attribute of the module, such as ``"layers.0.weight"``.

        A warning is given if the graph belongs to a module without this parameter, buffer or submodule.
        """
        if self.owning_module is not None and not _refers(self.owning_module, qualified_name):
            warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the "
                "necessary Parameter, or nn.Module.register_buffer to add the necessary buffer"
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Insert and return a call of a submodule; AttributeError is raised if the owning module lacks it."""
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Insert and return a call of a method of ``args[0]``."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Insert and return a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Insert and return the node that returns ``result``."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def _target_to_str(self, target: Target) -> str:
        assert callable(target) or isinstance(target, str), f"Expected target to be str, got {type(target)}"
        name = target if isinstance(target, str) else target.__name__
        if isinstance(target, str) and name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return snake_case(name)

    # -- changes

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Set the place of new nodes before ``n``, or at the beginning; as a context manager, only within the block."""
        if n is None:
            return self.inserting_after(self._root)
        assert n.graph is self, "Node to insert before is not in graph."
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Set the place of new nodes after ``n``, or at the end; as a context manager, only within the block."""
        if n is None:
            return self.inserting_before(self._root)
        assert n.graph is self, "Node to insert after is not in graph."
        return _InsertPoint(self, n.append)

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node, which must have no users."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warn(f"erase_node({to_erase}) on an already erased node")
            return
        to_erase._remove_from_list()
        to_erase._erased = True
        to_erase._set_arguments(
            map_arg(to_erase._args, lambda node: None), map_arg(to_erase._kwargs, lambda node: None)
        )

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda node: node) -> Node:
        """Insert and return a copy of ``node``, in whose arguments each node ``n`` is ``arg_transform(n)``."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        result = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        result.meta = copy.copy(node.meta)
        return result

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Insert copies of the nodes of ``g`` except its output, and return the copy of what ``g`` returns, or None.

        ``val_map`` maps nodes of ``g`` to their copies. Nodes that it has already are not copied. With
        ``return_output_node`` the result is a pair with the output node of ``g``.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        result = Graph(tracer_cls=self._tracer_cls)
        copies: dict[Node, Node] = {}
        found = result.graph_copy(self, copies, return_output_node=True)
        memo.update({id(node): its_copy for node, its_copy in copies.items()})
        result._codegen = copy.deepcopy(self._codegen)
        if found is not None:
            value, output = found
            result.output(value, output.type).meta = copy.copy(output.meta)
        return result

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove the nodes whose results are unused, and return whether there were any.

        ``is_impure_node`` returns whether a node must be kept; the default is ``Node.is_impure``. Operations that change
        a tensor in place are removed if their results are unused.

        >>> import retrograd as torch
        >>> traced = torch.fx.symbolic_trace(lambda x: (torch.exp(x), torch.sin(x))[1])
        >>> traced.graph.eliminate_dead_code(), [node.name for node in traced.graph.nodes]
        (True, ['x', 'sin', 'output'])
        """
        self.lint()
        impure = Node.is_impure if is_impure_node is None else is_impure_node
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
                changed = True
        if self.owning_module is not None:
            used = {each.target for each in self.find_nodes(op="get_attr")}
            for name, child in self.owning_module.named_children():
                if name in used and isinstance(getattr(child, "graph", None), Graph):
                    changed |= child.graph.eliminate_dead_code()
                    child.recompile()
        return changed

    def lint(self) -> None:
        """Raise RuntimeError or ValueError if the graph is not well formed.

        Each node must follow the nodes in its arguments, names must be unique, and the owning module must have the
        attributes and submodules that nodes refer to.
        """
        names: set[str] = set()
        seen: set[Node] = set()
        for node in self.nodes:
            if node.op not in OPCODES:
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for each in node._input_nodes:
                self._check_argument(each, node, seen)
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
        if self.owning_module is not None:
            for node in self.nodes:
                _check_target(node, self.owning_module)

    def _check_argument(self, argument: Node, node: Node, seen: set[Node]) -> None:
        if argument.graph is not self:
            raise RuntimeError(
                f"Argument '{argument}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you "
                "are copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap "
                f"values\n{self}"
            )
        if argument not in seen:
            raise RuntimeError(
                f"Argument '{argument}' of Node '{node}' was used before it has been defined! Please check that Nodes in the "
                f"graph are topologically ordered\n{self}"
            )

    # -- text and code

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *(str(node.format_node()) for node in self.nodes)])

    def print_tabular(self) -> None:
        """Print the nodes as a table: opcode, name, target, arguments.

        >>> import retrograd as torch
        >>> torch.fx.symbolic_trace(lambda x: x.sin()).graph.print_tabular()
        opcode       name    target    args    kwargs
        -----------  ------  --------  ------  --------
        placeholder  x       x         ()      {}
        call_method  sin     sin       (x,)    {}
        output       output  output    (sin,)  {}
        """
        head = ("opcode", "name", "target", "args", "kwargs")
        rows = [tuple(map(str, (each.op, each.name, each.target, each.args, each.kwargs))) for each in self.nodes]
        widths = [
            max(len(title) + 2, *(len(row[i]) for row in rows)) if rows else len(title) for i, title in enumerate(head)
        ]
        for row in (head, ["-" * width for width in widths], *rows):
            print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())

    def python_code(self, root_module: str, **options: Any) -> PythonCode:
        """Return Python code of the function that the graph describes.

        Args:
            root_module: Name of the variable with the module, usually ``"self"``.
            options: ``verbose`` adds shapes from ``meta`` and the lines of the program, ``include_stride`` and
                ``include_device`` those of tensors in ``meta["val"]``, ``colored`` escape sequences for terminals,
                ``additional_meta`` further keys of ``meta``. ``expanded_def`` writes one parameter a line.
        """
        namespace = Namespace()

        def text(node: Node) -> str:
            return namespace.create_name(node.name, node)

        before = {node: node._repr_fn for node in self.nodes}
        try:
            for node in before:
                node._repr_fn = text
            return self._codegen._gen_python_code(self.nodes, root_module, namespace, Options(**options))
        finally:
            for node, function in before.items():
                node._repr_fn = function

    def set_codegen(self, codegen: CodeGen) -> None:
        """Select the generator of the code."""
        self._codegen = codegen

    def on_generate_code(
        self, make_transformer: Callable[[Callable[[list[str]], list[str]] | None], Callable[[list[str]], list[str]]]
    ) -> AbstractContextManager[None]:
        """Set the function that changes the list of statements of generated code.

        ``make_transformer`` gets the present function or None, and returns the new one. The result is a context manager
        at whose end the previous function is set again.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextmanager
        def restored() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return restored()

    def process_inputs(self, *args: Any) -> Any:
        """Return the arguments of the graph for the arguments ``args`` of the generated function."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Return the result of the generated function for the result ``out`` of the graph."""
        return self._codegen.process_outputs(out)


def _refers(module: Any, path: str) -> bool:
    """Whether ``module`` has the submodule, parameter or buffer ``path``."""
    parent, _, name = path.rpartition(".")
    try:
        owner = module.get_submodule(parent)
    except AttributeError:
        warn(f"Failed to fetch module {parent}!")
        return False
    return any(name in found for found in (owner._parameters, owner._buffers, owner._modules))


def _check_target(node: Node, module: Any) -> None:
    """Raise an error if ``module`` does not have what ``node`` refers to."""
    kind = "Callable" if node.op == "call_function" else "str"
    target = node.target
    if not (callable(target) if kind == "Callable" else isinstance(target, str)):
        raise ValueError(f"Node {node} target {target} has type {typename(target)} but a {kind} is expected")
    if node.op not in ("get_attr", "call_module"):
        return
    path = str(target).split(".")
    for index, name in enumerate(path):
        before = ".".join(path[:index])
        module = getattr(module, name, None)
        if module is None:
            raise RuntimeError(f"Node {node} target {target} references nonexistent attribute {name} of {before}")
        if node.op == "call_module" and not hasattr(module, "_modules"):
            raise RuntimeError(f"Node {node} target {target} {name} of {before} does not reference an nn.Module")


__all__ = ["CodeGen", "Graph", "PythonCode"]
