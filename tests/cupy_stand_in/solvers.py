"""cuSOLVER's and cuBLAS's routines of ``cupy.cuda.cusolver`` and ``cupy.cuda.cublas``, computed by LAPACK.

They get addresses, as the routines of CuPy do, and read and write the matrices there in column-major order. The result
codes are written to the memory of the device. None waits.
"""

from __future__ import annotations

import ctypes
import types
from typing import Any

import numpy
import scipy.linalg

DTYPES = {"s": numpy.float32, "d": numpy.float64, "c": numpy.complex64, "z": numpy.complex128}
HANDLES = {"cusolver": 71, "cublas": 72}


def vector(address: int, count: int, dtype: Any) -> Any:
    """Return the array of ``count`` elements at ``address``."""
    memory = (ctypes.c_char * (count * numpy.dtype(dtype).itemsize)).from_address(address)
    return numpy.frombuffer(memory, dtype)


def matrix(address: int, rows: int, columns: int, lead: int, dtype: Any) -> Any:
    """Return the matrix at ``address``, whose columns have a distance of ``lead`` elements."""
    assert lead >= rows
    return vector(address, lead * columns, dtype).reshape(columns, lead).T[:rows]


def _lapack(name: str, dtype: Any) -> Any:
    return scipy.linalg.lapack.get_lapack_funcs(name, dtype=dtype)


def _buffer_size(handle: int, *sizes: int) -> int:
    assert handle == HANDLES["cusolver"]
    return 16


def _factorized(a: Any, pivots: Any, info: Any) -> None:
    a[...], found, info[...] = _lapack("getrf", a.dtype)(a)
    pivots[...] = found + 1


def _solved(form: int, a: Any, pivots: Any, b: Any) -> None:
    b[...] = _lapack("getrs", a.dtype)(a, pivots - 1, b, trans=form)[0]


def _cholesky(triangle: int, a: Any, info: Any) -> None:
    a[...], info[...] = _lapack("potrf", a.dtype)(a, lower=triangle == 0, clean=0)


def routines(kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the routines of cuSOLVER and of cuBLAS for the dtype with the prefix ``kind``."""
    dtype = DTYPES[kind]

    def getrf(
        handle: int, m: int, n: int, A: int, lda: int, work: int, devIpiv: int, devInfo: int
    ) -> None:  # fmt: skip
        assert handle == HANDLES["cusolver"] and work
        _factorized(matrix(A, m, n, lda, dtype), vector(devIpiv, min(m, n), "i4"), vector(devInfo, 1, "i4"))

    def getrs(
        handle: int, trans: int, n: int, nrhs: int, A: int, lda: int, devIpiv: int, B: int, ldb: int, devInfo: int
    ) -> None:  # fmt: skip
        assert handle == HANDLES["cusolver"]
        _solved(trans, matrix(A, n, n, lda, dtype), vector(devIpiv, n, "i4"), matrix(B, n, nrhs, ldb, dtype))
        vector(devInfo, 1, "i4")[0] = 0

    def potrf(handle: int, uplo: int, n: int, A: int, lda: int, work: int, lwork: int, devInfo: int) -> None:
        assert handle == HANDLES["cusolver"] and work
        _cholesky(uplo, matrix(A, n, n, lda, dtype), vector(devInfo, 1, "i4"))

    def potrf_batched(
        handle: int, uplo: int, n: int, Aarray: int, lda: int, infoArray: int, batchSize: int
    ) -> None:  # fmt: skip
        assert handle == HANDLES["cusolver"]
        for k, address in enumerate(vector(Aarray, batchSize, "u8").tolist()):
            _cholesky(uplo, matrix(address, n, n, lda, dtype), vector(infoArray + 4 * k, 1, "i4"))

    def getrf_batched(
        handle: int, n: int, Aarray: int, lda: int, PivotArray: int, infoArray: int, batchSize: int
    ) -> None:  # fmt: skip
        assert handle == HANDLES["cublas"]
        for k, address in enumerate(vector(Aarray, batchSize, "u8").tolist()):
            pivots, info = vector(PivotArray + 4 * n * k, n, "i4"), vector(infoArray + 4 * k, 1, "i4")
            _factorized(matrix(address, n, n, lda, dtype), pivots, info)

    def getrs_batched(
        handle: int, trans: int, n: int, nrhs: int, Aarray: int, lda: int, devIpiv: int, Barray: int, ldb: int,
        info: int, batchSize: int,
    ) -> None:  # fmt: skip
        assert handle == HANDLES["cublas"]
        pairs = zip(vector(Aarray, batchSize, "u8").tolist(), vector(Barray, batchSize, "u8").tolist(), strict=True)
        for k, (a, b) in enumerate(pairs):
            pivots = vector(devIpiv + 4 * n * k, n, "i4")
            _solved(trans, matrix(a, n, n, lda, dtype), pivots, matrix(b, n, nrhs, ldb, dtype))
        vector(info, 1, "i4")[0] = 0  # in the memory of the host: whether an argument is wrong

    real = kind in "sd"

    def ungqr(
        handle: int, m: int, n: int, k: int, A: int, lda: int, tau: int, work: int, lwork: int, devInfo: int
    ) -> None:  # fmt: skip
        assert handle == HANDLES["cusolver"] and work and m >= n >= k
        a, call = matrix(A, m, n, lda, dtype), _lapack("orgqr" if real else "ungqr", dtype)
        a[...] = call(a, vector(tau, k, dtype))[0]

    def unmqr(
        handle: int, side: int, trans: int, m: int, n: int, k: int, A: int, lda: int, tau: int, C: int, ldc: int,
        work: int, lwork: int, devInfo: int,
    ) -> None:  # fmt: skip
        assert handle == HANDLES["cusolver"] and work and trans in ((0, 1) if real else (0, 2))
        a, c = matrix(A, (m, n)[side], k, lda, dtype), matrix(C, m, n, ldc, dtype)
        call = _lapack("ormqr" if real else "unmqr", dtype)
        c[...] = call("LR"[side], "NTC"[trans], a, vector(tau, k, dtype), c, 64 * (m + n))[0]

    return (
        {"orgqr" if real else "ungqr": ungqr, "ormqr" if real else "unmqr": unmqr,
         "orgqr_bufferSize" if real else "ungqr_bufferSize": _buffer_size,
         "ormqr_bufferSize" if real else "unmqr_bufferSize": _buffer_size,
         "getrf": getrf, "getrs": getrs, "potrf": potrf, "potrfBatched": potrf_batched, "getrf_bufferSize": _buffer_size,
         "potrf_bufferSize": _buffer_size},
        {"getrfBatched": getrf_batched, "getrsBatched": getrs_batched},
    )  # fmt: skip


def add(cuda: Any) -> None:
    """Add the modules ``cusolver``, ``cublas`` and ``device`` to the module ``cupy.cuda``."""
    cuda.cusolver, cuda.cublas = (types.ModuleType(f"cupy_backends.cuda.libs.{name}") for name in HANDLES)
    for kind in DTYPES:
        for library, found in zip((cuda.cusolver, cuda.cublas), routines(kind), strict=True):
            library.__dict__.update({kind + name: routine for name, routine in found.items()})
    cuda.cublas.__dict__.update(
        CUBLAS_OP_N=0,
        CUBLAS_OP_T=1,
        CUBLAS_OP_C=2,
        CUBLAS_SIDE_LEFT=0,
        CUBLAS_SIDE_RIGHT=1,
        CUBLAS_FILL_MODE_LOWER=0,
        CUBLAS_FILL_MODE_UPPER=1,
    )
    cuda.device = types.SimpleNamespace(
        get_cusolver_handle=lambda: HANDLES["cusolver"], get_cublas_handle=lambda: HANDLES["cublas"]
    )
