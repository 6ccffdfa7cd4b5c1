"""Layered layout of boxes and arrows: each box is below all boxes from which an arrow leads to it.

A box is placed one layer above the highest box to which it points. An arrow that crosses layers passes through a point
in each of them. The boxes of a layer are sorted by the mean position of their neighbours, alternately from the top down
and from the bottom up, so that few arrows cross. Then the boxes are moved towards the mean position of their
neighbours, but keep a minimum distance. This is the method of K. Sugiyama, S. Tagawa and M. Toda (1981).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

GAP, RISE = 18.0, 34.0  # distance between boxes of a layer, and between layers
PASSES = 8  # passes over all layers


@dataclass
class Spot:
    """Position and size of a box, or of a point at which an arrow crosses a layer; ``x`` and ``y`` are the centre."""

    width: float
    height: float
    layer: int = 0
    x: float = 0.0
    y: float = 0.0


def layout_boxes(
    sizes: Sequence[tuple[float, float]], arrows: Sequence[tuple[int, int]]
) -> tuple[list[Spot], list[list[tuple[float, float]]], tuple[float, float]]:
    """Return the positions of all boxes, the points of all arrows, and the size of the drawing.

    The result is a tuple of three items: a list with a :class:`Spot` for each box, a list with a list of points (x, y)
    for each arrow, and a pair (width, height).

    ``sizes`` has a pair (width, height) for each box. Each of ``arrows`` is a pair of box indices (upper box, lower
    box), of which the first is smaller than the second.
    """
    every, _, paths, size = layout_layers(sizes, arrows)
    return every[: len(sizes)], [_points(every, path) for path in paths], size


def layout_layers(
    sizes: Sequence[tuple[float, float]], arrows: Sequence[tuple[int, int]], gap: float = GAP, rise: float = RISE
) -> tuple[list[Spot], list[list[int]], list[list[int]], tuple[float, float]]:
    """Return all boxes and points of arrows, their layers, the paths of all arrows, and the size of the drawing.

    The result is a tuple of four items: a list with a :class:`Spot` for each box and then for each point at which an
    arrow crosses a layer; for each layer the list of its indices into the first list, from left to right; for each
    arrow the list of such indices from its first to its last box; and a pair (width, height).

    ``sizes`` and ``arrows`` are those of :func:`layout_boxes`. ``gap`` is the distance between boxes of a layer, and
    ``rise`` the distance between layers.
    """
    spots = [Spot(width, height) for width, height in sizes]
    for upper, lower in sorted(arrows, reverse=True):
        spots[upper].layer = max(spots[upper].layer, spots[lower].layer + 1)
    lowest = max((each.layer for each in spots), default=0)
    for each in spots:
        each.layer = lowest - each.layer
    every = list(spots)
    paths = []
    above: list[list[int]] = [[] for _ in spots]
    below: list[list[int]] = [[] for _ in spots]
    for upper, lower in arrows:
        path = [upper]
        for layer in range(spots[upper].layer + 1, spots[lower].layer):
            every.append(Spot(8.0, 0.0, layer))
            above.append([])
            below.append([])
            path.append(len(every) - 1)
        path.append(lower)
        for a, b in pairwise(path):
            below[a].append(b)
            above[b].append(a)
        paths.append(path)
    layers: list[list[int]] = [[] for _ in range(max((each.layer for each in every), default=-1) + 1)]
    for number, each in enumerate(every):
        layers[each.layer].append(number)
    _order(every, layers, above, below)
    size = _place(every, layers, above, below, gap, rise)
    return every, layers, paths, size


def _order(every: list[Spot], layers: list[list[int]], above: list[list[int]], below: list[list[int]]) -> None:
    """Reorder the boxes within each layer, in place, so that few arrows cross.

    ``every`` is a list of all boxes and of all points at which arrows cross a layer; the other arguments contain
    indices into this list. ``layers`` has one list of indices for each layer. ``above[k]`` and ``below[k]`` are the
    indices of the items that arrows connect to item k, in the layer above and in the layer below.
    """
    rank = [0.0] * len(every)
    for layer in layers:
        for index, number in enumerate(layer):
            rank[number] = float(index)
    for turn in range(PASSES):
        near = above if turn % 2 == 0 else below
        for layer in layers if turn % 2 == 0 else reversed(layers):
            middle = {each: _mean([rank[other] for other in near[each]], rank[each]) for each in layer}
            layer.sort(key=middle.__getitem__)
            for index, number in enumerate(layer):
                rank[number] = float(index)


def _mean(values: list[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _place(
    every: list[Spot], layers: list[list[int]], above: list[list[int]], below: list[list[int]], gap: float, rise: float
) -> tuple[float, float]:
    """Set the coordinates of all boxes, and return the width and height of the drawing.

    ``every`` is a list of all boxes and of all points at which arrows cross a layer; the other arguments contain
    indices into this list. ``layers`` has one list of indices for each layer. ``above[k]`` and ``below[k]`` are the
    indices of the items that arrows connect to item k, in the layer above and in the layer below. ``gap`` and ``rise``
    are the distances between boxes and between layers.
    """
    y = 0.0
    for layer in layers:
        height = max(every[number].height for number in layer)
        x = 0.0
        for number in layer:
            spot = every[number]
            spot.x, spot.y = x + spot.width / 2, y + height / 2
            x += spot.width + gap
        y += height + rise
    for turn in range(PASSES):
        near = above if turn % 2 == 0 else below
        for layer in layers if turn % 2 == 0 else reversed(layers):
            wished = [_mean([every[other].x for other in near[each]], every[each].x) for each in layer]
            for number, x in zip(layer, _apart([every[each].width for each in layer], wished, gap), strict=True):
                every[number].x = x
    left = min((each.x - each.width / 2 for each in every), default=0.0)
    for each in every:
        each.x -= left
    return max((each.x + each.width / 2 for each in every), default=0.0), max(y - rise, 0.0)


def _apart(widths: list[float], wished: list[float], gap: float) -> list[float]:
    """Return x coordinates of the boxes of one layer: as close to ``wished`` as possible without overlap.

    ``widths`` are the widths of the boxes, whose order does not change, and ``gap`` is the least distance between two.
    Boxes that would overlap are placed side by side, around the mean of their wished positions.
    """
    runs: list[list[float]] = []  # for each run, the position wished for its first box, and its number of boxes
    reach: list[float] = []  # for each box, its least distance from the first box of the layer
    for index, width in enumerate(widths):
        reach.append(0.0 if not index else reach[-1] + (widths[index - 1] + width) / 2 + gap)
        runs.append([wished[index] - reach[index], 1.0])
        while len(runs) > 1 and runs[-2][0] > runs[-1][0]:
            last = runs.pop()
            total = runs[-1][1] + last[1]
            runs[-1] = [(runs[-1][0] * runs[-1][1] + last[0] * last[1]) / total, total]
    offsets = [run[0] for run in runs for _ in range(int(run[1]))]
    return [offset + far for offset, far in zip(offsets, reach, strict=True)]


def _points(every: list[Spot], path: list[int]) -> list[tuple[float, float]]:
    """Return the points of an arrow from the bottom of its first box to the top of its last box.

    ``every`` is the list of all boxes and of all points at which arrows cross layers. ``path`` has indices into this
    list: the first box, the points at which the arrow crosses layers, and the last box.
    """
    first, last = every[path[0]], every[path[-1]]
    inner = [(every[number].x, every[number].y) for number in path[1:-1]]
    return [(first.x, first.y + first.height / 2), *inner, (last.x, last.y - last.height / 2)]


__all__ = ["Spot", "layout_boxes", "layout_layers"]
