"""``gradcheck`` and ``gradgradcheck``: comparison of derivatives with finite differences of the function.

A finite difference is the difference between the outputs at ``x + step`` and at ``x - step``, divided by ``2 * eps``,
where ``x`` is an input and ``step`` a vector of size ``eps``. In slow mode, ``step`` changes one element and gives one
row of the numerical Jacobian; in fast mode, it is a random vector and gives a product with the Jacobian. A Jacobian has
one row for each element of an input and one column for each element of an output. A function with complex outputs is
checked as two functions, which return the real and the imaginary parts. In forward mode, a function of complex inputs
is checked as two functions too. Only public functions of autograd are called.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from .. import autograd
from ..compat.module_names import shown_in
from ..core.dtypes import complex64, complex128, float32, float64
from ..core.promotion import promote_types
from ..core.tensor import Tensor
from ..dispatch.declare import FUNCTIONS
from ..operations.creation.random import Generator
from ..runtime.user_frame import warn
from .function import Function

F: Any = SimpleNamespace(**FUNCTIONS)


class GradcheckError(RuntimeError):
    """Error for derivatives that do not agree with finite differences of the function."""

    __module__ = shown_in("torch.autograd.gradcheck", __name__)


def gradcheck(
    func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False, check_batched_grad: bool = False, check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False, check_backward_ad: bool = True, fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:  # fmt: skip
    """Return True if the gradients of ``func`` agree with finite differences, for all inputs that require a gradient.

    Args:
        func: a function that takes the inputs and returns a Tensor or a tuple of Tensors.
        inputs: a Tensor or a tuple; those that require a gradient should be float64 or complex128.
        eps: the step size of the finite differences.
        atol, rtol: the absolute and relative tolerance between the Jacobians, as in :func:`allclose`.
        raise_exception: if true, raise GradcheckError if they differ, instead of returning False.
        nondet_tol: the largest difference allowed between the gradients of two identical backward passes.
        check_undefined_grad: if true, check that ``backward`` treats a missing output gradient as zeros.
        check_grad_dtypes: if true, check that gradients have the dtype of their inputs.
        check_batched_grad: if true, check gradients passed in batches (``is_grads_batched``).
        check_batched_forward_grad: if true, check that the output tangent for the sum of two input tangents is the sum
            of their output tangents.
        check_forward_ad: if true, check forward mode.
        check_backward_ad: if true, check backward mode.
        fast_mode: if true, compare products with random vectors instead of entire Jacobians.
        masked: if true, allow a tolerance when checking that zero incoming gradients give zero gradients.

    >>> import retrograd as torch
    >>> x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradcheck(lambda x: x.sin() * x, x)
    True

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    check = _Check(eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode)
    given = _as_tuple(inputs)
    _check_inputs(given)
    try:
        result = func(*given)
        if check_backward_ad:
            check.backward(func, given, result)
        if check_forward_ad:
            check.forward(func, given)
            if check_batched_forward_grad:
                _check_batched_forward(func, given)
        if check_backward_ad:
            outputs = _differentiable(result)
            if check_batched_grad:
                for position, out in enumerate(outputs):
                    _check_batched(given, out, position)
            _check_zeros(outputs, given, bool(masked))
            if check_undefined_grad:
                _check_undefined(func, given)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Return True if the second derivatives of ``func`` agree with finite differences of its gradients.

    The gradients are also differentiated with respect to ``grad_outputs``, the incoming gradients of the outputs. These
    are random by default. If ``gen_non_contig_grad_outputs`` is true, the random gradients are not contiguous.
    ``check_fwd_over_rev`` and ``check_rev_over_rev`` select forward mode and backward mode for the second derivatives.
    The other arguments are those of :func:`gradcheck`.

    >>> import retrograd as torch
    >>> x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradgradcheck(lambda x: x**3, (x,))
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_batched_grad=True requires check_rev_over_rev to be True")
    given = _as_tuple(inputs)
    if grad_outputs is None:
        outputs = _differentiable(func(*given))
        grads = tuple(_random_grad(each, gen_non_contig_grad_outputs) for each in outputs)
    else:
        grads = _as_tuple(grad_outputs)
    wanted = [isinstance(each, Tensor) and each.requires_grad for each in (*given, *grads)]

    def gradients(*args: Any) -> Any:
        args = tuple(each.requires_grad_() if required else each for each, required in zip(args, wanted, strict=True))
        points, sent = args[: len(given)], args[len(given) :]
        by = [each for each, required in zip(points, wanted, strict=False) if required]
        found = autograd.grad(_differentiable(func(*points)), by, sent, create_graph=True, allow_unused=True)
        return tuple(each for each in found if each is not None)

    return gradcheck(
        gradients, given + grads, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, fast_mode=fast_mode, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, masked=masked,
    )  # fmt: skip


# --- Arguments ------------------------------------------------------------------------------------------------------


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _differentiable(outputs: Any) -> tuple[Tensor, ...]:
    return tuple(each for each in _as_tuple(outputs) if each.requires_grad)


def _wanted(inputs: Iterable[Any]) -> list[Tensor]:
    """Return a list of the inputs that require a gradient."""
    return [each for each in inputs if isinstance(each, Tensor) and each.requires_grad]


def _is_float(tensor: Any) -> bool:
    return tensor._array.dtype.kind in "fcVW"


def _check_inputs(inputs: tuple[Any, ...]) -> None:
    for index, each in enumerate(inputs):
        if not (isinstance(each, Tensor) and each.requires_grad):
            continue
        if each.dtype not in (float64, complex128):
            warn(
                f"Input #{index} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
            )
        if not all(step > 0 or size <= 1 for step, size in zip(each.stride(), each.shape, strict=True)):
            raise RuntimeError(
                f"The {index}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous on "
                "the input before passing it to gradcheck."
            )
    if not _wanted(inputs):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


def _random_grad(like: Tensor, gaps: bool) -> Tensor:
    """Return a random gradient shaped like ``like``, uniform in [-1, 1).

    If ``gaps`` is true, the elements of the gradient are not contiguous in memory.
    """
    dtype = like.dtype if _is_float(like) else float64
    parts = (2,) if dtype.is_complex else ()
    grad = like.new_empty((*like.shape, *parts), dtype=_real(dtype)).uniform_(-1, 1)
    if dtype.is_complex:
        grad = F.view_as_complex(grad)
    if gaps and grad.numel() > 1:
        grad = grad.repeat_interleave(2, -1)[..., ::2]
    return grad.requires_grad_()


# --- Numerical Jacobians --------------------------------------------------------------------------------------------


def _difference(run: Callable[[], Any], x: Tensor, step: Tensor, eps: float, index: Any = None) -> list[Tensor]:
    """Return the finite differences ``(f(x + step) - f(x - step)) / (2 * eps)`` of the outputs of a function ``f``.

    The result is a list with one flat Tensor for each output. ``run()`` calls ``f`` with the current values of its
    input ``x`` and returns the outputs. The values of ``x`` are changed in place and then restored. ``index`` is the
    index of the changed element for error messages, or None if ``step`` changes several elements.
    """
    before = x.clone()
    x.copy_(before - step)
    low = run()
    x.copy_(before + step)
    high = run()
    x.copy_(before)
    found = []
    for a, b in zip(low, high, strict=True):
        for what in ("shape", "dtype"):
            if getattr(a, what) != getattr(b, what):
                at = f"on index {index} " if index is not None else ""
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed {at}by {eps}, but "
                    f"got: {what}s {getattr(a, what)} and {getattr(b, what)}."
                )
        found.append(((b - a) / (2 * eps)).detach().reshape(-1))
    return found


def _derivative(
    run: Callable[[], Any], x: Tensor, steps: tuple[Any, Any], eps: float, index: Any = None
) -> list[Tensor]:
    """Return the numerical derivative of each output of a function in one direction, as a list of flat Tensors.

    ``run()`` calls the function with the current values of its input ``x`` and returns the outputs. If ``x`` is real,
    the result is the derivative in the direction ``steps[0]``. If ``x`` is complex, the result is the derivative in the
    direction ``steps[0]`` plus 1j times the derivative in the direction ``1j * steps[1]``.

    ``eps`` is the step size. ``index`` is the index of the changed element for error messages, or None.
    """
    along = _difference(run, x, steps[0], eps, index)
    if not x.is_complex():
        return along
    across = _difference(run, x, steps[1] * 1j, eps, index)
    return [real + imaginary * 1j for real, imaginary in zip(along, across, strict=True)]


def _running(func: Callable[..., Any], inputs: Sequence[Any]) -> Callable[[], Any]:
    return lambda: tuple(each.clone() for each in _as_tuple(func(*inputs)))


def _numerical_jacobians(
    func: Callable[..., Any], inputs: Sequence[Any], outputs: Sequence[Tensor], eps: float
) -> list[list[Tensor]]:
    """Return, for each input that requires a gradient, a list of its numerical Jacobians, one for each output.

    Outputs that are neither floating-point nor complex are skipped. ``eps`` is the step size of the finite differences.
    """
    run = _running(func, inputs)
    jacobians = []
    for each in _wanted(inputs):
        x = each.data
        rows: list[list[Tensor]] = []
        for index in itertools.product(*map(range, x.shape)):
            rows.append(_derivative(run, x[index], (_full(x, eps), _full(x, eps)), eps, index))
        jacobians.append([_rows(rows, k, out, each) for k, out in enumerate(outputs) if _is_float(out)])
    return jacobians


def _full(x: Tensor, value: float) -> Tensor:
    return x.new_full((), value, dtype=_real(x.dtype))


def _real(dtype: Any) -> Any:
    return {complex128: float64, complex64: float32}.get(dtype, dtype)


def _rows(rows: list[list[Tensor]], k: int, out: Tensor, x: Tensor) -> Tensor:
    """Combine derivatives with respect to single elements of ``x`` to the Jacobian of the output ``out``, a matrix.

    Row ``i`` is ``rows[i][k]``, the 1-d derivative of ``out`` with respect to element ``i`` of ``x``; ``k`` is the
    index of ``out`` among the outputs. The dtype is that of ``x`` if ``x`` is complex, otherwise that of ``out``.
    """
    jacobian = out.new_zeros((len(rows), out.numel()), dtype=x.dtype if x.is_complex() else out.dtype)
    for number, row in enumerate(rows):
        jacobian[number] = row[k]
    return jacobian


# --- Analytical Jacobians -------------------------------------------------------------------------------------------


def _vjps(inputs: list[Tensor], output: Tensor, cotangents: Iterable[Tensor]) -> list[list[Any]]:
    """Return, for each of ``inputs``, a list of gradients of ``output``.

    The list has one item for each incoming gradient in ``cotangents``. An item is None if ``output`` does not depend on
    the input.
    """
    found = [
        autograd.grad(output, inputs, each.reshape(output.shape), retain_graph=True, allow_unused=True)
        for each in cotangents
    ]
    return [[None if row[k] is None else row[k].clone() for row in found] for k in range(len(inputs))]


def _units(output: Tensor) -> Iterable[Tensor]:
    """Yield the standard unit vectors, 1-d Tensors with as many elements as ``output`` and the dtype of ``output``."""
    for number in range(output.numel()):
        unit = output.new_zeros(output.numel())
        unit[number] = 1.0
        yield unit


class _Check:
    """Checks of one call of :func:`gradcheck`. The attributes are the options of this call."""

    def __init__(
        self, eps: float, atol: float, rtol: float, nondet_tol: float, undefined: bool, dtypes: bool, fast: bool
    ) -> None:
        self.eps, self.atol, self.rtol, self.nondet_tol = eps, atol, rtol, nondet_tol
        self.undefined, self.dtypes, self.fast = undefined, dtypes, fast

    # -- backward mode

    def backward(self, func: Callable[..., Any], inputs: tuple[Any, ...], result: Any) -> None:
        """Raise GradcheckError if a gradient of ``func`` at ``inputs`` differs from a finite difference.

        ``result`` is ``func(*inputs)``. A function with complex outputs is checked as two functions with real outputs.
        """
        outputs = _as_tuple(result)
        if not any(each.is_complex() for each in outputs):
            self._backward(func, inputs, outputs, "")
            return
        complex_ones = [k for k, each in enumerate(_differentiable(outputs)) if each.is_complex()]
        for part, taken in (("imaginary", F.imag), ("real", F.real)):
            shown = _part_of_outputs(func, taken)
            self._backward(shown, inputs, shown(*inputs), part, complex_ones)

    def _backward(
        self, func: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...], part: str, complex_ones: Any = ()
    ) -> None:
        if not _differentiable(outputs):
            self._check_constant(func, inputs, outputs)
        elif self.fast:
            self._backward_fast(func, inputs, outputs, part, complex_ones)
        else:
            graded = [k for k, each in enumerate(filter(_is_float, outputs)) if each.requires_grad]
            numerical = _numerical_jacobians(func, inputs, outputs, self.eps)
            for position, (k, out) in enumerate(zip(graded, _differentiable(outputs), strict=True)):
                shown = f"the {part} part of complex outputs" if position in complex_ones else ""
                analytical = self._jacobians(inputs, out)
                for j, (a, rows) in enumerate(zip(analytical, numerical, strict=True)):
                    if not self._close(a, rows[k], self.atol):
                        raise GradcheckError(_mismatch(position, j, rows[k], a, shown))

    def _backward_fast(
        self, func: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...], part: str, complex_ones: Any
    ) -> None:
        generator, wanted, graded = Generator(), _wanted(inputs), _differentiable(outputs)
        tangents = [_random_steps(each, generator) for each in wanted]
        cotangents = [_random_vector(each, generator) for each in graded]
        numerical = _numerical_products(func, inputs, tangents, self.eps)
        numerical = [[each for each, out in zip(row, outputs, strict=True) if out.requires_grad] for row in numerical]
        for k, (out, cotangent) in enumerate(zip(graded, cotangents, strict=True)):
            rows = self._jacobians(inputs, out, cotangent)
            for j, (row, tangent) in enumerate(zip(rows, tangents, strict=True)):
                n = (cotangent * numerical[j][k]).sum()
                a = _dot(row.reshape(-1), tangent)
                if not self._close(a, n, self.atol * _weight(tangent) * float(cotangent.sum())):
                    shown = f"the {part} part of complex outputs" if k in complex_ones else ""
                    slow = _numerical_jacobians(func, inputs, outputs, self.eps)[j]
                    slow = [each for each, o in zip(slow, filter(_is_float, outputs), strict=True) if o.requires_grad]
                    raise GradcheckError(
                        _mismatch(k, j, n, a, shown) + self._slow_mode_note(slow[k], self._jacobians(inputs, out)[j])
                    )

    def _jacobians(self, inputs: Sequence[Any], output: Tensor, cotangent: Tensor | None = None) -> list[Tensor]:
        """Return a list of Jacobians of ``output``, one for each of ``inputs`` that requires a gradient.

        A Jacobian has one row for each input element and one column for each output element. If ``cotangent`` is not
        None, the vector-Jacobian products with ``cotangent`` are returned instead, as matrices of one column. The
        results are computed twice; GradcheckError is raised if the two computations differ by more than ``nondet_tol``.
        """
        wanted = _wanted(inputs)
        first, second = (
            _vjps(wanted, output.clone(), _units(output) if cotangent is None else [cotangent]) for _ in range(2)
        )
        same_dtypes = True
        runs: list[list[Tensor]] = []
        for run in (first, second):
            columns = []
            for each, grads in zip(wanted, run, strict=True):
                known = [grad for grad in grads if grad is not None]
                if any(grad.shape != each.shape for grad in known):
                    raise GradcheckError("Analytical gradient has incorrect size")
                same_dtypes = same_dtypes and all(grad.dtype is each.dtype for grad in known)
                jacobian = each.new_zeros((each.numel(), len(grads)))
                for column, grad in enumerate(grads):
                    if grad is not None:
                        jacobian[:, column] = grad.reshape(-1)
                columns.append(jacobian.detach())
            runs.append(columns)
        if not same_dtypes and self.dtypes:
            raise GradcheckError("Gradient has dtype mismatch")
        if any(a.numel() and (a - b).abs().max() > self.nondet_tol for a, b in zip(*runs, strict=True)):
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
                "different values, although analytical gradient matches numerical gradient."
                f"The tolerance for nondeterminism was {self.nondet_tol}. Remedy: pass a larger nondet_tol."
            )
        return runs[0]

    def _check_constant(self, func: Any, inputs: tuple[Any, ...], outputs: Any) -> None:
        """Raise GradcheckError if a finite difference of ``outputs``, which require no gradient, is not zero.

        ``outputs`` are the results of ``func`` for ``inputs``.
        """
        if self.fast:
            generator = Generator()
            tangents = [_random_steps(each, generator) for each in _wanted(inputs)]
            found = _numerical_products(func, inputs, tangents, self.eps)
            limit = self.nondet_tol
        else:
            found, limit = _numerical_jacobians(func, inputs, outputs, self.eps), 0.0
        if any(each.numel() and each.abs().max() > limit for row in found for each in row):
            raise GradcheckError("Numerical gradient for function expected to be zero")

    # -- forward mode

    def forward(self, func: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
        """Raise GradcheckError if a tangent of ``func`` at ``inputs`` differs from a finite difference.

        The tangents are computed by forward mode. A function of complex inputs is checked as two functions of real
        inputs.
        """
        complex_ones = [k for k, each in enumerate(inputs) if isinstance(each, Tensor) and each.is_complex()]
        if not complex_ones:
            self._forward(func, inputs, "", ())
            return
        for part, taken in (("imaginary", F.imag), ("real", F.real)):
            shown = _of_part_of_inputs(func, complex_ones, inputs, part)
            self._forward(
                shown,
                tuple(taken(each) if k in complex_ones else each for k, each in enumerate(inputs)),
                part,
                complex_ones,
            )

    def _forward(self, func: Any, inputs: tuple[Any, ...], part: str, complex_ones: Any) -> None:
        outputs = [each for each in _as_tuple(func(*inputs)) if _is_float(each)]
        wanted = _wanted(inputs)
        if not any(each.requires_grad for each in outputs):
            self._check_constant(func, inputs, outputs)
            return
        if self.fast:
            generator = Generator()
            tangents = [_random_steps(each, generator) for each in wanted]
            numerical = _numerical_products(func, inputs, tangents, self.eps)
            numerical = [[each for each in row if _is_float(each)] for row in numerical]
        else:
            numerical = _numerical_jacobians(func, inputs, outputs, self.eps)
        for j, each in enumerate(wanted):
            steps = [tangents[j][0].reshape(each.shape)] if self.fast else [u.reshape(each.shape) for u in _units(each)]
            rows = [_jvp(func, inputs, {j: step}, self.dtypes) for step in steps]
            for k, out in enumerate(outputs):
                if not out.requires_grad:
                    continue
                a = _rows(rows, k, out, out) if not self.fast else rows[0][k]
                atol = self.atol * _weight(tangents[j]) if self.fast else self.atol
                if not self._close(a, numerical[j][k], atol):
                    shown = f"the {part} part of complex inputs" if j in complex_ones else ""
                    slow = ""
                    if self.fast:
                        exact = [_jvp(func, inputs, {j: u.reshape(each.shape)}, False) for u in _units(each)]
                        slow = self._slow_mode_note(
                            _numerical_jacobians(func, inputs, outputs, self.eps)[j][k], _rows(exact, k, out, out)
                        )
                    raise GradcheckError(
                        _mismatch(k, j, numerical[j][k], a, shown, "computed with forward mode ") + slow
                    )
        if self.undefined:
            _check_undefined_forward(func, inputs)

    # -- comparing

    def _close(self, a: Tensor, b: Tensor, atol: float) -> bool:
        dtype = promote_types(a.dtype, b.dtype)
        return bool(F.allclose(a.to(dtype), b.to(dtype), self.rtol, atol))

    def _slow_mode_note(self, numerical: Tensor, analytical: Tensor) -> str:
        text = (
            "\nThe above quantities relating the numerical and analytical jacobians are computed \nin fast mode. See: "
            "https://github.com/pytorch/pytorch/issues/53876 for more background \nabout fast mode. Below, we recompute "
            f"numerical and analytical jacobians in slow mode:\n\nNumerical:\n {numerical}\nAnalytical:\n{analytical}\n\n"
            f"The max per-element difference (slow mode) is: {(numerical - analytical).abs().max()}.\n"
        )
        if self._close(analytical, numerical, self.atol):
            text += (
                "Fast gradcheck failed but element-wise differences are small. This means that the\n"
                "test might've passed in slow_mode!"
            )
        return text


def _mismatch(k: int, j: int, numerical: Tensor, analytical: Tensor, considered: str, mode: str = "") -> str:
    prefix = f"While considering {considered} only, " if considered else ""
    return (
        f"{prefix}Jacobian {mode}mismatch for output {k} with respect to input {j},\n"
        f"numerical:{numerical}\nanalytical:{analytical}\n"
    )


def _part_of_outputs(func: Callable[..., Any], taken: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    """Return a function that calls ``func`` and applies ``taken`` to each complex output.

    ``taken`` is a function that returns the real or the imaginary part of a Tensor. The outputs are returned as a
    tuple.
    """
    return lambda *args: tuple(taken(each) if each.is_complex() else each for each in _as_tuple(func(*args)))


def _of_part_of_inputs(
    func: Callable[..., Any], complex_ones: list[int], inputs: tuple[Any, ...], part: str
) -> Callable[..., Any]:
    """Return a function of real inputs that calls ``func`` with complex inputs, of which one part is fixed.

    ``complex_ones`` are the indices of the complex inputs. The real inputs of the returned function are their real or
    their imaginary parts, as ``part`` (``"real"`` or ``"imaginary"``) specifies. The other parts are those of
    ``inputs``.
    """

    def shown(*args: Any) -> Any:
        given = list(args)
        for k in complex_ones:
            value = inputs[k].detach()
            given[k] = F.real(value) + args[k] * 1j if part == "imaginary" else args[k] + F.imag(value) * 1j
        return _as_tuple(func(*given))

    return shown


# --- Random vectors (fast mode) -------------------------------------------------------------------------------------


def _random_vector(x: Tensor, generator: Generator, dtype: Any = None) -> Tensor:
    vector: Tensor = F.rand(x.numel(), generator=generator).to(dtype=dtype or x.dtype, device=x.device)
    return vector / vector.norm()


def _random_steps(x: Tensor, generator: Generator) -> tuple[Tensor, Tensor | None]:
    """Return two random vectors, directions for finite differences of the real and of the imaginary parts of ``x``.

    Both are 1-d Tensors of norm 1 with as many elements as ``x``. The second is None if ``x`` is not complex.
    """
    first = _random_vector(x, generator, _real(x.dtype))
    return first, _random_vector(x, generator, _real(x.dtype)) if x.is_complex() else None


def _numerical_products(
    func: Callable[..., Any], inputs: Sequence[Any], tangents: list[Any], eps: float
) -> list[list[Tensor]]:
    """Return the numerical derivatives of the outputs of ``func`` in one direction for each differentiable input.

    The result has one list for each input that requires a gradient, with one flat Tensor for each output. ``tangents``
    has the direction for each of these inputs: a pair of vectors for the real and the imaginary part, returned by
    :func:`_random_steps`. ``eps`` is the step size of the finite differences.
    """
    run = _running(func, inputs)
    found = []
    for each, steps in zip(_wanted(inputs), tangents, strict=True):
        x = each.data
        shaped = tuple(None if step is None else step.reshape(x.shape) * eps for step in steps)
        found.append(_derivative(run, x, shaped, eps))  # type: ignore[arg-type]
    return found


def _dot(vector: Tensor, steps: tuple[Tensor, Tensor | None]) -> Tensor:
    if steps[1] is None:
        return vector.dot(steps[0])
    return F.real(vector).dot(steps[0]) + 1j * F.imag(vector).dot(steps[1])


def _weight(steps: tuple[Tensor, Tensor | None]) -> float:
    """Return the factor of the tolerance in fast mode: the sum of the elements of ``steps``.

    Fast mode compares products of the Jacobians with random vectors ``steps``, a pair returned by
    :func:`_random_steps`. An element of such a product is a sum of many elements of the Jacobian, each multiplied by an
    element of ``steps``. Therefore the tolerance for one element is multiplied by the sum of these factors.
    """
    return sum(float(each.sum()) for each in steps if each is not None)


# --- Other checks ---------------------------------------------------------------------------------------------------


def _jvp(
    func: Callable[..., Any], inputs: Sequence[Any], tangents: dict[int, Tensor], check_dtypes: bool
) -> list[Tensor]:
    """Return the tangents of the outputs of ``func``, computed by forward mode, as 1-d Tensors.

    ``tangents`` has the tangents of the inputs. Its keys number the inputs that require a gradient, from 0; missing
    tangents are zeros. If ``check_dtypes`` is true, GradcheckError is raised if an output is complex and its tangent is
    real, or the reverse.
    """
    forward_ad = autograd.forward_ad
    with forward_ad.dual_level():
        given, number = [], 0
        for each in inputs:
            if isinstance(each, Tensor) and each.requires_grad:
                tangent = tangents[number].clone() if number in tangents else F.zeros_like(each)  # no view
                each = forward_ad.make_dual(each.detach(), tangent)
                number += 1
            given.append(each)
        found = []
        for out in _as_tuple(func(*given)):
            if not _is_float(out):
                continue
            value, tangent = forward_ad.unpack_dual(out)
            if tangent is None:
                tangent = F.zeros_like(value)
            elif check_dtypes and value.is_complex() != tangent.is_complex():
                raise GradcheckError("Forward AD gradient has dtype mismatch.")
            found.append(tangent.detach().reshape(-1))
    return found


def _check_undefined_forward(func: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
    """Raise GradcheckError unless forward mode treats an input without tangent like one with a tangent of zeros."""
    generator, wanted = Generator(), _wanted(inputs)
    tangents = {j: _random_steps(each, generator)[0].reshape(each.shape) for j, each in enumerate(wanted)}
    for j, each in enumerate(wanted):
        others = {k: tangent for k, tangent in tangents.items() if k != j}
        without = tuple(x.detach() if x is each else x for x in inputs)
        numbers = {k - (k > j): tangent for k, tangent in others.items()}
        pairs = zip(_jvp(func, inputs, others, False), _jvp(func, without, numbers, False), strict=True)
        for position, (zero, missing) in enumerate(pairs):
            if not F.allclose(zero, missing):
                raise GradcheckError(
                    f"Mismatch in tangent values for output with index: {position} when input: {each} has an undefined "
                    f"tangent value.  Got: {zero} but expected: {missing}"
                )


def _check_batched(inputs: tuple[Any, ...], output: Tensor, position: int) -> None:
    """Raise GradcheckError unless a batched backward pass of ``output`` gives the same gradients as separate passes.

    ``position`` is the index of ``output`` in error messages.
    """
    wanted = _wanted(inputs)
    sent = [F.randn_like(output) for _ in range(2)]
    options = {"retain_graph": True, "allow_unused": True}
    single = [autograd.grad(output, wanted, each, **options) for each in sent]
    try:
        found = autograd.grad(output, wanted, F.stack(sent), is_grads_batched=True, **options)
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{BATCHED}") from error
    for j, got in enumerate(found):
        expected = [F.zeros_like(wanted[j]) if row[j] is None else row[j] for row in single]
        got = F.zeros_like(F.stack(expected)) if got is None else got
        if not F.allclose(got, F.stack(expected)):
            raise GradcheckError(
                f"For output {position} and input {j}:\n\n{BATCHED}\n\nGot:\n{got}\n\nExpected:\n{F.stack(expected)}"
            )


BATCHED = "gradcheck or gradgradcheck failed while testing batched gradient computation."


def _check_batched_forward(func: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
    """Raise GradcheckError unless the output tangents for a sum of input tangents are the sum of output tangents.

    Forward mode runs three times: for each of two random input tangents, and for their sum.
    """
    for j, each in enumerate(_wanted(inputs)):
        tangents = [F.randn_like(each) for _ in range(2)]
        parts = [_jvp(func, inputs, {j: tangent}, False) for tangent in tangents]
        of_sum = _jvp(func, inputs, {j: tangents[0] + tangents[1]}, False)
        for k, got in enumerate(of_sum):
            if not F.allclose(got, parts[0][k] + parts[1][k]):
                raise GradcheckError(
                    f"For output {k} and input {j}:\n\ngradcheck failed while testing batched gradient"
                )


def _check_zeros(outputs: tuple[Tensor, ...], inputs: tuple[Any, ...], masked: bool) -> None:
    """Raise GradcheckError unless zero gradients of ``outputs`` give zero gradients of ``inputs``.

    If ``masked`` is true, gradients close to zero are accepted too.
    """
    wanted = _wanted(inputs)
    found = autograd.grad(outputs, wanted, [F.zeros_like(each) for each in outputs], allow_unused=True)
    for grad, each in zip(found, wanted, strict=True):
        if grad is None:
            continue
        if not (F.allclose(grad, F.zeros_like(grad)) if masked else (grad == 0).all()):
            raise GradcheckError("backward not multiplied by grad_output")
        for what, shown in (("dtype", "type"), ("device", "device"), ("shape", "size")):
            if getattr(grad, what) != getattr(each, what):
                raise GradcheckError(f"grad is incorrect {shown}")


class UndefinedGrad(Function):
    """Identity operation whose ``backward`` returns None, so that no gradient reaches its input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Return a view of ``x``."""
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return None for any ``grads``."""
        return None


def _check_undefined(func: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
    """Raise GradcheckError unless ``backward`` treats an output gradient of None like zeros.

    The check replaces the gradients of all outputs by None, and then the gradient of one output at a time.
    """
    count = len(_differentiable(func(*inputs)))
    for hidden in [set(range(count)), *([{k} for k in range(count)] if count > 1 else [])]:
        outputs = [
            UndefinedGrad.apply(each) if k in hidden else each for k, each in enumerate(_differentiable(func(*inputs)))
        ]
        zeros = [F.zeros_like(each) for each in outputs]
        try:
            found = autograd.grad(outputs, _wanted(inputs), zeros, allow_unused=True)
        except RuntimeError as error:
            warn(UNDEFINED)
            raise GradcheckError(
                'Expected backward function to handle undefined output grads. Please look at "Notes about undefined output '
                'gradients" in "tools/autograd/derivatives.yaml"'
            ) from error
        if any(grad is not None and not (grad == 0).all() for grad in found):
            warn(UNDEFINED)
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero. Please look "
                'at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
            )


UNDEFINED = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break "
    "existing callers of this function. If this is true for you, you can call this function with "
    '"check_undefined_grad=False" to disable the feature'
)

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
