"""Generated CUDA kernels run by the threads of the CPU: each CUDA thread of a block is one, with real barriers.

The evaluation of ``device_code`` knows neither threads nor blocks. Here the text of a kernel is compiled by the C++
compiler of the machine, so that the division of rows among threads, the reductions over warps and through shared memory
and the loops over the grid are executed. The blocks of a launch run one after the other.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy

COMPILER = shutil.which("g++") or shutil.which("c++")
BEFORE = """
#include <barrier>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>
using namespace std;
#define __global__
#define __device__ static
#define __shared__ static
struct Triple { unsigned x = 1, y = 1, z = 1; };
static thread_local Triple threadIdx, blockIdx;
static Triple blockDim, gridDim;
static unique_ptr<barrier<>> of_block;
static vector<unique_ptr<barrier<>>> of_warp;
static double exchanged[1024];
static inline void __syncthreads() { of_block->arrive_and_wait(); }
template <typename T> static inline T __shfl_xor_sync(unsigned, T value, int distance) {
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    exchanged[thread] = value;
    of_warp[thread / 32]->arrive_and_wait();
    const T found = (T)exchanged[thread ^ distance];
    of_warp[thread / 32]->arrive_and_wait();
    return found;
}
static inline double __longlong_as_double(long long bits) { double x; memcpy(&x, &bits, 8); return x; }
"""
AFTER = """
extern "C" void launch(unsigned blocks, unsigned width, unsigned height, void** args) {{
    gridDim.x = blocks; blockDim.x = width; blockDim.y = height;
    const unsigned threads = width * height;
    of_block = make_unique<barrier<>>(threads);
    of_warp.clear();
    for (unsigned first = 0; first < threads; first += 32)
        of_warp.push_back(make_unique<barrier<>>(min(32u, threads - first)));
    for (unsigned block = 0; block < blocks; ++block) {{
        vector<thread> all;
        for (unsigned y = 0; y < height; ++y) for (unsigned x = 0; x < width; ++x)
            all.emplace_back([=] {{
                blockIdx.x = block; threadIdx.x = x; threadIdx.y = y;
                {name}({arguments});
            }});
        for (auto& each : all) each.join();
    }}
}}
"""


def run(
    text: str, name: str, parameters: Sequence[Sequence[str]], blocks: int, block: Sequence[int], args: Sequence[Any],
    folder: Path,
) -> None:  # fmt: skip
    """Run the kernel ``name`` of the source ``text`` by threads; ``args`` are NumPy arrays and scalars.

    ``parameters`` are the pairs of type and name of the kernel's parameters.
    """
    arguments = ", ".join(
        f"({kind})args[{k}]" if kind.endswith("*") else f"*({kind}*)args[{k}]" for k, (kind, _) in enumerate(parameters)
    )
    source, library = folder / f"{name}.cpp", folder / f"{name}.so"
    source.write_text(BEFORE + text + AFTER.format(name=name, arguments=arguments))
    assert COMPILER is not None
    options = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread"]
    subprocess.run([COMPILER, *options, str(source), "-o", str(library)], check=True)
    holders = [each if isinstance(each, numpy.ndarray) else numpy.array(each) for each in args]
    pointers = (ctypes.c_void_p * len(holders))(*[each.__array_interface__["data"][0] for each in holders])
    ctypes.CDLL(str(library)).launch(blocks, *block, pointers)
