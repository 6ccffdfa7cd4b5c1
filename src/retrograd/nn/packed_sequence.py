"""PackedSequence, and functions that pad, pack and unpack sequences of different lengths.

Exported as ``nn.utils.rnn``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ..compat.module_names import shown_in
from ..compat.pickle_names import TorchNamed
from ..core.dtypes import int64
from ..core.tensor import Tensor
from ..operations.creation.factory import empty_like
from ..operations.creation.from_data import as_tensor, tensor
from ..operations.creation.ranges import arange
from ..operations.indexing.sort import sort
from ..operations.shape.join import cat

NOT_SORTED = (
    "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass `enforce_sorted=False` to "
    "pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not need ONNX exportability."
)


class PackedSequence_(NamedTuple):
    """Named tuple with the four fields of :class:`PackedSequence`, which is a subclass."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(TorchNamed, PackedSequence_):
    """Batch of sequences of different lengths without padding, created by :func:`pack_padded_sequence`.

    ``data`` has the first elements of all sequences, followed by the second elements of all sequences, and so on.
    ``batch_sizes`` has the number of sequences that have an element at each time step. ``sorted_indices`` is the
    permutation that sorts the sequences by decreasing length, and ``unsorted_indices`` is its inverse permutation.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> packed = nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 5, 3]), tensor([2, 2, 1]))
    """

    __slots__ = ()
    __module__ = shown_in("torch.nn.utils.rnn", __name__)

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Tensor | None = None, unsorted_indices: Tensor | None = None
    ) -> PackedSequence:  # fmt: skip
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError(
                    "Expected data to be a list or tuple with length 2 when batch_sizes is not provided"
                )
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. They "
                "should be instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with_changed_data(self, change: Any) -> PackedSequence:
        """Return a copy whose ``data`` is ``change(self.data)``, or ``self`` if ``change`` returns its argument.

        ``change`` is a function from a tensor to a tensor, for example a conversion to another dtype or device. The
        indices of the copy are on the device of the new data.
        """
        data = change(self.data)
        if data is self.data:
            return self
        moved = [
            None if each is None else each.to(data.device) for each in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *moved)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return a copy with ``data`` converted by ``data.to(*args, **kwargs)``, or ``self`` if nothing changes."""
        return self._with_changed_data(lambda data: data.to(*args, **kwargs))

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return a copy whose data and indices are on the GPU, or ``self`` if ``data`` is already there.

        The arguments are those of ``Tensor.cuda``.
        """
        return self._with_changed_data(lambda data: data.cuda(*args, **kwargs))

    def cpu(self) -> PackedSequence:
        """Return a copy whose data and indices are on the CPU, or ``self`` if ``data`` is already there."""
        return self._with_changed_data(lambda data: data.cpu())

    def pin_memory(self) -> PackedSequence:
        """Return ``self``, because retrograd does not support pinned (page-locked) memory."""
        return self

    def is_pinned(self) -> bool:
        """Return False, because retrograd does not support pinned (page-locked) memory."""
        return False

    is_cuda = property(lambda self: self.data.is_cuda, doc="Whether ``data`` is on a GPU.")

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"PackedSequence({fields})"


def _casting(name: str) -> Any:
    def cast(self: PackedSequence) -> PackedSequence:
        return self._with_changed_data(lambda data: getattr(data, name)())

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"Return a copy with ``data`` converted by ``data.{name}()``, or ``self`` if nothing changes."
    return cast


for _name in ("double", "float", "half", "long", "int", "short", "char", "byte"):
    setattr(PackedSequence, _name, _casting(_name))


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the inverse of ``permutation``, or None if ``permutation`` is None.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    out = empty_like(permutation)
    return out.scatter_(0, permutation, arange(0, permutation.numel(), device=permutation.device))


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Return a PackedSequence of the padded sequences in ``input``, without the padding.

    ``lengths[i]`` is the number of elements of sequence i. ``input`` has shape (time, batch, …), or (batch, time, …) if
    ``batch_first`` is true. If ``enforce_sorted`` is true, the lengths must be in decreasing order, or RuntimeError is
    raised. If it is false, the sequences are sorted by decreasing length.

    >>> import retrograd as torch
    >>> torch.nn.utils.rnn.pack_padded_sequence(torch.tensor([[1, 2], [3, 0]]), [2, 1]).data
    tensor([1, 2, 3])
    """
    lengths = lengths.cpu() if isinstance(lengths, Tensor) else as_tensor(lengths, dtype=int64)
    order = None
    if not enforce_sorted:
        lengths, order = sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    sizes = [int(each) for each in lengths.tolist()]
    by_time = input.transpose(0, 1) if batch_first else input
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if len(sizes) != by_time.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size={by_time.shape[1]})"
        )
    if any(later > earlier for earlier, later in pairwise(sizes)):
        raise RuntimeError(NOT_SORTED)
    if sizes[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    batch_sizes = [sum(length > step for length in sizes) for step in range(sizes[0])]
    # Consecutive time steps with the same batch size are copied as one slice.
    pieces, start = [], 0
    for length in sorted(set(sizes)):
        block = by_time[start:length, : batch_sizes[start]]
        pieces.append(block.reshape(-1, *block.shape[2:]))
        start = length
    return PackedSequence(cat(pieces), tensor(batch_sizes, dtype=int64), order, None)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return a tensor (time, batch, …) with the padded sequences of ``sequence``, and a tensor with their lengths.

    If ``batch_first`` is true, the first tensor has shape (batch, time, …). The sequences are padded with
    ``padding_value`` to ``total_length``, by default to the length of the longest sequence.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> packed = nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])])
    >>> nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2, 3],
            [4, 5, 0]]), tensor([3, 2]))
    """
    longest = sequence.batch_sizes.size(0)
    if total_length is not None and total_length < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {longest}"
        )
    sizes = sequence.batch_sizes.tolist()
    data = sequence.data
    padded = data.new_full(
        (longest if total_length is None else total_length, sizes[0], *data.shape[1:]), padding_value
    )
    start = 0
    for step, size in enumerate(sizes):
        padded[step, :size] = data[start : start + size]
        start += size
    lengths = tensor([sum(size > place for size in sizes) for place in range(sizes[0])], dtype=int64)
    if batch_first:
        padded = padded.transpose(0, 1)
    back = sequence.unsorted_indices
    if back is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, back), lengths[back.cpu()]


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Return a tensor (time, batch, …) with all ``sequences``, padded with ``padding_value`` to the same length.

    If ``batch_first`` is true, the tensor has shape (batch, time, …). The padding is added at the end of the sequences
    if ``padding_side`` is ``"right"``, and at the beginning if it is ``"left"``.

    >>> import retrograd as torch
    >>> torch.nn.utils.rnn.pad_sequence([torch.tensor([1, 2]), torch.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    listed = list(sequences.unbind(0) if isinstance(sequences, Tensor) else sequences)
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if not listed:
        raise RuntimeError("received an empty list of sequences")
    longest = max(each.size(0) for each in listed)
    shape = (len(listed), longest) if batch_first else (longest, len(listed))
    padded = listed[0].new_full((*shape, *listed[0].shape[1:]), padding_value)
    for place, each in enumerate(listed):
        own = slice(0, each.size(0)) if padding_side == "right" else slice(longest - each.size(0), longest)
        padded[(place, own) if batch_first else (own, place)] = each
    return padded


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Return a list of the sequences in ``padded_sequences`` without their padding (inverse of :func:`pad_sequence`).

    ``lengths[i]`` is the number of elements of sequence i. ``padded_sequences`` has shape (time, batch, …), or
    (batch, time, …) if ``batch_first`` is true.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> padded = torch.tensor([[1, 2, 3], [4, 5, 0]])
    >>> nn.utils.rnn.unpad_sequence(padded, torch.tensor([3, 2]), batch_first=True)
    [tensor([1, 2, 3]), tensor([4, 5])]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(length)] for row, length in zip(rows, lengths, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Return a PackedSequence of ``sequences``, which may have different lengths.

    If ``enforce_sorted`` is true, RuntimeError is raised unless the lengths are in decreasing order.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> packed = nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])])
    >>> packed.data
    tensor([1, 4, 2, 5, 3])
    >>> packed.batch_sizes
    tensor([2, 2, 1])
    """
    lengths = as_tensor([each.size(0) for each in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return a list of the sequences in ``packed_sequences``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> packed = nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])])
    >>> nn.utils.rnn.unpack_sequence(packed)
    [tensor([1, 2, 3]), tensor([4, 5])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence",
    "unpack_sequence", "unpad_sequence",
]  # fmt: skip
