"""A strict stand-in for CuPy, computed by NumPy, for tests of the device ``cuda`` on machines without a GPU.

``installed()`` puts the modules ``cupy`` and ``cupyx`` into ``sys.modules`` for a block; the fixture ``gpu`` of
``tests/conftest.py`` does it for a test::

    def test_sum(gpu):
        assert torch.ones(3, device="cuda").sum().item() == 3

The stand-in has only what CuPy has: names, parameters and the dtypes of ufuncs are those that ``record_names.py``
reads from a real CuPy, whose import needs no driver. Where CuPy is stricter than NumPy, the stand-in is, too:

- nothing becomes a NumPy array by itself, and functions refuse NumPy arrays, also 0-d ones;
- results of no dimension stay arrays, a view of one element shares memory, arrays have no ``__index__``;
- ufuncs have no ``where=``, ``reduce`` and ``accumulate`` only for sum and product, ``at`` for seven functions;
- results of elementwise functions are in C order, whatever the order of the operands;
- indices beyond the bounds do not raise, and are taken modulo the size; singular matrices give nan, without an error;
- Thrust sorts no bfloat16; in-place sorting needs C order; ``lexsort`` takes one array of two dimensions;
- an array of another device than the current one is refused.

``SYNCS`` counts each wait for the device (``item``, ``bool``, ``get``, boolean indexing, ``nonzero``, ``unique`` …) by
what was called and by the line of the package that called it; ``TRANSFERS`` counts the copies of NumPy arrays to the
device. ``counted()`` is a block that returns what was counted in it.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

from .array import SYNCS, TRANSFERS


@cache
def modules() -> dict[str, Any]:
    """Return the modules of the stand-in by name; they are built once in a process."""
    from . import functions

    return functions.build()


@contextlib.contextmanager
def installed(devices: int = 1) -> Iterator[Any]:
    """Make ``import cupy`` give the stand-in within a block, with a number of devices; yield the module ``cupy``."""
    from . import cuda

    made = modules()
    before = {name: sys.modules.get(name) for name in made}
    count = cuda.COUNT[0]
    cuda.COUNT[0] = devices
    sys.modules.update(made)
    forget()
    user_frame = sys.modules.get("retrograd.runtime.user_frame")
    if user_frame is not None:  # a compiled package has no frames in which the user's line is looked for
        for name, module in list(sys.modules.items()):
            if name.startswith(__name__):
                module.__dict__[user_frame.MARK] = True
    try:
        yield made["cupy"]
    finally:
        cuda.COUNT[0] = count
        cuda.reset()
        forget()
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


def forget() -> None:
    """Make the package ask for the number of devices again, and stop its observer of backward passes."""
    package = sys.modules.get("retrograd.core.devices")
    if package is not None:
        package._Found.module, package.several_gpus = None, False
    selection = sys.modules.get("retrograd.core.device_selection")
    if selection is not None and selection._observer in selection.engine.observers:
        selection.engine.observers.remove(selection._observer)


class Counts:
    """Counters of one block: ``syncs`` and ``transfers`` by (what was called, place)."""

    syncs: Counter[tuple[str, str]]
    transfers: Counter[tuple[str, str]]


@contextlib.contextmanager
def counted() -> Iterator[Counts]:
    """Count synchronisations and copies to the device within a block; the attributes are set at its end."""
    found = Counts()
    syncs, transfers = Counter(SYNCS), Counter(TRANSFERS)
    try:
        yield found
    finally:
        found.syncs, found.transfers = SYNCS - syncs, TRANSFERS - transfers


__all__ = ["SYNCS", "TRANSFERS", "Counts", "counted", "installed", "modules"]
