"""``torch.utils._pytree``: the functions of ``core/pytree.py``, paths of leaves, and structures as text."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from ..core import pytree as _core
from ..core.pytree import (
    CONTAINERS,
    LeafSpec,
    TreeSpec,
    broadcast_to_and_flatten,
    container_type,
    is_namedtuple_instance,
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
from ..core.pytree import Container as NodeDef
from ..runtime.user_frame import warn

PyTree: TypeAlias = Any
Context: TypeAlias = Any
FlattenFunc: TypeAlias = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFunc: TypeAlias = Callable[[Iterable[Any], Context], PyTree]
IsLeaf: TypeAlias = Callable[[PyTree], bool] | None

SUPPORTED_NODES = CONTAINERS
BUILTIN_TYPES = frozenset({tuple, list, dict, _core._Named, OrderedDict, defaultdict, deque})
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})


# -- Paths -------------------------------------------------------------------------------------------------------------


class MappingKey(NamedTuple):
    """Key of a mapping in the path of a leaf."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """Return the item of ``mapping`` for this key."""
        return mapping[self.key]


class SequenceKey(NamedTuple):
    """Index of a sequence in the path of a leaf."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """Return the item of ``sequence`` at this index."""
        return sequence[self.idx]


class GetAttrKey(NamedTuple):
    """Name of an attribute in the path of a leaf."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Return the attribute of ``obj`` of this name."""
        return getattr(obj, self.name)


KeyEntry: TypeAlias = Any
KeyPath: TypeAlias = tuple[KeyEntry, ...]


def _with_keys(kind: type, tree: PyTree) -> tuple[list[tuple[KeyEntry, Any]], Context]:
    """Return pairs of a key and a child of the container ``tree`` of the type ``kind``, and the context."""
    node = CONTAINERS[kind]
    if node.flatten_with_keys is not None:
        return node.flatten_with_keys(tree)
    children, context = node.flatten(tree)
    if kind is _core._Named:
        return list(zip(map(GetAttrKey, tree._fields), children, strict=True)), context
    if kind in STANDARD_DICT_TYPES:
        return list(zip(map(MappingKey, tree), children, strict=True)), context
    if isinstance(tree, (Sequence, deque)):
        return list(zip(map(SequenceKey, range(len(children))), children, strict=True)), context
    raise ValueError(f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to "
                     "register_pytree_node.")  # fmt: skip


def _add_paths(path: KeyPath, tree: PyTree, is_leaf: IsLeaf, found: list[tuple[KeyPath, Any]]) -> None:
    kind = None if is_leaf is not None and is_leaf(tree) else container_type(tree)
    if kind is None:
        found.append((path, tree))
        return
    for key, child in _with_keys(kind, tree)[0]:
        _add_paths((*path, key), child, is_leaf, found)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """Return a list of pairs of the path of a leaf of ``tree`` and the leaf."""
    found: list[tuple[KeyPath, Any]] = []
    _add_paths((), tree, is_leaf, found)
    return found


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Return a list of pairs of the path of a leaf of ``tree`` and the leaf, and the structure of ``tree``.

    >>> from retrograd.utils import _pytree
    >>> [(_pytree.keystr(path), leaf) for path, leaf in _pytree.tree_flatten_with_path({"a": [1, 2]})[0]]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Return a tree as :func:`tree_map` does; ``func`` gets the path of the leaf as its first argument."""
    leaves, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(each) for each in rests]
    return (
        spec.unflatten(func(*each) for each in zip(*zip(*leaves, strict=True), *others, strict=True))
        if leaves
        else tree
    )


def keystr(kp: KeyPath) -> str:
    """Return the path ``kp`` as text."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Return the subtree of ``obj`` at the path ``kp``."""
    return functools.reduce(lambda tree, key: key.get(tree), kp, obj)


# -- Registration ------------------------------------------------------------------------------------------------------


class _Serialization(NamedTuple):
    """Name of a container type in the text of a structure, and the functions that convert its context."""

    name: str
    dump: Callable[[Context], Any]
    load: Callable[[Any], Context]


_SERIALIZATIONS: dict[type, _Serialization] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, type] = {}
CONSTANT_NODES: set[type] = set()


def _serialize_as(cls: type, name: str | None, dump: Any = None, load: Any = None) -> None:
    if name is not None:
        _SERIALIZATIONS[cls] = _Serialization(name, dump or json.dumps, load or json.loads)
        SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def register_pytree_node(
    cls: type, flatten_fn: FlattenFunc, unflatten_fn: UnflattenFunc, *, serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Context], Any] | None = None, from_dumpable_context: Callable[[Any], Context] | None = None,
    flatten_with_keys_fn: Callable[[PyTree], tuple[list[tuple[KeyEntry, Any]], Context]] | None = None,
) -> None:  # fmt: skip
    """Register ``cls`` as a container type (see ``core/pytree.py``).

    ``serialized_type_name`` is the name of the type for :func:`treespec_dumps`. ``to_dumpable_context`` converts the
    context to a value for JSON, and ``from_dumpable_context`` converts it back.
    """
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    _core.register_pytree_node(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn=flatten_with_keys_fn)
    _serialize_as(cls, serialized_type_name, to_dumpable_context, from_dumpable_context)


def _register_pytree_node(
    cls: type, flatten_fn: FlattenFunc, unflatten_fn: UnflattenFunc, to_str_fn: Any = None, maybe_from_str_fn: Any = None,
    **names: Any,
) -> None:  # fmt: skip
    """Former name of :func:`register_pytree_node`. A type that is registered already is registered again."""
    warn(
        "`torch.utils._pytree._register_pytree_node` is deprecated. Please use `torch.utils._pytree.register_pytree_node` "
        "instead.",
        FutureWarning,
    )
    CONTAINERS.pop(cls, None)
    register_pytree_node(cls, flatten_fn, unflatten_fn, **names)


_private_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls: type) -> None:
    """Remove the container type ``cls``."""
    del CONTAINERS[cls]
    serialization = _SERIALIZATIONS.pop(cls, None)
    if serialization is not None:
        del SERIALIZED_TYPE_TO_PYTHON_TYPE[serialization.name]


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Register the name of a class of named tuples for :func:`treespec_dumps`."""
    _serialize_as(cls, serialized_type_name)


def register_dataclass(
    cls: type, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:  # fmt: skip
    """Register the dataclass ``cls`` as a container type, whose children are the fields ``field_names``.

    By default these are all fields of the constructor except ``drop_field_names``. Fields that are None have no
    children.
    """
    if not dataclasses.is_dataclass(cls):
        raise AssertionError(f"field_names must be specified for non-dataclass types: {cls}")
    dropped = drop_field_names or []
    names = field_names or [each.name for each in dataclasses.fields(cls) if each.init and each.name not in dropped]

    def with_keys(value: Any) -> tuple[list[tuple[KeyEntry, Any]], Context]:
        given = [name for name in names if getattr(value, name) is not None]
        return [(GetAttrKey(name), getattr(value, name)) for name in given], [
            given,
            [n for n in names if n not in given],
        ]

    def flatten(value: Any) -> tuple[list[Any], Context]:
        pairs, context = with_keys(value)
        return [child for _, child in pairs], context

    def unflatten(children: Iterable[Any], context: Context) -> Any:
        return cls(**dict(zip(context[0], children, strict=True)), **dict.fromkeys(context[1]))

    register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=with_keys
    )


def register_constant(cls: type) -> None:
    """Register ``cls`` as a container type without children, whose instances are part of the structure."""
    register_pytree_node(cls, lambda x: ([], x), lambda _, context: context, flatten_with_keys_fn=lambda x: ([], x))
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type) -> bool:
    """Whether ``cls`` was registered by :func:`register_constant`."""
    return cls in CONSTANT_NODES


# -- Questions and functions for one container type --------------------------------------------------------------------


def _get_node_type(tree: PyTree) -> Any:
    """Return the container type of ``tree``, or its class for a leaf."""
    return container_type(tree) or type(tree)


def _is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Former name of :func:`tree_is_leaf`."""
    return tree_is_leaf(tree, is_leaf)


def is_namedtuple_class(cls: type) -> bool:
    """Whether ``cls`` is a class of named tuples."""
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def is_structseq_class(cls: object) -> bool:
    """Whether ``cls`` is the class of the results of a function, such as ``torch.return_types.max``."""
    return isinstance(cls, type) and issubclass(cls, tuple) and cls.__module__ == "torch.return_types"


def is_structseq_instance(obj: object) -> bool:
    """Whether ``obj`` is a result with names, such as that of ``torch.max(x, 0)``."""
    return is_structseq_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Whether ``obj`` is a result with names, or the class of one."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple(obj: object) -> bool:
    """Whether ``obj`` is a named tuple or a class of named tuples."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """Return the leaves of all arguments."""
    return tree_leaves((args, kwargs))


def map_only(kinds: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return a decorator of a function of leaves; it returns other leaves than those of ``kinds`` unchanged."""
    check = isinstance if isinstance(kinds, (type, tuple, types.UnionType)) else (lambda leaf, selects: selects(leaf))
    return lambda function: functools.wraps(function)(lambda leaf: function(leaf) if check(leaf, kinds) else leaf)


def treespec_leaf() -> LeafSpec:
    """Return the structure of a leaf."""
    return LeafSpec()


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """Return the structure of a tuple of the structures ``iterable``."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """Return the structure of a dict of structures."""
    given = dict(mapping, **kwargs)
    return TreeSpec(dict, list(given), list(given.values()))


def _functions(kind: type) -> tuple[Any, Any, Any]:
    """Return the functions of the container type ``kind``: flatten, flatten with keys, unflatten."""
    node = CONTAINERS[kind]
    return node.flatten, functools.partial(_with_keys, kind), node.unflatten


_tuple_flatten, _tuple_flatten_with_keys, _tuple_unflatten = _functions(tuple)
_list_flatten, _list_flatten_with_keys, _list_unflatten = _functions(list)
_dict_flatten, _dict_flatten_with_keys, _dict_unflatten = _functions(dict)
_namedtuple_flatten, _namedtuple_flatten_with_keys, _namedtuple_unflatten = _functions(_core._Named)
_ordereddict_flatten, _ordereddict_flatten_with_keys, _ordereddict_unflatten = _functions(OrderedDict)
_odict_flatten, _odict_unflatten = _ordereddict_flatten, _ordereddict_unflatten
_defaultdict_flatten, _defaultdict_flatten_with_keys, _defaultdict_unflatten = _functions(defaultdict)
_deque_flatten, _deque_flatten_with_keys, _deque_unflatten = _functions(deque)
_broadcast_to_and_flatten, _is_namedtuple_instance = broadcast_to_and_flatten, is_namedtuple_instance


# -- Structures as text ------------------------------------------------------------------------------------------------

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


def _dump_default(context: Context) -> dict[str, Any]:
    factory = context[0]
    return {"default_factory_module": factory.__module__, "default_factory_name": factory.__qualname__,
            "dict_context": context[1]}  # fmt: skip


def _load_default(data: dict[str, Any]) -> Context:
    module = importlib.import_module(data["default_factory_module"])
    return [getattr(module, data["default_factory_name"]), data["dict_context"]]


def _dump_named(context: Context) -> str:
    if context not in _SERIALIZATIONS:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {context} because we didn't register a serializated_type_name. "
            "Please register using `_register_namedtuple`."
        )
    return json.dumps(_SERIALIZATIONS[context].name)


def _load_named(data: str) -> Context:
    name = json.loads(data)
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Can't deserialize TreeSpec of namedtuple class {name} because we couldn't find it.")
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[name]


for _kind in (tuple, list, dict, OrderedDict, deque):
    _serialize_as(_kind, f"{_kind.__module__}.{_kind.__name__}")
_serialize_as(defaultdict, "collections.defaultdict", _dump_default, _load_default)
_serialize_as(_core._Named, "collections.namedtuple", _dump_named, _load_named)


def _dumped(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    if spec.type not in _SERIALIZATIONS:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your _register_pytree_node call with a "
            "`serialized_type_name` kwarg."
        )
    found = _SERIALIZATIONS[spec.type]
    context = found.dump(spec.context)
    return {"type": found.name, "context": context, "children_spec": [_dumped(each) for each in spec.children_specs]}


def _loaded(data: dict[str, Any]) -> TreeSpec:
    if data["type"] is None:
        return LeafSpec()
    if data["type"] not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {data['type']} in pytree is not registered.")
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[data["type"]]
    context = _SERIALIZATIONS[kind].load(data["context"])
    return TreeSpec(kind, context, [_loaded(each) for each in data["children_spec"]])


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Return the structure ``treespec`` as JSON, in PyTorch's format.

    >>> from retrograd.utils import _pytree
    >>> text = _pytree.treespec_dumps(_pytree.tree_structure([1]))
    >>> _pytree.treespec_loads(text) == _pytree.tree_structure([2])
    True
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"treespec_dumps(treespec): Expected `treespec` to be instance of TreeSpec but got item of type "
                        f"{type(treespec)}.")  # fmt: skip
    if protocol not in (None, DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps((DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL, _dumped(treespec)))


def treespec_loads(serialized: str) -> TreeSpec:
    """Return the structure that :func:`treespec_dumps` has written."""
    protocol, data = json.loads(serialized)
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _loaded(data)


pytree_to_str, str_to_pytree = treespec_dumps, treespec_loads

__all__ = [
    "GetAttrKey", "KeyEntry", "KeyPath", "LeafSpec", "MappingKey", "NodeDef", "PyTree", "SequenceKey", "TreeSpec", "key_get",
    "keystr", "register_constant", "register_dataclass",
    "is_namedtuple_instance", "register_pytree_node", "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten",
    "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_",
    "tree_map_only", "tree_map_only_", "tree_map_with_path", "tree_structure", "tree_unflatten", "treespec_dumps",
    "treespec_loads", "treespec_pprint",
]  # fmt: skip
