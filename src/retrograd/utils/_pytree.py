"""Pytree functions of ``core/pytree.py``, exported under the name that PyTorch uses (``torch.utils._pytree``)."""

from ..core.pytree import (
    LeafSpec,
    TreeSpec,
    is_namedtuple_instance,
    register_pytree_node,
    tree_all,
    tree_all_only,
    tree_any,
    tree_any_only,
    tree_flatten,
    tree_is_leaf,
    tree_iter,
    tree_leaves,
    tree_map,
    tree_map_,
    tree_map_only,
    tree_map_only_,
    tree_structure,
    tree_unflatten,
    treespec_pprint,
)

__all__ = [
    "LeafSpec", "TreeSpec", "is_namedtuple_instance", "register_pytree_node", "tree_all", "tree_all_only", "tree_any",
    "tree_any_only", "tree_flatten", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_map", "tree_map_", "tree_map_only",
    "tree_map_only_", "tree_structure", "tree_unflatten", "treespec_pprint",
]  # fmt: skip
