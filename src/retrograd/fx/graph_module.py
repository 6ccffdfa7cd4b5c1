"""``torch.fx.graph_module``: modules whose ``forward`` is generated from a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
import os
import re
import sys
import traceback
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from .. import nn
from ..compat.lazy_imports import load_part
from ..compat.module_names import shown_in
from ..core.tensor import Tensor
from ..nn import Module, Parameter
from ..runtime.user_frame import MARK, warn
from .codegen import Options, PythonCode, _PyTreeCodeGen
from .graph import Graph
from .names import GIVEN, is_from_torch

#: Key of ``GraphModule.meta`` with a dictionary of attributes that copies of the module get, too.
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"

#: Attribute of errors whose place in generated code has been printed, by the innermost module.
_SHOWN = "_shown_by_graph_module"

_file_numbers = itertools.count()


def _forward_of(source: str, variables: dict[str, Any], origin: dict[str, Any] | None = None) -> Callable[..., Any]:
    """Return the function ``forward`` that ``source`` defines; ``variables`` are the globals, of which it gets a copy.

    The source is shown in tracebacks. ``origin`` has the file and line of the traced function.
    """
    file = f"<eval_with_key>.{next(_file_numbers)}"
    if origin:
        file += f" from {origin['co_filename']}:{origin['co_firstlineno']} in {origin['co_name']}"
    linecache.cache[file] = (len(source), None, [f"{line}\n" for line in source.splitlines()], file)
    space = dict(variables)
    exec(compile(source, file, "exec", dont_inherit=True), space)
    function: Callable[..., Any] = space.pop("forward")
    weakref.finalize(function, linecache.cache.pop, file, None).atexit = False
    return function


class _CodeOnlyModule(Module):
    """Module with given attributes. A subclass gets a generated ``forward``, which is traced to restore a graph."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Copy the attribute ``target``, a path, from one module to another; missing modules on the path are created.

    A tensor that is not a parameter becomes a buffer.
    """
    *path, name = target.split(".")
    for each in path:
        source, place = getattr(from_module, each), getattr(to_module, each, None)
        if place is source:  # the module is shared, and has all its attributes
            return
        if place is None:
            place = Module()
            setattr(to_module, each, place)
        from_module, to_module = source, place
    _assign(to_module, name, getattr(from_module, name))


def _assign(module: Module, name: str, value: Any) -> None:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    """Assign ``from_obj`` to the attribute ``target``, a path; missing modules on the path are created."""
    *path, name = target.split(".")
    _assign(_submodule(to_module, path, create=True), name, from_obj)


def _get_attr(model: Module, attr_name: str) -> Any:
    """Return the attribute ``attr_name``, a path, of ``model``."""
    found: Any = model
    for each in attr_name.split("."):
        found = getattr(found, each)
    return found


def _submodule(module: Any, path: list[str], create: bool = False) -> Any:
    """Return the submodule ``path`` of ``module``; None if there is another object, or nothing unless ``create``."""
    for each in path:
        found = getattr(module, each, None)
        if found is None and create:
            found = Module()
            setattr(module, each, found)
        if not isinstance(found, Module):
            return None
        module = found
    return module


class GraphModule(Module):
    """Module that runs a :class:`Graph`. Its ``forward`` is Python code generated from the graph.

    Assigning ``graph`` generates the code. After a change of the graph, call :meth:`recompile`.

    Args:
        root: Module, or dictionary by paths, with the attributes and submodules that nodes of the graph refer to. They
            are copied to this module.
        graph: Graph to run.
        class_name: Name of the class in the text of the module.

    Each instance has a class of its own, because each has its own ``forward``.

    >>> import retrograd as torch
    >>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()))
    >>> for node in traced.graph.nodes:
    ...     if node.target == "1":
    ...         with traced.graph.inserting_after(node):
    ...             new = traced.graph.call_function(torch.tanh, node.args)
    ...         node.replace_all_uses_with(new)
    ...         traced.graph.erase_node(node)
    [output]
    >>> _ = traced.recompile()
    >>> print(traced.code.strip())
    def forward(self, input):
        input_1 = input
        _0 = getattr(self, "0")(input_1);  input_1 = None
        tanh = torch.tanh(_0);  _0 = None
        return tanh
    """

    __module__ = shown_in("torch.fx.graph_module", __name__)
    _graph: Graph

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        base = next(each for each in cls.__mro__ if "_of_one_instance" not in vars(each))
        own = type("GraphModuleImpl", (base,), {"_of_one_instance": True, "__module__": base.__module__})
        result: GraphModule = object.__new__(own)
        return result

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        nodes = [each for each in graph.nodes if each.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = getattr(root, "training", True)
            if isinstance(root, _CodeOnlyModule):
                for named in (root.named_children(), root.named_buffers(), root.named_parameters()):
                    for name, _ in named:
                        _copy_attr(root, self, name)
            for node in nodes:
                _copy_attr(root, self, str(node.target))
        elif isinstance(root, dict):
            for node in nodes:
                if node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
                    )
            for path in sorted({str(node.target) for node in nodes}, key=lambda path: path.count(".")):
                _assign_attr(root[path], self, path)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        local = graph._tracer_cls is not None and "<locals>" in graph._tracer_cls.__qualname__
        self._tracer_cls = None if local else graph._tracer_cls  # a pickle cannot refer to a local class
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}

    # -- graph and code

    @property
    def graph(self) -> Graph:
        """Graph of the module. Assigning a graph generates the code from it."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        assert isinstance(g, Graph), f"Expected a Graph instance, but got {type(g)}"
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """Source code of ``forward``."""
        return self._code

    def recompile(self) -> PythonCode:
        """Generate the code of ``forward`` from the graph, also in submodules that are graph modules, and return it."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec, self._out_spec = codegen.pytree_info.in_spec, codegen.pytree_info.out_spec
        generated = self._graph.python_code("self")
        self._code = generated.src
        type(self).forward = _forward_of(generated.src, generated.globals, self._graph._co_fields)  # type: ignore[method-assign]
        for child in self.children():
            if isinstance(child, GraphModule):
                child.recompile()
        return generated

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            frames = [each for each in traceback.walk_tb(error.__traceback__) if MARK not in each[0].f_globals]
            file = frames[-1][0].f_code.co_filename if frames else ""
            if "eval_with_key" not in file or getattr(error, _SHOWN, False):
                raise
            with suppress(AttributeError):  # an exception class with __slots__
                setattr(error, _SHOWN, True)
            lines, number = linecache.getlines(file), frames[-1][1]
            marker = "~" * len(lines[number - 1].strip()) + "~~~ <--- HERE"
            text = f"Call using an FX-traced Module, line {number} of the traced Module's generated forward function:"
            context = ("".join(lines[number - 2 : number]), marker, "\n".join(lines[number : number + 2]))
            print("\n".join([traceback.format_exc(), text, *context]), file=sys.stderr)
            raise error.with_traceback(None)  # noqa: B904 - the code is printed instead of its frames

    def __str__(self) -> str:
        reminder = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, reminder])

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """Print and return the code as that of a class, with shapes from ``Node.meta`` and lines of the program.

        The arguments are those of ``Graph.python_code``.
        """
        options = Options(True, include_stride, include_device, colored, expanded_def, additional_meta)
        text = self._readable(self._get_name(), options)
        if print_output:
            print(text)
        return text

    def _readable(self, name: str, options: Options) -> str:
        code = self._graph.python_code("self", **vars(options)).src.lstrip("\n")
        children = [
            child._readable(name, Options(**{**vars(options), "expanded_def": False}))
            for name, child in self.named_children()
            if isinstance(child, GraphModule)
        ]
        return _indented(f"class {name}(torch.nn.Module):\n{code}") + _indented("\n".join(["", *children]))

    # -- submodules

    def add_submodule(self, target: str, m: Module) -> bool:
        """Add the module ``m`` as ``target``, a path; return False if another object is on the path."""
        *path, name = target.split(".")
        parent = _submodule(self, path, create=True)
        if parent is None:
            return False
        parent.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Delete the submodule ``target``, a path; return False if there is none."""
        *path, name = target.split(".")
        parent = _submodule(self, path)
        if parent is None or not isinstance(getattr(parent, name, None), Module):
            return False
        delattr(parent, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Delete the submodules that no node refers to, and that contain no submodule or attribute of a node."""
        used: set[str] = set()
        modules = dict(self.named_modules())
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                used.update(itertools.accumulate(str(node.target).split("."), "{}.{}".format))
                if node.op == "call_module" and node.target in modules:
                    used.update(
                        f"{node.target}.{name}" for name, _ in modules[str(node.target)].named_modules() if name
                    )
        for name in modules:
            if name not in used:
                self.delete_submodule(name)

    # -- copies and files

    def __copy__(self) -> GraphModule:
        result = GraphModule(self, self.graph)
        result.meta = self.meta
        return result

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        result = type(self).__new__(type(self))
        memo[id(self)] = result
        attributes = copy.deepcopy(self.__dict__, memo)
        GraphModule.__init__(result, _CodeOnlyModule(attributes), attributes["_graph"])
        for name in ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "meta"):
            setattr(result, name, attributes[name])
        for name, value in result.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(result, name, value)
        return result

    def __reduce__(self) -> Any:
        """Return what pickles contain: the code and the attributes. The graph is restored by tracing the code."""
        attributes = {name: value for name, value in self.__dict__.items() if name != "_graph"}
        lines = {_import_statement(name, value) for name, value in self.recompile().globals.items()}
        return reduce_graph_module, (attributes, "\n".join(sorted(lines)))

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write the module to ``folder`` as a Python package that defines the class ``module_name``, and its tensors."""
        folder, save = Path(folder), load_part("serialization").save
        folder.mkdir(exist_ok=True)
        save(self.state_dict(), folder / "state_dict.pt")
        lines, pickled = [], []
        for name, child in self.named_children():
            if type(child) in _WRITTEN_AS_TEXT:
                lines.append(f"setattr(self, '{name}', {child!r})")
                continue
            save(child, folder / f"{name}.pt")
            pickled.append(name)
            comment = repr(child).replace("\n", " ")
            lines.append(f"setattr(self, '{name}', torch.load(r'{folder / name}.pt', weights_only=False)) # {comment}")
        for name, each in self.named_buffers(recurse=False):
            lines.append(f"self.register_buffer('{name}', torch.empty({list(each.shape)}, dtype={each.dtype}))")
        for name, each in self.named_parameters(recurse=False):
            made = f"torch.nn.Parameter(torch.empty({list(each.shape)}, dtype={each.dtype}))"
            lines.append(f"setattr(self, '{name}', {made})")
        lines.append(f"self.load_state_dict(torch.load(r'{folder}/state_dict.pt'))")
        imports = "\n".join(["\nimport torch", *(statement for statement, _ in GIVEN.values())])
        body = "".join(f"        {line}\n" for line in lines)
        text = f"{imports}\n\nfrom torch.nn import *\nclass {module_name}(torch.nn.Module):\n    def __init__(self):\n"
        text += f"        super().__init__()\n{body}{_indented(self.code)}\n"
        (folder / "module.py").write_text(text)
        (folder / "__init__.py").write_text("from .module import *")
        if pickled:
            warn(
                "Was not able to save the following children modules as reprs -saved as pickled files instead: "
                f"{pickled}"
            )


_WRITTEN_AS_TEXT = (
    nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d
)  # fmt: skip


def _indented(text: str) -> str:
    """Return ``text`` with all lines but the first and blank ones indented by four spaces."""
    first, *lines = text.split("\n")
    return "\n".join([first, *(f"    {line}" if line.strip() else "" for line in lines)])


def _import_statement(name: str, value: Any) -> str:
    """Return the statement that defines the global variable ``name`` of generated code in a pickle."""
    if name in GIVEN:
        return GIVEN[name][0]
    if is_from_torch(value):
        return "import torch"
    return f"from {value.__module__} import {value.__qualname__} as {name}"


def reduce_graph_module(body: dict[str, Any], import_block: str) -> GraphModule:
    """Return the module of a pickle: its code, among the attributes ``body``, is traced. Pickles call this function.

    ``import_block`` has the statements that define the global variables of the code.
    """
    from ._symbolic_trace import Tracer

    package = __name__.partition(".")[0]  # torch need not be a module: the import hook may be off
    block = re.sub(r"^import torch$", f"import {package} as torch", import_block, flags=re.MULTILINE)
    block = re.sub(r"^(import|from) torch\b", rf"\1 {package}", block, flags=re.MULTILINE)
    source = body.get("_code") or body["code"]
    restored = type("_CodeOnlyModule", (_CodeOnlyModule,), {"forward": _forward_of(f"{block}\n{source}", {})})(body)
    tracer_class: Any = body.get("_tracer_cls") or Tracer
    keeping = type("KeepModules", (tracer_class,), {"is_leaf_module": lambda self, module, path: True})
    graph = keeping().trace(restored, **body.get("_tracer_extras", {}))
    graph._tracer_cls = tracer_class
    result = GraphModule(restored, graph)
    for name, value in body.items():
        if not hasattr(result, name):
            setattr(result, name, value)
    return result


__all__ = ["GraphModule", "reduce_graph_module"]
