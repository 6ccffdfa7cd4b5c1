"""``torch.fx``: programs as graphs, which are recorded by symbolic tracing, changed, and run; see docs/fx.md.

``_symbolic_trace`` records a program as a ``graph`` of ``node`` objects by means of ``proxy`` objects. ``codegen``
writes a graph as Python code, which a ``graph_module`` runs. ``interpreter`` runs a graph node by node.
"""

# ruff: noqa: F401 - torch.fx.node and others are loaded with it
from ..compat.lazy_imports import module_getattr
from . import immutable_collections, node, proxy
from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "PH", "Proxy", "ProxyableClassMeta", "Tracer", "Transformer",
    "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip
for _name in ("codegen", "names"):
    del globals()[_name]  # PyTorch has no modules of these names

__getattr__ = module_getattr(__name__, {"experimental": "experimental"})
