"""Kernels that a program writes itself: ``ElementwiseKernel`` and ``RawKernel``, evaluated from their CUDA C++.

``LAUNCHES`` counts the launches by name. ``SOURCES`` has the text of each kernel that was made: of an ElementwiseKernel
the arguments of its constructor.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy

from . import device_code
from .array import BFLOAT16
from .solvers import vector

LAUNCHES: Counter[str] = Counter()
SOURCES: dict[Any, str] = {}
#: The last RawKernel, and the arguments of its last call.
LAST: list[Any] = []
TYPES = {
    "bfloat16": BFLOAT16,
    "int32": numpy.dtype(numpy.int32),
    "int64": numpy.dtype(numpy.int64),
    "long long": numpy.dtype(numpy.int64), **{each: numpy.dtype(each) for each in ("float16", "float32", "float64", "bool")},
    "float": numpy.dtype(numpy.float32), "double": numpy.dtype(numpy.float64),
}  # fmt: skip


def _parameters(text: str) -> list[tuple[numpy.dtype[Any], str]]:
    return [(TYPES[each.split()[-2]], each.split()[-1]) for each in text.split(", ")]


def _dtype_of(text: str) -> numpy.dtype[Any]:
    match = re.search(r"typedef (float|double) F;", text)
    assert match is not None
    return numpy.dtype(numpy.float32 if match[1] == "float" else numpy.float64)


def add(cupy: Any, cupyx: Any) -> None:
    """Add the classes of kernels to the module ``cupy``."""
    from .array import ndarray, wrap

    class ElementwiseKernel:
        """A function of each element; arguments and results are broadcast."""

        def __init__(
            self, in_params: str, out_params: str, operation: str, name: str = "kernel", reduce_dims: bool = True,
            preamble: str = "", **kwargs: Any,
        ) -> None:  # fmt: skip
            for each in (in_params, out_params, operation, name, preamble):
                if each.__class__ is not str:
                    raise TypeError(f"Expected str, got {type(each).__name__}")
            self.inputs, self.outputs = _parameters(in_params), _parameters(out_params)
            self.raw = [each.startswith("raw ") for each in in_params.split(", ")]
            self.raw_out = [each.startswith("raw ") for each in out_params.split(", ")]
            self.operation, self.name, self.F = operation, name, _dtype_of(preamble)
            SOURCES[in_params, out_params, operation, name, preamble] = name

        def __call__(self, *args: Any, size: int | None = None, **kwargs: Any) -> Any:
            if kwargs:
                raise TypeError(f"Wrong arguments {kwargs}")
            count = len(self.inputs)
            if len(args) not in (count, count + len(self.outputs)):
                raise TypeError(f"Wrong number of arguments for {self.name!r}")
            for (kind, name), each in zip([*self.inputs, *self.outputs], args, strict=False):
                if isinstance(each, ndarray):
                    if each.dtype != kind:
                        raise TypeError(f"Type is mismatched. {name} {each.dtype} {kind}")
                elif not isinstance(each, (int, float, complex, numpy.generic)):
                    raise TypeError(f"Unsupported type {type(each)}")
            pairs = zip(args, self.inputs, strict=False)
            given = [each._a if isinstance(each, ndarray) else kind.type(each) for each, (kind, _) in pairs]
            # An index of a raw argument counts elements in C order.
            given = [numpy.ascontiguousarray(each) if raw else each for each, raw in zip(given, self.raw, strict=True)]
            shape = numpy.broadcast_shapes(
                *[numpy.shape(each) for each, raw in zip(given, self.raw, strict=True) if not raw]
            )
            if not any(isinstance(each, ndarray) for each in args[:count]) and len(args) == count:
                raise ValueError("Loop size is undecided")
            out = list(args[count:]) or [wrap(numpy.empty(shape, kind)) for kind, _ in self.outputs]
            sized = [each for each, raw in zip(out, self.raw_out, strict=True) if not raw]
            shape = numpy.broadcast_shapes(shape, *[each.shape for each in sized])
            if any(each.shape != shape for each in sized):
                raise ValueError("Out shape is mismatched")
            if size is not None:
                if not all(self.raw_out) or shape:
                    raise ValueError("Specified 'size' can be used only if all of the ndarray are 'raw'.")
                shape = (size,)
            LAUNCHES[self.name] += bool(numpy.prod(shape))
            space = {name: value for (_, name), value in zip(self.inputs, given, strict=True)}
            outputs = zip(out, self.raw_out, self.outputs, strict=True)
            space.update({name: each._a for each, raw, (_, name) in outputs if raw})
            space["i"] = numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape)
            found = {
                name: each._a if raw else numpy.empty(shape, kind)
                for each, raw, (kind, name) in zip(out, self.raw_out, self.outputs, strict=True)
            }
            device_code.run(self.operation.split("\n"), space, self.F, found)
            for each, raw, (_, name) in zip(out, self.raw_out, self.outputs, strict=True):
                if not raw:
                    each._a[...] = found[name]
            return out[0] if len(out) == 1 else tuple(out)

    class RawKernel:
        """A kernel of the package that reduces rows; threads and blocks have no effect on its results here."""

        def __init__(self, code: str, name: str, options: Any = (), backend: str = "nvrtc", **kwargs: Any) -> None:
            for each in (code, name):
                if each.__class__ is not str:
                    raise TypeError(f"Expected str, got {type(each).__name__}")
            head = re.search(rf'extern "C" __global__ void {name}\((.*)\) {{\n', code)
            assert head is not None
            self.parameters = [each.rsplit(" ", 1) for each in head[1].split(", ")]
            body = code[head.end() :].rstrip().split("\n")
            self.code, self.lines, self.name, self.F = code, body[2:-2], name, _dtype_of(code)
            self.table = re.search(r"struct Table { long long size\[(\d+)\]; (\w+)\* start\[(\d+)\]\[\1\]; };", code)
            if self.table is not None:  # the statements of the loop
                first = next(k for k, line in enumerate(body) if line.strip().startswith("for (long long i = first;"))
                self.lines = body[first + 1 : -2]
            SOURCES[code] = name

        def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...], **kwargs: Any) -> None:
            if numpy.prod(block) > 1024 or not all(0 < each < 2**31 for each in grid):
                raise ValueError("CUDA_ERROR_INVALID_VALUE: invalid argument")
            space: dict[str, Any] = {}
            outputs: dict[str, Any] = {}
            parameters = self.parameters
            if self.table is not None:
                table, parameters, args = args[0], parameters[1:], args[1:]
            for (kind, name), each in zip(parameters, args, strict=True):
                if kind.endswith("*"):
                    kind = kind.removeprefix("const ").rstrip("*")
                    if each.dtype != TYPES[kind]:
                        raise TypeError(f"{name} is {each.dtype}, the kernel reads {kind}")
                    (outputs if name[0] == "y" else space)[name] = each._a
                else:
                    assert each.dtype == (self.F if kind == "F" else numpy.int64), (name, each)
                    space[name] = each
            LAUNCHES[self.name] += 1
            LAST[:] = [self, grid, block, args]
            if self.table is not None:
                self.run_rows(table, grid, block, {**space, **outputs})
                return
            space["row"] = space["line"] = numpy.arange(space["rows"])[:, None]
            space["i"] = numpy.arange(space["count"])[None, :]
            device_code.run(self.lines, space, self.F, outputs)

        def run_rows(self, table: Any, grid: tuple[int, ...], block: tuple[int, ...], space: dict[str, Any]) -> None:
            """Compute the rows of a table: of each the arrays ``y0``, ``y1`` … at the addresses in the table."""
            capacity, kind, width = int(self.table[1]), self.table[2], int(self.table[3])
            assert type(table) is numpy.ndarray and table.size == 1 and table.nbytes == 8 * capacity * (width + 1)
            assert table.nbytes + 8 * len(space) <= 4096 and grid[1] <= capacity
            for row in range(grid[1]):
                count = int(table["size"][row])
                if count:
                    starts = table["start"][:, row].tolist()
                    arrays = {f"y{k}": vector(start, count, TYPES[kind]) for k, start in enumerate(starts)}
                    device_code.run(self.lines, {**space, **arrays, "i": numpy.arange(count)}, self.F, arrays)

    cupy.ElementwiseKernel, cupy.RawKernel = ElementwiseKernel, RawKernel


def kernel_source(key: Any, name: str) -> str:
    """Return a complete source of a kernel in ``SOURCES``: of an ElementwiseKernel one for contiguous arrays."""
    if isinstance(key, str):
        return key
    inputs, outputs, body, _, preamble = key
    declared, before = [], []
    for const, text in (("const ", inputs), ("", outputs)):
        for *raw, kind, variable in (each.split() for each in text.split(", ")):
            kind = {"float32": "float", "float64": "double", "int64": "long long", "int32": "int"}.get(kind, kind)
            declared.append(f"{const}{kind}* {'' if raw else 'raw_'}{variable}")
            if not raw:
                before.append(f"{const}{kind}& {variable} = raw_{variable}[i];")
    half = "".join(
        f"#include <cupy/{each}.cuh>\n" for each in ("float16", "bfloat16") if f"{each}*" in " ".join(declared)
    )
    head = f'extern "C" __global__ void {name}({", ".join(declared)}) {{\nconst long long i = threadIdx.x;\n'
    return "\n".join([half + preamble, head, *before, body, "}"])
