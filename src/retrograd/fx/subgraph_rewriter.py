"""``torch.fx.subgraph_rewriter``: replacement of a pattern of nodes by another program."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..nn import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher


class Match(NamedTuple):
    """Place where a pattern was found: the last node of the pattern, and a dictionary from its nodes to the graph's."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """:class:`Match` with the nodes that have been inserted."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace the nodes of ``gm`` that compute ``pattern`` by those of ``replacement``, and return the matches.

    Both are functions or modules with the same number of parameters and results. A parameter of the pattern
    matches any value. Nodes match by what they compute, not by their names. Of overlapping matches the first is replaced.

    >>> import retrograd as torch
    >>> traced = torch.fx.symbolic_trace(lambda x, y: (x * y).sum() + y)
    >>> matches = torch.fx.replace_pattern(traced, lambda a, b: (a * b).sum(), lambda a, b: torch.dot(a, b))
    >>> print(len(matches), traced.code.strip())
    1 def forward(self, x, y):
        dot = torch.dot(x, y);  x = None
        add = dot + y;  dot = y = None
        return add
    """
    return [Match(each.anchor, each.nodes_map) for each in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """Replace a pattern as :func:`replace_pattern`, and return the matches with the inserted nodes.

    Args:
        gm: Module to change.
        pattern: Function, module or graph.
        replacement: Function, module or graph.
        match_filters: Functions of a match, the graph and the pattern's graph; a match is replaced if all return True.
        ignore_literals: Whether constants match any constant.
        replacement_callback: Function of the same arguments that returns the replacement of a match.
        node_name_match: Text; a node with this text in its name matches the last node of the pattern.
    """
    graph, pattern_graph = gm.graph, _graph_of(pattern)
    matcher = SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals)
    matches = matcher.match(graph, node_name_match=node_name_match)
    matches = [each for each in matches if all(check(each, graph, pattern_graph) for check in match_filters or ())]
    if replacement_callback is None:
        assert replacement is not None, "Must provide either a replacement GraphModule or a replacement callback"
        fixed = _graph_of(replacement)
    changed: dict[Node, Node] = {}
    replaced = []
    for match in matches:
        new = fixed if replacement_callback is None else replacement_callback(match, graph, pattern_graph)
        replaced.append(_replace(match, graph, pattern_graph, new, changed))
    gm.recompile()
    if isinstance(replacement, Module):
        _copy_attributes(gm, replacement)
    return replaced


def _graph_of(program: Any) -> Graph:
    if isinstance(program, Graph):
        return program
    return program.graph if isinstance(program, GraphModule) else symbolic_trace(program).graph


def _replace(
    match: InternalMatch, graph: Graph, pattern: Graph, new: Graph, changed: dict[Node, Node]
) -> ReplacedPatterns:
    """Replace one match. ``changed`` maps results of previous matches to the nodes that replaced them."""
    parameters = [each for each in new.nodes if each.op == "placeholder"]
    assert len(match.placeholder_nodes) == len(parameters), (
        f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(parameters)}"
    )
    match.placeholder_nodes = [changed.get(each, each) for each in match.placeholder_nodes]
    match.nodes_map = {
        node: changed.get(found, found) if node.op == "placeholder" else found
        for node, found in match.nodes_map.items()
    }
    copies = dict(zip(parameters, match.placeholder_nodes, strict=True))
    users = {user for node in match.returning_nodes for user in node.users}
    place = min(users) if users else max(match.returning_nodes).next
    with graph.inserting_before(place):
        results = graph.graph_copy(new, copies)
    results = (results,) if isinstance(results, Node) else results
    assert len(match.returning_nodes) == len(results), (
        f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(results)}"
    )
    inserted = [each for each in copies.values() if each not in match.placeholder_nodes]
    for node, result in zip(match.returning_nodes, results, strict=True):
        node.replace_all_uses_with(result)
        changed[node] = result
    for node in reversed(pattern.nodes):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    return ReplacedPatterns(match.anchors[0], match.nodes_map, inserted)


def _copy_attributes(gm: GraphModule, replacement: Module) -> None:
    """Copy to ``gm`` what its nodes refer to and only ``replacement`` has; delete submodules that are unused now."""
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or _found(gm, node.target) is not None:
            continue
        value = _found(replacement, node.target)
        if value is None:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target {node.target}, but the '
                "referenced attribute does not exist in the replacement GraphModule"
            )
        if isinstance(value, Module):
            gm.add_submodule(node.target, copy.deepcopy(value))
        else:
            setattr(gm, node.target, copy.deepcopy(value))
    gm.graph.lint()


def _found(module: Module, path: str) -> Any:
    """Return the attribute ``path`` of ``module``, or None."""
    parent, _, name = path.rpartition(".")
    try:
        return getattr(module.get_submodule(parent), name, None)
    except AttributeError:
        return None


__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]
