"""Numba loop of matrix products (matmul, bmm): each of Numba's threads calls NumPy's BLAS for a part of the product.

Therefore BLAS needs no thread pool, and the matrices of a batch are distributed over all of Numba's threads.
``address`` is the address of the BLAS function ``sgemm`` (for float32) or ``dgemm``. The caller (``kernels/matmul.py``)
ensures that BLAS uses one thread for each part.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import prange, types
from numba.core import cgutils
from numba.extending import intrinsic

from .jit import loop


@intrinsic
def gemm(
    context: Any, address: Any, first: Any, second: Any, sizes: Any, a: Any, b: Any, added: Any, c: Any
) -> Any:  # fmt: skip
    """Call the BLAS function gemm: ``c = a @ b`` in column-major order, or ``c += a @ b`` if ``added`` is true.

    ``address`` is the address of gemm. If ``first`` is true, ``a`` is transposed; if ``second`` is true, ``b`` is
    transposed. ``sizes`` is (m, n, k, lda, ldb, ldc) in the notation of BLAS. Numba passes ``context``; callers leave
    it out.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function_address, turned_a, turned_b, numbers, *rest = args
        beta = rest.pop(2)
        byte = ir.IntType(8)
        pointer = byte.as_pointer()

        def stored(value: Any) -> Any:
            return builder.bitcast(cgutils.alloca_once_value(builder, value), pointer)

        def letter(turned: Any) -> Any:
            return stored(builder.select(cgutils.is_not_null(builder, turned), byte(ord("T")), byte(ord("N"))))

        # On little-endian machines a BLAS with 32-bit integers reads these 64-bit integers correctly too.
        m, n, k, lda, ldb, ldc = (stored(each) for each in cgutils.unpack_tuple(builder, numbers))
        matrices = [
            builder.bitcast(context.make_array(kind)(context, builder, value).data, pointer)
            for kind, value in zip((a, b, c), rest, strict=True)
        ]
        number = context.get_data_type(a.dtype)
        one, zero = ir.Constant(number, 1.0), ir.Constant(number, 0.0)
        beta = stored(builder.select(cgutils.is_not_null(builder, beta), one, zero))
        kind = ir.FunctionType(ir.VoidType(), [pointer] * 13)
        given = [
            letter(turned_a), letter(turned_b), m, n, k, stored(one), matrices[0], lda, matrices[1], ldb, beta, matrices[2],
            ldc,
        ]  # fmt: skip
        builder.call(builder.inttoptr(function_address, kind.as_pointer()), given)
        return context.get_dummy_value()

    return types.void(address, first, second, sizes, a, b, added, c), generate


@loop
def products(a: Any, b: Any, turned: Any, sizes: Any, pieces: Any, address: Any, c: Any) -> None:
    """Write the matrix products of the batches ``a`` and ``b`` to ``c``; all three are 1-d views of contiguous memory.

    ``turned`` has a flag for ``a`` and one for ``b``, which is true if the matrices are stored transposed. ``sizes`` is
    (batch, rows, columns, inner size). ``pieces`` holds the numbers of parts into which rows and columns are divided.
    ``address`` is the address of the BLAS function gemm.
    """
    count, m, n, k = sizes
    high, wide = (m + pieces[0] - 1) // pieces[0], (n + pieces[1] - 1) // pieces[1]
    for job in prange(count * pieces[0] * pieces[1]):
        which, row, column = job // (pieces[0] * pieces[1]), job // pieces[1] % pieces[0], job % pieces[1]
        top, left = row * high, column * wide
        rows, columns = min(high, m - top), min(wide, n - left)
        if rows > 0 and columns > 0:
            x = a[which * m * k + (top if turned[0] else top * k) :]
            y = b[which * k * n + (left * k if turned[1] else left) :]
            leads = (columns, rows, k, k if turned[1] else n, m if turned[0] else k, n)
            # In Fortran's column-major order all three matrices are transposed.
            gemm(address, turned[1], turned[0], leads, y, x, False, c[(which * m + top) * n + left :])
