"""Groups of a page, and their layouts.

A page of 10,000 nodes is readable only if most of them are folded. Groups form a tree: the parts of a graph that belong
to one module, repeated parts such as the steps of a loop, and ranges of consecutive operations where neither is known.
No group has more than :data:`LARGEST` operations and groups as members. The members of a group are consecutive in the
order of creation, so its arrows lead downwards and have no cycle. Each group has a layout of its own, computed with all
its members folded.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..graph_layout import layout_layers
from ..repeats import fold_repeats

LARGEST = 40  # operations and groups in a group
SHOWN = 40  # boxes of the page when it is opened
WIDTH, HEIGHT, GAP, RISE = 168.0, 60.0, 24.0, 44.0  # sizes in the page, see page.css


@dataclass
class Item:
    """Operation or other entry of a page for grouping: its index, its key for repeats, and its module and name."""

    index: int
    key: Any
    module: tuple[str, ...]
    name: str


@dataclass
class Group:
    """Group of a page; ``members`` are indices of entries and groups, the groups in the order of their contents."""

    name: str
    kind: str = ""
    times: int = 1
    members: list[int | Group] = field(default_factory=list)
    key: Any = None
    number: int = -1
    open: bool = False


def build_groups(items: Sequence[Item], sources: dict[int, list[int]], others: Sequence[int]) -> list[Group]:
    """Return the groups of a page; the first contains all others.

    ``items`` are the operations in the order of creation. ``others`` are the entries that are no operations: each becomes
    a member of the innermost group with all its users. ``sources`` has the inputs of each entry.
    """
    whole = Group("", members=_bounded(_fold(_by_module(items, 0)), ""))
    whole.open = True
    groups: list[Group] = []
    owner: dict[int, int] = {}  # group of each entry
    parents: list[int] = []
    _number(whole, -1, groups, parents, owner)
    users: dict[int, list[int]] = {}
    for target, inputs in sources.items():
        for source in inputs:
            users.setdefault(source, []).append(target)
    depth = [0] * len(groups)
    for number in range(1, len(groups)):
        depth[number] = depth[parents[number]] + 1
    firsts: dict[int, list[int]] = {}
    for index in others:
        near = [owner[each] for each in (*users.get(index, ()), *sources.get(index, ())) if each in owner]
        place = near[0] if near else 0
        for each in near[1:]:
            place = _common(place, each, parents, depth)
        owner[index] = place
        firsts.setdefault(place, []).append(index)
    for place, members in firsts.items():
        group = groups[place]
        group.members = _inserted(group.members, members, sources)
    _open(groups)
    return groups


def _inserted(members: list[int | Group], others: list[int], sources: dict[int, list[int]]) -> list[int | Group]:
    """Return ``members`` with ``others`` inserted: inputs before, and results after the operations."""
    before = [each for each in others if not sources.get(each)]
    return [*before, *members, *(each for each in others if sources.get(each))]


def _by_module(items: Sequence[Item], depth: int) -> list[int | Group]:
    """Return the members for ``items``: a group for each range of items of one module below ``depth``."""
    found: list[Any] = []
    start = 0
    while start < len(items):
        module = items[start].module[: depth + 1]
        end = start + 1
        if len(module) <= depth:
            found.append(items[start])
            start = end
            continue
        while end < len(items) and items[end].module[: depth + 1] == module:
            end += 1
        inside = _by_module(items[start:end], depth + 1)
        if end - start == 1:
            found += inside
        elif len(inside) == 1 and isinstance(inside[0], Group) and inside[0].kind == "module":
            inside[0].name = f"{module[-1]}.{inside[0].name}"
            found += inside
        else:
            inside = _fold(inside)
            found.append(Group(module[-1], "module", members=inside, key=("module", _keys(inside))))
        start = end
    return found


def _key(member: Any) -> Any:
    return member.key


def _keys(members: list[Any]) -> int:
    return hash(tuple(map(_key, members)))


def _fold(members: list[Any]) -> list[Any]:
    """Return ``members`` with each repeated sequence replaced by a group."""
    found: list[Any] = []
    for stretch in fold_repeats(list(map(_key, members))):
        part = members[stretch.start : stretch.end]
        if stretch.times == 1:
            found += part
            continue
        names = list(dict.fromkeys(each.name for each in part[: stretch.length]))
        shown = ", ".join(names[:3]) + ", …" * (len(names) > 3)
        group = Group(shown, "loop", stretch.times, key=("loop", stretch.times, _keys(part[: stretch.length])))
        if stretch.length == 1:
            group.members = part
        else:
            for number in range(stretch.times):
                inside = part[number * stretch.length : (number + 1) * stretch.length]
                group.members.append(
                    Group(f"{number + 1} of {stretch.times}", "iteration", members=inside, key=_keys(inside))
                )
        found.append(group)
    return found


def _bounded(members: list[Any], name: str) -> list[int | Group]:
    """Return ``members`` as indices and groups, all of which have at most :data:`LARGEST` members.

    Longer ranges are divided into groups with names such as ``1–40``.
    """
    for each in members:
        if isinstance(each, Group):
            each.members = _bounded(each.members, each.name)
    plain: list[int | Group] = [each.index if isinstance(each, Item) else each for each in members]
    start = 1
    width = 1
    while len(plain) > LARGEST:
        parts = -(-len(plain) // LARGEST)
        size = -(-len(plain) // parts)
        divided: list[int | Group] = []
        for first in range(0, len(plain), size):
            inside = plain[first : first + size]
            last = min((first + size) * width, len(members))
            divided.append(Group(f"{start + first * width}–{last}", "range", members=inside))
        plain, width = divided, width * size
    return plain


def _number(group: Group, parent: int, groups: list[Group], parents: list[int], owner: dict[int, int]) -> None:
    """Number ``group`` and the groups in it, and store the group of each entry in ``owner``."""
    group.number = len(groups)
    groups.append(group)
    parents.append(parent)
    for each in group.members:
        if isinstance(each, Group):
            _number(each, group.number, groups, parents, owner)
        else:
            owner[each] = group.number


def _common(a: int, b: int, parents: list[int], depth: list[int]) -> int:
    while a != b:
        if depth[a] >= depth[b]:
            a = parents[a]
        else:
            b = parents[b]
    return a


def _open(groups: list[Group]) -> None:
    """Open groups, the outer ones first, as long as at most :data:`SHOWN` boxes are shown."""
    shown = len(groups[0].members)
    queue = [groups[0]]
    while queue:
        for each in queue.pop(0).members:
            folded = not isinstance(each, Group) or each.kind in ("loop", "iteration", "range")
            if isinstance(each, Group) and not folded and shown + len(each.members) <= SHOWN:
                each.open = True
                shown += len(each.members)
                queue.append(each)


# --- Layouts --------------------------------------------------------------------------------------------------------


def group_documents(groups: Sequence[Group], sources: dict[int, list[int]]) -> Iterator[dict[str, Any]]:
    """Yield the part of the document for each group: its members, and its layers with positions and arrows."""
    path: dict[int, tuple[tuple[int, int], ...]] = {}  # for each entry, pairs (group, member) from outside to inside
    _paths(groups[0], (), path)
    arrows: dict[int, dict[tuple[int, int], None]] = {}
    for target, inputs in sources.items():
        for source in inputs:
            for (group, a), (_, b) in zip(path[source], path[target], strict=False):
                if a != b:
                    arrows.setdefault(group, {})[a, b] = None
                    break
    for each in groups:
        members = [["g", one.number] if isinstance(one, Group) else ["n", one] for one in each.members]
        found: dict[str, Any] = {"name": each.name, "members": members}
        if each.times > 1:
            found["times"] = each.times
        if each.kind:
            found["kind"] = each.kind
        if each.open:
            found["open"] = True
        found.update(_layout(len(members), tuple(one for one in arrows.get(each.number, ()) if one[0] < one[1])))
        yield found


def _paths(group: Group, outer: tuple[tuple[int, int], ...], path: dict[int, tuple[tuple[int, int], ...]]) -> None:
    for member, each in enumerate(group.members):
        here = (*outer, (group.number, member))
        if isinstance(each, Group):
            _paths(each, here, path)
        else:
            path[each] = here


@functools.lru_cache(maxsize=256)  # the steps of a loop have the same layout
def _layout(count: int, arrows: tuple[tuple[int, int], ...]) -> dict[str, Any]:
    """Return the layers of a group of ``count`` members, with the positions and the arrows."""
    every, layers, paths, _ = layout_layers([(WIDTH, HEIGHT)] * count, arrows, GAP, RISE)
    return {
        "layers": layers, "x": [round(each.x) for each in every],
        "edges": [[first, last, *inner] for first, *inner, last in paths],
    }  # fmt: skip


__all__ = ["Group", "Item", "build_groups", "group_documents"]
