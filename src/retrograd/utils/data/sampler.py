"""``Sampler``, ``RandomSampler``, ``BatchSampler`` and others: the order of samples and their grouping into batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

from ...core import dtypes
from ...operations.creation.factory import empty
from ...operations.creation.from_data import as_tensor
from ...operations.creation.random import Generator, multinomial, randint, randperm

Index = TypeVar("Index", covariant=True)


def draw_seed(generator: Generator | None = None) -> int:
    """Return a random seed drawn from ``generator``, by default the default generator."""
    return int(empty((), dtype=dtypes.int64).random_(generator=generator).item())


class Sampler(Generic[Index]):
    """Base class of iterables over sample indices. Subclasses define ``__iter__`` and may define ``__len__``.

    >>> import retrograd as torch
    >>> class Even(torch.utils.data.Sampler):
    ...     def __iter__(self):
    ...         return iter([0, 2])
    >>> [batch.tolist() for batch in torch.utils.data.DataLoader([5, 6, 7], sampler=Even())]
    [[5], [7]]
    """

    def __iter__(self) -> Iterator[Index]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """Sampler of all indices of a data set in ascending order.

    >>> import retrograd as torch
    >>> list(torch.utils.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Sampler of ``num_samples`` random indices, by default of all indices in random order.

    If ``replacement`` is true, an index may be drawn more than once. If ``generator`` is None, each pass creates a
    generator, whose seed is drawn from the default generator.

    >>> import retrograd as torch
    >>> sorted(torch.utils.data.RandomSampler(range(4)))
    [0, 1, 2, 3]
    >>> len(torch.utils.data.RandomSampler(range(4), replacement=True, num_samples=10))
    10
    """

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:  # fmt: skip
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """Number of indices in a pass; by default the current length of the data set."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        length, wanted, generator = len(self.data_source), self.num_samples, self.generator
        if generator is None:
            generator = Generator().manual_seed(draw_seed())
        if self.replacement:
            for count in (
                *[32] * (wanted // 32),
                wanted % 32,
            ):  # in blocks of 32 as PyTorch, because the block size determines the numbers
                yield from randint(length, (count,), generator=generator).tolist()
        else:
            for _ in range(wanted // length):
                yield from randperm(length, generator=generator).tolist()
            yield from randperm(length, generator=generator).tolist()[: wanted % length]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Sampler of ``indices`` in random order.

    >>> import retrograd as torch
    >>> sorted(torch.utils.data.SubsetRandomSampler([2, 5, 7]))
    [2, 5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for place in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Sampler of ``num_samples`` random indices, where index ``i`` has a probability proportional to ``weights[i]``.

    >>> import retrograd as torch
    >>> list(torch.utils.data.WeightedRandomSampler([0, 0, 1], 2))
    [2, 2]
    """

    def __init__(
        self, weights: Any, num_samples: int, replacement: bool = True, generator: Generator | None = None
    ) -> None:
        _check_count("num_samples", num_samples)
        _check_switch("replacement", replacement)
        self.weights: Any = as_tensor(weights, dtype=dtypes.float64)
        if self.weights.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        yield from multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


def _check_switch(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name} should be a boolean value, but got {name}={value}")


class BatchSampler(Sampler[list[int]]):
    """Sampler of batches: lists of ``batch_size`` consecutive indices of ``sampler``.

    If ``drop_last`` is true, an incomplete last list is dropped.

    >>> import retrograd as torch
    >>> list(torch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        _check_count("batch_size", batch_size)
        _check_switch("drop_last", drop_last)
        self.sampler: Iterable[Any] = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(islice(numbers, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        length = len(self.sampler)  # type: ignore[arg-type]
        return length // self.batch_size if self.drop_last else (length + self.batch_size - 1) // self.batch_size
