"""Heat maps of arrays: small images in the PNG format, symmetric about 0, with marks for nan and infinite elements."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from ..core import devices

#: Maximum number of rows and of columns of cells, without and with matrices beside each other.
CELLS, TILE_CELLS, TILES = 64, 24, 24
#: Maximum number of elements that are looked at: of a larger array, those of every n-th row and column.
ELEMENTS = 2**20
#: Number of shades of each sign.
SHADES = 31
NEGATIVE, POSITIVE = (28, 126, 214), (232, 89, 12)
#: Numbers of the colours after the shades: lines and corners without an element, -inf, inf and nan.
GAP, MINUS_INF, INF, NAN = range(2 * SHADES + 1, 2 * SHADES + 5)
MARKS = {GAP: (136, 136, 136), MINUS_INF: (0, 140, 150), INF: (0, 150, 60), NAN: (214, 0, 214)}


class HeatMap(NamedTuple):
    """Image of an array.

    ``cells`` are the numbers of the colours. ``low`` and ``high`` are the least and the greatest finite element, or nan.
    ``counts`` are the numbers of elements that are nan, inf and -inf. ``block`` is the number of rows and columns of
    elements in a cell, and ``tiles`` are the numbers of matrices that are shown and that there are. One of ``skipped``
    elements was looked at.
    """

    cells: Any
    low: float
    high: float
    counts: list[int]
    block: tuple[int, int]
    tiles: tuple[int, int]
    skipped: int

    def data_uri(self, side: int) -> str:
        """Return the image in the PNG format as a URI; a cell is a square of ``side`` pixels, and 0 is transparent.

        The cells are squares in the image itself: notebooks that are not trusted scale it with blurred edges.
        """
        pixels = self.cells.repeat(side, 0).repeat(side, 1)
        return "data:image/png;base64," + base64.b64encode(png(pixels)).decode()


def heat_map(array: Any) -> HeatMap:
    """Return the heat map of ``array``, a real NumPy or CuPy array with elements and at least one dimension.

    A cell is an element, or the element of largest magnitude of a block of elements. A vector is shown in rows of
    ``CELLS`` elements or more. Of an array of more than two dimensions, the first matrices are shown beside each other.
    """
    if array.ndim == 1:
        step = -(-array.size // ELEMENTS)
        looked_at = [_to_float(array[::step])]
        matrices = [_rows(looked_at[0])]
        count = 1
    else:
        count = math.prod(array.shape[:-2])
        parts = [array[numpy.unravel_index(index, array.shape[:-2])] for index in range(min(count, TILES))]
        height, width = parts[0].shape
        down, across = _steps(height, width, ELEMENTS // len(parts))
        looked_at = [_to_float(each[::down, ::across]) for each in parts]
        step = down * across
        matrices = [(each, _marks(each)) for each in looked_at]
    limit = CELLS if len(matrices) == 1 else TILE_CELLS
    height, width = matrices[0][0].shape
    block = (-(-height // limit), -(-width // limit))
    pooled = [_pooled(*each, block) for each in matrices]
    scale = max(float(numpy.abs(values).max()) for values, _ in pooled)
    finite = [each[numpy.isfinite(each)] for each in looked_at]
    tests = (numpy.isnan, numpy.isposinf, numpy.isneginf)
    return HeatMap(
        _beside([_colours(*each, scale) for each in pooled]),
        min((float(each.min()) for each in finite if each.size), default=math.nan),
        max((float(each.max()) for each in finite if each.size), default=math.nan),
        [sum(int(test(each).sum()) for each in looked_at) for test in tests],
        block,
        (len(matrices), count),
        step,
    )


def _steps(rows: int, columns: int, limit: int) -> tuple[int, int]:
    """Return the distances of rows and of columns such that at most about ``limit`` elements of a matrix remain."""
    down = across = 1
    while -(-rows // down) * -(-columns // across) > limit:
        if rows // down > columns // across:
            down *= 2
        else:
            across *= 2
    return down, across


def _to_float(array: Any) -> Any:
    if array.__class__ is not numpy.ndarray:
        array = devices.to_device(array, devices.CPU)
    return array.astype(numpy.float64)


def _marks(values: Any) -> Any:
    """Return 3 for nan, 2 for inf, 1 for -inf and 0 for a finite element."""
    return numpy.select([numpy.isnan(values), numpy.isposinf(values), numpy.isneginf(values)], [3, 2, 1], 0)


def _rows(vector: Any) -> tuple[Any, Any]:
    """Return ``vector`` as a matrix, and its marks; elements that fill the last row have the mark -1."""
    columns = min(vector.size, CELLS)
    while vector.size > columns * columns:
        columns *= 2
    fill = -vector.size % columns
    values = numpy.concatenate([vector, numpy.zeros(fill)])
    marks = numpy.concatenate([_marks(vector), numpy.full(fill, -1)])
    return values.reshape(-1, columns), marks.reshape(-1, columns)


def _pooled(values: Any, marks: Any, block: tuple[int, int]) -> tuple[Any, Any]:
    """Return, for each block of ``values``, the finite element of largest magnitude, and the greatest mark."""
    least = greatest = numpy.where(marks > 0, 0.0, values)
    for axis, size in enumerate(block):
        if size > 1:
            starts = range(0, values.shape[axis], size)
            least = numpy.minimum.reduceat(least, starts, axis)
            greatest = numpy.maximum.reduceat(greatest, starts, axis)
            marks = numpy.maximum.reduceat(marks, starts, axis)
    return numpy.where(-least > greatest, least, greatest), marks


def _colours(values: Any, marks: Any, scale: float) -> Any:
    shades = numpy.rint(values / scale * SHADES) + SHADES if scale else numpy.full(values.shape, SHADES)
    return numpy.choose(marks + 1, [GAP, shades, MINUS_INF, INF, NAN]).astype(numpy.uint8)


def _beside(images: Sequence[Any]) -> Any:
    """Return ``images`` of one shape in one image, in rows, separated by lines."""
    if len(images) == 1:
        return images[0]
    height, width = images[0].shape
    columns = min(len(images), max(1, 2 * CELLS // (width + 1)))
    rows = -(-len(images) // columns)
    whole = numpy.full((rows * (height + 1) - 1, columns * (width + 1) - 1), GAP, numpy.uint8)
    for number, image in enumerate(images):
        top, left = number // columns * (height + 1), number % columns * (width + 1)
        whole[top : top + height, left : left + width] = image
    return whole


def png(pixels: Any) -> bytes:
    """Return the image ``pixels``, a uint8 matrix of numbers of colours, in the PNG format."""
    shades = [abs(number - SHADES) / SHADES for number in range(2 * SHADES + 1)]
    colours = [NEGATIVE if number < SHADES else POSITIVE for number in range(2 * SHADES + 1)]
    palette = b"".join(bytes(each) for each in (*colours, *MARKS.values()))
    alphas = bytes(round(255 * each) for each in shades)  # the marks are opaque
    height, width = pixels.shape
    lines = numpy.zeros((height, width + 1), numpy.uint8)  # a line begins with the number of its filter, 0
    lines[:, 1:] = pixels
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", palette),
        (b"tRNS", alphas),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
