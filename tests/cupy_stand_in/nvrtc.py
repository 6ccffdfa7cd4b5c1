"""Compilation of CUDA C++ by NVRTC, which needs no driver: the package ``nvidia-cuda-nvrtc`` has the library."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from importlib.metadata import files

#: The architectures for which the tests compile: Ampere and Hopper.
ARCHITECTURES = ("compute_80", "compute_90")
#: CuPy's classes for half precision, as far as generated kernels use them. CUDA's headers are not in the package.
HALF = """
class {name} {{
    unsigned short bits;
public:
    __device__ {name}() {{}}
    __device__ explicit {name}(float value);
    __device__ operator float() const;
    template <typename T> __device__ {name}& operator=(const T& value) {{ return *this = {name}(float(value)); }}
}};
__device__ {name}::{name}(float value) {{ bits = (unsigned short)(__float_as_uint(value) >> 16); }}
__device__ {name}::operator float() const {{ return __uint_as_float((unsigned)bits << 16); }}
"""
HEADERS = {f"cupy/{name}.cuh": HALF.format(name=name) for name in ("float16", "bfloat16")}


def available() -> bool:
    """Return whether the package is installed, and has a library for this platform."""
    try:
        return library() is not None
    except (ImportError, OSError):
        return False


#: Reason of skipped tests.
MISSING = "needs the package nvidia-cuda-nvrtc: whether the kernels are valid CUDA C++ is not tested"


@cache
def library() -> ctypes.CDLL:
    """Return the library NVRTC."""
    for each in files("nvidia-cuda-nvrtc") or ():
        if each.name.startswith("libnvrtc.so") or (each.name.startswith("nvrtc64") and "builtins" not in each.name):
            return ctypes.CDLL(str(each.locate()))
    raise ImportError("nvidia-cuda-nvrtc has no library for this platform")


def compiled(source: str, architecture: str, options: Sequence[str] = (), headers: dict[str, str] | None = None) -> str:
    """Return the PTX of ``source``; raise RuntimeError with the log of the compiler if it does not compile.

    ``headers`` are texts of files that ``source`` includes, by name.
    """
    nvrtc, program = library(), ctypes.c_void_p()
    headers = HEADERS if headers is None else headers
    count = len(headers)
    texts = (ctypes.c_char_p * count)(*[text.encode() for text in headers.values()])
    names = (ctypes.c_char_p * count)(*[name.encode() for name in headers])
    assert not nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", count, texts, names)
    given = [f"--gpu-architecture={architecture}", "-std=c++17", *options]
    failed = nvrtc.nvrtcCompileProgram(
        program, len(given), (ctypes.c_char_p * len(given))(*[x.encode() for x in given])
    )
    size = ctypes.c_size_t()
    which = "ProgramLog" if failed else "PTX"
    getattr(nvrtc, f"nvrtcGet{which}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{which}")(program, text)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if failed:
        raise RuntimeError(text.value.decode())
    return text.value.decode()
