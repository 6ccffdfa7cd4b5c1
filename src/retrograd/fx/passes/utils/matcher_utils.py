"""``torch.fx.passes.utils.matcher_utils``: the search for a pattern of nodes in a graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ....core.tensor import Tensor
from ...graph import Graph
from ...graph_module import _get_attr
from ...node import Node


@dataclass
class InternalMatch:
    """Place where a pattern was found.

    Attributes:
        anchors: Last nodes of the pattern.
        nodes_map: Dictionary from nodes of the pattern to nodes of the graph.
        placeholder_nodes: Nodes or constants that match the parameters of the pattern.
        returning_nodes: Nodes of the graph for the results of the pattern.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)


class SubgraphMatcher:
    """Search for the places at which a graph computes a pattern.

    Args:
        pattern: Graph of the pattern, without unused nodes.
        match_output: Whether the result of the pattern must be that of the graph.
        match_placeholder: Whether parameters of the pattern match only parameters; otherwise they match any value.
        remove_overlapping_matches: Whether of overlapping matches only the first is returned.
        ignore_literals: Whether constants match any constant.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern, self.match_output, self.match_placeholder = pattern, match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        nodes = list(pattern.nodes)
        if not nodes:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in nodes:
            assert node.users or node.op == "output" or node.is_impure(), (
                "SubgraphMatcher cannot be initialized with an pattern with dead code"
            )
        self.pattern_placeholder_nodes = [each for each in nodes if each.op == "placeholder"]
        self.pattern_returning_nodes = nodes[-1].all_input_nodes
        ends = [each for each in self.pattern_returning_nodes if len(each.users) == 1]
        self.pattern_anchors = [nodes[-1]] if match_output else ends

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Return the matches in ``graph``, in the order of their last nodes.

        Nodes inside a match have no users outside of it, and the match could be computed at once. A node with
        ``node_name_match`` in its name matches the last node of the pattern, whatever it computes.
        """
        candidates = [
            [node for node in graph.nodes if self._equal(anchor, node, node_name_match)]
            for anchor in self.pattern_anchors
        ]
        found = [
            InternalMatch(
                self.pattern_anchors,
                pairs,
                [pairs[each] for each in self.pattern_placeholder_nodes],
                [pairs[each] for each in self.pattern_returning_nodes],
            )
            for pairs in self._combinations(candidates, {}, node_name_match)
            if self._is_contained(pairs)
        ]
        found = [each for each in found if not _reenters(_computed(each.nodes_map))]
        if not self.remove_overlapping_matches:
            return found
        taken: set[Node] = set()
        kept = []
        for each in found:
            nodes = _computed(each.nodes_map)
            if taken.isdisjoint(nodes):
                kept.append(each)
                taken |= nodes
        return kept

    def _combinations(
        self, candidates: list[list[Node]], pairs: dict[Node, Any], name: str
    ) -> Iterable[dict[Node, Any]]:
        """Yield the mappings in which each anchor, from the first without one on, has one of its candidates."""
        index = len(self.pattern_anchors) - len(candidates)
        if not candidates:
            yield pairs
            return
        for node in candidates[0]:
            further = dict(pairs)
            if self._matches(self.pattern_anchors[index], node, further, name):
                yield from self._combinations(candidates[1:], further, name)

    def _equal(self, wanted: Node, node: Node, name: str = "") -> bool:
        """Whether the two nodes compute the same function of their arguments."""
        if (wanted.op == "placeholder" and not self.match_placeholder) or (name and name in node.name):
            return True
        if wanted.op != node.op:
            return False
        if wanted.op in ("placeholder", "output"):
            return True
        if wanted.op == "get_attr":
            values = [_get_attr(each.graph.owning_module, str(each.target)) for each in (wanted, node)]  # type: ignore[arg-type]
            if type(values[0]) is not type(values[1]):
                return False
            if not isinstance(values[0], Tensor):
                raise RuntimeError(f"Unsupported type {values[0]} when matching attributes")
            return True
        return wanted.target == node.target

    def _matches(self, wanted: Node, node: Node, pairs: dict[Node, Any], name: str = "") -> bool:
        """Whether ``node`` and what it depends on match ``wanted``; the pairs of nodes are added to ``pairs``."""
        if wanted in pairs:
            return pairs[wanted] is node
        if any(each is node for each in pairs.values()) or not self._equal(wanted, node, name):
            return False
        pairs[wanted] = node
        if wanted.op == "placeholder":
            return True
        if list(wanted.kwargs) != list(node.kwargs):
            return False
        return self._arguments_match(
            [*wanted.args, *wanted.kwargs.values()], [*node.args, *node.kwargs.values()], pairs
        )

    def _arguments_match(self, wanted: Any, given: Any, pairs: dict[Node, Any]) -> bool:
        return len(wanted) == len(given) and all(
            self._argument_matches(*each, pairs) for each in zip(wanted, given, strict=True)
        )

    def _argument_matches(self, wanted: Any, given: Any, pairs: dict[Node, Any]) -> bool:
        if isinstance(wanted, Node) and isinstance(given, Node):
            return self._matches(wanted, given, pairs)
        if isinstance(wanted, (list, tuple)) and isinstance(given, (list, tuple)):
            return self._arguments_match(wanted, given, pairs)
        if isinstance(wanted, Node) and wanted.op == "placeholder":
            same = wanted not in pairs or pairs[wanted] == given
            pairs.setdefault(wanted, given)
        elif isinstance(wanted, Node) or isinstance(given, Node):
            same = False
        else:
            same = type(given) is type(wanted) and given == wanted
        return same or self.ignore_literals

    def _is_contained(self, pairs: dict[Node, Any]) -> bool:
        """Whether the nodes of a match that are not results have users only in the match."""
        inside = {found for node, found in pairs.items() if node.op != "placeholder"}
        inner = [
            found
            for node, found in pairs.items()
            if node.op != "placeholder" and node not in self.pattern_returning_nodes
        ]
        return all(user in inside for found in inner for user in found.users)


def _computed(pairs: dict[Node, Any]) -> set[Node]:
    """Return the nodes of a match that compute something."""
    return {found for node, found in pairs.items() if node.op not in ("placeholder", "output")}


def _reenters(nodes: set[Node]) -> bool:
    """Whether a path leads from one of ``nodes`` through others to one of them."""
    waiting = [user for node in nodes for user in node.users if user not in nodes]
    seen = set(waiting)
    while waiting:
        for user in waiting.pop().users:
            if user in nodes:
                return True
            if user not in seen:
                seen.add(user)
                waiting.append(user)
    return False


__all__ = ["InternalMatch", "SubgraphMatcher"]
