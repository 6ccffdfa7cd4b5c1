"""``draw``: a drawing of a graph, as SVG or as text for Graphviz.

Arrows point downwards, from the leaves at the top to the result at the bottom. Operations that repeat, as in a loop,
are drawn once, with the number of repeats in their boxes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from xml.sax.saxutils import escape

from .explain import folding_key, format_bytes, format_count, format_shape_dtype
from .graph_layout import layout_boxes
from .graph_reader import GraphRecord, Leaf, Operand, Step, as_tensor_list, calling_frame, names_in_scope, read_graph
from .repeats import fold_repeats


@dataclass
class Box:
    """Box of a drawing, with the lines of text ``lines`` and the tooltip ``title``.

    The attribute ``kind`` selects the colour: ``"leaf"``, ``"constant"``, ``"step"`` (an operation), ``"kept"`` (an
    operation with saved values), ``"result"``, or ``"rest"`` (one box for all operations beyond the limit of
    :func:`draw`).
    """

    kind: str
    lines: list[str]
    title: str = ""


#: Fill colour of each kind of box.
FILLS = {
    "leaf": "#cfe3ff", "constant": "#f0f0f0", "step": "#ffffff", "kept": "#fff3c4", "result": "#d6f5d6", "rest": "#f0f0f0",
}  # fmt: skip


@dataclass
class Drawing:
    """Result of :func:`draw`: a list of :class:`Box` objects, ``boxes``, and a list of arrows, ``arrows``.

    An arrow is a pair (source, target) of indices into ``boxes``. A notebook shows the drawing as SVG.
    """

    boxes: list[Box]
    arrows: list[tuple[int, int]]

    def svg(self) -> str:
        """Return the drawing as the text of an SVG file."""
        return _svg(self)

    _repr_svg_ = svg

    def dot(self) -> str:
        """Return the drawing as text in DOT, the language of Graphviz."""
        return _dot(self)

    __str__ = dot

    def __repr__(self) -> str:
        return f"<a drawing of {format_count(len(self.boxes), 'box')} and {format_count(len(self.arrows), 'arrow')}>"

    def save(self, file: Any) -> None:
        """Write the drawing to ``file``, in the format of its extension ``.svg``, ``.dot`` or ``.gv``.

        Raises ValueError for other extensions.
        """
        ending = os.path.splitext(os.fspath(file))[1]
        writers = {".svg": self.svg, ".dot": self.dot, ".gv": self.dot}
        if ending not in writers:
            raise ValueError(f"draw(): a file's name must end in .svg, .dot or .gv, not in {ending!r}")
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(writers[ending]())


def draw(
    tensor: Any,
    file: Any = None,
    *,
    params: Mapping[str, Any] | None = None,
    saved: bool = False,
    fold: bool = True,
    limit: int = 200,
) -> Drawing:
    """Return a drawing of the graph of ``tensor``: a box with shape and source line for each operation.

    Args:
        tensor: a tensor or an iterable of tensors.
        file: a file to write, whose name ends in ``.svg``, ``.dot`` or ``.gv``; None writes no file.
        params: a dictionary from names to tensors, such as ``dict(model.named_parameters())``. Local variables
            of the calling function get their names without ``params``.
        saved: if true, show the values that each operation saves for the backward pass.
        fold: if true, draw repeated operations, as in a loop, once.
        limit: the maximum number of boxes for operations, counted from the result. All further operations are drawn as
            one box.

    >>> import retrograd as torch
    >>> w = torch.ones(3, requires_grad=True)
    >>> drawing = torch.autograd.graph.draw(torch.tanh(w).sum(), params={"w": w})
    >>> drawing.svg()[:4], [box.lines[0] for box in drawing.boxes]
    ('<svg', ['w', 'tanh', 'sum', 'result'])
    """
    drawing = _Drawer(
        read_graph(as_tensor_list(tensor, "draw"), names_in_scope(calling_frame(), params)), saved, fold, limit
    ).drawing()
    if file is not None:
        drawing.save(file)
    return drawing


class _Drawer:
    """Builder of a :class:`Drawing` from ``reading``, the description of an autograd graph (:class:`GraphRecord`).

    ``saved``, ``fold`` and ``limit`` are the parameters of :func:`draw`.
    """

    def __init__(self, reading: GraphRecord, saved: bool, fold: bool, limit: int) -> None:
        self.reading, self.saved = reading, saved
        #: Number of steps drawn in the box of a step.
        self.times: dict[int, int] = {}
        #: The step in whose box each step is drawn, by step number.
        self.shown: dict[int, int] = {}
        self._fold([folding_key(step) if fold else step.number for step in reading.steps], limit)
        self.steps = reading.steps[: len(self.shown)]

    def _fold(self, keys: list[Any], limit: int) -> None:
        for repeat in fold_repeats(keys):
            remaining = limit - len(self.times)
            complete = repeat.length <= remaining
            for index in range(repeat.start, repeat.end if complete else repeat.start + remaining):
                first = repeat.start + (index - repeat.start) % repeat.length + 1
                self.shown[index + 1] = first
                self.times[first] = repeat.times if complete else 1
            if not complete:
                break

    def drawing(self) -> Drawing:
        """Return the :class:`Drawing`, in which each arrow leads from a box to a later box of the list.

        The box of a leaf or constant is placed immediately before the first operation that uses it.
        """
        boxes: list[Box] = []
        at: dict[Any, int] = {}
        arrows: dict[tuple[int, int], None] = {}
        members: dict[int, list[Step]] = {}
        for step in self.steps:
            members.setdefault(self.shown[step.number], []).append(step)
        for number in sorted(members, reverse=True):
            sources = [self._source(each, number) for step in members[number] for each in step.operands]
            for key, box in sources:
                if box is not None and key not in at:
                    at[key] = len(boxes)
                    boxes.append(box)
            # A folded loop gets no arrow from one iteration to the next, because that source has no box yet.
            starts = [at[key] for key, _ in sources if key in at]
            at[number] = len(boxes)
            boxes.append(self._box(members[number][0]))
            arrows.update(dict.fromkeys((start, at[number]) for start in starts))
        for root in self.reading.roots:
            if root.step in self.shown:
                arrows[at[self.shown[root.step]], len(boxes)] = None
                boxes.append(Box("result", [self.reading.steps[root.step - 1].label or "result"]))
            elif root.step is None:  # a tensor without a graph
                key, box = self._source(root, 0)
                if box is not None and key not in at:
                    at[key] = len(boxes)
                    boxes.append(box)
        return Drawing(boxes, list(arrows))

    def _source(self, operand: Operand, user: int) -> tuple[Any, Box | None]:
        """Return a pair (key, box) for the source of ``operand``, from which an arrow leads to the operation ``user``.

        The key identifies the source, so that its box is added to the drawing only once. For a leaf or a constant, the
        second item is a new :class:`Box`. For the result of an operation it is None, because the operation has a box
        already; operations beyond the limit of the drawing share a new box. For a number, which is not drawn, both
        items are None. ``user`` is the number of the operation.
        """
        if operand.leaf is not None:
            return id(operand.leaf), _leaf(operand.leaf)
        if operand.step is not None and operand.step not in self.shown:
            left = len(self.reading.steps) - len(self.steps)
            return "rest", Box("rest", [f"… {format_count(left, 'further step')}"])
        if operand.step is not None:
            return self.shown[operand.step], None
        if operand.shape is None:  # a number or an unknown value
            return None, None
        lines = [operand.label or "a constant", format_shape_dtype(operand.shape, operand.dtype)]
        return ("constant", operand.label or (user, operand.name)), Box("constant", lines, operand.why)

    def _box(self, step: Step) -> Box:
        times = self.times[step.number]
        lines = [step.operation + (f"  × {times}" if times > 1 else ""), str(list(step.shape))]
        if self.saved:
            lines += [f"saves {each.name} {list(each.shape)}, {format_bytes(each.nbytes)}" for each in step.kept]
        if step.line:
            lines.append(f"{os.path.basename(step.line.file)}:{step.line.number}")
        return Box("kept" if self.saved and step.kept else "step", lines, str(step.line))


def _leaf(leaf: Leaf) -> Box:
    return Box("leaf", [leaf.name or "a leaf", format_shape_dtype(leaf.shape, leaf.dtype)], str(leaf.line))


# --- Writing --------------------------------------------------------------------------------------------------------

# Width of a letter, height of a line, margin around the text of a box, margin around the drawing.
LETTER, LINE, INSET, MARGIN = 6.7, 15.0, 9.0, 12.0


def _svg(drawing: Drawing) -> str:
    sizes = [
        (max(map(len, box.lines)) * LETTER + 2 * INSET, len(box.lines) * LINE + INSET) for box in drawing.boxes
    ]  # fmt: skip
    spots, paths, (width, height) = layout_boxes(sizes, drawing.arrows)
    whole = f"{width + 2 * MARGIN:.0f}", f"{height + 2 * MARGIN:.0f}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole[0]}" height="{whole[1]}" '
        f'viewBox="{-MARGIN:.0f} {-MARGIN:.0f} {whole[0]} {whole[1]}" font-family="monospace" font-size="11">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#666"/></marker></defs>',
        f'<rect x="{-MARGIN:.0f}" y="{-MARGIN:.0f}" width="{whole[0]}" height="{whole[1]}" fill="#fff"/>',
    ]
    for path in paths:
        lines.append(f'<path d="{_curve(path)}" fill="none" stroke="#888" marker-end="url(#tip)"/>')
    for box, spot in zip(drawing.boxes, spots, strict=True):
        left, top = spot.x - spot.width / 2, spot.y - spot.height / 2
        lines.append(f"<g><title>{escape(box.title or box.lines[0])}</title>")
        lines.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{spot.width:.1f}" height="{spot.height:.1f}" rx="5" '
            f'fill="{FILLS[box.kind]}" stroke="#888"/>'
        )
        for index, text in enumerate(box.lines):
            y = top + INSET / 2 + LINE * (index + 0.75)
            weight = ' font-weight="bold"' if not index else ' fill="#555"'
            lines.append(f'<text x="{spot.x:.1f}" y="{y:.1f}" text-anchor="middle"{weight}>{escape(text)}</text>')
        lines.append("</g>")
    return "\n".join([*lines, "</svg>\n"])


def _curve(points: list[tuple[float, float]]) -> str:
    """Return the SVG path of an arrow through ``points``: a Bézier curve with a vertical tangent at each point."""
    text = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        bend = (y1 - y0) / 2
        text += f"C{x0:.1f} {y0 + bend:.1f} {x1:.1f} {y1 - bend:.1f} {x1:.1f} {y1:.1f}"
    return text


def _dot(drawing: Drawing) -> str:
    lines = ["digraph {", '  node [shape=box, style="rounded,filled", fontname=monospace, fontsize=10];']
    for index, box in enumerate(drawing.boxes):
        lines.append(
            f'  {index} [label="{_quoted(box.lines)}", tooltip="{_quoted([box.title])}", fillcolor="{FILLS[box.kind]}"];'
        )
    lines += [f"  {a} -> {b};" for a, b in drawing.arrows]
    return "\n".join([*lines, "}\n"])


def _quoted(lines: list[str]) -> str:
    return "\\n".join(each.replace("\\", "\\\\").replace('"', '\\"') for each in lines)


__all__ = ["Box", "Drawing", "draw"]
