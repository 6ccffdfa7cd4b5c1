"""Programs of functions that the user has declared pure: ``retrograd.value_and_grad`` and ``retrograd.hessian``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Context
from typing import TYPE_CHECKING
from weakref import ref

import numpy

from ..autograd.backward import gradients_of_tensors
from ..core.grad_mode import set_recording
from ..core.tensor import Tensor, leaf_from_array, wrap
from ..func.numpy_functions import second_derivatives
from ..kernels import numba_dispatch
from ..kernels.numba_startup import STARTUP
from .ir import Step, Value
from .passes import eliminate_common_subexpressions, eliminate_dead_code
from .program import Program
from .recorder import Recorder, Traced, Unrecorded
from .regions import Region

if TYPE_CHECKING:
    from ..core.typing import Array, Function

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
) -> PureProgram:
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
    asked = [*outs, *[value for value, _, _ in recorder.checks]]
    steps, instead = eliminate_common_subexpressions(recorder.tape.steps, ())
    asked = [instead.get(each, each) for each in asked]
    results, arguments = [], []
    recorder.release()
    checks = [(check, name) for _, check, name in recorder.checks]
    return PureProgram(inputs, eliminate_dead_code(steps, asked), asked, len(outs), checks, recorder.captured())


#: Steps on small arrays that a program runs by NumPy before it is compiled, unless loops are in use: 0.1 to 0.2 s. The
#: import of Numba takes 0.5 s, and the compilation of a region 0.2 s.
FIRST_STEPS = 100_000
#: Number of elements on which NumPy computes in the time that it needs for a step on a small array, 1 to 2 µs.
STEP_ELEMENTS = 1000


class PureProgram:
    """Program of a pure function: a function that computes the arrays of the results from those of the arguments.

    It runs the steps one by one, by NumPy, in the first calls. Then it compiles them to regions and loops if Numba is
    permitted. The number of the first calls depends on the steps and the sizes of their arrays, so that a repeated
    program gets the same bits. It is 0 if loops are in use, and under ``torch.use_deterministic_algorithms``.
    ``checks`` are the functions that check the results after the first ``count``, and ``captured`` the tensors that must
    not have changed.
    """

    def __init__(
        self,
        inputs: Sequence[Value],
        steps: Sequence[Step],
        asked: Sequence[Value],
        count: int,
        checks: Sequence[tuple[Function, str]],
        captured: Sequence[tuple[ref[Tensor], Array, int]],
    ) -> None:
        self.inputs, self.steps, self.asked, self.count = inputs, steps, asked, count
        self.checks, self.captured = checks, captured
        permitted = numba_dispatch.permitted()
        self.left = FIRST_STEPS // max(sum(map(_cost, steps)), 1) + 1 if permitted else 0
        if permitted and (STARTUP.ready or STARTUP.deterministic):
            self.compile()
        else:
            self._generate(False)

    def _generate(self, compiled: bool) -> None:
        self.program = program = Program("pure", self.inputs, self.steps, self.asked, compiled, compiled)
        own = {each for step in program.steps if isinstance(step, Region) for each in step.results}
        copied = [self.asked.index(each) < k or each not in own for k, each in enumerate(self.asked[: self.count])]
        self.copied = copied if any(copied) else None

    def compile(self) -> None:
        """Compile regions and loops."""
        self.left = 0
        self._generate(True)

    def __call__(self, arrays: Sequence[Array]) -> list[Array] | None:
        for used, array, version in self.captured:
            x = used()
            if x is not None and (x._array is not array or x._version != version):
                return None
        if self.left:
            self.left -= 1
            if not self.left:
                self.compile()
        found = self.program.run(*[each if each.flags.carray else each.copy() for each in arrays])
        if self.checks:
            for (check, name), array in zip(self.checks, found[self.count :], strict=True):
                check(name, array)
        if self.copied is None:
            return found
        return [each.copy() if copy else each for each, copy in zip(found, self.copied, strict=False)]


def _cost(step: Step) -> int:
    """Return the time that NumPy needs for ``step``, as a multiple of that of a step on a small array."""
    size = max([each.size for each in (*step.values(), *step.results)], default=0)
    return 1 + size // STEP_ELEMENTS
