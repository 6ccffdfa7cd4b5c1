"""``Independent``: a distribution with some batch dimensions reinterpreted as event dimensions."""

from __future__ import annotations

from typing import Any

from retrograd import Tensor

from . import constraints
from .distribution import Distribution
from .utils import SINGLE_SAMPLE, sum_rightmost


class Independent(Distribution):
    """Distribution ``base_distribution`` with some batch dimensions reinterpreted as event dimensions.

    These are the last ``reinterpreted_batch_ndims`` batch dimensions.

    >>> from retrograd.distributions import Normal
    >>> Independent(Normal(torch.zeros(3), 1.0), 1).event_shape
    torch.Size([3])
    """

    arg_constraints = {}

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {len(batch)}"
            )
        cut = len(batch) - reinterpreted_batch_ndims
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        super().__init__(batch[:cut], batch[cut:] + base_distribution.event_shape, validate_args=validate_args)

    def _expand_into(self, new: Any, batch_shape: Any) -> None:
        new.base_dist = self.base_dist.expand(batch_shape + self.event_shape[: self.reinterpreted_batch_ndims])
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @property
    def has_enumerate_support(self) -> bool:
        return self.base_dist.has_enumerate_support if self.reinterpreted_batch_ndims <= 0 else False

    @constraints.dependent_property
    def support(self) -> Any:
        result = self.base_dist.support
        dims = self.reinterpreted_batch_ndims
        return constraints.independent(result, dims) if dims else result

    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    def sample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


__all__ = ["Independent"]
