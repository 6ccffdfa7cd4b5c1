"""Flat dictionaries of nested state: ``{"a": {"b": [x]}}`` becomes ``{"a.b.0": x}``."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from ...core.tensor import Tensor
from .metadata import STATE_DICT_TYPE


class IntKey(int):
    """Integer key of a dict, as opposed to an index of a list."""


Path = tuple[str | int, ...]


def flatten_state_dict(state_dict: STATE_DICT_TYPE) -> tuple[STATE_DICT_TYPE, dict[str, Path]]:
    """Return a flat dictionary of the values in ``state_dict``, and the path of keys to each of them.

    Dicts are traversed, and lists with tensors or dicts in them. Other lists are values.
    """
    flat: STATE_DICT_TYPE = {}
    paths: dict[str, Path] = {}

    def visit(path: Path, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, each in value.items():
                visit((*path, IntKey(key) if type(key) is int else key if type(key) is str else str(key)), each)
        elif isinstance(value, list) and not _is_value(value):
            for index, each in enumerate(value):
                visit((*path, index), each)
        else:
            name = ".".join(map(str, path))
            if name in flat:
                raise ValueError(f"duplicated flatten key {name}")
            flat[name], paths[name] = value, path

    visit((), state_dict)
    return flat, paths


def _is_value(value: list[Any]) -> bool:
    """Whether the list ``value`` is stored as one value."""
    return not any(
        isinstance(each, (Tensor, Mapping)) or (isinstance(each, list) and not _is_value(each)) for each in value
    )


def set_element(nested: Any, path: Path, value: Any) -> None:
    """Store ``value`` in ``nested`` under the keys ``path``; missing dicts and lists on the way are created."""
    for key, following in pairwise(path):
        inner = _item(nested, key)
        if inner is None:
            inner = [] if type(following) is int else {}
            _store(nested, key, inner)
        nested = inner
    _store(nested, path[-1], value)


def _item(container: Any, key: Any) -> Any:
    if isinstance(container, list):
        return container[key] if key < len(container) else None
    return container.get(key)


def _store(container: Any, key: Any, value: Any) -> None:
    if isinstance(container, list):
        container.extend([None] * (key + 1 - len(container)))
    container[int(key) if isinstance(key, IntKey) else key] = value


def unflatten_state_dict(state_dict: STATE_DICT_TYPE, mapping: dict[str, Path]) -> STATE_DICT_TYPE:
    """Return the nested dictionary of the flat ``state_dict``; ``mapping`` has the path of each of its keys."""
    nested: STATE_DICT_TYPE = {}
    for name, value in state_dict.items():
        set_element(nested, mapping[name], value)
    return nested


__all__ = ["flatten_state_dict", "unflatten_state_dict"]
