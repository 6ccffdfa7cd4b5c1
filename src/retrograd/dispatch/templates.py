"""Templates from which the functions of operations are generated: a call, an in-place call, and a vjp.

The first parameter ``form`` of a template describes the function to be generated: it is a :class:`~.form.Form`, for a
vjp (vector-Jacobian product) a ``VjpForm``. ``dispatch/fast_path.py`` generates a copy of the template for each
function (``runtime/specialization.py``), in which the attributes of ``form`` are constants. With
``RETROGRAD_CODEGEN=0``, and in the first calls of a function, the templates themselves run.

All templates use the same names. ``args`` are the values of the function's named parameters, ``rest`` and ``unknown``
further positional and keyword arguments of the call, and ``out`` is its argument ``out=``. Three lists have one item
for each operand: ``x`` has the operands, ``a`` their arrays (or the operand itself if it is a number), and ``e`` their
gradient edges. ``p`` are the parameters of the operation, ``r`` the arrays of the results, and ``y`` the results as
Tensors. ``d`` is the dtype of the first operand.
"""

from __future__ import annotations

from sys import _getframe
from threading import get_ident
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy

from ..core import devices
from ..core.deferral import active_cursor
from ..core.devices import CPU, CUDA_MODULES
from ..core.grad_mode import in_inference, recording
from ..core.graph import AccumulateGrad, OutputEdge, edges_of_other_shape, next_number
from ..core.lazy_tensor import Lazy
from ..core.rule_namespace import RULE_NAMESPACES
from ..core.rule_namespace import rule_namespace_of as level_of
from ..core.saved_tensor_hooks import before_modification
from ..core.tensor import Tensor, leaf_from_array, new, share_memory, wrap
from ..core.torch_function import state
from ..core.views import (
    current_edge,
    freed_error,
    mark_interrupted,
    modified_inplace_error,
    rebase_history,
    view_of,
    views_of,
)
from ..kernels.numba_dispatch import LARGE, plain, raised
from ..kernels.threaded_ufuncs import MANY
from ..runtime.fp_warnings import USUAL, errors
from ..runtime.interrupts import has_returned
from ..runtime.specialization import bind, inlined, slots
from ..runtime.user_frame import MARK, strip_frames
from .argument_checks import check_call, use_numpy_names
from .call_errors import (
    call_error,
    check_result,
    is_of_numpy,
    public_error,
    repeated,
)
from .fallback import PASSED, fall_back
from .form import AXIS, COMPUTED, KEYWORD, METHOD, NEW_AXIS, POSITIONAL
from .generic_path import complete_hooked, complete_modification, counter_of_inference, kernel_on_gpu, watched
from .intercept import GO_ON, HANDLERS, OVERRIDING, ask_classes_of_call, intercept_call
from .node_classes import FIXED, SCALAR_GRADIENTS, counted
from .op import MISSING
from .operand_promotion import F32, F64, INTEGERS, NUMBERS, PLAIN, SCALARS, is_exempt, plain_number, promote_operands
from .out_argument import call_into_out
from .signatures import check_keywords

if TYPE_CHECKING:
    from ..core.typing import ArrayDType, Edge, Edges, Function, Gradient, Gradients
    from .argument_checks import Usual
    from .form import Form, FunctionForm, KernelForm, PublicForm, VjpForm
    from .op import Saved
    from .typing import (
        Argument,
        ArgumentList,
        ArrayList,
        Cell,
        DeclaredNode,
        EdgeList,
        KernelResult,
        OperandList,
        OptionalNamespace,
        ParamList,
        Result,
        ResultArrays,
        ResultList,
        SavedList,
        SavedValue,
    )

__retrograd_call__ = True  # frames between the user's call and the operation: user_frame.CALL_MARK
ndarray, asarray = numpy.ndarray, numpy.asarray
make_tuple = tuple.__new__
#: The user's frame in a thread that runs only a generated function.
NO_FRAME = SimpleNamespace(f_code=None, f_lasti=-1)
#: The value of ``_counter`` of inference tensors, which must not be saved: the fallback raises before it writes.
INFERENCE = ()
ARRAYS, TENSORS = RULE_NAMESPACES[ndarray], RULE_NAMESPACES[Tensor]
#: How an in-place operation writes its result: by a ufunc or loop, by the lambda expression ``write``, by an assignment.
CALL, WRITE, COPY = 1, 2, 3


@inlined
def is_plain(kind: type) -> bool:
    """Return true if instances of the class ``kind`` are taken as Tensors."""
    return kind in PLAIN or is_exempt(kind)


@inlined
def unsupported(form: Form, d: ArrayDType) -> bool:
    """Return true if operands of the dtype ``d`` must be converted before an elementwise kernel is called."""
    return d not in form.dtypes if form.refuses_floats else d is not F32 and d is not F64 and d not in form.dtypes


@inlined
def picked(k: int, a: ArrayList, p: ParamList, d: ArrayDType) -> object:
    """Return the value for one parameter of a lambda expression, such as a variant of a kernel.

    ``k`` is the number of the value in :meth:`Form.sources`. ``a`` are the arrays of the operands, ``p`` the parameters
    of the operation, and ``d`` is the dtype of the first operand.
    """
    return d if k == -1 else a[k] if k >= 0 else p[-2 - k]


@inlined
def rank(kind: str, a: ArrayList) -> int:
    """Return the number of dimensions that a dimension argument of the operation can refer to.

    This number is added to a negative argument. It is ``a[0].ndim`` if ``kind`` is ``AXIS``. If ``kind`` is
    ``NEW_AXIS``, for a dimension that an operation such as ``unsqueeze`` inserts, it is one more. ``a`` are the arrays
    of the operands.
    """
    return a[0].ndim + 1 if kind == NEW_AXIS else a[0].ndim


@inlined
def is_number(form: Form, i: int, a: ArrayList, x: OperandList) -> bool:
    """Return true if operand ``i`` is a number.

    ``x`` are the operands, and ``a`` their arrays; for a number, both lists have the number. No code is generated for
    operands that can only be tensors.
    """
    return form.takes_number[i] and a[i] is x[i]


@inlined
def is_default(exact: bool, default: object, value: Argument) -> object:
    """Return true if ``value`` equals ``default``, and is an int if ``exact`` is true: integers times 1.0 are refused."""
    return value == default and (not exact or value.__class__ is int)


@inlined
def unusual(each: Usual, value: Argument) -> object:
    """Return true if ``value`` is not a usual argument for the parameter ``each``: Note [Usual arguments]."""
    return (
        (not each.optional or value is not each.default)
        and (value.__class__ is not each.classes[0] if len(each.classes) == 1 else value.__class__ not in each.classes)
        and (
            not each.ints
            or (value.__class__ is not tuple and value.__class__ is not list)
            or (value and value[0].__class__ is not int)
        )
        and (not each.tensor or value.__class__ not in PLAIN)
    )


@inlined
def returned(form: Form, y: ResultList) -> Result:
    """Return the results ``y`` as the public function returns them: a tensor, a named tuple or a tuple."""
    return y[0] if form.shown == 1 else make_tuple(form.result_class, (*y,)) if form.result_class is not None else (*y,)


@inlined
def kernel_call(form: Form, kernel: Function, a: ArrayList, p: ParamList) -> KernelResult:
    """Return the result of ``kernel`` for the arrays ``a`` of the operands and the parameters ``p``."""
    return kernel(
        numpy, *a, *p[: form.op.positional], **dict(zip(form.op.params[form.op.positional :], p[form.op.positional :]))
    )


@inlined
def ask_cursor(
    form: FunctionForm,
    args: ArgumentList,
    rest: tuple[object, ...],
    unknown: dict[str, object],
    out: object,
    answer: Cell,
) -> None:
    """Set ``answer[0]`` to the result of the call if a compiled function runs, which defers the call or runs it.

    If the call is the expected one, it is deferred here. See Note [Deferral] in ``compiler/cursor.py``.
    """
    cursor = active_cursor()
    if cursor is not None:
        if not form.over:
            if (
                cursor.expected.function is form.function
                and recording() is cursor.mode
                and get_ident() == cursor.thread
                and (not form.has_rest or not rest)
                and (not form.has_unknown or not unknown)
                and (not form.takes_out or out is None)
            ):
                result = new(Lazy)
                count = len(cursor.values)
                # From here on nothing is called until the result is in the list: Note [Re-entrancy] in compiler/cursor.py.
                entry, values = cursor.expected, cursor.values
                if (
                    entry.function is form.function
                    and entry.place == count
                    and all(
                        [
                            (values[entry.places[i]] if entry.places[i] >= 0 else entry.constants[i]) is args[i]
                            or (
                                form.name == "__getitem__"
                                and i == 1  # slices with identical bounds: small integers, or None
                                and entry.constants[i].__class__ is slice
                                and args[i].__class__ is slice
                                and entry.constants[i].start is args[i].start
                                and entry.constants[i].stop is args[i].stop
                                and entry.constants[i].step is args[i].step
                            )
                            for i in range(len(form.args))
                        ]
                    )
                    and entry is cursor.expected
                    and values is cursor.values
                ):
                    result._creation_meta = entry
                    cursor.expected, _ = entry.next, values.append(result)
                    answer[0] = result
        if answer[0] is GO_ON:
            answer[0] = cursor.called(form.function, *form.call([*args], rest, unknown, out))


# --- A call ---------------------------------------------------------------------------------------------------------


def call(form: Form, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object], out: object) -> Result:
    """Template of a function that returns the result of an operation: new tensors, views, or the modified operand.

    ``args`` are the values of the function's named parameters, ``rest`` and ``unknown`` further positional and keyword
    arguments of the call, and ``out`` is its argument ``out=``. If ``form.over`` is true, the result is written into the
    first operand, and this operand is returned.
    """
    computed = slots(1)  # whether the result is complete, so that the call must not be repeated
    computed[0] = False
    try:
        if not form.on_gpu:  # the function for the CPU has passed the call on
            if HANDLERS:
                answer = slots(1)
                answer[0] = GO_ON
                ask_cursor(form, args, rest, unknown, out, answer)
                if answer[0] is GO_ON and state()[4]:
                    answer[0] = intercept_call(form.reader, [*args], rest, unknown, out)
                if answer[0] is not GO_ON:
                    return answer[0]
            if form.count == 0:  # there is no fast path
                return fall_back(form, args, rest, unknown, out)
            if (form.takes_rest and rest) or (form.takes_unknown and unknown) or (form.takes_out and out is not None):
                return fall_back(form, args, rest, unknown, out)
            if any(
                [(args[i] != default) if form.by_value[i] else (args[i] is not default) for i, default in form.ignored]
            ):
                return fall_back(form, args, rest, unknown, out)
            for i in form.numbers:
                if args[i].__class__ in SCALARS:
                    args[i] = plain_number(args[i])
            if any([unusual(each, args[each.place]) for each in form.checked]):
                return fall_back(form, args, rest, unknown, out)
            if form.when is not None:
                if not form.when(*[args[i] for i in form.when_arguments]):
                    return fall_back(form, args, rest, unknown, out)
            if form.over:
                if before_modification or not form.modifies:
                    return fall_back(form, args, rest, unknown, out)
        x = slots(form.count)
        for i in form.indices:
            bind(x, i, args[form.operands[i]])
        a = slots(form.count)
        e = slots(form.count)
        mixed = slots(1)  # whether the operands must be converted to one dtype
        if form.count > 2:
            mixed[0] = False

        # The operands: plain tensors of a dtype that the kernel accepts without conversion, and numbers.
        for i in form.indices:
            kind = x[i].__class__
            if kind is Tensor or (
                is_plain(kind) if not form.takes_number[i] else kind not in NUMBERS and is_plain(kind)
            ):
                a[i] = x[i]._array
                if not form.over:
                    # What current_edge() does for a view that is in no graph, and for one that is and was not modified since.
                    e[i] = (
                        x[i]._grad_edge
                        if (base := x[i]._view) is None
                        or (
                            x[i]._grad_edge is None
                            if base._grad_edge is None
                            else x[i]._grad_edge is not None
                            and x[i]._counter
                            and x[i]._view_version == x[i]._counter[0]
                        )
                        else current_edge(x[i])
                    )
                if i == 0:
                    if form.on_gpu:
                        if devices.several_gpus or CUDA_MODULES.get(a[0].__class__) is None:
                            return fall_back(form, args, rest, unknown, out)
                    elif a[0].__class__ is not ndarray:
                        if form.device_call is None:
                            return fall_back(form, args, rest, unknown, out)
                        return form.device_call(
                            *args[: form.positional], *rest, **dict(zip(form.keywords, args[form.positional :]))
                        )
                    d = a[0].dtype
                elif form.on_gpu:
                    if a[i].__class__ is not a[0].__class__:
                        return fall_back(form, args, rest, unknown, out)
                if form.general:
                    if (a[i].dtype is not d if i else d is not F32 and d is not F64) and a[i].dtype not in form.dtypes:
                        return fall_back(form, args, rest, unknown, out)
                elif form.pointwise and i:
                    mixed[0] = a[1].dtype is not d if i == 1 else mixed[0] or a[i].dtype is not d
            elif form.takes_number[i] and kind in NUMBERS:
                # A float beside integers makes floats of them, and short floats are calculated in float32.
                a[i] = x[i]
                if not form.over:
                    e[i] = None
                usual = (kind is not bool if form.op.check is not None else True) and (
                    d is F32 or d is F64 or (kind is int and d in INTEGERS and 0 <= x[i] < 128)
                )
                mixed[0] = not usual if i == 1 else mixed[0] or not usual
            elif form.optional[i] and x[i] is None:
                a[i] = e[i] = None
            else:
                return fall_back(form, args, rest, unknown, out)

        p = slots(len(form.parameters))
        for j, kind, source, given in form.parameters:
            if kind == PASSED:
                bind(p, j, args[source])
            elif kind == AXIS or kind == NEW_AXIS:
                if args[source].__class__ is not int:
                    return fall_back(form, args, rest, unknown, out)
                bind(p, j, args[source] if args[source] >= 0 else args[source] + rank(kind, a))
                if not 0 <= p[j] < rank(kind, a):
                    return fall_back(form, args, rest, unknown, out)
            elif kind == COMPUTED:
                bind(
                    p,
                    j,
                    source(a[0], rest)
                    if form.spread
                    else source(a[0], *[args[k] if k >= 0 else p[-1 - k] for k in given]),
                )
                if p[j] is None:
                    return fall_back(form, args, rest, unknown, out)
            else:
                bind(p, j, source)
        if any([p[j].__class__ is Tensor for j in form.number_parameters]):
            return fall_back(form, args, rest, unknown, out)
        if form.over:
            return modify(form, args, rest, unknown, out, x, a, e, p, d, mixed, computed)
        return compute(form, args, rest, unknown, out, x, a, e, p, d, mixed, computed)
    except KeyboardInterrupt as error:
        strip_frames(error)
        raise
    except FloatingPointError as error:  # numpy.seterr(all="raise"): the fallback ignores NumPy's error handling
        if computed[0] or not is_of_numpy(form, error):
            raise
        again = None
    except Exception as error:
        again = None if computed[0] else repeated(form, error, [*args], rest, unknown, out)
        if again is None:
            error = call_error(form, error, [*args], rest, unknown, out, computed[0])  # type: ignore[assignment]
            if error is None:
                raise
            raise error from error.__cause__  # RETROGRAD_TRACEBACK=full shows how it came to this
    return fall_back(form, args, rest, unknown, out) if again is None else again()


# --- A new tensor, or a view ----------------------------------------------------------------------------------------


@inlined
def compute(
    form: Form, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object], out: object, x: OperandList,
    a: ArrayList, e: EdgeList, p: ParamList, d: ArrayDType, mixed: Cell, computed: Cell,
) -> Result:  # fmt: skip
    """Call the kernel, and return its results as new tensors or views of the first operand, with their graph node.

    This is the last part of :func:`call`. ``mixed[0]`` is true if operands must be converted; ``computed[0]`` is set to
    True when the kernel has succeeded. See the module's docstring for the names of the other parameters.
    """
    if form.pointwise:
        if (form.count > 1 and mixed[0]) or unsupported(form, d):
            if form.on_gpu:
                return fall_back(form, args, rest, unknown, out)
            promoted = promote_operands(form.op, form.dtypes, *a)
            if promoted is None:
                return fall_back(form, args, rest, unknown, out)
            a[:], d = promoted
    if form.if_arrays is not None:
        if not form.if_arrays(*[picked(k, a, p, d) for k in form.array_arguments]):
            return fall_back(form, args, rest, unknown, out)
    if form.identity_if is not None:
        if form.identity_if(*[picked(k, a, p, d) for k in form.identity_arguments]):
            return x[0]

    # The kernel.
    r = slots(form.results)
    if form.on_gpu:
        if any([p[j].__class__ is Tensor for j in form.ufunc_parameters]):
            return fall_back(form, args, rest, unknown, out)
        if form.view and form.inline is not None:
            found = form.inline(*[picked(k, a, p, d) for k in form.inline_arguments])
            if form.inline_declines:
                if found is None:
                    if form.inline_only:
                        return fall_back(form, args, rest, unknown, out)
                    found = kernel_on_gpu(form.op, (*a,), (*p,))
        else:
            found = kernel_on_gpu(form.op, (*a,), (*p,))
    elif form.ufunc is not None:
        if all([is_default(exact, default, p[j]) for j, default, exact in form.defaults]):
            if form.parallel_ufunc is not None and a[0].size >= LARGE:
                found = form.parallel_ufunc(
                    *[asarray(a[i], d) if is_number(form, i, a, x) else a[i] for i in form.indices]
                )
            else:
                found = form.ufunc(*[asarray(a[i], d) if is_number(form, i, a, x) else a[i] for i in form.indices])
        elif any([p[j].__class__ is Tensor for j in form.ufunc_parameters]):
            return fall_back(form, args, rest, unknown, out)
        else:
            b = slots(form.count)
            for i in form.indices:
                bind(b, i, asarray(a[i], d) if is_number(form, i, a, x) else a[i])
            found = kernel_call(form, form.op.kernel, b, p)
    elif form.inline is not None:
        found = form.inline(*[picked(k, a, p, d) for k in form.inline_arguments])
        if form.inline_declines:
            if found is None:
                if form.inline_only:
                    return fall_back(form, args, rest, unknown, out)
                found = kernel_call(form, form.op.kernel, a, p)
    elif form.pointwise and a[0].size >= MANY:
        found = kernel_call(form, form.threaded_kernel, a, p)
    else:
        found = kernel_call(form, form.op.kernel, a, p)
    if form.results == 1:
        bind(r, 0, found)
    else:
        r[:] = found

    computed[0] = True

    # The results as Tensors.
    mode = recording()
    y = slots(form.shown)
    if form.op.several:
        if form.view:
            bind(y, 0, views_of(x[0], r[0]))
        else:
            bind(y, 0, tuple([wrap(each) for each in r[0]]))
        if not mode:
            if not form.view and in_inference():
                for each in y[0]:
                    each._counter = ()
            return returned(form, y)
    elif form.view:
        if not mode:
            return view_of(x[0], r[0])
        y[0], base, counter = new(Tensor), x[0]._view, x[0]._counter
        if not counter:
            if counter is not None:  # an inference tensor
                return view_of(x[0], r[0])
            counter = x[0]._counter = [0, None]
        y[0]._array, y[0]._counter, y[0]._view_version = r[0], counter, counter[0]
        y[0]._grad_edge = y[0]._grad = None
        if base is None:
            y[0]._view, y[0]._creation_meta = x[0], 0
        else:
            y[0]._view, y[0]._creation_meta = base, x[0]._creation_meta
    else:
        for k in range(form.results):
            if not form.on_gpu:
                if r[k].__class__ is not ndarray:
                    r[k] = asarray(r[k])
            if form.op.in_order:
                if r[k].ndim > 1 and not r[k].flags.c_contiguous:
                    r[k] = r[k].copy()
        for k in range(form.shown):
            y[k] = new(Tensor)
            y[k]._array = r[k]
            y[k]._view = y[k]._grad = y[k]._grad_edge = y[k]._counter = None
        if not mode:
            if in_inference():
                for k in range(form.shown):
                    y[k]._counter = ()
            return returned(form, y)

    # The node.
    if form.records:
        if form.op.several:
            if mode is not True:
                watched(form.op, (*x,), (*a,), (*p,), (*e,), y[0])
            elif e[0] is not None and d.kind in "fcVW" and r[0]:
                node = counted(form.node, len(r[0]))()
                node.edges = (e[0],)
                save_values(form, None, node, x, a, e, p, r, y)
                node.number, node.hooks, node.shape, node.dtype = next_number(), None, r[0][0].shape, d
                note_location(node)
                for position, array in enumerate(r[0]):
                    edge = y[0][position]._grad_edge = new(OutputEdge)
                    edge.node, edge.position, edge.shape, edge.dtype = node, position, array.shape, d
                    edge.hooks, edge.number = None, next_number()
        else:
            record(form, x, a, e, p, r, y, d)
            if mode is not True:
                complete_hooked((*x,), (*y, *r[form.shown :]))
    return returned(form, y)


# --- In place -------------------------------------------------------------------------------------------------------


@inlined
def modify(
    form: Form, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object], out: object, x: OperandList,
    a: ArrayList, e: EdgeList, p: ParamList, d: ArrayDType, mixed: Cell, computed: Cell,
) -> Result:  # fmt: skip
    """Write the result of the kernel into the first operand, create the graph node, and return the operand.

    This is the last part of :func:`call`. ``mixed[0]`` is true if operands must be converted; ``computed[0]`` is set to
    True when the result has been written. See the module's docstring for the names of the other parameters.
    """
    versions = x[0]._counter
    if not versions:
        if versions is not None:
            return fall_back(form, args, rest, unknown, out)
        versions = x[0]._counter = [0, None]

    # Their edges. The fallback handles leaves, views created in a special way, hooks, and operands that share memory.
    if form.op.has_rules:
        mode = recording()
        if mode:
            base = x[0]._view
            if base is not None and (
                x[0]._creation_meta
                or base._grad_edge.__class__ is AccumulateGrad
                or (x[0]._grad_edge is not None if base._grad_edge is None else base._grad_edge.hooks is not None)
            ):
                return fall_back(form, args, rest, unknown, out)
            e[0] = x[0]._grad_edge if base is None else current_edge(x[0])
            for i in form.indices[1:]:
                if is_number(form, i, a, x):
                    e[i] = None
                else:
                    e[i] = x[i]._grad_edge if x[i]._view is None else current_edge(x[i])
            if all([e[i] is None for i in form.indices]):
                mode = False
            elif (
                mode is not True
                or d.kind != "f"
                or (e[0] is not None and (e[0].__class__ is AccumulateGrad or e[0].hooks is not None))
                or (base is not None and base._grad_edge is not None and base._grad_edge.hooks is not None)
                or any(
                    [
                        not is_number(form, i, a, x) and (x[i]._counter is versions or x[i]._counter is INFERENCE)
                        for i in form.saved_operands
                    ]
                )
            ):
                return fall_back(form, args, rest, unknown, out)
            elif form.saves_first:
                old = a[0].copy()
    if a[0].base is not None and 0 in a[0].strides:  # elements may share memory
        return fall_back(form, args, rest, unknown, out)
    for i in form.indices[1:]:
        if (
            not is_number(form, i, a, x)
            and a[i] is not a[0]
            and (a[0].base is not None or a[i].base is not None)
            and share_memory(a[i], a[0])
        ):
            return fall_back(form, args, rest, unknown, out)
    if form.if_arrays is not None:
        if not form.if_arrays(*[picked(k, a, p, d) for k in form.array_arguments]):
            return fall_back(form, args, rest, unknown, out)

    # The kernel. The handler of an interrupt completes the call if the result is being written, or has been.
    plain_dtypes = form.pointwise and not ((form.count > 1 and mixed[0]) or unsupported(form, d))
    version, writing = versions[0], 0
    frame = slots(1)
    find_user_frame(frame)
    try:
        if (
            form.ufunc is not None
            and plain_dtypes
            and all([is_default(exact, default, p[j]) for j, default, exact in form.defaults])
        ):
            b = slots(form.count)
            for i in form.indices:
                bind(b, i, asarray(a[i], d) if is_number(form, i, a, x) else a[i])
            writing = CALL
            try:
                if form.parallel_ufunc is not None and a[0].size >= LARGE:
                    form.parallel_ufunc(*b, out=a[0])
                else:
                    form.ufunc(*b, out=a[0])
            except (Warning, FloatingPointError):  # NumPy raises them after everything is written
                pass
            computed[0] = True
        elif (
            form.write is not None
            and errors.get() is USUAL  # otherwise NumPy may raise an error before or after it has written
            and (not form.pointwise or (plain_dtypes and (d is F32 or d is F64)))
            and (form.write_if is None or form.write_if(*[picked(k, a, p, d) for k in form.write_if_arguments]))
        ):
            if form.write_large is not None and a[0].size >= LARGE:
                writing = CALL
                computed[0] = form.write_large(*[picked(k, a, p, d) for k in form.write_large_arguments])
            if form.write_large is None or not computed[0]:
                if form.write_ufunc is not None:
                    term = form.write(*[picked(k, a, p, d) for k in form.write_arguments])
                    writing = CALL
                    form.write_ufunc(a[0], term, out=a[0])
                else:
                    writing = WRITE
                    form.write(*[picked(k, a, p, d) for k in form.write_arguments])
                computed[0] = True
        if not computed[0]:
            if any([p[j].__class__ is Tensor for j in form.ufunc_parameters]):
                return fall_back(form, args, rest, unknown, out)
            target = a[0]
            if form.pointwise and not plain_dtypes:
                promoted = promote_operands(form.op, form.dtypes, *a)
                if promoted is None:
                    return fall_back(form, args, rest, unknown, out)
                a[:], _ = promoted
            result = kernel_call(form, form.op.kernel, a, p)
            if result.shape != target.shape or result.dtype.kind != d.kind:
                check_result(x[0], result)
            writing = COPY
            try:
                target[...] = result
            except (Warning, FloatingPointError):  # NumPy raises them after everything is written
                pass
            a[0] = target
            computed[0] = True
        versions[0] = version + 1
        versions[1] = frame[0].f_code, frame[0].f_lasti

        # The node.
        if form.op.has_rules:
            if mode:
                s = slots(form.count)
                if form.saves_first:
                    bind(s, 0, old)
                for i in form.indices[1:]:
                    bind(s, i, a[i])
                if form.count < 3 and base is None and (form.count == 1 or e[1] is None):
                    node = form.lone_nodes[0]()
                    node.edge = e[0]
                    save_values(form, 0, node, x, s, e, p, a, x)
                elif form.count == 2 and base is None and e[0] is None:
                    node = form.lone_nodes[1]()
                    node.edge = e[1]
                    save_values(form, 1, node, x, s, e, p, a, x)
                else:
                    node = form.node()
                    node.edges = tuple([e[i] if form.has_edge[i] else None for i in form.indices])
                    save_values(form, None, node, x, s, e, p, a, x)
                node.number, node.hooks, node.dtype = next_number(), None, d
                node.shape = a[0].shape if e[0] is None or edges_of_other_shape else e[0].shape
                node.code, node.instruction = versions[1]
                if base is None:
                    x[0]._grad_edge = node
                else:
                    rebase_history(x[0], node)
    except KeyboardInterrupt as error:
        if writing and not computed[0]:
            if writing == COPY:  # writing a second time has no other effect
                target[...] = result
                a[0] = target
                computed[0] = True
            elif form.write is not None and form.write_ufunc is None and writing == WRITE:
                form.write(*[picked(k, a, p, d) for k in form.write_arguments])
                computed[0] = True
            else:
                computed[0] = has_returned(error)
                if computed[0] is None:
                    mark_interrupted(x[0])
        if computed[0]:
            if form.op.has_rules and mode:
                complete_modification(
                    form.op, (*x,), (old if form.saves_first else a[0], *[a[i] for i in form.indices[1:]]), (*p,), (*e,),
                    version,
                )  # fmt: skip
            else:
                complete_modification(form.op, (*x,), (), (), (), version)
        raise
    return x[0]


# --- The node -------------------------------------------------------------------------------------------------------


@inlined
def record(
    form: Form, x: OperandList, a: ArrayList, e: EdgeList, p: ParamList, r: ResultArrays, y: ResultList, d: ArrayDType
) -> None:
    """Create the graph node of a call if an operand has a gradient edge and the result is floating-point or complex.

    See the module's docstring for the names of the parameters.
    """
    if form.pointwise:
        record_node(form, x, a, e, p, r, y, d)
    elif any([e[i] is not None for i in form.indices]):
        dtype = r[0].dtype
        if dtype is d or dtype.kind in "fcVW":  # integers have no derivative
            record_node(form, x, a, e, p, r, y, dtype)


@inlined
def record_node(
    form: Form, x: OperandList, a: ArrayList, e: EdgeList, p: ParamList, r: ResultArrays, y: ResultList,
    dtype: ArrayDType,
) -> None:  # fmt: skip
    """Create the graph node of a call, with its edges and saved values, if an operand has a gradient edge.

    ``dtype`` is the dtype of the result. See the module's docstring for the names of the other parameters.
    """
    if form.single and (form.count == 1 or form.one_rule):
        if e[0] is not None:
            record_lone(form, 0, x, a, e, p, r, y, dtype)
    elif form.single and form.count == 2:
        if e[1] is None:
            if e[0] is not None:
                record_lone(form, 0, x, a, e, p, r, y, dtype)
        elif e[0] is None:
            record_lone(form, 1, x, a, e, p, r, y, dtype)
        else:
            record_all(form, x, a, e, p, r, y, dtype)
    elif any([e[i] is not None for i in form.indices]):
        record_all(form, x, a, e, p, r, y, dtype)


@inlined
def record_lone(
    form: Form, only: int, x: OperandList, a: ArrayList, e: EdgeList, p: ParamList, r: ResultArrays, y: ResultList,
    dtype: ArrayDType,
) -> None:  # fmt: skip
    """Create the graph node of a call in which only the operand with the index ``only`` has a gradient edge.

    ``dtype`` is the dtype of the result. See the module's docstring for the names of the other parameters.
    """
    node = form.lone_nodes[only]()
    node.edge = e[only]
    save_values(form, only, node, x, a, e, p, r, y)
    complete_node(form, only, node, x, a, e, r, y, dtype)


@inlined
def record_all(
    form: Form, x: OperandList, a: ArrayList, e: EdgeList, p: ParamList, r: ResultArrays, y: ResultList,
    dtype: ArrayDType,
) -> None:  # fmt: skip
    """Create the graph node of a call as a node with one edge for each operand; the edge may be None.

    ``dtype`` is the dtype of the result. See the module's docstring for the names of the other parameters.
    """
    node = form.node()
    node.edges = tuple([e[i] if form.has_edge[i] else None for i in form.indices])
    save_values(form, None, node, x, a, e, p, r, y)
    complete_node(form, None, node, x, a, e, r, y, dtype)


@inlined
def complete_node(
    form: Form, only: int | None, node: DeclaredNode, x: OperandList, a: ArrayList, e: EdgeList, r: ResultArrays,
    y: ResultList, dtype: ArrayDType,
) -> None:  # fmt: skip
    """Set the sequence number, shape, dtype and location of ``node``, and make it the gradient edge of the results.

    ``only`` is as for :func:`save_values`, and ``dtype`` is the dtype of the result. If an elementwise result has the
    shape of an operand, the node's shape is the same tuple object as that of the operand's gradient edge, so that the
    backward pass can compare shapes by identity.
    """
    node.number = next_number()
    node.hooks = None
    if form.single:
        y[0]._grad_edge = node
    else:
        y[0]._grad_edge = OutputEdge(node, 0, r[0].shape, r[0].dtype)
        for k in form.further:
            if r[k].dtype.kind in "fcVW":
                y[k]._grad_edge = OutputEdge(node, k, r[k].shape, r[k].dtype)
    if form.op.one:
        node.shape = ()
    elif not form.pointwise:
        node.shape = r[0].shape
    elif form.count == 1:
        node.shape = r[0].shape if edges_of_other_shape else e[0].shape
    else:
        if only is not None:
            shape = e[only].shape
        elif form.count == 2:
            shape = e[0].shape
        else:
            shape = (e[0] if e[0] is not None else e[1] if e[1] is not None else e[2]).shape
        if (edges_of_other_shape or not is_number(form, 1, a, x)) and r[0].shape != shape:
            shape = r[0].shape
        node.shape = shape
    node.dtype = dtype
    note_location(node)


@inlined
def note_location(node: DeclaredNode) -> None:
    """Store the location of the user's call in ``node``: the code object, and the offset of the instruction in it."""
    frame = slots(1)
    find_user_frame(frame)
    node.code = frame[0].f_code
    node.instruction = frame[0].f_lasti


@inlined
def find_user_frame(frame: Cell) -> None:
    """Find the frame of the user's call, which is the innermost frame outside retrograd, and store it in ``frame[0]``."""
    try:
        frame[0] = _getframe(1)
        while MARK in frame[0].f_globals:
            frame[0] = frame[0].f_back
    except (ValueError, AttributeError):  # a thread runs just this function: no frame is above
        frame[0] = NO_FRAME


@inlined
def save_values(
    form: Form, only: int | None, node: DeclaredNode, x: OperandList, a: ArrayList, e: EdgeList, p: ParamList,
    r: ResultArrays, y: ResultList,
) -> None:  # fmt: skip
    """Store in ``node`` the values that the derivative rules need.

    ``only`` is the index of the operand with a gradient edge if there is only one, otherwise None. See the module's
    docstring for the names of the other parameters.
    """
    for each in form.saved:
        if only is None and len(each.rules) < form.count and form.count > 2:
            if any([e[k] is not None for k in each.rules]):
                save_value(form, only, each, node, x, a, e, p, r, y)
        elif only is None or only in each.rules:
            save_value(form, only, each, node, x, a, e, p, r, y)


@inlined
def save_value(
    form: Form, only: int | None, each: Saved, node: DeclaredNode, x: OperandList, a: ArrayList, e: EdgeList,
    p: ParamList, r: ResultArrays, y: ResultList,
) -> None:  # fmt: skip
    """Store in ``node`` the value that ``each``, a :class:`Saved`, describes; for an array, also its version counter.

    The other parameters have the same meaning as for :func:`save_values`.
    """
    if each.kind == "result":
        setattr(node, each.held, r[each.index])
        if form.over:
            setattr(node, each.cell, x[0]._counter)
            setattr(node, each.seen, x[0]._counter[0])
        elif each.index < form.shown:
            version_counter = y[each.index]._counter = [0, None]
            setattr(node, each.cell, version_counter)
            setattr(node, each.seen, 0)
        else:
            setattr(node, each.cell, FIXED)
            setattr(node, each.seen, 0)
    elif each.kind == "tensor":
        if form.optional[each.index] and a[each.index] is None:
            setattr(node, each.held, None)
            setattr(node, each.cell, None)
            setattr(node, each.seen, 0)
        elif is_number(form, each.index, a, x) or (form.over and each.index == 0):
            setattr(node, each.held, a[each.index])
            setattr(node, each.cell, FIXED)
            setattr(node, each.seen, 0)
        else:
            version_counter = x[each.index]._counter
            if not version_counter:
                if version_counter is None:
                    version_counter = x[each.index]._counter = [0, None]
                else:
                    version_counter = counter_of_inference(form.op, each.name, node.__class__)
            setattr(node, each.held, a[each.index])
            setattr(node, each.cell, version_counter)
            setattr(node, each.seen, version_counter[0])
    elif each.kind == "shape":
        if each.index == only:
            setattr(node, each.held, a[each.index].shape if edges_of_other_shape else e[each.index].shape)
        else:
            setattr(node, each.held, () if is_number(form, each.index, a, x) else a[each.index].shape)
    elif each.kind == "dtype":
        setattr(node, each.held, r[0].dtype if is_number(form, each.index, a, x) else a[each.index].dtype)
    elif each.kind == "strides":
        setattr(node, each.held, a[each.index].strides)
    elif each.kind == "device":
        setattr(node, each.held, devices.device_of(a[each.index]) if form.on_gpu else CPU)
    elif each.kind == "out_shape":
        setattr(node, each.held, r[0].shape)
    elif each.kind == "out_dtype":
        setattr(node, each.held, r[0].dtype)
    else:
        setattr(node, each.held, p[each.index])


# --- A Python function ----------------------------------------------------------------------------------------------


def public(form: PublicForm, args: ArgumentList, rest: tuple[object, ...], unknown: dict[str, object]) -> Result:
    """Template of the public wrapper of a Python function: it calls ``form.target`` and returns its result.

    The wrapper intercepts calls, supports ``out=``, converts NumPy scalars where PyTorch expects numbers, and raises
    PyTorch's errors. ``args`` are the values of the named parameters, and ``rest`` and ``unknown`` further positional
    and keyword arguments.
    """
    try:
        if form.fallback:
            if OVERRIDING:
                answer = ask_classes_of_call(form, [*args], rest, unknown)
                if answer is not GO_ON:
                    return answer
        elif OVERRIDING or HANDLERS:
            answer = slots(1)
            answer[0] = GO_ON
            ask_cursor(form, args, rest, unknown, None, answer)
            if answer[0] is GO_ON and (OVERRIDING or state()[4]):
                answer[0] = intercept_call(form.reader, [*args], rest, unknown, None)
            if answer[0] is not GO_ON:
                return answer[0]
        if form.array_factory is not None:
            if not unknown:
                if not form.args or not rest:
                    array = form.array_factory(*args) if form.args else form.array_factory(rest)
                    if array is not None:
                        made = new(Tensor)
                        made._array = array
                        made._view = made._grad = made._grad_edge = None
                        made._counter = () if in_inference() else None
                        return made
            elif len(unknown) == 1 and unknown.get("requires_grad") is True and (not form.args or not rest):
                array = form.array_factory(*args) if form.args else form.array_factory(rest)
                if array is not None:
                    return leaf_from_array(array)
        if form.fast_function is not None:
            if not rest and not unknown:
                result = form.fast_function(*args)
                if result is not None:
                    return result
        if form.numpy_names:
            if unknown and not form.numpy_names.keys().isdisjoint(unknown):
                args[:], unknown = use_numpy_names(form, [*args], unknown)
        if not form.loose and any([args[i] is MISSING for i in form.required]):
            raise TypeError
        if form.loose:  # the function would accept any keyword
            if unknown and not form.keywords.issuperset(unknown):
                check_keywords(form.space, form.name, unknown)
        if any([unusual(each, args[each.place]) for each in form.checked]):
            args[:], rest, unknown = check_call(form, [*args], rest, unknown)
        elif form.usual_keywords and unknown:
            if any([key in unknown and unknown[key].__class__ not in classes for key, classes in form.usual_keywords]):
                args[:], rest, unknown = check_call(form, [*args], rest, unknown)
        if form.checks_rest:
            if len(rest) > form.unchecked:
                for value in rest[form.start :] if form.start else rest:
                    if value.__class__ not in form.usual_rest:
                        args[:], rest, unknown = check_call(form, [*args], rest, unknown)
                        break
        for i in form.numbers:
            if args[i].__class__ in SCALARS:
                args[i] = plain_number(args[i])
        for each in form.number_keywords:
            if unknown and unknown.get(each).__class__ in SCALARS:
                unknown[each] = plain_number(unknown[each])
        if form.out == METHOD:
            if "out" in unknown:
                raise TypeError
        elif form.out == POSITIONAL:
            if args[form.out_index] is not None:
                unknown = {**unknown, **dict(zip(form.args[form.out_index :], args[form.out_index :]))}
                return call_into_out(form.target, form.space, form.name, args[: form.out_index], unknown)
        elif form.out == KEYWORD:
            if unknown and unknown.get("out") is not None:
                return call_into_out(form.target, form.space, form.name, [*args, *rest], unknown)
        if unknown:
            return form.target(*args, *rest, **unknown)
        if rest or not form.args:
            return form.target(*args, *rest)
        if form.loose and any([args[i] is MISSING for i in form.required]):
            raise TypeError
        return form.target(*args)
    except KeyboardInterrupt as error:
        strip_frames(error)
        raise
    except Exception as error:
        again = repeated(form, error, [*args], rest, unknown, None)
        if again is None:
            error = public_error(form, error, [*args], rest, unknown)  # type: ignore[assignment]
            if error is None:
                raise
            raise error from error.__cause__  # RETROGRAD_TRACEBACK=full shows how it came to this
    return again()


# --- The vector-Jacobian product of a node ----------------------------------------------------------------------------


def vjp(form: VjpForm, node: DeclaredNode, g: Gradient, edges: Edges, keep: bool) -> Gradients:
    """Template of the method that returns the gradients of a node's operands for the gradient ``g`` of the result.

    The result is a tuple with one gradient for each operand, or None for an operand without a gradient edge. If the
    operation has only one operand, or the node only one edge, the result is the gradient itself. ``edges`` are the
    gradient edges of the operands. If ``keep`` is false, the arrays saved in ``node`` are released.
    """
    e = slots(form.count)
    if form.only is None:
        e[:] = edges
    if not form.uses_namespace:
        F = None
    elif form.record:
        F = TENSORS
    elif form.several:
        F = level_of(next(each for each in g if each is not None))
    else:
        F = ARRAYS if g.__class__ is ndarray else level_of(g)
    v = slots(len(form.saved))
    for k, each in form.saved:
        if form.only is not None or any([e[i] is not None for i in each.rules]):
            load_value(form, k, each, node, v, F)
    if form.large_sample is not None:
        large = (g if form.large_sample == -1 else v[form.large_sample]).__class__ is ndarray and (
            g if form.large_sample == -1 else v[form.large_sample]
        ).size >= LARGE
        if large:
            if g.__class__ is ndarray:
                g = raised(g)
            for k, each in form.saved_arrays:
                if form.only is not None or any([e[i] is not None for i in each.rules]):
                    v[k] = raised(v[k])
    if form.scalars:
        if g.__class__ is not ndarray and g.__class__ in SCALAR_GRADIENTS:
            for k, each in form.saved_arrays:
                if (form.only is not None or any([e[i] is not None for i in each.rules])) and v[k].__class__ is ndarray:
                    v[k] = v[k][()]
    shared = slots(form.count)
    out = slots(form.count)
    for i in form.live:
        if form.rules[i] is None:
            bind(out, i, None)
        elif form.sharing[i] is None:
            if form.only is not None:
                bind(out, i, gradient(form, i, g, F, v))
            else:
                bind(out, i, gradient(form, i, g, F, v) if e[i] is not None else None)
        else:
            if i == form.sharing[i][0] or form.only is not None:
                if form.only is not None:
                    shared[form.sharing[i][0]] = gradient(form, i, g, F, v)
                else:
                    shared[form.sharing[i][0]] = (
                        gradient(form, i, g, F, v) if any([e[k] is not None for k in form.sharing[i]]) else None
                    )
            if form.only is not None:
                bind(out, i, shared[form.sharing[i][0]][form.position[i]])
            else:
                bind(out, i, shared[form.sharing[i][0]][form.position[i]] if e[i] is not None else None)
    if form.large_sample is not None:
        if large:
            for i in form.live:
                if form.rules[i] is not None:
                    out[i] = plain(out[i])
    if not keep:
        for k, each in form.saved_arrays:
            setattr(node, each.held, None)
    return out[form.live[0]] if len(form.live) == 1 else tuple([out[i] for i in form.live])


@inlined
def gradient(form: VjpForm, i: int, g: Gradient, F: OptionalNamespace, v: SavedList) -> Gradient:
    """Return the gradient of operand ``i``, computed by its derivative rule from the incoming gradient ``g``.

    ``v`` are the saved values, and ``F`` is the namespace of operations. If several operands share the rule, the result
    is the tuple of the gradients of these operands.
    """
    return (
        (
            g
            if form.factors[i] == 1
            else -g
            if form.factors[i] == -1
            else None
            if form.factors[i] == 0
            else g * form.factors[i]
        )
        if form.factors[i] is not None
        else form.rules[i](*[F if k == -1 else g if k == -2 else v[k] for k in form.sources[i]])
        if form.takes_gradient[i]
        else g
        * (
            form.rules[i](*[F if k == -1 else v[k] for k in form.sources[i]])
            if form.calls[i]
            else v[form.sources[i][0]]
        )
    )


@inlined
def load_value(form: VjpForm, k: int, each: Saved, node: DeclaredNode, v: SavedList, F: OptionalNamespace) -> None:
    """Assign to ``v[k]`` the value saved in ``node`` that ``each``, a :class:`Saved`, describes.

    Raises RuntimeError if the value was released, or modified after it was saved. If the backward pass is recorded
    (``create_graph=True``), a saved array becomes a Tensor. ``F`` is the namespace of operations.
    """
    v[k] = getattr(node, each.held)
    if each.array:
        counter = getattr(node, each.cell)
        if v[k] is None:
            if counter is not None:  # None: None was passed for an optional tensor
                raise freed_error(node)
        elif counter[0] != getattr(node, each.seen):
            raise modified_inplace_error(
                node, v[k], counter, getattr(node, each.seen), saved_edge(form, each, node, v[k])
            )
        if form.record:
            if v[k].__class__ not in NUMBERS and v[k].__class__ is not complex and counter is not None:
                array = v[k]
                v[k] = new(Tensor)
                v[k]._array, v[k]._counter, v[k]._view, v[k]._grad = array, counter, None, None
                v[k]._grad_edge = saved_edge(form, each, node, array) if array.dtype.kind in "fcVW" else None
        # The vjp of a holomorphic function multiplies by the conjugate of its derivative. The derivatives have real
        # coefficients, so that this is the derivative at the conjugate: rules need no conjugation.
        if form.conjugate:
            if v[k].__class__ not in NUMBERS and counter is not None:
                v[k] = F.conj_physical(v[k])


@inlined
def saved_edge(form: VjpForm, each: Saved, node: DeclaredNode, value: SavedValue) -> Edge | None:
    """Return the gradient edge of the array ``value`` saved in ``node``, or None; ``each`` describes the value."""
    return (
        (None if each.constant else node.place(each.index, value))
        if each.kind != "tensor"
        else node.edges[each.index]
        if form.only is None
        else node.edge
        if each.index == form.only
        else None
    )


# --- A kernel, as derivative rules call it ----------------------------------------------------------------------------


def rule_kernel(form: KernelForm, args: ArgumentList) -> KernelResult:
    """Template of the function that derivative rules call as a kernel.

    It calls the kernel if the first of ``args`` is a float32 array, otherwise ``form.by_dtype``, which computes float16
    and bfloat16 arrays in float32.
    """
    if args[0].__class__ is ndarray and args[0].dtype is F32:
        return form.op.kernel(numpy, *args[: form.positional], **dict(zip(form.keywords, args[form.positional :])))
    return form.by_dtype(*args[: form.positional], **dict(zip(form.keywords, args[form.positional :])))
