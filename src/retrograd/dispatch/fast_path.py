"""The fast path: the functions of an operation are generated at their first call.

From its 32nd call on, the code of each function is a copy of a template (``dispatch/templates.py``) for its operation,
without loops. It accepts tensors on the CPU in all dtypes that the kernel supports. Calls with tensors on a GPU are
passed on to another copy of the template. For all other calls (half precision with numbers, complex numbers, ``out=``,
other subclasses, several GPUs, errors) it calls the fallback ``apply`` in
``dispatch/generic_path.py``. For 8 elements, a recorded operation takes 1.2 µs on the fast path, 7 to 10 µs through
``apply``, and 0.35 µs for the kernel alone. ``retrograd.mul.op.source`` is the specialised source after a first call.
"""

from __future__ import annotations

from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING

import numpy

from ..compat.lazy_imports import load_part
from ..core import dtypes
from ..runtime.lazy_functions import UNWRITTEN, generated, lazy_function, set_code
from . import generic_path, templates
from .form import FastPathSpec, Form, KernelForm, VjpForm
from .op import ARRAYS, Op
from .operand_promotion import F32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.typing import ArrayModule, Function
    from .form import FunctionForm
    from .op import Saved
    from .typing import KernelResult, Operand, Slow


def install_fast_path(
    op: Op, slow: Slow, public: str, over: bool, space: str, name: str, function: FunctionType
) -> None:
    """Generate the code of ``function``, which calls the operation ``op``, and assign it to ``function``.

    ``slow`` is the fallback for calls that the generated code does not support. If ``slow`` is a FastPathSpec, its
    attribute ``surface`` is the fallback. ``public``, ``over``, ``space`` and ``name`` are as for :class:`Form`.
    """
    spec = slow if isinstance(slow, FastPathSpec) else None
    form = Form(op, slow if spec is None else spec.surface, spec, public, over, name, space)
    if not over and form.count and (form.view or not (form.if_arrays or form.identity_if or form.inline_only)):
        form.device_call = _function_for_gpu(form)
    install(templates.call, form, function)
    if not form.over:
        op.tree = form.tree


def _function_for_gpu(form: Form) -> FunctionType:
    """Return the function to which the one that ``form`` describes passes calls with arrays on a GPU.

    It has the same arguments. Its code is generated at its first call.
    """
    space: dict[str, object] = {}

    def write(function: FunctionType) -> None:
        made = form.for_gpu()
        made.function = function
        set_code(function, generated(templates.call, made, function.__name__, space))

    return lazy_function(form.name, write, space)


def install(template: Function, form: FunctionForm, function: FunctionType) -> None:
    """Generate the code of ``function`` from the function ``template``, and assign it to ``function``.

    ``form`` describes ``function``; it is the first argument of ``template``.
    """
    form.function = function
    set_code(function, generated(template, form, function.__name__, function.__globals__))


def install_all_fast_paths(op: Op) -> None:
    """Generate the code of the functions of ``op`` again, because the kernel was replaced.

    Functions that have not been called yet have no generated code and are not changed.
    """
    op.ufunc = op.united = None
    for function, _ in op.forms:
        if function.__code__.co_filename != UNWRITTEN:
            function.__globals__["write"](function)


def compile_vjp(op: Op, saved: Sequence[Saved], conjugate: bool, record: bool, only: int | None) -> Function:
    """Generate and return the method ``vjp(node, g, edges, keep)`` of a node class of the operation ``op``.

    The method returns the gradients of the operands for the incoming gradient ``g``. ``saved``, ``conjugate``,
    ``record`` and ``only`` are as for :class:`VjpForm`.
    """
    return generated(templates.vjp, VjpForm(op, saved, conjugate, record, only), "vjp", {})


Op.compile_vjp = staticmethod(compile_vjp)


def kernel_for_rules(op: Op, np: ArrayModule) -> Function:
    """Return the kernel of ``op`` for derivative rules on arrays of the array module ``np``.

    If the kernel computes float16 and bfloat16 arrays in float32 and ``np`` is NumPy, the first call of the returned
    function generates a function that has exactly the parameters of ``op``, and that takes its place in ``ARRAYS``. The
    parameters ``*args`` and ``**kwargs`` would cost 0.25 µs per call.
    """
    kernel = np.kernel_of(op) if np.__name__ == "meta" else op.kernel
    if np.__name__ == "cupy":
        return load_part("kernels.cuda.calls").kernel_for_rules(op, _kernel_for_rules(op, np, kernel))
    return _kernel_for_rules(op, np, kernel)


def _kernel_for_rules(op: Op, np: ArrayModule, kernel: Function) -> Function:
    if not op.opmath or op.kind != "general":
        return partial(kernel, np)
    made = None

    def by_dtype(first: Operand, *rest: Operand, **named: object) -> KernelResult:
        if getattr(first, "dtype", None) not in dtypes.HALF_PRECISION:
            return kernel(np, first, *rest, **named)
        wide = [
            each.astype(F32) if getattr(each, "dtype", None) in dtypes.HALF_PRECISION else each
            for each in (first, *rest)
        ]
        return generic_path.retype(op, kernel(np, *wide, **named), first.dtype)

    if np is not numpy:
        return by_dtype

    def first_call(*given: object, **named: object) -> KernelResult:
        nonlocal made
        if made is None:
            made = generated(templates.rule_kernel, KernelForm(op, by_dtype), "kernel", {})
        if ARRAYS.__dict__.get(op.name) is first_call:
            ARRAYS.__dict__[op.name] = made
        return made(*given, **named)

    return first_call


Op.kernel_for_rules = kernel_for_rules
