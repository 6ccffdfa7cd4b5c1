"""LLVM code of the innermost loop of matrix products in convolutions.

BLAS cannot compute these products, because it requires rows at equal distances in memory; here the rows of one operand
begin at arbitrary offsets in an image. A product is computed in tiles, blocks of results with ``ROWS`` rows, whose
columns fill one or two vector registers. All sums of a tile stay in registers while products are added. Compilers do
not generate this code from a loop, so it is written here as LLVM instructions.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

_FEATURES = binding.get_host_cpu_features()
#: Bytes of a vector register, and rows of a tile: with 32 registers 16 hold sums, else 8.
BYTES = 64 if _FEATURES.get("avx512f") else 32 if _FEATURES.get("avx2") else 16
ROWS = 4 if BYTES == 32 else 8


def _generated(vectors: int) -> Any:
    """Return the LLVM code generator of :func:`tile`, for a tile whose rows are ``vectors`` vector registers wide."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = context.get_data_type(signature.args[0].dtype)
        size, index = context.get_abi_sizeof(number), ir.IntType(64)
        lanes = BYTES // size
        vector = ir.VectorType(number, lanes)

        def memory(place: int) -> Any:
            """Return the data pointer of the array that is passed as argument number ``place``."""
            return context.make_array(signature.args[place])(context, builder, args[place]).data

        def line(start: Any) -> Any:
            """Return the addresses of the vectors in a row of the tile; the row begins at the address ``start``."""
            pointer = builder.bitcast(start, vector.as_pointer())
            return [builder.gep(pointer, [index(v)]) for v in range(vectors)]

        corner = builder.gep(memory(0), [args[1]])
        lines = [builder.gep(corner, [builder.load(builder.gep(memory(2), [index(r)]))]) for r in range(ROWS)]
        source, places = builder.gep(memory(4), [args[5]]), memory(6)
        corner = builder.gep(memory(8), [args[9]])
        targets = [each for r in range(ROWS) for each in line(builder.gep(corner, [builder.mul(args[10], index(r))]))]
        sums = [cgutils.alloca_once(builder, vector) for _ in targets]
        unknown = ir.Constant(vector, ir.Undefined)
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)

        def spread(pointer: Any) -> Any:
            """Return a vector register in which every element is the number at the address ``pointer``."""
            alone = builder.insert_element(unknown, builder.load(pointer), ir.IntType(32)(0))
            return builder.shuffle_vector(alone, unknown, everywhere)

        if isinstance(signature.args[11], types.Boolean):
            for target, total in zip(targets, sums, strict=True):
                builder.store(builder.load(target, align=size), total)
        else:
            begin = builder.gep(memory(11), [args[12]])
            for place, total in enumerate(sums):
                builder.store(spread(builder.gep(begin, [index(place // vectors)])), total)
        first, last = cgutils.unpack_tuple(builder, args[7])
        with cgutils.for_range_slice(builder, first, last, index(1), index) as (k, _):
            at = line(builder.gep(source, [builder.load(builder.gep(places, [k]))]))
            seen, along = [builder.load(each, align=size) for each in at], builder.mul(k, args[3])
            for r in range(ROWS):
                factor = spread(builder.gep(lines[r], [along]))
                for each, total in zip(seen, sums[r * vectors :], strict=False):
                    product = builder.fmul(factor, each, flags=("contract",))
                    builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)
        for target, total in zip(targets, sums, strict=True):
            builder.store(builder.load(total), target, align=size)
        return context.get_dummy_value()

    return generate


@intrinsic
def tile(
    context: Any, a: Any, first: Any, rows: Any, step: Any, b: Any, second: Any, offsets: Any, span: Any, c: Any,
    third: Any, lead: Any, base: Any, fourth: Any,
) -> Any:  # fmt: skip
    """Add the product of two small matrices to a tile of ``c``, a block of ``ROWS`` rows of two vector registers each.

    For each row r and column v of the tile, ``c[third + r * lead + v]`` is set to a start value plus the sum over k of
    ``a[first + rows[r] + k * step] * b[second + offsets[k] + v]``. k is from ``span[0]`` to ``span[1] - 1``.

    If ``base`` is True, the start value is the old value in ``c``. Otherwise ``base`` is an array, and the start value
    is ``base[fourth + r]``. Numba passes ``context``; callers leave it out.
    """
    return types.void(a, first, rows, step, b, second, offsets, span, c, third, lead, base, fourth), _generated(2)


@intrinsic
def half_tile(
    context: Any, a: Any, first: Any, rows: Any, step: Any, b: Any, second: Any, offsets: Any, span: Any, c: Any,
    third: Any, lead: Any, base: Any, fourth: Any,
) -> Any:  # fmt: skip
    """Add a matrix product to a tile of ``c`` as :func:`tile` does, but with rows of one vector register."""
    return types.void(a, first, rows, step, b, second, offsets, span, c, third, lead, base, fourth), _generated(1)


def _mover(share: int, thinned: bool = False) -> Any:
    """Return the LLVM code generator that copies ``1 / share`` of a vector register from one array to another.

    If ``thinned`` is true, the code reads two registers and copies every second element.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = context.get_data_type(signature.args[0].dtype)
        size = context.get_abi_sizeof(number)
        places = []
        for array, at in ((0, 1), (2, 3)):
            data = context.make_array(signature.args[array])(context, builder, args[array]).data
            pointer = ir.VectorType(number, BYTES // size // share).as_pointer()
            places.append(builder.bitcast(builder.gep(data, [args[at]]), pointer))
        moved = builder.load(places[0], align=size)
        if thinned:
            next_ = builder.load(builder.gep(places[0], [ir.IntType(64)(1)]), align=size)
            lanes = moved.type.count
            even = ir.Constant(ir.VectorType(ir.IntType(32), lanes), list(range(0, 2 * lanes, 2)))
            moved = builder.shuffle_vector(moved, next_, even)
        builder.store(moved, places[1], align=size)
        return context.get_dummy_value()

    return generate


@intrinsic
def move(context: Any, a: Any, first: Any, b: Any, second: Any) -> Any:
    """Copy as many elements as fill a vector register: ``b[second + k] = a[first + k]``.

    A vector register holds ``BYTES`` bytes. Numba passes ``context``; callers leave it out.
    """
    return types.void(a, first, b, second), _mover(1)


@intrinsic
def move_half(context: Any, a: Any, first: Any, b: Any, second: Any) -> Any:
    """Copy as many elements as fill half a vector register: ``b[second + k] = a[first + k]``.

    A vector register holds ``BYTES`` bytes. Numba passes ``context``; callers leave it out.
    """
    return types.void(a, first, b, second), _mover(2)


@intrinsic
def thin(context: Any, a: Any, first: Any, b: Any, second: Any) -> Any:
    """Copy every second element of ``a`` until a vector register is filled: ``b[second + k] = a[first + 2 * k]``.

    A vector register holds ``BYTES`` bytes. Numba passes ``context``; callers leave it out.
    """
    return types.void(a, first, b, second), _mover(1, True)


@njit
def move_rows(a: Any, first: Any, lead: Any, b: Any, second: Any, other: Any, rows: Any, size: Any) -> None:
    """Copy the rows of a matrix: ``b[second + r * other + k] = a[first + r * lead + k]``, r < ``rows``, k < ``size``.

    Each row is copied in full vectors, of which the last may overlap the one before, or element by element if the row
    is shorter than half a vector.
    """
    lanes = BYTES // a.itemsize
    half = lanes // 2
    for r in range(rows):
        at, to = first + r * lead, second + r * other
        if size >= lanes:
            for k in range(0, size - lanes, lanes):
                move(a, at + k, b, to + k)
            move(a, at + size - lanes, b, to + size - lanes)
        elif size >= half:
            move_half(a, at, b, to)
            move_half(a, at + size - half, b, to + size - half)
        else:
            for k in range(size):
                b[to + k] = a[at + k]


@njit
def thin_rows(a: Any, first: Any, lead: Any, b: Any, second: Any, other: Any, rows: Any, size: Any) -> None:
    """Copy every second element of the rows of a matrix: ``b[second + r * other + k] = a[first + r * lead + 2 * k]``.

    r is below ``rows`` and k is below ``size``. Some elements past the end of a row may be written too; the next row
    overwrites them.
    """
    lanes = BYTES // a.itemsize
    for r in range(rows):
        at, to = first + r * lead, second + r * other
        if at + 2 * (size + lanes) <= a.size:
            for k in range(0, size, lanes):
                thin(a, at + 2 * k, b, to + k)
        else:
            for k in range(size):
                b[to + k] = a[at + 2 * k]
