"""``LBFGS``: limited-memory quasi-Newton steps, and their line search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..operations.shape.join import cat
from .elementwise import option_values
from .optimizer import Optimizer, check_rate, evaluate_closure, options


class LBFGS(Optimizer):
    """Limited-memory BFGS optimiser (Broyden, Fletcher, Goldfarb, Shanno), a quasi-Newton method.

    A call of ``step(closure)`` makes up to ``max_iter`` steps and calls ``closure``, which recomputes the loss and its
    gradients, up to ``max_eval`` times (a line search may exceed this limit). Only one parameter group is supported.
    The length of each step is ``lr``. With ``line_search_fn="strong_wolfe"``, a line search determines the length.

    Source: Nocedal and Wright, "Numerical Optimization", algorithms 7.4 and 7.5.

    >>> import retrograd as torch
    >>> x = torch.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = torch.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (x - 1).square().sum()
    ...     loss.backward()
    ...     return loss
    >>> loss = optimizer.step(closure)
    >>> torch.allclose(x, torch.ones(2), atol=1e-4)
    True
    """

    def __init__(
        self, params: Any, lr: Any = 1, max_iter: int = 20, max_eval: int | None = None, tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        check_rate(lr)
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, options(locals()))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Make up to ``max_iter`` steps and return the loss before the first step.

        ``closure`` recomputes the loss and its gradients and returns the loss.
        """
        with no_grad():
            return self._iterate(closure, self.param_groups[0])

    def _iterate(self, closure: Callable[[], Any], group: dict[str, Any]) -> Any:
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = evaluate_closure(closure)
        loss, evaluations = _value(first_loss), 1
        state["func_evals"] += 1
        grad = self._gradient()
        if _is_small(grad, group["tolerance_grad"]):
            return first_loss
        memory = _CurvatureHistory(state, group["history_size"])
        lr = option_values(group, ("lr",))["lr"]
        for done in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = memory.direction(grad, state["n_iter"] == 1)
            before = memory.loss = loss
            t = min(1.0, 1.0 / grad.abs().sum()) * lr if state["n_iter"] == 1 else lr
            memory.t = t
            slope = grad.dot(direction)
            if slope > -group["tolerance_change"]:
                break
            if group["line_search_fn"] is not None:
                here = _Point(0, loss, grad, slope)
                result, calls = self._search(closure, group, here, t, direction, group["max_eval"] - evaluations)
                memory.t, loss, grad, _ = result
                self._move_parameters(memory.t, direction)
            else:
                self._move_parameters(t, direction)
                calls = int(done != group["max_iter"])
                if calls:  # the loss after the last step is not used
                    loss = _value(evaluate_closure(closure))
                    grad = self._gradient()
            evaluations += calls
            state["func_evals"] += calls
            if evaluations >= group["max_eval"] or _is_small(grad, group["tolerance_grad"]):
                break
            moved = direction * memory.t
            if _is_small(moved, group["tolerance_change"]) or abs(loss - before) < group["tolerance_change"]:
                break
        memory.keep(state)
        return first_loss

    def _search(
        self, closure: Callable[[], Any], group: dict[str, Any], here: _Point, t: Any, direction: Tensor, most: int
    ) -> tuple[_Point, int]:
        if group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        params = group["params"]
        start = [param.clone() for param in params]

        def at(t: Any) -> _Point:
            self._move_parameters(t, direction)
            loss, grad = _value(evaluate_closure(closure)), self._gradient()
            for param, was in zip(params, start, strict=True):
                param.copy_(was)
            return _Point(t, loss, grad, grad.dot(direction))

        return strong_wolfe(at, here, t, direction.abs().max(), most)

    def _gradient(self) -> Tensor:
        """Return the gradients of all parameters, concatenated to one vector; complex gradients are viewed as real."""
        parts = []
        for param in self.param_groups[0]["params"]:
            grad = param.detach().new_zeros(param.shape) if param.grad is None else param.grad.to_dense()
            parts.append((grad.view_as_real() if grad.is_complex() else grad).reshape(-1))
        return cat(parts)

    def _move_parameters(self, t: Any, direction: Tensor) -> None:
        """Add ``t * direction`` to the parameters; ``direction`` is one vector with the elements of all parameters."""
        begin = 0
        for param in self.param_groups[0]["params"]:
            real = param.view_as_real() if param.is_complex() else param
            real.add_(direction[begin : begin + real.numel()].view(real.shape), alpha=t)
            begin += real.numel()


def _value(loss: Any) -> float:
    return loss.item() if isinstance(loss, Tensor) else float(loss)


def _is_small(x: Tensor, tolerance: float) -> bool:
    return bool(x.abs().max() <= tolerance)


class _CurvatureHistory:
    """State of :class:`LBFGS`: the changes of the gradient and of the parameters in the last ``size`` steps.

    The approximation of the inverse Hessian is computed from these changes.
    """

    def __init__(self, state: dict[str, Any], size: int) -> None:
        self.size = size
        self.d: Any = state.get("d")
        self.t, self.grad, self.loss = (state.get(name) for name in ("t", "prev_flat_grad", "prev_loss"))
        self.scale = state.get("H_diag", 1)
        self.changes, self.moves, self.inverses = (state.get(name, []) for name in ("old_dirs", "old_stps", "ro"))
        self.alphas = state.get("al")

    def keep(self, state: dict[str, Any]) -> None:
        """Store the attributes of this object in ``state``, the optimiser's state."""
        if self.alphas is not None:
            state["al"] = self.alphas
        state |= {
            "d": self.d, "t": self.t, "old_dirs": self.changes, "old_stps": self.moves, "ro": self.inverses,
            "H_diag": self.scale, "prev_flat_grad": self.grad, "prev_loss": self.loss,
        }  # fmt: skip

    def direction(self, grad: Tensor, first: bool) -> Tensor:
        """Return the search direction at the current parameters, where ``grad`` is the gradient of the loss.

        The changes of the gradient and of the parameters since the previous step are first added to the history. If
        ``first`` is true, there is no previous step: the history is cleared, and the direction is ``-grad``.
        """
        if first:
            self.d = -grad
            self.changes, self.moves, self.inverses, self.scale = [], [], [], 1
        else:
            self._update_history(grad - self.grad, self.d * self.t)
            self.d = self._two_loop_recursion(grad)
        self.grad = grad.clone()
        return self.d

    def _update_history(self, change: Tensor, move: Tensor) -> None:
        curvature = change.dot(move)
        if not curvature > 1e-10:
            return
        stored = (self.changes, self.moves, self.inverses)
        for history, new in zip(stored, (change, move, 1.0 / curvature), strict=True):
            if len(history) == self.size:
                history.pop(0)
            history.append(new)
        self.scale = curvature / change.dot(change)

    def _two_loop_recursion(self, grad: Tensor) -> Tensor:
        """Return the approximate inverse Hessian times ``-grad``, by the two-loop recursion."""
        if self.alphas is None:
            self.alphas = [None] * self.size
        q = -grad
        for i in reversed(range(len(self.moves))):
            self.alphas[i] = self.moves[i].dot(q) * self.inverses[i]
            q.add_(self.changes[i], alpha=-self.alphas[i].item())  # a number: a tensor would be converted, too
        r = q * self.scale
        for i in range(len(self.moves)):
            beta = self.changes[i].dot(r) * self.inverses[i]
            r.add_(self.moves[i], alpha=(self.alphas[i] - beta).item())
        return r


class _Point(NamedTuple):
    """Point of a line search.

    ``t`` is the step length, ``grad`` the gradient of the loss with respect to the parameters, and ``slope`` the
    derivative of the loss with respect to ``t``.
    """

    t: Any
    loss: float
    grad: Tensor
    slope: Any


# Constants of the Wolfe conditions (sufficient decrease, curvature), and the minimum length of a divided bracket.
DECREASE, CURVATURE, SHORTEST = 1e-4, 0.9, 1e-9


def strong_wolfe(at: Callable[[Any], _Point], start: _Point, t: Any, longest: Any, most: int) -> tuple[_Point, int]:
    """Search along a line for a point that satisfies the strong Wolfe conditions.

    The result is the pair of the point and the number of evaluations of the loss. ``at(t)`` evaluates the loss at step
    length t and returns the point. ``start`` is the point at length 0, ``t`` is the first length to try, and
    ``longest`` is the largest absolute element of the search direction. If about ``most`` evaluations find no such
    point, the end of the current bracket (interval of lengths) with the lower loss is returned.

    Source: Nocedal and Wright, "Numerical Optimization", algorithms 3.5 and 3.6, with cubic interpolation.
    """
    last, point, tries = start, at(t), 0
    while tries < most:
        too_high = point.loss > start.loss + DECREASE * point.t * start.slope
        if too_high or (tries > 1 and point.loss >= last.loss):
            break
        if abs(point.slope) <= -CURVATURE * start.slope:
            return point, tries + 1
        if point.slope >= 0:
            break
        near, far = point.t + 0.01 * (point.t - last.t), point.t * 10
        t = _cubic_minimum(last, point, near, far)
        last, point = point, at(t)
        tries += 1
    if tries == most:
        last = start
    return _zoom(at, start, [last, point], longest, tries, most)


def _zoom(
    at: Callable[[Any], _Point], start: _Point, ends: list[_Point], longest: Any, tries: int, most: int
) -> tuple[_Point, int]:
    """Helper of :func:`strong_wolfe`: search in a bracket for a point that satisfies the strong Wolfe conditions.

    The result is the pair of the point and the number of evaluations of the loss. The bracket is the interval between
    the two points in ``ends``; it is shrunk until a point inside satisfies the conditions. If it becomes too short, or
    after about ``most`` evaluations, the end with the lower loss is returned. ``tries`` is the number of points tried
    before this call. The other arguments are those of :func:`strong_wolfe`.
    """
    low = _lower(ends)
    stuck = False
    while tries < most and not abs(ends[1].t - ends[0].t) * longest < SHORTEST:
        least, greatest = sorted(end.t for end in ends)
        t = _cubic_minimum(ends[0], ends[1], least, greatest)
        # A minimum close to an end twice in a row (or outside) makes no progress: move a tenth of the length inwards.
        margin = 0.1 * (greatest - least)
        close = min(greatest - t, t - least) < margin
        if close and (stuck or t >= greatest or t <= least):
            t = greatest - margin if abs(t - greatest) < abs(t - least) else least + margin
            close = False
        stuck = close
        point = at(t)
        tries += 1
        if point.loss > start.loss + DECREASE * t * start.slope or point.loss >= ends[low].loss:
            ends[1 - low] = point
            low = _lower(ends)
            continue
        if abs(point.slope) <= -CURVATURE * start.slope:
            return point, tries + 1
        if point.slope * (ends[1 - low].t - ends[low].t) >= 0:
            ends[1 - low] = ends[low]
        ends[low] = point
    return ends[low], tries + 1


def _lower(ends: list[_Point]) -> int:
    return 0 if ends[0].loss <= ends[1].loss else 1


def _cubic_minimum(a: _Point, b: _Point, low: Any, high: Any) -> Any:
    """Return the step length at the minimum of the cubic that has the losses and slopes of the points ``a`` and ``b``.

    The length is clamped to the range from ``low`` to ``high``. If the cubic has no minimum, the midpoint of the
    range is returned.

    Source: Nocedal and Wright, "Numerical Optimization", equation 3.59.
    """
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square.sqrt()
    if a.t > b.t:
        a, b = b, a
    least = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(least, low), high)


__all__ = ["LBFGS"]
