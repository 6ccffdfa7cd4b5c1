"""Generation of Python code from a graph; ``torch.fx.graph`` shows the classes."""

from __future__ import annotations

import enum
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..core.devices import device
from ..core.pytree import TreeSpec, tree_leaves, tree_unflatten
from ..core.tensor import Tensor
from ..ops import OpOverload, OpOverloadPacket
from .names import GIVEN, Namespace, is_from_torch, qualified_name, type_text
from .node import Node, tensor_text, value_in_meta

#: Operators with a reflected and an in-place form, by the name of the function in the module ``operator``.
_ARITHMETIC = {
    "add": "+", "sub": "-", "mul": "*", "matmul": "@", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}
#: Expressions of operators with a reflected form; ``div`` is PyTorch's name for the operator of ``truediv``.
reflectable_magic_methods = {
    **{name: f"{{}} {sign} {{}}" for name, sign in _ARITHMETIC.items()}, "div": "{} / {}", "getitem": "{}[{}]",
}  # fmt: skip
#: Expressions of all operators that are no statements.
magic_methods = {
    **{name: f"{{}} {sign} {{}}" for name, sign in _COMPARISONS.items()}, "pos": "+{}", "neg": "-{}", "invert": "~{}",
    **reflectable_magic_methods,
}  # fmt: skip
#: Statements of the operators that change an operand.
inplace_methods = {
    **{f"i{name.rstrip('_')}": f"{{}} {sign}= {{}}" for name, sign in _ARITHMETIC.items()}, "setitem": "{}[{}] = {}",
}  # fmt: skip

#: Generic classes of the module ``typing`` for those of the language.
_GENERIC = {
    getattr(typing, name).__origin__: getattr(typing, name) for name in ("List", "Dict", "Set", "FrozenSet", "Tuple")
}
_COLORS = {
    "red": "\033[31m",
    "blue": "\033[34m",
    "dim": "\033[2m",
    "dim_blue": "\033[2m\033[34m",
    "dim_green": "\033[2m\033[32m",
}


@dataclass
class PythonCode:
    """Generated source code of a function, and the global variables that it uses."""

    src: str
    globals: dict[str, Any]


@dataclass
class Options:
    """Options of the generated code: the keywords of ``Graph.python_code``."""

    verbose: bool = False
    include_stride: bool = False
    include_device: bool = False
    colored: bool = False
    expanded_def: bool = False
    additional_meta: list[str] | None = None


def attribute_text(base: str, path: str) -> str:
    """Return the expression for the attribute ``path`` of ``base``; ``getattr`` is used for what is no identifier.

    >>> attribute_text("self", "layers.0.weight")
    'getattr(self.layers, "0").weight'
    """
    for name in path.split("."):
        base = f"{base}.{name}" if name.isidentifier() else f'getattr({base}, "{name}")'
    return base


def last_uses(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """Return a dictionary from each node to the nodes whose values are not used after it. ``nodes`` is reversed."""
    seen: set[Node] = set()
    ended: dict[Node, list[Node]] = {}
    for user in nodes:
        for node in user.all_input_nodes:
            if node not in seen:
                seen.add(node)
                ended.setdefault(user, []).append(node)
    return ended


class _Writer:
    """Statements of a function, written node by node, with the names that they use."""

    def __init__(self, codegen: CodeGen, nodes: Any, root_module: str, namespace: Namespace, options: Options) -> None:
        self.codegen, self.root_module, self.namespace, self.options = codegen, root_module, namespace, options
        self.globals: dict[str, Any] = {}
        self.parameters: list[str] = []
        self.statements: list[str] = []
        self.wrapped: dict[str, None] = {}
        self.return_annotation = ""
        self.last_uses = last_uses(reversed(nodes))
        self.comment = ""
        for name, (_, value) in GIVEN.items():
            self.name_of(name, value)

    def color(self, name: str, text: str) -> str:
        return f"{_COLORS[name]}{text}\033[0m" if self.options.colored else text

    def name_of(self, hint: str, value: Any) -> str:
        """Return the name of a function or class; one that is not of this package becomes a global variable."""
        if is_from_torch(value) and value is not device:
            return qualified_name(value)
        name = self.namespace.create_name(hint, value)
        self.globals.setdefault(name, value)
        return name

    def annotation(self, value: Any) -> str:
        if value == ():
            return "()"
        if isinstance(value, types.UnionType):
            return "|".join(map(self.annotation, typing.get_args(value)))
        origin = getattr(value, "__origin__", None)
        if origin is None:
            return self.name_of(type_text(value), value)
        if isinstance(value, typing._GenericAlias):  # type: ignore[attr-defined]
            origin = _GENERIC.get(origin, origin)
        name = self.name_of(type_text(origin), origin)
        arguments = typing.get_args(value)
        return f"{name}[{','.join(map(self.annotation, arguments))}]" if arguments else name

    def text(self, value: Any) -> str:
        """Return the expression for an argument."""
        if isinstance(value, Node):
            return repr(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return f"{self.name_of(qualified_name(type(value)), type(value))}{tuple(value)!r}"
        if isinstance(value, (OpOverload, OpOverloadPacket)):
            return self.name_of(qualified_name(value), value)
        if isinstance(value, enum.Enum):
            return f"{self.name_of(type(value).__name__, type(value))}.{value.name}"
        if isinstance(value, Tensor):
            return f"torch.Tensor(size={list(value.shape)}, dtype={str(value.dtype).rpartition('.')[2]})"
        if isinstance(value, tuple):
            return f"({', '.join(map(self.text, value))}{',' * (len(value) == 1)})"
        if isinstance(value, list):
            return f"[{', '.join(map(self.text, value))}]"
        if isinstance(value, slice):
            return f"slice({self.text(value.start)}, {self.text(value.stop)}, {self.text(value.step)})"
        return self.color("blue", repr(value))

    def call(self, function: str, args: Any, kwargs: Any) -> str:
        given = [*map(self.text, args), *(f"{key} = {self.text(value)}" for key, value in kwargs.items())]
        return f"{function}({', '.join(given)})"

    def write(self, node: Node) -> None:
        """Append the statement of ``node``, and an assignment of None to the variables that are not used after it."""
        if self.options.verbose:
            self._write_comment(node)
        if node.op == "placeholder":
            self._write_parameter(node)
            return
        if node.op == "output":
            if node.type is not None:
                self.return_annotation = f" -> {self.annotation(node.type)}"
            described = {"descs": node.meta.get("desc")} if self.options.expanded_def else {}
            returned = _accepting(self.codegen.generate_output, node.args[0], repr_fn=self.text, **described)
            self.statements.append(f"{returned}\n")
            return
        ended = self.last_uses.get(node, []) + [node] * (not node.users)
        freed = self.color("dim", " = ".join([*map(repr, ended), "None"]))
        self.statements.append(self._statement(node) + (f";  {freed}\n" if ended else "\n"))

    def _write_parameter(self, node: Node) -> None:
        default = f" = {self.text(node.args[0])}" if node.args else ""
        described = node.meta.get("desc") if self.options.expanded_def else None
        comment = "" if described is None else f"  # {described}"
        self.parameters.append(f"{node.target}{self._annotated(node)}{default}{comment}")
        given = str(node.target).replace("*", "")
        if given != repr(node):
            self.statements.append(f"{node!r} = {given}\n")

    def _statement(self, node: Node) -> str:
        target: Any = node.target
        result, value = f"{node!r}{self._annotated(node)}", ""
        if node.op == "call_module":
            value = self.call(attribute_text(self.root_module, target), node.args, node.kwargs)
        elif node.op == "get_attr":
            value = attribute_text(self.root_module, target)
        elif node.op == "call_method":
            value = self.call(attribute_text(self.text(node.args[0]), target), node.args[1:], node.kwargs)
        else:
            if getattr(target, "__module__", "") == "_operator":
                operands = list(map(self.text, node.args))
                if target.__name__ in magic_methods:
                    return f"{result} = {magic_methods[target.__name__].format(*operands)}"
                if target.__name__ in inplace_methods:
                    return f"{inplace_methods[target.__name__].format(*operands)};  {result} = {operands[0]}"
            name = self.name_of(qualified_name(target), target)
            attribute = node.args[1] if name == "getattr" and len(node.args) == 2 else None
            if isinstance(attribute, str) and attribute.isidentifier():
                return f"{result} = {attribute_text(self.text(node.args[0]), attribute)}"
            value = self.call(name, node.args, node.kwargs)
            if node.meta.get("is_wrapped"):
                self.wrapped[name] = None
        return f"{result} = {value}"

    def _annotated(self, node: Node) -> str:
        """Return the annotation of the variable of ``node``: its type, or in verbose code its dtype and shape."""
        value = value_in_meta(node)
        if self.options.verbose and hasattr(value, "dtype") and hasattr(value, "shape"):
            text = tensor_text(value)
            if isinstance(value, Tensor):
                short, bracket, shape = text.partition("[")
                text = self.color("red", short) + self.color("blue", bracket + shape)
                text += self.color("dim_blue", str(list(value.stride())) if self.options.include_stride else "")
                text += self.color("dim_green", str(value.device) if self.options.include_device else "")
            return f': "{text}"'
        return "" if node.type is None else f" : {self.annotation(node.type)}"

    def _write_comment(self, node: Node) -> None:
        """Append a comment with the line of the program that recorded ``node``, unless it is the previous comment."""
        if node.op in ("placeholder", "output"):
            return
        shown = [f"{key}: {node.meta[key]}" for key in self.options.additional_meta or () if key in node.meta]
        found = re.findall(r'File "(.+)", line (\d+), in (.+)\n\s*(.+)', node.stack_trace or "")
        place = "No stacktrace found for following nodes"
        if found:
            file, line, function, code = found[-1]
            place = f"File: {file}:{line} in {function}, code: {code}"
        extra = f"# {', '.join(shown)} " if shown else ""
        comment = f"\n{self.color('dim', f'{extra}# {place}')}\n"
        if comment != self.comment:
            self.comment = comment
            self.statements.append(comment)


def _accepting(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return ``function(*args, **options)`` without the options that ``function`` has no parameters for."""
    parameters = inspect.signature(function).parameters
    return function(*args, **{name: value for name, value in options.items() if name in parameters})


class CodeGen:
    """Generator of the code of a :class:`Graph`. A subclass may change the parameters and the result of the function.

    ``Graph.set_codegen`` selects the generator.

    >>> import retrograd as torch
    >>> graph = torch.fx.symbolic_trace(lambda x: x + 1).graph
    >>> graph.set_codegen(torch.fx.CodeGen())
    >>> print(graph.python_code("self").src.strip())
    def forward(self, x):
        add = x + 1;  x = None
        return add
    """

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """Return the first lines of the function, whose parameters are ``free_vars``."""
        if free_vars[:1] != ["self"]:
            free_vars.insert(0, "self")
        joined = ", ".join(free_vars)
        if expanded_def:
            lines = [f"    {each.partition('  #')[0]},{''.join(each.partition('  #')[1:])}\n" for each in free_vars]
            joined = "\n" + "".join(lines)
        return f"def {self._func_name}({joined}){maybe_return_annotation}:"

    def generate_output(
        self, output_args: Any, *, descs: list[Any] | None = None, repr_fn: Callable[[Any], str] = repr
    ) -> str:
        """Return the statement that returns ``output_args``; with ``descs``, each element has a line and a comment."""
        return f"return {_result_text(output_args, descs, repr_fn)}"

    def process_inputs(self, *args: Any) -> Any:
        """Return the arguments of the graph for the arguments ``args`` of the generated function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Return the result of the generated function for the result of the graph."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return further global variables of the generated code, as pairs of a name and a value."""
        return []

    def _gen_python_code(self, nodes: Any, root_module: str, namespace: Namespace, options: Options) -> PythonCode:
        writer = _Writer(self, nodes, root_module, namespace, options)
        for node in nodes:
            writer.write(node)
        body = writer.statements or ["pass\n"]
        wrap = ""
        if writer.wrapped:
            from ._symbolic_trace import wrap as function

            name = writer.name_of("wrap", function)
            wrap = "\n".join(f'{name}("{each}")' for each in writer.wrapped)
        if self._body_transformer is not None:
            body = self._body_transformer(body)
        for name, value in self.additional_globals():
            writer.name_of(name, value)
        given = {"expanded_def": options.expanded_def}
        start = _accepting(self.gen_fn_def, writer.parameters, writer.return_annotation, **given)
        indented = "\n".join("    " + line for line in "".join(body).lstrip("\n").split("\n"))
        return PythonCode(f"\n{wrap}\n\n{start}\n{indented}", writer.globals)


def _result_text(result: Any, descs: list[Any] | None, repr_fn: Callable[[Any], str]) -> str:
    """Return the text of a result; if ``descs`` is given and the result is a sequence, each element has a line."""
    if descs is None or not isinstance(result, (list, tuple)):
        return repr_fn(result)
    opening, closing = "()" if isinstance(result, tuple) else "[]"
    lines = [f"    {repr_fn(each)},  # {desc}\n" for each, desc in zip(result, descs, strict=False)]
    return f"{opening}\n{''.join(lines)}{closing}"


class _PyTreeInfo(NamedTuple):
    """Names of the parameters, and the structures of the arguments and of the result."""

    orig_args: list[str]
    in_spec: TreeSpec
    out_spec: TreeSpec | None


class _PyTreeCodeGen(CodeGen):
    """Generator for functions whose arguments or results are nested containers; the graph has their leaves."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        """Return the leaves of the arguments."""
        return tree_leaves(inputs)

    def process_outputs(self, out: Any) -> Any:
        """Return ``out``, the leaves of the result, in the structure of the result."""
        if self.pytree_info.out_spec is None:
            return out
        return tree_unflatten(out if isinstance(out, (list, tuple)) else [out], self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """Return the first lines of the function, which also assign the leaves of the arguments to ``free_vars``."""
        parameters = self.pytree_info.orig_args
        if parameters[:1] == ["self"]:
            free_vars.insert(0, "self")
        start = super().gen_fn_def(parameters[:], maybe_return_annotation, expanded_def=expanded_def)
        if free_vars:
            annotated = [each for each in free_vars if ":" in each]
            if annotated:
                start += "\n    " + "".join(f"{each}; " for each in annotated) + "\n"
            names = ", ".join(re.split("[:#]", each)[0] for each in free_vars)
            start += f"\n    {names}, = fx_pytree.tree_flatten_spec([{', '.join(parameters)}], self._in_spec)"
        return start

    def generate_output(
        self, output_args: Any, *, descs: list[Any] | None = None, repr_fn: Callable[[Any], str] = repr
    ) -> str:
        """Return the statement that returns the leaves ``output_args`` in the structure of the result."""
        text = _result_text(output_args, descs, repr_fn)
        return (
            f"return pytree.tree_unflatten({text}, self._out_spec)" if self.pytree_info.out_spec else f"return {text}"
        )


__all__ = ["CodeGen", "PythonCode"]
