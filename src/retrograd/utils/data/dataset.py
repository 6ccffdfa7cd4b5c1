"""``Dataset``, ``IterableDataset``, and data sets that combine others, such as ``ConcatDataset`` and ``Subset``."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar, cast

from ...core.tensor import Tensor
from ...operations.creation.random import Generator, default_generator, randperm
from ...runtime.user_frame import warn

Sample = TypeVar("Sample", covariant=True)


class Dataset(Generic[Sample]):
    """Base class of data sets with samples by index. Subclasses define ``__getitem__`` and ``__len__``.

    A subclass may define ``__getitems__``, which takes a list of indices and returns a list of samples. A DataLoader
    then fetches each batch in one call.

    >>> import retrograd as torch
    >>> class Squares(torch.utils.data.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, index):
    ...         return index**2
    >>> [batch.tolist() for batch in torch.utils.data.DataLoader(Squares(), batch_size=2)]
    [[0, 1], [4, 9]]
    """

    def __getitem__(self, index: Any) -> Sample:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[Sample], Iterable[Sample]):
    """Base class of data sets without indices. Subclasses define ``__iter__``.

    Each worker process of a DataLoader has a copy of the data set and iterates over all samples, unless ``__iter__``
    calls :func:`get_worker_info` to select the samples of this worker.

    >>> import retrograd as torch
    >>> class Count(torch.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(4))
    >>> [batch.tolist() for batch in torch.utils.data.DataLoader(Count(), batch_size=2)]
    [[0, 1], [2, 3]]
    """

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Data set of tensors: sample ``i`` is ``tuple(t[i] for t in tensors)``.

    >>> import retrograd as torch
    >>> data = torch.utils.data.TensorDataset(torch.arange(3), torch.tensor([0.5, 1.5, 2.5]))
    >>> data[1]
    (tensor(1), tensor(1.5000))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[Any]):
    """Data set whose sample ``i`` is the tuple of the samples ``i`` of several data sets of equal length.

    If the data sets are passed as keyword arguments, a sample is a dict.

    >>> import retrograd as torch
    >>> torch.utils.data.StackDataset([1, 2, 3], "abc")[1]
    (2, 'b')
    >>> torch.utils.data.StackDataset(number=[1, 2, 3], letter="abc")[1]
    {'number': 2, 'letter': 'b'}
    """

    datasets: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both types "
                "are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        parts = list(args or kwargs.values())
        self._length = len(parts[0])
        if any(self._length != len(each) for each in parts):
            raise ValueError("Size mismatch between datasets")
        self.datasets = args or kwargs

    def _together(self, parts: Iterable[Any]) -> Any:
        return dict(zip(self.datasets, parts, strict=True)) if isinstance(self.datasets, dict) else tuple(parts)

    def _parts(self) -> Iterable[Any]:
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def __getitem__(self, index: Any) -> Any:
        return self._together(dataset[index] for dataset in self._parts())

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        columns = []
        for dataset in self._parts():
            items = fetch_samples(dataset, indices)
            if len(items) != len(indices):
                raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
            columns.append(items)
        return [self._together(row) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


def fetch_samples(dataset: Any, indices: list[Any]) -> Any:
    """Return a list of the samples of ``dataset`` at ``indices``, fetched by ``__getitems__`` if it is defined."""
    several = getattr(dataset, "__getitems__", None)
    return several(indices) if callable(several) else [dataset[index] for index in indices]


class ConcatDataset(Dataset[Any]):
    """Concatenation of data sets with indices: the samples of all data sets, in order.

    >>> import retrograd as torch
    >>> dataset = torch.utils.data.ConcatDataset([[10, 11], [20, 21, 22]])
    >>> len(dataset), dataset[2]
    (5, 20)
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Return the cumulative lengths of the data sets in ``sequence``."""
        return list(accumulate(len(each) for each in sequence))

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(each, IterableDataset) for each in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> Any:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect_right(self.cumulative_sizes, idx)
        return self.datasets[which][idx - (self.cumulative_sizes[which - 1] if which else 0)]

    @property
    def cummulative_sizes(self) -> list[int]:
        """Deprecated spelling of ``cumulative_sizes``."""
        warn("`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning)
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """Concatenation of iterable data sets: the samples of all data sets, in order.

    >>> import retrograd as torch
    >>> class Count(torch.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(torch.utils.data.ChainDataset([Count(), Count()]))
    [0, 1, 2, 0, 1, 2]
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = datasets

    def _checked(self) -> Iterator[Any]:
        for each in self.datasets:
            if not isinstance(each, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield each

    def __iter__(self) -> Iterator[Any]:
        for each in self._checked():
            yield from each

    def __len__(self) -> int:
        return sum(len(each) for each in self._checked())


class Subset(Dataset[Sample]):
    """Data set of the samples of ``dataset`` at ``indices``.

    >>> import retrograd as torch
    >>> list(torch.utils.data.Subset("abcd", [3, 0]))
    ['d', 'a']
    """

    def __init__(self, dataset: Dataset[Sample] | Sequence[Sample], indices: Sequence[int]) -> None:
        self.dataset: Any = dataset
        self.indices = indices
        cls = type(self)
        if cls.__getitem__ is not Subset.__getitem__ and cls.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{cls.__name__} overrides __getitem__ but not __getitems__. When subclassing Subset and overriding "
                "__getitem__, you must also override __getitems__ to ensure DataLoader works correctly with your custom "
                "logic. A simple implementation:\n\ndef __getitems__(self, indices):\n    return [self.__getitem__(idx) "
                "for idx in indices]"
            )

    def __getitem__(self, idx: Any) -> Any:
        return self.dataset[[self.indices[each] for each in idx] if isinstance(idx, list) else self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return fetch_samples(self.dataset, [self.indices[index] for index in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[Sample] | Sequence[Sample],
    lengths: Sequence[float],
    generator: Generator | None = default_generator,
) -> list[Subset[Sample]]:
    """Return a list of subsets of ``dataset``, chosen at random without overlap.

    ``lengths`` are the numbers of samples of the subsets or, if they sum to 1, the fractions of ``dataset``.

    >>> import retrograd as torch
    >>> parts = torch.utils.data.random_split(range(10), [3, 7], torch.Generator().manual_seed(42))
    >>> list(parts[0])
    [2, 6, 1]
    """
    whole = len(cast("Sequence[Sample]", dataset))
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for index, share in enumerate(lengths):
            if share < 0 or share > 1:
                raise ValueError(f"Fraction at index {index} is not between 0 and 1")
        counts = [math.floor(whole * share) for share in lengths]
        for index in range(whole - sum(counts)):  # the remainder is distributed one by one
            counts[index % len(counts)] += 1
        lengths = counts
        for index, length in enumerate(lengths):
            if length == 0:
                warn(f"Length of split at index {index} is 0. This might result in an empty dataset.")
    if sum(lengths) != whole:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = randperm(whole, generator=generator).tolist()
    ends = [int(end) for end in accumulate(lengths)]
    return [Subset(dataset, order[end - int(length) : end]) for end, length in zip(ends, lengths, strict=True)]
