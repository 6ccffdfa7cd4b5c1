"""Evaluation by NumPy of the CUDA C++ that the package generates: straight-line statements, and loops over a row.

The statements are evaluated for all threads at once: ``row`` and ``i`` are arrays, and a reduction within a loop over
``i`` reduces the second axis. Only what ``retrograd.kernels.cuda`` writes is understood; anything else raises.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy
import scipy.special

TOKEN = re.compile(r"\s*(\d+\.\d*|\d+|[A-Za-z_]\w*|==|!=|<=|>=|&&|\|\||[-+*/%<>!?:(),\[\]])")
#: Binary operators by precedence.
LEVELS = [["||"], ["&&"], ["==", "!="], ["<", "<=", ">", ">="], ["+", "-"], ["*", "/", "%"]]


def _divided(x: Any, y: Any) -> Any:
    integers = numpy.asarray(x).dtype.kind in "iu" and numpy.asarray(y).dtype.kind in "iu"
    return x // y if integers else numpy.divide(x, y)


OPERATORS: dict[str, Any] = {
    "||": numpy.logical_or, "&&": numpy.logical_and, "==": numpy.equal, "!=": numpy.not_equal, "<": numpy.less,
    "<=": numpy.less_equal, ">": numpy.greater, ">=": numpy.greater_equal, "+": numpy.add, "-": numpy.subtract,
    "*": numpy.multiply, "/": _divided, "%": numpy.remainder,
}  # fmt: skip
FUNCTIONS: dict[str, Any] = {
    **{name: getattr(numpy, name) for name in (
        "sqrt", "exp", "log", "log1p", "tanh", "sin", "cos", "tan", "sinh", "cosh", "expm1", "exp2", "log2", "log10",
        "floor", "ceil", "trunc", "rint", "hypot", "copysign", "maximum", "minimum", "abs", "logaddexp",
    )},
    "asin": numpy.arcsin, "acos": numpy.arccos, "atan": numpy.arctan, "asinh": numpy.arcsinh, "acosh": numpy.arccosh,
    "atanh": numpy.arctanh, "atan2": numpy.arctan2, "pow": numpy.power, "erf": scipy.special.erf, "add": numpy.add, "within": numpy.remainder,
    "erfc": scipy.special.erfc, "decay": numpy.exp, "decay_less_one": numpy.expm1, "normal_cdf": scipy.special.ndtr,
    "sigmoid": scipy.special.expit, "xlogy": scipy.special.xlogy, "sign_of": lambda x: numpy.where(x == x, numpy.sign(x), x),
}  # fmt: skip
REDUCTIONS = {"add": numpy.add, "maximum": numpy.maximum, "minimum": numpy.minimum}


class _Parser:
    """Evaluation of an expression with the values of variables in ``space``; ``F`` is the dtype of numbers."""

    def __init__(self, text: str, space: dict[str, Any], F: Any) -> None:
        self.tokens, self.space, self.F = TOKEN.findall(text), space, F
        if "".join(self.tokens) != re.sub(r"\s", "", text):
            raise SyntaxError(text)
        self.place = 0

    def next(self, expected: str | None = None) -> str:
        token = self.tokens[self.place]
        self.place += 1
        if expected is not None and token != expected:
            raise SyntaxError(f"{token} instead of {expected}")
        return token

    def peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def value(self) -> Any:
        found = self.binary(0)
        if self.peek() != "?":
            return found
        self.next()
        first = self.value()
        self.next(":")
        return numpy.where(found, first, self.value())

    def binary(self, level: int) -> Any:
        if level == len(LEVELS):
            return self.unary()
        found = self.binary(level + 1)
        while self.peek() in LEVELS[level]:
            found = OPERATORS[self.next()](found, self.binary(level + 1))
        return found

    def unary(self) -> Any:
        if self.peek() == "-":
            self.next()
            return numpy.negative(self.unary())
        if self.peek() == "!":
            self.next()
            return numpy.logical_not(self.unary())
        return self.primary()

    def primary(self) -> Any:
        token = self.next()
        if token == "(":
            found = self.value()
            self.next(")")
        elif token[0].isdigit():
            found = numpy.int64(token)
        elif self.peek() == "(":
            self.next()
            args = [self.value()]
            while self.peek() == ",":
                self.next()
                args.append(self.value())
            self.next(")")
            found = numpy.asarray(args[0]).astype(self.F) if token == "F" else FUNCTIONS[token](*args)
        else:
            found = {"true": True, "false": False, "INFINITE": self.F.type(numpy.inf)}.get(token)
            found = self.space[token] if found is None else found
        while self.peek() == "[":
            self.next()
            found = element(found, self.value())
            self.next("]")
        return found


def element(array: Any, index: Any) -> Any:
    """Return the elements at ``index``, counted in elements from the first of ``array``, whatever its strides."""
    low, high = int(numpy.min(index)), int(numpy.max(index))
    base, itemsize = array.__array_interface__["data"][0], array.itemsize
    memory = (ctypes.c_char * ((high - low + 1) * itemsize)).from_address(base + low * itemsize)
    return numpy.frombuffer(memory, array.dtype)[numpy.subtract(index, low)]


def evaluate(text: str, space: dict[str, Any], F: Any) -> Any:
    """Return the value of the expression ``text``."""
    parser = _Parser(text, space, F)
    found = parser.value()
    if parser.peek():
        raise SyntaxError(f"{parser.peek()!r} after {text!r}")
    return found


def run(lines: list[str], space: dict[str, Any], F: Any, outputs: dict[str, Any]) -> None:
    """Evaluate statements; assignments to a name of ``outputs`` are stored there, at the index if there is one."""
    inside = False
    with numpy.errstate(all="ignore"):
        for line in map(str.strip, lines):
            if line.startswith("for (long long i = "):
                inside = True
            elif line == "}":
                inside = False
            elif (match := re.fullmatch(r"(?:if \(threadIdx.x == 0\) )?(y\d+)\[(.*?)\] = (.*);", line)) and match[
                1
            ] in outputs:
                index = evaluate(match[2], space, F)
                found = evaluate(match[3], space, F)
                index, found = numpy.broadcast_arrays(index, found)
                outputs[match[1]].reshape(-1)[index] = found
            elif match := re.fullmatch(r"if \((.*)\) (\w+)\[0\] = (\d+);", line):
                if numpy.any(evaluate(match[1], space, F)):
                    space[match[2]].reshape(-1)[0] = int(match[3])
            elif match := re.fullmatch(r"atomicAdd\(&(y\d+)\[(.*)\], (.*)\);", line):
                index, found = numpy.broadcast_arrays(evaluate(match[2], space, F), evaluate(match[3], space, F))
                numpy.add.at(outputs[match[1]].reshape(-1), index, found)
            elif match := re.fullmatch(r"(s\d+) = reduced<(\w+)>\(\1\);", line):
                assert match[2] in REDUCTIONS
            elif inside and (match := re.fullmatch(r"(s\d+) = (\w+)\(\1, (.*)\);", line)):
                found = evaluate(match[3], space, F)
                shape = numpy.broadcast_shapes(numpy.shape(found), space["row"].shape, space["i"].shape)
                inside_part = (space["i"] >= space.get("first", 0)) & (space["i"] < space.get("last", space["count"]))
                space[match[1]] = REDUCTIONS[match[2]].reduce(
                    numpy.broadcast_to(found, shape), axis=1, keepdims=True, initial=space[match[1]],
                    where=numpy.broadcast_to(inside_part, shape),
                )  # fmt: skip
            elif match := re.fullmatch(r"(?:const (?:F|bool|int|long long) |F )?(\w+) = (.*);", line):
                found = evaluate(match[2], space, F)
                if match[1] in outputs:
                    outputs[match[1]][...] = found
                else:
                    space[match[1]] = found
            else:
                raise SyntaxError(line)
