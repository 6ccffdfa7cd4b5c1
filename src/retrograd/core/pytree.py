"""Pytrees: nested tuples, lists and dictionaries, flattened to leaves and a structure, and unflattened.

Any value whose type is not a registered container type is a leaf, including None.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from .size import Size

if TYPE_CHECKING:
    from .typing import Kinds, PyTree

Flatten = Callable[[Any], tuple[list[Any], Any]]  # Note [Any in public signatures]
Unflatten = Callable[[Iterable[Any], Any], Any]  # Note [Any in public signatures]


class Container(NamedTuple):
    """Functions that flatten and rebuild containers of one type, such as ``list``.

    ``flatten`` returns the children of a container and a context, that is, further data such as the keys of a
    dictionary. ``unflatten`` creates the container from the children and the context. ``flatten_with_keys``, which is
    optional, returns pairs of a key and a child instead of the children.
    """

    flatten: Flatten
    unflatten: Unflatten
    flatten_with_keys: Flatten | None = None

    # PyTorch's names
    @property
    def flatten_fn(self) -> Flatten:
        return self.flatten

    @property
    def unflatten_fn(self) -> Unflatten:
        return self.unflatten

    @property
    def flatten_with_keys_fn(self) -> Flatten | None:
        return self.flatten_with_keys


CONTAINERS: dict[type, Container] = {}


def register_pytree_node(
    cls: type, flatten_fn: Flatten, unflatten_fn: Unflatten, *, flatten_with_keys_fn: Flatten | None = None, **names: object
) -> None:  # fmt: skip
    """Register ``cls`` as a container type.

    ``flatten_fn(x)`` returns the children of ``x`` and a context, and ``unflatten_fn(children, context)`` returns the
    container. ``flatten_with_keys_fn(x)`` returns pairs of a key and a child instead of the children. Raises ValueError
    if the type is registered already. Other keywords of PyTorch's function, collected in ``names``, are ignored.
    """
    if cls in CONTAINERS:
        raise ValueError(f"{cls} is already registered as pytree node.")
    CONTAINERS[cls] = Container(flatten_fn, unflatten_fn, flatten_with_keys_fn)


def _of_pairs(make: Callable[[Iterator[tuple[object, object]], object], object]) -> Unflatten:
    """Return the function ``unflatten`` of a :class:`Container` for mappings.

    The returned function has the arguments ``children``, the values of the mapping, and ``keys``. It creates the
    mapping by ``make(pairs, keys)``, where ``pairs`` is an iterator over (key, value) pairs.
    """
    return lambda children, keys: make(zip(keys, children, strict=True), keys)


def _register_sequence(kind: type) -> None:
    """Register ``kind`` as a container type of pytrees; ``kind(elements)`` must create a container."""
    register_pytree_node(kind, lambda x: (list(x), None), lambda children, _: kind(children))


for _kind in (tuple, list, Size):
    _register_sequence(_kind)
register_pytree_node(dict, lambda x: (list(x.values()), list(x)), _of_pairs(lambda pairs, _: dict(pairs)))
register_pytree_node(OrderedDict, lambda x: (list(x.values()), list(x)), _of_pairs(lambda pairs, _: OrderedDict(pairs)))
register_pytree_node(
    defaultdict,
    lambda x: (list(x.values()), [x.default_factory, list(x)]),
    lambda children, context: defaultdict(context[0], zip(context[1], children, strict=True)),
)
register_pytree_node(deque, lambda x: (list(x), x.maxlen), lambda children, maxlen: deque(children, maxlen))


class _Named:
    """Container type that represents all classes of named tuples in a :class:`TreeSpec`.

    The class of the individual named tuple is stored as the context of its TreeSpec.
    """


_Named.__name__ = "namedtuple"
CONTAINERS[_Named] = Container(lambda x: (list(x), type(x)), lambda children, cls: cls(*children))


def is_namedtuple_instance(value: object) -> bool:
    """Whether ``value`` is a named tuple, that is, a tuple whose class has the attribute ``_fields``."""
    return isinstance(value, tuple) and isinstance(getattr(type(value), "_fields", None), tuple)


def container_type(value: object) -> type | None:
    """Return the container type of ``value``, or None for a leaf."""
    kind = type(value)
    if kind in CONTAINERS:
        return kind
    if is_namedtuple_instance(value):
        return _Named
    if isinstance(value, tuple) and kind.__module__ == "torch.return_types":
        _register_sequence(kind)
        return kind
    return None


class TreeSpec:
    """Structure of a pytree: its container type ``type``, a context, and the structures of its children.

    The context is further data that is needed to rebuild the container, such as the keys of a dictionary.
    """

    children_specs: list[TreeSpec]
    context: Any  # Note [Any in public signatures]
    type: Any  # Note [Any in public signatures]

    # Note [Any in public signatures]
    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type, self.context, self.children_specs = type, context, children_specs
        self.num_children: int = len(children_specs)
        self.num_leaves: int = sum(each.num_leaves for each in children_specs)
        self.num_nodes: int = 1 + sum(each.num_nodes for each in children_specs)

    def is_leaf(self) -> bool:
        """Whether this object is the structure of a leaf."""
        return False

    def children(self) -> list[TreeSpec]:
        """Return a list with the structure of each child of the container."""
        return list(self.children_specs)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, TreeSpec) and (
            (self.type, self.context, self.children_specs) == (other.type, other.context, other.children_specs)
        )

    def __hash__(self) -> int:
        return hash((self.type, self.num_nodes, self.num_leaves))

    def __repr__(self) -> str:
        return self._text(0)

    def _text(self, indent: int) -> str:
        inner = (",\n" + " " * (indent + 2)).join(each._text(indent + 2) for each in self.children_specs)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{inner}])"

    def unflatten(self, leaves: Iterable[PyTree]) -> PyTree:
        """Return the tree with this structure and ``leaves``; raise ValueError for a wrong number of leaves."""
        values = list(leaves)
        if len(values) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(values)} but the spec refers to a pytree that holds "
                f"{self.num_leaves} items ({self})."
            )
        return self._build(iter(values))

    def _build(self, leaves: Iterator[PyTree]) -> PyTree:
        return CONTAINERS[self.type].unflatten([each._build(leaves) for each in self.children_specs], self.context)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """Return a list of the subtrees of ``tree`` that are at the positions of this structure's leaves.

        A subtree may be a container, because ``tree`` may be nested more deeply than this structure. Raises ValueError
        if the upper levels of ``tree`` do not have this structure.
        """
        kind = container_type(tree)
        if kind is not self.type:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        children, context = CONTAINERS[kind].flatten(tree)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if context != self.context:
            raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        return [
            leaf
            for spec, child in zip(self.children_specs, children, strict=True)
            for leaf in spec.flatten_up_to(child)
        ]


class LeafSpec(TreeSpec):
    """Structure of a pytree that consists of a single leaf, as ``torch.utils._pytree.LeafSpec``."""

    def __init__(self) -> None:
        super().__init__(None, None, [])
        self.num_leaves = 1

    def is_leaf(self) -> bool:
        """Return True, because this is the structure of a leaf."""
        return True

    def _text(self, indent: int) -> str:
        return "*"

    def _build(self, leaves: Iterator[PyTree]) -> PyTree:
        return next(leaves)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """Return a list with ``tree`` as its only element, because the structure has a single leaf."""
        return [tree]


_LEAF = LeafSpec()
Stop = Callable[[Any], bool] | None  # Note [Any in public signatures]


def tree_is_leaf(tree: PyTree, is_leaf: Stop = None) -> bool:
    """Whether ``tree`` is a leaf: it is not a container, or the function ``is_leaf`` returns True for it."""
    return (is_leaf is not None and is_leaf(tree)) or container_type(tree) is None


def tree_flatten(tree: PyTree, is_leaf: Stop = None) -> tuple[list[PyTree], TreeSpec]:
    """Return the leaves of ``tree``, from left to right, and its structure.

    A subtree for which the function ``is_leaf`` returns True is a leaf, too.

    >>> from retrograd.utils import _pytree
    >>> _pytree.tree_flatten((1, [2, {"a": 3}]))[0]
    [1, 2, 3]
    """
    leaves: list[PyTree] = []
    return leaves, _flatten_into(tree, is_leaf, leaves)


def _flatten_into(tree: PyTree, is_leaf: Stop, leaves: list[PyTree]) -> TreeSpec:
    """Append the leaves of ``tree`` to the list ``leaves``, and return the structure of the tree."""
    kind = None if is_leaf is not None and is_leaf(tree) else container_type(tree)
    if kind is None:
        leaves.append(tree)
        return _LEAF
    children, context = CONTAINERS[kind].flatten(tree)
    return TreeSpec(kind, context, [_flatten_into(each, is_leaf, leaves) for each in children])


def tree_unflatten(leaves: Iterable[PyTree], treespec: TreeSpec) -> PyTree:
    """Return the tree with the structure ``treespec`` and the leaves ``leaves``."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got item of type "
            f"{type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_leaves(tree: PyTree, is_leaf: Stop = None) -> list[PyTree]:
    """Return the leaves of ``tree`` (see :func:`tree_flatten`)."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: Stop = None) -> Iterator[PyTree]:
    """Return an iterator over the leaves of ``tree`` (see :func:`tree_flatten`)."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: Stop = None) -> TreeSpec:
    """Return the structure of ``tree`` (see :func:`tree_flatten`)."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., PyTree], tree: PyTree, *rests: PyTree, is_leaf: Stop = None) -> PyTree:
    """Return a tree with the structure of ``tree``, in which ``func`` has been applied to each leaf.

    ``func`` is called with a leaf and the corresponding elements of the trees in ``rests``, which may be leaves or
    subtrees.

    >>> from retrograd.utils import _pytree
    >>> _pytree.tree_map(lambda a, b: a + b, (1, [2]), (10, [20]))
    (11, [22])
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(each) for each in rests]
    return spec.unflatten([func(*each) for each in zip(leaves, *others, strict=True)])


def tree_map_(func: Callable[..., PyTree], tree: PyTree, *rests: PyTree, is_leaf: Stop = None) -> PyTree:
    """Call ``func`` for each leaf of ``tree`` as :func:`tree_map` does, and return ``tree`` itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(kinds: Kinds, func: Callable[[PyTree], PyTree], tree: PyTree, is_leaf: Stop = None) -> PyTree:
    """Return ``tree`` with ``func`` applied to some of its leaves; the other leaves are unchanged.

    ``kinds`` selects these leaves: it is a type, a tuple of types, or a function that returns True for them.
    """
    return tree_map(_only(kinds, func), tree, is_leaf=is_leaf)


def tree_map_only_(kinds: Kinds, func: Callable[[PyTree], PyTree], tree: PyTree, is_leaf: Stop = None) -> PyTree:
    """Call ``func`` for some of the leaves of ``tree``, and return ``tree`` itself.

    ``kinds`` selects these leaves: it is a type, a tuple of types, or a function that returns True for them.
    """
    return tree_map_(_only(kinds, func), tree, is_leaf=is_leaf)


def _accepts(kinds: Kinds, value: object) -> bool:
    """Whether ``kinds`` (a type, a tuple of types, or a function that returns a bool) selects the leaf ``value``."""
    if isinstance(kinds, (type, tuple)):
        return isinstance(value, kinds)
    return bool(kinds(value))


def _only(kinds: Kinds, func: Callable[[PyTree], PyTree]) -> Callable[[PyTree], PyTree]:
    return lambda leaf: func(leaf) if _accepts(kinds, leaf) else leaf


def tree_all(pred: Callable[[PyTree], bool], tree: PyTree, is_leaf: Stop = None) -> bool:
    """Whether ``pred`` is true for every leaf of ``tree``."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[PyTree], bool], tree: PyTree, is_leaf: Stop = None) -> bool:
    """Whether ``pred`` is true for any leaf of ``tree``."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(kinds: Kinds, pred: Callable[[PyTree], bool], tree: PyTree, is_leaf: Stop = None) -> bool:
    """Whether ``pred`` is true for every leaf of ``tree`` that ``kinds`` selects (see :func:`tree_map_only`)."""
    return all(pred(each) for each in tree_leaves(tree, is_leaf) if _accepts(kinds, each))


def tree_any_only(kinds: Kinds, pred: Callable[[PyTree], bool], tree: PyTree, is_leaf: Stop = None) -> bool:
    """Whether ``pred`` is true for any leaf of ``tree`` that ``kinds`` selects (see :func:`tree_map_only`)."""
    return any(pred(each) for each in tree_leaves(tree, is_leaf) if _accepts(kinds, each))


def treespec_pprint(treespec: TreeSpec) -> str:
    """Return the text of a tree of the structure ``treespec``, with ``*`` for every leaf."""
    return repr(treespec.unflatten([_Star()] * treespec.num_leaves))


class _Star:
    def __repr__(self) -> str:
        return "*"


def broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: Stop = None) -> list[PyTree] | None:
    """Return a list with one item for each leaf of the structure ``treespec``: the corresponding leaf of ``tree``.

    If ``treespec`` has a container where ``tree`` has a leaf, this leaf is repeated for all leaves of the container.
    The result is None if the structures do not match otherwise.
    """
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    kind = container_type(tree)
    if treespec.is_leaf() or kind is not treespec.type:
        return None
    children, context = CONTAINERS[kind].flatten(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    leaves: list[PyTree] = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        part = broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        leaves += part
    return leaves
