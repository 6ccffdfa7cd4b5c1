"""HTML of tensors and modules for notebooks: a heat map below a tensor's text, and a tree of a module's parameters.

``Tensor._repr_html_`` and ``Module._repr_html_``, which notebooks call, load this module. The HTML has no scripts, no
style sheets and no addresses, so that JupyterLab and the classic Notebook show it alike, also without a network.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from typing import Any

from ..compat.lazy_imports import load_part
from ..core.tensor import Tensor
from ..runtime import user_frame
from .explain import format_bytes
from .heat_map import MARKS, NEGATIVE, POSITIVE, HeatMap, heat_map

#: Maximum width and height of a heat map, and of one of its cells, in pixels.
SIDE, CELL = 320, 14
#: Maximum number of modules in a tree, of those in each other, and of characters of the text of one.
MODULES, DEPTH, TEXT = 1000, 50, 300
SUMMARY = '<summary style="cursor:pointer;display:list-item">'  # the classic Notebook hides the triangle


class Switch:
    """Setting of :func:`set_notebook_display`: ``on`` is true if notebooks show HTML."""

    on = True


def set_notebook_display(enabled: bool) -> None:
    """Switch the heat maps of tensors and the trees of modules in notebooks on or off; they are on by default.

    When they are off, notebooks show the same text as ``repr``. PyTorch has no such function.

    >>> import retrograd as torch
    >>> x = torch.ones(2, 3)
    >>> x._repr_html_()[:16]
    '<div><pre style='
    >>> torch.set_notebook_display(False)
    >>> print(x._repr_html_())
    None
    >>> torch.set_notebook_display(True)
    """
    Switch.on = bool(enabled)


# -- Tensors -----------------------------------------------------------------------------------------------------------


def tensor_html(x: Tensor) -> str | None:
    """Return the text of the tensor ``x`` with a heat map below, or None, for which a notebook shows the text alone.

    The result is None for a tensor of one element or of none, and for a class with its own ``__repr__``: sparse, nested
    and other tensors without an array of elements, and subclasses of programs.
    """
    if not Switch.on or not _prints_elements(type(x)) or x.is_meta or x.numel() < 2:
        return None
    array, quantity = x._array, ""
    if x.is_complex():
        array, quantity = abs(array), " of the absolute values"
    shown = heat_map(array)
    height, width = (int(each) for each in shown.cells.shape)
    cell = max(1, min(CELL, SIDE // max(width, height)))
    style = "max-width:none;margin:4px 0;border:1px solid #888;image-rendering:pixelated"
    caption, colours = f"heat map{quantity}: {_caption(shown)}", _colours(shown)
    size = f'width="{width * cell}" height="{height * cell}"'
    image = f'<img alt="{escape(caption)}" {size} style="{style}" src="{shown.data_uri(cell)}">'
    text = "margin:0;padding:0;background:none;border:none;white-space:pre;overflow-x:auto"
    return (
        f'<div><pre style="{text}">{escape(repr(x))}</pre>'
        f"<details open>{SUMMARY}{escape(caption)} {colours}</summary>{image}</details></div>"
    )


def _caption(shown: HeatMap) -> str:
    parts = ["no finite element" if math.isnan(shown.low) else f"{shown.low:.4g} to {shown.high:.4g}"]
    rows, columns = shown.block
    if rows * columns > 1:
        parts.append(f"a cell is the largest magnitude of {rows} × {columns} elements")
    if shown.skipped > 1:
        parts.append(f"looking at one of {shown.skipped} elements")
    first, count = shown.tiles
    if count > 1:
        parts.append(f"{'all' if first == count else f'the first {first} of'} {count} matrices")
    return ", ".join(parts)


def _colours(shown: HeatMap) -> str:
    """Return the colours and their meaning, as HTML."""
    minus_inf, inf, nan = list(MARKS.values())[1:]
    found = [(NEGATIVE, "negative")] * (shown.low < 0) + [(POSITIVE, "positive")] * (shown.high > 0)
    marks = zip((nan, inf, minus_inf), shown.counts, ("nan", "inf", "-inf"), strict=True)
    found += [(colour, f"{count} {name}") for colour, count, name in marks if count]
    return " ".join(f'<span style="color:rgb{colour}">■</span> {text}' for colour, text in found)


def _prints_elements(cls: type[Tensor]) -> bool:
    """Whether ``repr`` of instances of ``cls`` is that of Tensor or Parameter, which print the elements."""
    return cls.__repr__ is Tensor.__repr__ or cls.__repr__ is load_part("nn.parameter").Parameter.__repr__


# -- Modules -----------------------------------------------------------------------------------------------------------


def module_html(module: Any) -> str | None:
    """Return a tree of ``module`` and of the modules in it, with numbers of parameters; modules are opened by click.

    Each parameter counts once in a total, also if several modules have it. The result is None, for which a notebook
    shows the text alone, for a class with its own ``__repr__``.
    """
    if not Switch.on or user_frame.MARK not in type(module).__repr__.__globals__:
        return None
    return f"<div>{''.join(_tree(module, '', '', {}, {}, 0))}</div>"


def _tree(
    module: Any, name: str, path: str, modules: dict[int, str], parameters: dict[int, str], depth: int
) -> Iterator[str]:
    """Yield the HTML of ``module``, whose name in its parent is ``name``, in parts.

    ``modules`` and ``parameters`` have the paths of those that the tree has already, by identity.
    """
    title = f"({escape(name)}): " if name else ""
    if id(module) in modules:
        yield f'<div style="margin-left:1em">{title}the same module as {escape(modules[id(module)] or "the whole")}</div>'
        return
    modules[id(module)] = path
    extra = module.extra_repr()
    text = module._get_name() + (f"({' '.join(extra.split())})" if extra or not module._modules else "")
    title += escape(text if len(text) <= TEXT else text[:TEXT] + "…")
    counted = _counts(module)
    own = [each for each in module._parameters.items() if each[1] is not None]
    buffers = [each for each in module._buffers.items() if each[1] is not None]
    children = [each for each in module._modules.items() if each[1] is not None]
    if not own and not buffers and not children:
        yield f'<div style="margin-left:1em">{title}</div>'
        return
    yield f'<details{" open" * (depth == 0)}><summary style="cursor:pointer;display:list-item">{title}{counted}</summary>'
    yield '<div style="margin-left:1.5em;border-left:1px solid #8884;padding-left:0.5em">'
    for key, each in own:
        yield _line(key, each, "parameter", path, parameters)
    for key, each in buffers:
        yield _line(key, each, "buffer", path, parameters)
    if depth == DEPTH and children:
        yield "<div>…</div>"
        children = []
    for number, (key, child) in enumerate(children):
        if len(modules) >= MODULES:
            yield f"<div>… {len(children) - number} more modules</div>"
            break
        yield from _tree(child, key, f"{path}.{key}" if path else key, modules, parameters, depth + 1)
    yield "</div></details>"


def _counts(module: Any) -> str:
    """Return the numbers of parameters in ``module`` as HTML: all, own and trainable ones."""
    every = _parameters(module)
    total, own = _elements(every), _elements(module.parameters(recurse=False))
    if not total:
        return ""
    trainable = _elements(each for each in every if each.requires_grad)
    parts = [f"{total:,} parameter{'s' * (total != 1)}"]
    if 0 < own < total:
        parts.append(f"{own:,} own")
    if trainable < total:
        parts.append(f"{trainable:,} trainable" if trainable else "none trainable")
    return f' <span style="opacity:0.65">· {", ".join(parts)}</span>'


def _parameters(module: Any) -> list[Tensor]:
    """Return the parameters of ``module`` and of all modules in it, each once; the depth does not matter."""
    found: dict[int, Tensor] = {}
    seen, waiting = set(), [module]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            found |= {id(one): one for one in each._parameters.values() if one is not None}
            waiting += each._modules.values()
    return [*found.values()]


def _elements(parameters: Any) -> int:
    """Return the number of elements; those of parameters that have no shape yet do not count."""
    return sum(each.numel() for each in parameters if not _is_lazy(each))


def _is_lazy(x: Tensor) -> bool:
    return type(x).__name__ in ("UninitializedParameter", "UninitializedBuffer")


def _line(name: str, x: Tensor, kind: str, path: str, parameters: dict[int, str]) -> str:
    """Return the line of a parameter or buffer as HTML."""
    if id(x) in parameters:
        return f"<div>{escape(name)}: the same {kind} as {escape(parameters[id(x)])}</div>"
    parameters[id(x)] = f"{path}.{name}" if path else name
    if _is_lazy(x):
        return f"<div>{escape(name)}: {kind} without a shape yet</div>"
    parts = [f"{tuple(x.shape)}", x.dtype.name, format_bytes(x.numel() * x.itemsize)]
    parts += [kind] * (kind == "buffer") + ["frozen"] * (kind == "parameter" and not x.requires_grad)
    return f'<div>{escape(name)} <span style="opacity:0.65">{" · ".join(parts)}</span></div>'
