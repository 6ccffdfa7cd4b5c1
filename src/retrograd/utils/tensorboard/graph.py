"""``graph_of``: the autograd graph of one call of a model, as a TensorBoard graph with nodes grouped by module."""

from __future__ import annotations

import importlib
from collections import Counter
from typing import Any

from ...core import pytree
from ...core.grad_mode import enable_grad
from ...core.tensor import Tensor

_PROTO = "tensorboard.compat.proto."
_graphs = importlib.import_module(_PROTO + "graph_pb2")
_nodes = importlib.import_module(_PROTO + "node_def_pb2")
_attributes = importlib.import_module(_PROTO + "attr_value_pb2")
_shapes = importlib.import_module(_PROTO + "tensor_shape_pb2")
_versions = importlib.import_module(_PROTO + "versions_pb2")


def _node(name: str, op: str, inputs: list[str], attributes: str = "", shape: Any = None) -> Any:
    found = {"attr": _attributes.AttrValue(s=attributes.encode())}
    if shape is not None:
        dims = [_shapes.TensorShapeProto.Dim(size=size) for size in shape]
        shapes = _attributes.AttrValue.ListValue(shape=[_shapes.TensorShapeProto(dim=dims)])
        found["_output_shapes"] = _attributes.AttrValue(list=shapes)
    return _nodes.NodeDef(name=name, op=op, input=inputs, attr=found)


def _tensors(value: Any) -> list[Tensor]:
    return [each for each in pytree.tree_leaves(value) if isinstance(each, Tensor)]


class _NodeNames:
    """Names of the autograd nodes that one call of ``model`` records, for :func:`graph_of`.

    A name consists of the path of a module and the operation of the node, for example ``"Sequential/Linear[0]/Addmm"``.
    The module is the first that returned an output which depends on the node.
    """

    def __init__(self, model: Any) -> None:
        self.names: dict[Any, str] = {}
        self.order: list[Any] = []
        self.taken = Counter[str]()
        root = type(model).__name__
        self.paths = {module: self._path(root, model, name) for name, module in model.named_modules()}
        self.parameters = {
            id(each): f"{path}/{name}"
            for module, path in self.paths.items()
            for name, each in module.named_parameters(recurse=False)
        }

    def _path(self, root: str, model: Any, name: str) -> str:
        parts, module = [root], model
        for each in name.split(".") if name else ():
            module = getattr(module, each)
            parts.append(f"{type(module).__name__}[{each}]")
        return "/".join(parts)

    def seen(self, module: Any, inputs: Any, output: Any) -> None:
        """Assign names to the autograd nodes that the call of ``module`` recorded.

        These are the nodes on which ``output`` depends and which have no name yet. The method is registered as a
        forward hook of every module: ``inputs`` and ``output`` are those of ``module``.
        """
        found, pending = [], [each.grad_fn for each in _tensors(output)]
        while pending:
            node = pending.pop()
            if node is None or node in self.names:
                continue
            kind = node.name().removesuffix("Backward0")
            if kind.endswith("AccumulateGrad"):
                continue
            self.taken[name := f"{self.paths[module]}/{kind}"] += 1
            self.names[node] = name if self.taken[name] == 1 else f"{name}_{self.taken[name] - 1}"
            found.append(node)
            pending.extend(before for before, _ in node.next_functions)
        self.order.extend(reversed(found))


def graph_of(model: Any, given: Any) -> Any:
    """Return the autograd graph of the call ``model(*given)``, as a GraphDef (TensorBoard's message for graphs).

    ``given`` is a tuple or list of arguments, or a single argument.
    """
    args = given if isinstance(given, (tuple, list)) else (given,)
    inputs = [
        each.detach().requires_grad_(each.is_floating_point()) if isinstance(each, Tensor) else each for each in args
    ]
    recorded = _NodeNames(model)
    hooks = [module.register_forward_hook(recorded.seen) for module in recorded.paths]
    try:
        with enable_grad():
            outputs = _tensors(model(*inputs))
    finally:
        for each in hooks:
            each.remove()
    names = dict(recorded.parameters)
    nodes = []
    for number, each in enumerate(_tensors(inputs)):
        names[id(each)] = f"input/input_{number}"
        nodes.append(_node(names[id(each)], "IO Node", [], shape=each.shape))
    for parameter in model.parameters():
        nodes.append(_node(names[id(parameter)], "Parameter", [], shape=parameter.shape))

    def name_of(node: Any) -> str | None:
        return recorded.names.get(node) or names.get(id(getattr(node, "variable", None)))

    for node in recorded.order:
        before = [name for each, _ in node.next_functions if each is not None and (name := name_of(each))]
        nodes.append(_node(recorded.names[node], node.name().removesuffix("Backward0"), before))
    for number, each in enumerate(outputs):
        before = [] if each.grad_fn is None else [recorded.names[each.grad_fn]]
        nodes.append(_node(f"output/output_{number}", "IO Node", before, shape=each.shape))
    return _graphs.GraphDef(node=nodes, versions=_versions.VersionDef(producer=22))
