"""``page``: an interactive page of a graph with its values and its backward pass, in one HTML file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ...core.tensor import Tensor
from ..graph_reader import as_tensor_list, calling_frame, names_in_scope, read_edges
from .document import document
from .html import frame_html, page_html
from .recorder import DEPTH, Recorder, Trace, replay


class Page:
    """Page of a graph: ``html`` is its text, and :meth:`save` writes it. A notebook shows it in the output of a cell.

    Pages are made by :func:`page` and :meth:`recording.page`.
    """

    def __init__(self, trace: Trace, title: str = "") -> None:
        self.document: dict[str, Any] = document(trace, title)
        self._html = ""

    @property
    def html(self) -> str:
        """Text of the HTML file, which needs no other file and no network."""
        if not self._html:
            self._html = page_html(self.document)
        return self._html

    def save(self, path: Any) -> None:
        """Write the page to the file ``path``."""
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(self.html)

    def _repr_html_(self) -> str:
        return frame_html(self.html)

    def __repr__(self) -> str:
        return f"<a page of {self.document['summary']}>"


class recording(Recorder):
    """Context manager that records the forward values and the backward passes of its thread, for a page.

    :meth:`page` makes the page of the last backward pass. In contrast to :func:`page` after the fact, every forward value
    is shown as it was computed, the pass is the program's own, with its hooks, and freed memory is shown. Small
    operations take up to twenty times longer inside; a program that does not use this class is not affected.

    Attributes:
        passes: The number of backward passes that have been recorded. Passes inside another pass are not.

    >>> import retrograd as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> with torch.autograd.graph.recording() as r:
    ...     (w * w).sum().backward()
    >>> r.passes, r.page()
    (1, <a page of 2 operations, 1 leaf, 0 bytes kept for the backward pass>)
    """

    def page(self, path: Any = None) -> Page:
        """Return the :class:`Page` of the last backward pass, and write it to the file ``path`` unless it is None.

        RuntimeError is raised if no backward pass has been recorded.
        """
        if self.trace is None and self.failure:
            raise RuntimeError(f"The backward pass could not be recorded: {self.failure}")
        if self.trace is None:
            raise RuntimeError(
                "No backward pass was recorded. Remedy: call backward() or torch.autograd.grad() inside the recording, in "
                "the thread that entered it."
            )
        made = Page(self.trace)
        if path is not None:
            made.save(path)
        return made


def page(y: Any, path: Any = None, params: Mapping[str, Any] | None = None) -> Page:
    """Return an interactive page of the graph of ``y``, and write it to the HTML file ``path`` unless it is None.

    The page shows the lines of the program, the graph, the values of each operation, and a backward pass step by step.

    Args:
        y: a tensor or a sequence of tensors.
        path: the name of the file to write.
        params: a dictionary from names to tensors, such as ``dict(model.named_parameters())``. Variables of the
            calling functions get their names without ``params``.

    The backward pass is run for the page: it starts with 1 (ones for a tensor of several elements), keeps the graph,
    changes no ``grad``, and calls no hooks. The ``backward`` of custom Functions is called, and so are the functions of
    ``saved_tensors_hooks``. The page shows the forward values that the graph keeps and those of variables of the calling
    functions; inside :class:`recording`, all of them are recorded.

    >>> import retrograd as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> made = torch.autograd.graph.page((w * w).sum())
    >>> made
    <a page of 2 operations, 1 leaf, 0 bytes kept for the backward pass>
    """
    tensors = as_tensor_list(y, "page")
    names = names_in_scope(calling_frame(), params, DEPTH)
    edges = [each._grad_edge if each._view is None else Tensor._current(each) for each in tensors]
    made = Page(replay(tensors, edges, read_edges(edges, names, tensors), names))
    if path is not None:
        made.save(os.fspath(path))
    return made


__all__ = ["Page", "page", "recording"]
