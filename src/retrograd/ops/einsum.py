"""Contractions: sums of products over named dimensions, in terms of batched matrix products."""

from __future__ import annotations

import math
from typing import Any

from ..core.tensor import Tensor, dimension
from . import reduce as _reduce
from .inner import expand
from .products import bmm, mm
from .shape import permute_block, reshape, unsqueeze, view
from .table import TENSORS, surface

F: Any = TENSORS


@surface(method=False)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Any = None) -> Tensor:
    """The sum of products over pairs of dimensions: the last of ``a`` with the first of ``b``, or as ``dims`` lists them."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a._array.ndim, b._array.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        first, second = list(range(a._array.ndim - dims, a._array.ndim)), list(range(dims))
    else:
        for each, side in zip(dims, ("self", "other"), strict=False):
            if isinstance(each, int):
                raise TypeError(f"tensordot(): argument 'dims_{side}' (position 3) must be tuple of ints, not int")
        pair = list(dims)
        first = [dimension(each, a._array.ndim) for each in pair[0]]
        second = [dimension(each, b._array.ndim) for each in pair[1]]
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    for x, y in zip(first, second, strict=True):
        if a._array.shape[x] != b._array.shape[y]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a._array.shape[x]} in dim "
                f"{x - a._array.ndim if isinstance(dims, int) else x} and second has "
                f"size {b._array.shape[y]} in dim {y}"
            )
    left = [axis for axis in range(a._array.ndim) if axis not in first]
    right = [axis for axis in range(b._array.ndim) if axis not in second]
    size = math.prod(a._array.shape[axis] for axis in first)
    rows = reshape(
        permute_block(a, (*left, *first)), (-1 if size else math.prod(a._array.shape[i] for i in left), size)
    )
    columns = reshape(
        permute_block(b, (*second, *right)), (size, -1 if size else math.prod(b._array.shape[i] for i in right))
    )
    shape = (*(a._array.shape[i] for i in left), *(b._array.shape[i] for i in right))
    return reshape(mm(rows, columns), shape)


@surface()
def inner(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The sum of products over the last dimension of both."""
    if input._array.ndim == 0 or other._array.ndim == 0:
        return F.mul(input, other, out=out)
    if input._array.shape[-1] != other._array.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input._array.shape)} and {list(other._array.shape)}"
        )
    return tensordot(input, other, dims=([-1], [-1]))


@surface(method=False)
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sums of products by Einstein's convention: ``einsum("ij,jk->ik", a, b)``; also ``einsum(a, [0, 1], b, [1, 2])``.

    >>> import retrograd as torch
    >>> torch.einsum("ij,j->i", torch.eye(2), torch.tensor([3.0, 4.0]))
    tensor([3., 4.])
    """
    if isinstance(equation, Tensor):
        equation, operands = _from_lists((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not operands:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list"
        )
    labels, result = _parsed(equation, operands)
    terms = list(zip(operands, labels, strict=True))
    diagonals = [_with_diagonals(each, names, position) for position, (each, names) in enumerate(terms)]
    x, names = diagonals[0]
    for i, (y, others) in enumerate(diagonals[1:], 1):
        later = set(result).union(*(rest for _, rest in diagonals[i + 1 :]))
        x, names = _contract(x, names, y, others, later)
    return _finished(x, names, result, len(operands) == 1)


def _from_lists(given: tuple[Any, ...]) -> tuple[str, tuple[Tensor, ...]]:
    operands, parts = given[0::2], given[1::2]
    result = None
    if len(given) % 2:
        operands, result, parts = given[:-1:2], given[-1], given[1:-1:2]
    text = ",".join("".join("..." if each is Ellipsis else chr(each + (65 if each < 26 else 71)) for each in part)
                    for part in parts)  # fmt: skip
    if result is not None:
        text += "->" + "".join("..." if each is Ellipsis else chr(each + (65 if each < 26 else 71)) for each in result)
    return text, operands


def _parsed(equation: str, operands: tuple[Any, ...]) -> tuple[list[list[str]], list[str]]:
    """The names of each operand's dimensions, and of the result's; those of an ellipsis are ``.0 .1 …`` from the right."""
    text = equation.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(operands):
        more = "more" if len(operands) > len(terms) else "fewer"
        raise RuntimeError(f"einsum(): {more} operands were provided than specified in the equation"
                           if more == "fewer" else
                           "einsum(): more operands were provided than specified in the equation")  # fmt: skip
    labels, widest = [], 0
    for position, (term, operand) in enumerate(zip(terms, operands, strict=True)):
        for letter in term.replace("...", "", 1):
            if letter == ".":
                raise RuntimeError(f"einsum(): found '.' for operand {position} that is not part of any ellipsis")
            if not letter.isalpha():
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {inputs.index(letter)} in the equation "
                    "string, subscripts must be in [a-zA-Z]"
                )
        own = len(term.replace("...", ""))
        rest = operand._array.ndim - own
        if rest < 0 or (rest and "..." not in term):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({own}) does not match the number of dimensions "
                f"({operand._array.ndim}) for operand {position} and no ellipsis was given"
            )
        widest = max(widest, rest)
        labels.append(_names(term, rest))
    if not arrow:
        flat = [name for each in labels for name in each]
        single = sorted(name for name in set(flat) if flat.count(name) == 1 and name[0] != ".")
        _check_extents(labels, operands)
        return labels, [f".{i}" for i in range(widest - 1, -1, -1)] + single
    result = _names(output, widest if "..." in output else 0)
    for name in result:
        if name[0] != "." and not any(name in each for each in labels):
            raise RuntimeError(
                f"einsum(): output subscript {name} does not appear in the equation for any input operand"
            )
        if result.count(name) > 1:
            raise RuntimeError(f"einsum(): output subscript {name} appears more than once in the output")
    _check_extents(labels, operands)
    return labels, result


def _names(term: str, hidden: int) -> list[str]:
    head, dots, tail = term.partition("...")
    return [*head, *([f".{i}" for i in range(hidden - 1, -1, -1)] if dots else []), *tail]


def _check_extents(labels: list[list[str]], operands: tuple[Any, ...]) -> None:
    sizes: dict[str, int] = {}
    for position, (names, operand) in enumerate(zip(labels, operands, strict=True)):
        for name, size in zip(names, operand._array.shape, strict=True):
            if sizes.get(name, 1) != 1 and size not in (1, sizes[name]):
                raise RuntimeError(
                    f"einsum(): subscript {name} has size {size} for operand {position} which does not broadcast with "
                    f"previously seen size {sizes[name]}"
                )
            sizes[name] = max(sizes.get(name, 1), size)


def _with_diagonals(x: Tensor, names: list[str], position: int) -> tuple[Tensor, list[str]]:
    """A name that stands twice in one operand means its diagonal."""
    names = list(names)
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            if x._array.shape[first] != x._array.shape[second]:
                raise RuntimeError(
                    f"einsum(): subscript {name} is repeated for operand {position} but the sizes don't match, "
                    f"{x._array.shape[second]} != {x._array.shape[first]}"
                )
            x = F.diagonal(x, 0, first, second)
            names = [each for i, each in enumerate(names) if i not in (first, second)] + [name]
    return x, names


def _contract(x: Tensor, a: list[str], y: Tensor, b: list[str], later: set[str]) -> tuple[Tensor, list[str]]:
    """The product of two operands, summed over the names that nobody needs later, as one batched matrix product."""
    x, a = _summed(x, a, {name for name in a if name not in b and name not in later})
    y, b = _summed(y, b, {name for name in b if name not in a and name not in later})
    batch = [name for name in a if name in b and name in later]
    inner = [name for name in a if name in b and name not in later]
    left, right = [name for name in a if name not in b], [name for name in b if name not in a]
    sizes = {name: max(_extent(x, a, name), _extent(y, b, name)) for name in {*a, *b}}
    if not inner:
        wide = [*batch, *left, *right]
        return _aligned(x, a, wide) * _aligned(y, b, wide), wide
    rows = _spread(x, a, [*batch, *left, *inner], sizes)
    columns = _spread(y, b, [*batch, *inner, *right], sizes)
    count, n, k, m = (math.prod(sizes[name] for name in group) for group in (batch, left, inner, right))
    found = bmm(reshape(rows, (count, n, k)), reshape(columns, (count, k, m)))
    names = [*batch, *left, *right]
    return reshape(found, tuple(sizes[name] for name in names)), names


def _extent(x: Tensor, names: list[str], name: str) -> int:
    return int(x._array.shape[names.index(name)]) if name in names else 1


def _summed(x: Tensor, names: list[str], gone: set[str]) -> tuple[Tensor, list[str]]:
    axes = tuple(i for i, name in enumerate(names) if name in gone)
    if not axes:
        return x, names
    return _reduce.sum(x, axes), [name for name in names if name not in gone]


def _aligned(x: Tensor, names: list[str], wanted: list[str]) -> Tensor:
    """``x`` with its dimensions in the wanted order, of size 1 where it lacks one."""
    order = tuple(names.index(name) for name in wanted if name in names)
    found = permute_block(x, order) if order != tuple(range(len(order))) else x
    for i, name in enumerate(wanted):
        if name not in names:
            found = unsqueeze(found, i)
    return found


def _spread(x: Tensor, names: list[str], wanted: list[str], sizes: dict[str, int]) -> Tensor:
    found = _aligned(x, names, wanted)
    shape = tuple(sizes[name] for name in wanted)
    return expand(found, shape) if found._array.shape != shape else found


def _finished(x: Tensor, names: list[str], result: list[str], alone: bool) -> Tensor:
    x, names = _summed(x, names, set(names) - set(result))
    if names != result:
        x = _aligned(x, names, result)
        return x if alone else view(x, x._array.shape)
    seen = type(x.grad_fn).__name__ if x.grad_fn is not None else ""
    return permute_block(x, tuple(range(len(names)))) if alone and not seen.startswith("Sum") else x
