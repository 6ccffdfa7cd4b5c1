"""Communication hook of post-local SGD: averages over all ranks at first, and then over the ranks of a subgroup."""

from __future__ import annotations

from typing import Any

from ....core.tensor import Tensor
from ....futures import Future
from ...groups import new_subgroups
from ...reducer import GradBucket
from .default_hooks import _allreduce_fut


class PostLocalSGDState:
    """State of :func:`post_localSGD_hook`.

    Args:
        process_group: Group of the first iterations, None for the default group.
        subgroup: Group of later iterations, None for the ranks of one machine.
        start_localSGD_iter: Number of iterations in which gradients are averaged over ``process_group``.
        post_local_gradient_allreduce: Whether gradients are averaged over ``subgroup`` then, or not at all.
    """

    __slots__ = ["iter", "post_local_gradient_allreduce", "process_group", "start_localSGD_iter", "subgroup"]

    def __init__(
        self, process_group: Any, subgroup: Any, start_localSGD_iter: int, post_local_gradient_allreduce: bool = True
    ) -> None:  # fmt: skip
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count an iteration if ``bucket`` is the last."""
        self.iter += bucket.is_last()


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients over all ranks in the first iterations, and then over the ranks of a subgroup.

    The program averages the parameters from time to time.

    Source: Lin et al., "Don't Use Large Mini-Batches, Use Local SGD", ICLR 2020.
    """
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return _allreduce_fut(state.process_group, bucket.buffer())
    if not state.post_local_gradient_allreduce:
        future: Future[Tensor] = Future()
        future.set_result(bucket.buffer())
        return future
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return _allreduce_fut(state.subgroup, bucket.buffer())


__all__ = ["PostLocalSGDState", "post_localSGD_hook"]
