"""Compile recorded CUDA kernels as a real CuPy does: its source text around each kernel, its headers, by NVRTC.

``tests/unit/test_cuda_kernels.py --record FILE`` writes the kernels; this script needs an interpreter with CuPy, whose
import needs no driver, and the headers of a CUDA toolkit::

    python -m tests.unit.test_cuda_kernels --record kernels.json
    CUDA_PATH=/usr/local/cuda python-with-cupy scripts/compile_cuda_kernels.py kernels.json

It prints how many kernels compiled for each architecture, and the compiler's log of each that did not.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import cupy
import numpy
from cupy._core import _carray, _kernel, _scalar, core

ROOT = Path(__file__).resolve().parent.parent
#: ``_ArgKind`` in CuPy's ``_kernel.pxd``.
NDARRAY, INDEXER, SCALAR = 1, 2, 3


def nvrtc() -> Any:
    """Return the module ``tests/cupy_stand_in/nvrtc.py``, without its package, which needs more than CuPy does."""
    spec = importlib.util.spec_from_file_location("nvrtc", ROOT / "tests" / "cupy_stand_in" / "nvrtc.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def elementwise_source(inputs: str, outputs: str, body: str, name: str, preamble: str, strided: bool) -> str:
    """Return CuPy's source of an ElementwiseKernel; numbers are the parameters that the package passes as numbers.

    If ``strided`` is true, the arrays have three dimensions and 64-bit indices, else one dimension.
    """
    kernel = cupy.ElementwiseKernel(inputs, outputs, body, name, preamble=preamble)
    shape = (3, False, False) if strided else (1, True, True)
    infos = []
    for each in kernel.params:
        if each.name == "_ind":
            infos.append(_kernel._ArgInfo(INDEXER, _carray.Indexer, None, shape[0], True, shape[2]))
        elif each.name.startswith("p"):
            infos.append(_kernel._ArgInfo(SCALAR, _scalar.CScalar, numpy.dtype(each.dtype), 0, True, True))
        else:
            infos.append(_kernel._ArgInfo(NDARRAY, cupy.ndarray, numpy.dtype(each.dtype), *shape))
    return str(
        _kernel._get_elementwise_kernel_code(tuple(infos), _kernel._TypeMap(()), kernel.params, body, name, preamble)
    )


def main() -> int:
    """Compile the kernels of the file that is the first argument; the exit status is the number of failures."""
    compiler = nvrtc()
    headers = "".join(f"#include <{each}>\n" for each in core._cupy_header_list)
    folders = [core._get_header_dir_path(), os.path.join(os.environ.get("CUDA_PATH", "/usr/local/cuda"), "include")]
    folders.append(os.path.join(folders[1], "cccl"))
    options = [*core.assemble_cupy_compiler_options(()), *[f"-I{each}" for each in folders]]
    failures = 0
    kernels = json.loads(Path(sys.argv[1]).read_text())
    for architecture in compiler.ARCHITECTURES:
        good = 0
        for source, name in kernels:
            texts = [source]
            if not isinstance(source, str):
                texts = [headers + elementwise_source(*source, strided) for strided in (False, True)]
            try:
                for text in texts:
                    compiler.compiled(text, architecture, options, {})
                good += 1
            except RuntimeError as error:
                failures += 1
                print(f"{name}: {error}")
        print(f"{architecture}: {good} of {len(kernels)} kernels compile as CuPy {cupy.__version__} builds them")
    return failures


if __name__ == "__main__":
    sys.exit(main())
