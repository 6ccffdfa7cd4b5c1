"""Differentiable versions of ``geqrf``, of the LDL factorization and of the gradient of ``ctc_loss``.

The kernels of these operations are library routines or loops, which autograd cannot differentiate. Each function of
this module computes the same result as such a kernel by differentiable operations. The operation's derivative is then
computed by applying autograd to this function. This is slower than a derivative rule, but supports derivatives of every
order and all function transforms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ...core.grad_mode import restore_recording, set_recording
from ...core.tensor import Tensor, wrap
from ...dispatch.op import TENSORS
from ..shape.join import cat, stack, where_
from ..shape.views import alias

#: One element, the function that computes gradients of tensors by others; ``autograd/backward.py`` appends it.
AUTOGRAD_FUNCTION: list[Callable[..., list[Any]]] = []


def vjp_by_autograd(F: Any, program: Callable[..., Any], values: Sequence[Any], g: Any) -> list[Any]:
    """Return the gradient of ``program(*values)`` with respect to each of ``values``, computed by autograd.

    ``program`` is a function of Tensors that calls differentiable operations. ``g`` is the gradient of its result. If
    ``program`` returns a tuple, ``g`` is a sequence that holds a gradient or None for each item of the tuple.

    The gradient with respect to a value on which no result depends is zero. If ``values`` and ``g`` are arrays, ``F``
    must be the namespace of their kernels, and the returned gradients are arrays. If they are Tensors, ``F`` must be
    ``TENSORS``.
    """
    arrays = F is not TENSORS
    before = set_recording(True)
    try:
        if arrays:
            inputs = [wrap(numpy.asarray(each) if isinstance(each, numpy.generic) else each) for each in values]
            inputs = [each._set_requires_grad() for each in inputs]
        else:  # new gradient edges, because a value may have been computed from another
            inputs = [alias(each) if each.requires_grad else each.detach()._set_requires_grad() for each in values]
        outs = program(*inputs)
        outs = outs if isinstance(outs, tuple) else (outs,)
        grads = [
            wrap(each) if arrays and each is not None else each
            for each in (g if isinstance(g, (tuple, list)) else (g,))
        ]
        pairs = [(out, grad) for out, grad in zip(outs, grads, strict=False) if grad is not None]
        result = AUTOGRAD_FUNCTION[0](
            [out for out, _ in pairs], inputs, [grad for _, grad in pairs], not arrays, not arrays
        )
    finally:
        restore_recording(before)
    result = [F.zeros_as(value) if grad is None else grad for value, grad in zip(values, result, strict=True)]
    return [each._array if arrays and isinstance(each, Tensor) else each for each in result]


def _each_matrix(program: Callable[..., Any], *given: Any) -> Any:
    """Call ``program`` for each matrix of a batch, and return the results, stacked to a tensor.

    ``given`` holds the arguments of ``program`` for the whole batch. The first has the shape (*batch, n, m), and the
    others have the same batch dimensions. If there are no batch dimensions, ``program`` is called once.
    """
    matrix = given[0]
    if matrix.ndim == 2:
        return program(*given)
    flat = [each.reshape(-1, *each.shape[matrix.ndim - 2 :]) for each in given]
    result = [program(*each) for each in zip(*flat, strict=True)]
    return stack(result).reshape(*matrix.shape[:-2], *result[0].shape)


# --- Reflectors -----------------------------------------------------------------------------------------------------


def geqrf_program(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return the QR factorization of ``a`` in the format of LAPACK's ``geqrf``, by differentiable operations.

    ``a`` is a matrix or a batch of matrices. The first result is a matrix that holds R on and above the diagonal. Below
    the diagonal, each column holds a Householder vector. The second result holds the scalar factor of each Householder
    reflection.
    """
    rows, columns = a.shape[-2:]
    done, factors, top = [], [], []
    for _ in range(min(rows, columns)):
        first, tail = a[..., 0, 0], a[..., 1:, 0]
        length = ((first.abs() ** 2) + (tail.abs() ** 2).sum(-1)).sqrt()
        plain = ((tail.abs() ** 2).sum(-1) == 0) & (first.imag == 0 if a.is_complex() else True)
        beta = where_((first.real if a.is_complex() else first) >= 0, -length, length)
        beta = where_(plain, first.real if a.is_complex() else first, beta)
        factor = where_(plain, 0 * first, (beta - first) / where_(beta == 0, beta + 1, beta))
        vector = tail / where_(plain, first * 0 + 1, first - beta)[..., None]
        whole = cat([(first * 0 + 1)[..., None], vector], -1)[..., None]
        a = a - factor.conj()[..., None, None] * (whole @ (whole.mH @ a)) if a.shape[-1] > 1 else a
        row = cat([(beta + 0 * first)[..., None], a[..., 0, 1:]], -1)
        top.append(row)
        done.append(vector)
        factors.append(factor)
        a = a[..., 1:, 1:]
    lines = [
        cat([each[..., k - 1 - i, None] for i, each in enumerate(done[:k])] + [row], -1) for k, row in enumerate(top)
    ]
    below = [
        cat([each[..., k - 1 - i, None] for i, each in enumerate(done)], -1) for k in range(len(top), rows)
    ]  # fmt: skip
    return stack(lines + below, -2), stack(factors, -1)


# --- L D Lᵀ ---------------------------------------------------------------------------------------------------------


def _swapped(a: Tensor, i: int, j: int) -> Tensor:
    """Return the matrix ``a`` with rows ``i`` and ``j`` exchanged, and columns ``i`` and ``j`` exchanged."""
    order = list(range(a.shape[-1]))
    order[i], order[j] = j, i
    return a[order][:, order]


def _turned(a: Tensor, hermitian: bool) -> Tensor:
    return a.mH if hermitian else a.mT


def ldl_factor_program(a: Tensor, pivots: Any, hermitian: bool) -> Tensor:
    """Return the LDL factorization of ``a``, a matrix or a batch, computed by differentiable operations.

    ``pivots`` are the row exchanges of the factorization in LAPACK's format. They are not computed here, but are a
    result of LAPACK. The result holds D in its diagonal blocks and L below these blocks. If ``hermitian`` is true,
    ``a = L D Lᴴ``, otherwise ``a = L D Lᵀ``.
    """
    return _each_matrix(lambda one, piv: _one_ldl(one, piv, hermitian), a, pivots)


def _one_ldl(a: Tensor, pivots: Any, hermitian: bool) -> Tensor:
    size = a.shape[0]
    low = a.tril()
    a = low + _turned(a.tril(-1), hermitian)
    if hermitian and a.is_complex():
        a = a - 1j * a.diagonal().imag.diag()
    columns, k = [], 0
    while k < size:
        pivot = int(pivots[k])
        width = 1 if pivot > 0 else 2
        a = _swapped(a, width - 1, abs(pivot) - 1 - k)
        block, below = a[:width, :width], a[width:, :width]
        factor = below / block if width == 1 else below @ block.inverse()
        for j in range(width):
            columns.append(cat([block.tril()[:, j], factor[:, j]]))
            columns[-1] = cat([columns[-1].new_zeros(k), columns[-1]])
        a = a[width:, width:] - factor @ block @ _turned(factor, hermitian)
        k += width
    return stack(columns, 1)


def ldl_product_program(factors: Tensor, pivots: Any, hermitian: bool) -> Tensor:
    """Return the matrix of which ``factors`` is the LDL factorization, computed by differentiable operations.

    ``factors``, a matrix or a batch, is a result of :func:`ldl_factor_program`. ``pivots`` are the row exchanges in
    LAPACK's format. If ``hermitian`` is true, the result is ``L D Lᴴ``, otherwise ``L D Lᵀ``.
    """
    return _each_matrix(lambda one, piv: _one_product(one, piv, hermitian), factors, pivots)


def _one_product(factors: Tensor, pivots: Any, hermitian: bool) -> Tensor:
    size, starts, k = factors.shape[0], [], 0
    while k < size:
        starts.append(k)
        k += 1 if int(pivots[k]) > 0 else 2
    matrix = factors[:0, :0]
    for k in reversed(starts):
        pivot = int(pivots[k])
        width = 1 if pivot > 0 else 2
        block = factors[k : k + width, k : k + width].tril()
        block = block + _turned(block.tril(-1), hermitian)
        if hermitian and block.is_complex():
            block = block - 1j * block.diagonal().imag.diag()
        below = factors[k + width :, k : k + width]
        side = below @ block
        upper = cat([block, _turned(side, hermitian)], 1)
        lower = cat([side, matrix + side @ _turned(below, hermitian)], 1)
        matrix = _swapped(cat([upper, lower], 0), width - 1, abs(pivot) - 1 - k)
    return matrix


# --- Connectionist temporal classification (CTC) --------------------------------------------------------------------

LOG_ZERO = -1e30  # log-probability of the impossible; finite, so that sums of it have gradients


def ctc_losses(log_probs: Tensor, labels: Any, input_lengths: Any, target_lengths: Any) -> Tensor:
    """Return the CTC loss of each sequence of a batch, a tensor of shape (N,).

    ``log_probs`` has the shape (T, N, C), where T is the number of time steps, N the batch size and C the number of
    classes. ``labels`` (N, 2 S + 1) are the target sequences of up to S classes, with a blank before, between and after
    the classes. ``input_lengths`` and ``target_lengths`` (N,) are the lengths of the sequences. The loss is computed by
    the forward recursion of ``kernels/ctc.py``, with differentiable operations.
    """
    steps, _, _ = log_probs.shape
    width = labels.shape[1]
    place: Any = wrap(numpy.arange(width))
    skip = cat([labels[:, :2] < -1, labels[:, 2:] != labels[:, :-2]], 1) & (place % 2 == 1)
    ends = (place == 2 * target_lengths[:, None]) | (place == 2 * target_lengths[:, None] - 1)
    never = log_probs[0, :, :1] * 0 + LOG_ZERO
    alpha = where_(place < 2, log_probs[0].gather(1, labels), never)
    last = where_((input_lengths == 1)[:, None] & ends, alpha, never)
    for t in range(1, steps):
        one = cat([never, alpha[:, :-1]], 1)
        far = where_(skip, cat([never, never, alpha[:, :-2]], 1)[:, :width], never)
        alpha = stack([alpha, one, far]).logsumexp(0) + log_probs[t].gather(1, labels)
        last = where_((input_lengths == t + 1)[:, None] & ends, alpha, last)
    return -last.logsumexp(1)


def ctc_gradient(
    g: Any, log_probs: Tensor, labels: Any, input_lengths: Any, target_lengths: Any, zero_infinity: bool
) -> Tensor:
    """Return the gradient of ``ctc_loss`` with respect to ``log_probs``, as PyTorch defines it.

    PyTorch assumes that ``exp(log_probs)`` sums to 1 over the classes. Therefore ``exp(log_probs) * g`` is added to the
    derivative of :func:`ctc_losses`. ``g`` (N,) holds the gradients of the losses.

    The gradient is 0 after the end of each sequence. For a sequence without any possible alignment, the gradient is 0
    if ``zero_infinity`` is true, otherwise nan. ``log_probs``, ``labels``, ``input_lengths`` and ``target_lengths`` are
    the arguments of :func:`ctc_losses`.
    """
    loss = ctc_losses(log_probs, labels, input_lengths, target_lengths)
    possible = loss < -LOG_ZERO / 2
    whole = where_(possible, loss, loss * 0)
    (slope,) = AUTOGRAD_FUNCTION[0]([whole], [log_probs], [g], True, True)
    steps: Any = wrap(numpy.arange(log_probs.shape[0]))
    inside = steps[:, None] < input_lengths[None, :]
    share = slope + log_probs.exp() * g[None, :, None]
    share = where_(possible[None, :, None], share, share * 0 + (0.0 if zero_infinity else numpy.nan))
    return where_(inside[:, :, None], share, share * 0)


__all__ = ["geqrf_program", "vjp_by_autograd", "ldl_factor_program", "ldl_product_program", "ctc_gradient"]
