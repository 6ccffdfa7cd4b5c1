"""Programs of functions that the user has declared pure: ``retrograd.value_and_grad`` and ``retrograd.hessian``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Context
from typing import TYPE_CHECKING

import numpy

from ..autograd.backward import gradients_of_tensors
from ..core.grad_mode import set_recording
from ..core.tensor import Tensor, leaf_from_array, wrap
from ..func.numpy_functions import second_derivatives
from .ir import Value
from .passes import eliminate_common_subexpressions, eliminate_dead_code
from .program import Program
from .recorder import Recorder, Traced, Unrecorded
from .regions import Region

if TYPE_CHECKING:
    from ..core.typing import Array

#: Computes the arrays of the results, which belong to the caller, from those of the arguments. The result is None if a
#: tensor that the function uses besides its arguments has been modified since the function was recorded.
Run = Callable[[Sequence["Array"]], "list[Array] | None"]


def program_of(
    f: Callable[..., Sequence[Tensor]],
    given: Sequence[object],
    chosen: Sequence[int] = (),
    record: bool = True,
    detaches: bool = True,
) -> Run | None:
    """Return a function that computes the arrays of the tensors that ``f`` returns for arguments like ``given``.

    It takes the arrays among ``given``, which must have the same shapes and dtypes. Those at the places ``chosen`` require
    gradients in ``f``, and ``record`` is the grad mode in ``f``. Return None if ``f`` cannot be recorded, for example
    because it reads elements or registers hooks, or, unless ``detaches``, if it uses other tensors that require gradients.
    """
    try:
        return Context().run(_compile, f, given, chosen, record, detaches)
    except Exception:  # if it is one of the program, it is raised in eager mode
        return None


def value_and_grad(f: Callable[..., Tensor], given: Sequence[object], chosen: Sequence[int]) -> Run | None:
    """Return a function that computes the value of ``f``, and the gradients of the arguments ``chosen``.

    See :func:`program_of`.
    """

    def both(*arguments: Tensor) -> list[Tensor]:
        result = f(*arguments)
        if not isinstance(result, Traced) or result.numel() != 1 or result.is_complex():
            raise Unrecorded("the result is not a real tensor with one element")
        leaves = [arguments[place] for place in chosen]
        found = gradients_of_tensors([result], leaves, [None], False, False)
        return [
            result,
            *[
                wrap(numpy.zeros_like(leaf._array)) if each is None else each
                for leaf, each in zip(leaves, found, strict=True)
            ],
        ]

    return program_of(both, given, chosen)


def hessian(f: Callable[..., Tensor], given: Sequence[object], chosen: Sequence[int]) -> Run | None:
    """Return a function that computes the second derivatives of ``f`` for each pair of the arguments ``chosen``.

    See :func:`program_of`.
    """
    return program_of(lambda *arguments: second_derivatives(f, arguments, chosen), given)


def _compile(
    f: Callable[..., Sequence[Tensor]],
    given: Sequence[object],
    chosen: Sequence[int],
    record: bool = True,
    detaches: bool = True,
) -> Run:
    """Record ``f`` and return its program (helper of :func:`program_of`, run in an empty context)."""
    places = [place for place, each in enumerate(given) if isinstance(each, numpy.ndarray)]
    set_recording(record)
    recorder = Recorder(guarded=True, detaches=detaches)
    arguments = list(given)
    for place in places:
        array = numpy.array(given[place])
        arguments[place] = recorder.input(leaf_from_array(array) if place in chosen else wrap(array))
    inputs: list[Value] = [arguments[place]._value for place in places]  # type: ignore[attr-defined]
    with recorder:
        results = [each if isinstance(each, Traced) else recorder.constant(each) for each in f(*arguments)]
    if recorder.has_hooks():
        raise Unrecorded("registers hooks")
    outs = [each._value for each in results]
    checks = [(name, check) for _, check, name in recorder.checks]
    asked = [*outs, *[value for value, _, _ in recorder.checks]]
    steps, instead = eliminate_common_subexpressions(recorder.tape.steps, ())
    asked = [instead.get(each, each) for each in asked]
    program = Program("pure", inputs, eliminate_dead_code(steps, asked), asked, regions=True)
    results, arguments = [], []
    recorder.release()
    captured = recorder.captured()
    own = {each for step in program.steps if isinstance(step, Region) for each in step.results}
    copied = [asked.index(each) < k or each not in own for k, each in enumerate(asked[: len(outs)])]
    forward = program.run

    def run(arrays: Sequence[Array]) -> list[Array] | None:
        for used, array, version in captured:
            x = used()
            if x is not None and (x._array is not array or x._version != version):
                return None
        found = forward(*[each if each.flags.carray else each.copy() for each in arrays])
        for (name, check), array in zip(checks, found[len(copied) :], strict=True):
            check(name, array)
        return [each.copy() if copy else each for each, copy in zip(found, copied, strict=False)]

    run.program = program  # type: ignore[attr-defined]
    return run
