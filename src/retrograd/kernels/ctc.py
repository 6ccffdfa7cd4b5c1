"""Kernels of ctc_loss (connectionist temporal classification) and its gradient.

Probabilities are computed as logarithms, for all samples of a batch at once. The label sequence of a sample is its
target with a blank before, between and after the labels. Source: Graves et al., Connectionist temporal classification,
ICML 2006.
"""

from __future__ import annotations

from typing import Any


def with_blanks(np: Any, targets: Any, blank: int) -> Any:
    """Return ``targets`` (N, S) as label sequences (N, 2 S + 1): ``blank`` before, between and after the labels."""
    out = np.full((targets.shape[0], 2 * targets.shape[1] + 1), blank, np.int64)
    out[:, 1::2] = targets
    return out


def _may_skip(np: Any, labels: Any) -> Any:
    """Return a mask of the label positions that a path may reach by skipping the blank before them.

    ``labels`` holds the label sequences with blanks; the mask has the same shape. A path assigns a label position to
    each time step. It may go from one label directly to the next label, two positions later, if the two labels differ.
    """
    skip = np.zeros(labels.shape, bool)
    skip[:, 3::2] = labels[:, 3::2] != labels[:, 1:-2:2]
    return skip


def _step(np: Any, before: Any, skip: Any) -> Any:
    """Return the log probabilities of the paths to each label position, one time step after ``before``.

    A path assigns a label position to each time step. ``before`` holds the log probabilities at the previous time step.
    A path arrives from the same position, from the previous position or, where the mask ``skip`` is true, from two
    positions before. The emission probability of the new time step is not included.
    """
    far = np.full(before.shape, -np.inf, before.dtype)
    one = far.copy()
    one[:, 1:] = before[:, :-1]
    far[:, 2:] = np.where(skip[:, 2:], before[:, :-2], -np.inf)
    return np.logaddexp(np.logaddexp(before, one), far)


def forward(np: Any, log_probs: Any, labels: Any, input_lengths: Any, target_lengths: Any) -> tuple[Any, Any]:
    """Return the CTC losses (N) of ``log_probs`` (T, N, C), and the forward variables alpha (T, N, 2 S + 1).

    ``labels`` comes from :func:`with_blanks`. ``alpha[t, n, s]`` is the logarithm of the total probability of all
    partial paths that end at label position s at time t.
    """
    steps, batch, _ = log_probs.shape
    width = labels.shape[1]
    alpha = np.full((steps, batch, width), -np.inf, log_probs.dtype)
    rows = np.arange(batch)
    if steps:
        start = np.full((batch, width), -np.inf, log_probs.dtype)
        start[:, :2] = log_probs[0][rows[:, None], labels[:, :2]]
        alpha[0] = start
    skip = _may_skip(np, labels)
    for t in range(1, steps):
        alpha[t] = _step(np, alpha[t - 1], skip) + np.take_along_axis(log_probs[t], labels, 1)
    last = np.maximum(input_lengths - 1, 0)
    end = 2 * target_lengths
    if steps:
        blank_end = alpha[last, rows, end]
        letter_end = np.where(target_lengths > 0, alpha[last, rows, np.maximum(end - 1, 0)], -np.inf)
        loss = -np.logaddexp(blank_end, letter_end)
    else:
        loss = np.full(batch, np.inf, log_probs.dtype)
    empty = input_lengths == 0
    return np.where(empty, np.where(target_lengths == 0, 0, np.inf), loss).astype(log_probs.dtype), alpha


def _backward_sums(np: Any, log_probs: Any, labels: Any, input_lengths: Any, target_lengths: Any) -> Any:
    """Return the backward variables beta (T, N, 2 S + 1) of the CTC algorithm.

    ``beta[t, n, s]`` is the logarithm of the total probability of all partial paths that start at label position s at
    time t. The emission probability at time t is included. The parameters are those of :func:`forward`.
    """
    steps, batch, _ = log_probs.shape
    width = labels.shape[1]
    beta = np.full((steps, batch, width), -np.inf, log_probs.dtype)
    skip = _may_skip(np, labels)
    position = np.arange(width)[None, :]
    ends = (position == 2 * target_lengths[:, None]) | (position == 2 * target_lengths[:, None] - 1)
    after = np.full((batch, width), -np.inf, log_probs.dtype)
    for t in range(steps - 1, -1, -1):
        one = np.full((batch, width), -np.inf, log_probs.dtype)
        far = one.copy()
        one[:, :-1] = after[:, 1:]
        far[:, :-2] = np.where(skip[:, 2:], after[:, 2:], -np.inf)
        arriving = np.logaddexp(np.logaddexp(after, one), far)
        here = np.where((input_lengths - 1 == t)[:, None], np.where(ends, 0.0, -np.inf), arriving)
        after = here + np.take_along_axis(log_probs[t], labels, 1)
        beta[t] = after
    return beta


def gradient(
    np: Any, grad: Any, log_probs: Any, labels: Any, input_lengths: Any, target_lengths: Any, loss: Any, alpha: Any,
    zero_infinity: bool,
) -> Any:  # fmt: skip
    """Return the gradient of ctc_loss with respect to ``log_probs`` (T, N, C).

    ``grad`` is the gradient of the losses (N). As in PyTorch, ``log_probs`` is assumed to be normalised: the gradient
    for a class is its probability minus its share of the probability of all paths. ``loss`` and ``alpha`` are the
    results of :func:`forward`, and ``labels``, ``input_lengths`` and ``target_lengths`` its arguments. If
    ``zero_infinity`` is true, samples with an infinite loss get a zero gradient.
    """
    beta = _backward_sums(np, log_probs, labels, input_lengths, target_lengths)
    share = np.full(log_probs.shape, -np.inf, log_probs.dtype)
    both = alpha + beta
    rows = np.arange(labels.shape[0])
    for s in range(labels.shape[1]):
        column = labels[:, s]
        share[:, rows, column] = np.logaddexp(share[:, rows, column], both[:, :, s])
    out = np.exp(log_probs) - np.exp(share + loss[:, None] - log_probs)
    out *= grad[:, None]
    out[np.arange(log_probs.shape[0])[:, None] >= input_lengths[None, :]] = 0
    if zero_infinity:
        out[:, np.isinf(loss)] = 0
    return out
