"""``torch.fx._pytree``: flattening of arguments by a known structure, which generated code calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.pytree import TreeSpec, tree_flatten

#: Functions that return the children of a container for a given structure, by the type of the container.
SUPPORTED_NODES: dict[type, Callable[[Any, TreeSpec], list[Any]]] = {
    dict: lambda tree, spec: [tree[key] for key in spec.context],
    list: lambda tree, spec: [tree[index] for index in range(spec.num_children)],
    tuple: lambda tree, spec: [tree[index] for index in range(spec.num_children)],
}


def register_pytree_flatten_spec(
    cls: type, flatten_fn_spec: Callable[[Any, TreeSpec], list[Any]], flatten_fn_exact_match_spec: Any = None
) -> None:
    """Register the function that :func:`tree_flatten_spec` calls for containers of the type ``cls``."""
    SUPPORTED_NODES[cls] = flatten_fn_spec


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """Return the leaves of ``pytree`` that the structure ``spec`` names.

    A dictionary may have further keys and a list further elements. RuntimeError is raised if a container of another
    type does not have exactly the structure.

    >>> import retrograd as torch
    >>> from retrograd.utils._pytree import tree_structure
    >>> torch.fx._pytree.tree_flatten_spec({"a": 1, "b": [2, 3], "c": 4}, tree_structure({"b": [0, 0], "a": 0}))
    [2, 3, 1]
    """
    if spec.is_leaf():
        return [pytree]
    if spec.type in SUPPORTED_NODES:
        children = SUPPORTED_NODES[spec.type](pytree, spec)
        pairs = zip(children, spec.children(), strict=False)
        return [leaf for child, its_spec in pairs for leaf in tree_flatten_spec(child, its_spec)]
    leaves, real = tree_flatten(pytree)
    if real != spec:
        raise RuntimeError(f"Real spec {real} of object {pytree} is different from expected spec {spec}.")
    return leaves


__all__ = ["SUPPORTED_NODES", "register_pytree_flatten_spec", "tree_flatten_spec"]
