"""Machine code of regions (``compiler/regions.py``): their text is translated to LLVM instructions, one by one.

Numba could compile the text itself, but infers types of each statement: 2.5 ms each, or seconds for a region of hundreds
of steps. This translation takes a tenth of that time. Numba compiles only the function around it, which converts arrays
of NumPy to pointers. Operations are those of IEEE 754. There is no fused multiply-add. Sums are computed in another order
than NumPy's.
"""

from __future__ import annotations

import ast
import math
import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, typing
from numba.extending import intrinsic

from . import math as polynomials

INT, BIT, BYTE = ir.IntType(64), ir.IntType(1), ir.IntType(8)
#: Most statements of loops that are written one after another.
UNROLLED = 64
#: Functions that Numba has for numbers, by their names in the text.
FUNCTIONS = {
    **{name: getattr(math, name) for name in (
        "exp", "log", "log1p", "tanh", "erf", "erfc", "expm1", "sin", "cos", "tan", "sinh", "cosh", "asin", "acos", "atan",
        "asinh", "acosh", "atanh", "atan2", "hypot", "copysign", "log2", "log10", "pow",
    )},
    "decay": math.exp, "decay_less_one": math.expm1,
}  # fmt: skip
#: Polynomials for float32, which compile to vector instructions.
POLYNOMIALS = {
    "exp": lambda x: polynomials.exp(x), "log": lambda x: polynomials.log(x), "log1p": lambda x: polynomials.log1p(x),
    "tanh": lambda x: polynomials.tanh(x), "erf": lambda x: polynomials.erf(x),
    "sigmoid": lambda x: polynomials.sigmoid(x), "normal_cdf": lambda x: polynomials.normal_cdf(x),
    "decay": lambda x: polynomials.decay(x), "decay_less_one": lambda x: polynomials.decay_less_one(x),
}  # fmt: skip
#: Instructions of LLVM.
INTRINSICS = {
    "sqrt": "llvm.sqrt", "abs": "llvm.fabs", "floor": "llvm.floor", "ceil": "llvm.ceil", "trunc": "llvm.trunc",
    "exp2": "llvm.exp2",
}  # fmt: skip
COMPARED = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


def body_of(tree: Any) -> Any:
    """Return the intrinsic of Numba that runs the function ``tree`` on a tuple of C-contiguous arrays."""
    names = [each.arg for each in tree.args.args]

    @intrinsic
    def body(context: Any, arrays: Any) -> Any:
        if any(each.layout != "C" or not each.aligned for each in arrays):
            raise TypeError("an array that is not C-contiguous or aligned")

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            given = {}
            dtype = next((kind.dtype for kind in arrays if kind.dtype != types.boolean), types.float64)
            for place, (name, kind) in enumerate(zip(names, arrays, strict=True)):
                array = context.make_array(kind)(context, builder, builder.extract_value(args[0], place))
                given[name] = _Buffer(array.data, kind.dtype == types.boolean)
            Translator(context, builder, given, dtype).run(tree.body)
            return context.get_dummy_value()

        return types.void(arrays), generate

    return body


class _Buffer:
    """Memory of an array: a pointer to its first element, which is a number, or a bool in a byte."""

    def __init__(self, pointer: Any, is_bool: bool) -> None:
        self.pointer, self.is_bool = pointer, is_bool


class Translator:
    """Translator of statements to instructions, which ``builder`` appends; ``names`` has the value of each variable.

    ``dtype`` is the type of numbers, float32 or float64.
    """

    def __init__(self, context: Any, builder: Any, names: dict[str, Any], dtype: Any) -> None:
        self.context, self.builder, self.names = context, builder, {"inf": math.inf, "nan": math.nan, **names}
        self.dtype, self.kind = dtype, context.get_value_type(dtype)

    def run(self, statements: list[Any]) -> None:
        """Translate ``statements``."""
        for each in statements:
            if isinstance(each, ast.For):
                self._loop(each)
            elif isinstance(each.targets[0], ast.Name):
                self.names[each.targets[0].id] = self._expression(each.value)
            else:
                target, index = self._element(each.targets[0])
                value = self._expression(each.value)
                if target.is_bool:
                    value = self.builder.zext(value, BYTE)
                self.builder.store(value, self.builder.gep(target.pointer, [index]))

    def _loop(self, loop: Any) -> None:
        count = loop.iter.args[0].value
        if _length(loop) <= UNROLLED:
            for k in range(count):
                self.names[loop.target.id] = k
                self.run(loop.body)
            return
        with cgutils.for_range(self.builder, INT(count), intp=INT) as each:
            self.names[loop.target.id] = each.index
            self.run(loop.body)

    def _element(self, node: Any) -> tuple[_Buffer, Any]:
        index = self._expression(node.slice)
        return self.names[node.value.id], INT(index) if isinstance(index, int) else index

    def _expression(self, node: Any) -> Any:
        return getattr(self, "_" + type(node).__name__.lower())(node)

    def _name(self, node: Any) -> Any:
        return self.names[node.id]

    def _constant(self, node: Any) -> Any:
        return BIT(node.value) if isinstance(node.value, bool) else node.value

    def _subscript(self, node: Any) -> Any:
        source, index = self._element(node)
        value = self.builder.load(self.builder.gep(source.pointer, [index]))
        return self.builder.trunc(value, BIT) if source.is_bool else value

    def _binop(self, node: Any) -> Any:
        a, b, kind = self._expression(node.left), self._expression(node.right), type(node.op)
        if isinstance(a, int) and isinstance(b, int):
            return a * b if kind is ast.Mult else a + b
        if isinstance(a, int) or isinstance(b, int) or a.type == INT:
            a, b = (INT(each) if isinstance(each, int) else each for each in (a, b))
            return (self.builder.mul if kind is ast.Mult else self.builder.add)(a, b, flags=("nsw",))
        name = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}[kind]
        return getattr(self.builder, name)(a, b)

    def _unaryop(self, node: Any) -> Any:
        value = self._expression(node.operand)
        if isinstance(node.op, ast.Not):
            return self.builder.not_(value)
        return -value if isinstance(value, (int, float)) else self.builder.fneg(value)

    def _compare(self, node: Any) -> Any:
        a, b, sign = self._expression(node.left), self._expression(node.comparators[0]), COMPARED[type(node.ops[0])]
        if a.type == BIT:
            return self.builder.icmp_unsigned(sign, a, b)
        return (self.builder.fcmp_unordered if sign == "!=" else self.builder.fcmp_ordered)(sign, a, b)

    def _boolop(self, node: Any) -> Any:
        found, *rest = map(self._expression, node.values)
        for each in rest:
            found = (self.builder.and_ if isinstance(node.op, ast.And) else self.builder.or_)(found, each)
        return found

    def _ifexp(self, node: Any) -> Any:
        return self.builder.select(*map(self._expression, (node.test, node.body, node.orelse)))

    def _call(self, node: Any) -> Any:
        name, builder = node.func.id, self.builder
        if name == "empty":
            kind = BYTE if len(node.args) > 1 else self.kind
            return _Buffer(cgutils.alloca_once(builder, kind, INT(node.args[0].value)), kind is BYTE)
        args = [self._expression(each) for each in node.args]
        if name == "F":
            return self.kind(float(args[0]))
        if name == "constant":
            data = ir.Constant(ir.ArrayType(self.kind, len(args)), [self.kind(float(each)) for each in args])
            variable = cgutils.global_constant(builder, "constant", data)
            return _Buffer(builder.gep(variable, [INT(0), INT(0)]), False)
        if name == "plus":
            return builder.fadd(*args, flags=("reassoc",))
        if name in INTRINSICS:
            form = ir.FunctionType(self.kind, [self.kind] * len(args))
            return builder.call(builder.module.declare_intrinsic(INTRINSICS[name], [self.kind], form), args)
        if name in POLYNOMIALS and self.dtype == types.float32:
            signature = typing.signature(self.dtype, self.dtype)
            return self.context.compile_internal(builder, POLYNOMIALS[name], signature, args)
        if name == "sigmoid":
            grown = self._function(math.exp, [builder.fneg(args[0])])
            return builder.fdiv(self.kind(1.0), builder.fadd(self.kind(1.0), grown))
        if name == "normal_cdf":
            tail = self._function(math.erfc, [builder.fmul(builder.fneg(args[0]), self.kind(math.sqrt(0.5)))])
            return builder.fmul(self.kind(0.5), tail)
        return self._function(FUNCTIONS[name], args)

    def _function(self, function: Any, args: list[Any]) -> Any:
        signature = typing.signature(self.dtype, *[self.dtype] * len(args))
        if function is math.pow:
            function = operator.pow
        return self.context.get_function(function, signature)(self.builder, args)


def _length(node: Any) -> int:
    """Return the number of statements of which the loop ``node`` consists if it is unrolled."""
    if not isinstance(node, ast.For):
        return 1
    return int(node.iter.args[0].value) * sum(map(_length, node.body))  # type: ignore[attr-defined]
