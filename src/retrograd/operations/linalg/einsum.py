"""Sums of products over pairs of dimensions: ``tensordot``, ``inner`` and ``einsum``.

``einsum`` first permutes the dimensions of every operand to the same order: the dimensions of the result, then the
summed dimensions. If an operand does not have one of these dimensions, a dimension of size 1 is inserted. Two operands
are then multiplied by one batched matrix product. Three or more operands are multiplied pair by pair.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy

from ...core.tensor import Tensor, normalize_dim
from ...dispatch.declare import TENSORS, public
from ..reductions import sums as _reduce
from ..shape.views import permute_block, reshape, unsqueeze_block, view, view_block
from .matmul import bmm, mm

F: Any = TENSORS


@public(method=False)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Any = None) -> Tensor:
    """Return the sum of products over pairs of dimensions of ``a`` and ``b``.

    For two matrices and ``dims=1``, the result is the matrix product.

    If ``dims`` is an int n, the last n dimensions of ``a`` are paired with the first n dimensions of ``b``. Otherwise
    ``dims`` is a pair of lists: the dimensions of ``a`` in the first list are paired with the dimensions of ``b`` in
    the second list.
    """
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
        first = [normalize_dim(each, a._array.ndim) for each in pair[0]]
        second = [normalize_dim(each, b._array.ndim) for each in pair[1]]
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    for x, y in zip(first, second, strict=True):
        if a._array.shape[x] != b._array.shape[y] and 1 not in (a._array.shape[x], b._array.shape[y]):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a._array.shape[x]} in dim "
                f"{x - a._array.ndim if isinstance(dims, int) else x} and second has "
                f"size {b._array.shape[y]} in dim {y}"
            )
    # If one dimension of a pair has size 1, the other is summed first.
    for x, y in zip(first, second, strict=True):
        if a._array.shape[x] != b._array.shape[y]:
            a, b = (a, F.sum_dim(b, y, True)) if a._array.shape[x] == 1 else (F.sum_dim(a, x, True), b)
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


@public()
def inner(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """Return the sum of products over the last dimension of ``input`` and the last dimension of ``other``.

    If one of the tensors is 0-d, return ``input * other``.
    """
    if input._array.ndim == 0 or other._array.ndim == 0:
        return F.mul(input, other)
    if input._array.shape[-1] != other._array.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input._array.shape)} and {list(other._array.shape)}"
        )
    return tensordot(input, other, dims=([-1], [-1]))


@public(method=False)
def einsum(*args: Any) -> Tensor:
    """Return a sum of products of tensors, described by an equation in Einstein's notation.

    Examples of calls are ``einsum("ij,jk->ik", a, b)`` and ``einsum(a, [0, 1], b, [1, 2])``, where integers name the
    dimensions. In an equation, letters name dimensions, and ``...`` means all dimensions without a name. The product is
    summed over the dimensions that the result does not name. Without ``->``, the result has the dimensions whose
    letters occur once, in alphabetical order.

    Three or more operands are multiplied in pairs. If opt_einsum is installed, it chooses the order. Otherwise, the
    cheapest pair is multiplied in each step, or the operands are multiplied from left to right if this is not more
    expensive.

    >>> import retrograd as torch
    >>> torch.einsum("ij,j->i", torch.eye(2), torch.tensor([3.0, 4.0]))
    tensor([3., 4.])
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    equation, operands = _from_lists(args) if isinstance(args[0], Tensor) else (args[0], args[1:])
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    for i, each in enumerate(operands):
        if not isinstance(each, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 1, but got {type(each).__name__}")
    if len(operands) == 2:
        return _contract_two(*operands, *_pair_plan(equation, operands[0]._array.shape, operands[1]._array.shape))
    shapes = tuple([each._array.shape for each in operands])
    terms, result, summed = _dimension_names(equation, shapes)
    layout = [*result, *summed]
    laid = [_in_layout(x, *_layout_plan(tuple(names), tuple(layout))) for x, names in zip(operands, terms, strict=True)]
    if len(laid) == 1:
        axes = tuple(range(len(result), len(layout)))
        return _reduce.sum(laid[0], axes) if axes else laid[0]
    contracted = _contract(laid, len(result), _contraction_path(equation, shapes))
    return view(contracted, contracted._array.shape[: len(result)]) if summed else contracted


# -- Parsing the equation --------------------------------------------------------------------------------------------


def _rank(name: str) -> tuple[int, str]:
    """Return a sort key for ``name``, a dimension name of ``einsum``.

    Names of the dimensions for which the equation has ``...`` come first, then uppercase letters, then lowercase
    letters.
    """
    return (0, f"{99 - int(name[1:]):02d}") if name[0] == "." else (1, name)


def _from_lists(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    operands, parts = given[0::2], given[1::2]
    text = ",".join(_letters(part) for part in parts[: len(given) // 2])
    if len(given) % 2:
        text += "->" + _letters(operands[-1])
        operands = operands[:-1]
    return text, operands


def _letters(part: Any) -> str:
    letters = []
    for each in part:
        if each is not Ellipsis and not 0 <= each < 52:
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
        letters.append("..." if each is Ellipsis else chr(each + (65 if each < 26 else 71)))
    return "".join(letters)


@lru_cache
def _dimension_names(
    equation: str, shapes: tuple[tuple[int, ...], ...]
) -> tuple[list[list[str]], list[str], list[str]]:
    """Return the names of the dimensions in ``equation``, the equation of ``einsum``, as a tuple of three items.

    The items are a list of names for each operand, the names of the dimensions of the result, and the names of the
    summed dimensions. ``shapes`` are the shapes of the operands. The returned lists are cached and must not be
    modified.
    """
    terms, result = _parsed(equation, shapes)
    _check_sizes(terms, shapes)
    return terms, result, sorted({name for term in terms for name in term} - set(result), key=_rank)


def _parsed(equation: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[list[list[str]], list[str]]:
    """Return a list of dimension names for each operand of ``equation``, and a list for the result.

    A letter of the equation is the name of a dimension. The dimensions for which the equation has ``...`` get the names
    ".0", ".1" and so on, from the last dimension to the first. ``shapes`` are the shapes of the operands.
    """
    arrow = equation.find("->")
    terms = _terms(equation if arrow < 0 else equation[:arrow], len(shapes))
    labels, widest = [], 0
    for position, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        ndim, own = len(shape), len(term) - ("..." in term)
        if "..." in term and own > ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({own}) is more than the number of dimensions "
                f"({ndim}) for operand {position}"
            )
        if "..." not in term and own != ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({own}) does not match the number of dimensions "
                f"({ndim}) for operand {position} and no ellipsis was given"
            )
        widest = max(widest, ndim - own)
        labels.append(_named(term, ndim - own))
    if arrow >= 0:
        return labels, _named(_output(equation, arrow + 2, labels), widest)
    flat = [name for each in labels for name in each if name[0] != "."]
    single = sorted(name for name in set(flat) if flat.count(name) == 1)
    return labels, _named(["...", *single], widest)


def _named(term: list[str], hidden: int) -> list[str]:
    """Return ``term``, a list of dimension names, with "..." replaced by a name for each dimension.

    ``hidden`` is the number of dimensions that "..." represents. For two dimensions, the names are ".1" and ".0".
    """
    every = [f".{i}" for i in range(hidden - 1, -1, -1)]
    return [name for each in term for name in (every if each == "..." else [each])]


def _terms(text: str, count: int) -> list[list[str]]:
    terms: list[list[str]] = [[]]
    index = 0
    while index < len(text):
        letter, now = text[index], len(terms) - 1
        if letter == ".":
            if "..." in terms[now]:
                raise RuntimeError(f"einsum(): found '.' for operand {now} for which an ellipsis was already found")
            if text[index : index + 3] != "...":
                raise RuntimeError(f"einsum(): found '.' for operand {now} that is not part of any ellipsis")
            terms[now].append("...")
            index += 2
        elif letter == ",":
            terms.append([])
            if len(terms) > count:
                raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
        elif letter != " ":
            terms[now].append(_letter(text, index))
        index += 1
    if len(terms) < count:
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    return terms


def _letter(text: str, index: int) -> str:
    letter = text[index]
    if not (letter.isascii() and letter.isalpha()):
        raise RuntimeError(
            f"einsum(): invalid subscript given at index {index} in the equation string, subscripts must be in [a-zA-Z]"
        )
    return letter


def _output(text: str, index: int, labels: list[list[str]]) -> list[str]:
    known = {name for each in labels for name in each}
    result: list[str] = []
    while index < len(text):
        letter = text[index]
        if letter == ".":
            if "..." in result:
                raise RuntimeError("einsum(): found '.' for output but an ellipsis (...) was already found")
            if text[index : index + 3] != "...":
                raise RuntimeError("einsum(): found '.' for output that is not part of any ellipsis (...)")
            result.append("...")
            index += 2
        elif letter != " ":
            _letter(text, index)
            if letter in result:
                raise RuntimeError(f"einsum(): output subscript {letter} appears more than once in the output")
            if letter not in known:
                raise RuntimeError(
                    f"einsum(): output subscript {letter} does not appear in the equation for any input operand"
                )
            result.append(letter)
        index += 1
    return result


def _check_sizes(terms: list[list[str]], shapes: tuple[tuple[int, ...], ...]) -> None:
    sizes: dict[str, int] = {}
    for position, (names, shape) in enumerate(zip(terms, shapes, strict=True)):
        own: dict[str, int] = {}
        for name, size in zip(names, shape, strict=True):
            if own.setdefault(name, size) != size:
                raise RuntimeError(
                    f"einsum(): subscript {name} is repeated for operand {position} but the sizes don't match, "
                    f"{size} != {own[name]}"
                )
        for name, size in own.items():
            if sizes.get(name, 1) != 1 and size not in (1, sizes[name]):
                raise RuntimeError(
                    f"einsum(): subscript {name} has size {size} for operand {position} which does not broadcast with "
                    f"previously seen size {sizes[name]}"
                )
            sizes[name] = max(sizes.get(name, 1), size) if size else 0


# -- Contraction -----------------------------------------------------------------------------------------------------


@lru_cache
def _layout_plan(term: tuple[str, ...], layout: tuple[str, ...]) -> tuple[list[tuple[int, int]], int, tuple[int, ...]]:
    """Return the arguments ``diagonals``, ``missing`` and ``order`` of :func:`_in_layout` for an operand of ``einsum``.

    ``term`` holds the dimension names of the operand. ``layout`` holds the names of all dimensions, in the order common
    to all operands.

    ``diagonals`` are the pairs of dimensions of the operand that have the same name. ``missing`` is the number of names
    in ``layout`` that are not in ``term``. ``order`` is the permutation of the dimensions.
    """
    names, diagonals = list(term), []
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            diagonals.append((first, second))
            names = [each for i, each in enumerate(names) if i not in (first, second)] + [name]
    missing = [name for name in layout if name not in names]
    names += missing
    return diagonals, len(missing), tuple([names.index(name) for name in layout])


def _in_layout(x: Tensor, diagonals: list[tuple[int, int]], missing: int, order: tuple[int, ...]) -> Tensor:
    """Return ``x``, an operand of ``einsum``, with its dimensions in the order common to all operands.

    First, each pair of dimensions in ``diagonals`` is replaced by its diagonal, as for the operand "ii" of an equation.
    Then a dimension of size 1 is appended for each dimension that only other operands have; ``missing`` is the number
    of these dimensions. Last, the dimensions are permuted to ``order``.
    """
    for first, second in diagonals:
        x = F.diagonal(x, 0, first, second)
    for _ in range(missing):
        x = unsqueeze_block(x, x._array.ndim)
    result: Tensor = permute_block(x, order)
    return result


@lru_cache
def _pair_plan(equation: str, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[Any, ...]:
    """Helper of :func:`einsum` for two operands: return the last four arguments of :func:`_contract_two`.

    ``a`` and ``b`` are the shapes of the operands, and ``equation`` is the equation of ``einsum``. The result is the
    tuple (plans, alone, both, shape). ``plans`` holds the result of :func:`_layout_plan` for each operand. ``alone``
    holds, for each operand, the dimensions that are summed before the product, because they have size 1 in the other
    operand. ``both`` holds the dimensions to sum in the product. ``shape`` is the shape of the result, or None if no
    dimension is summed.
    """
    terms, result, summed = _dimension_names(equation, (a, b))
    plans, shapes = [], []
    for shape, names in zip((a, b), terms, strict=True):
        plans.append(_layout_plan(tuple(names), (*result, *summed)))
        sizes = dict(zip(names, shape, strict=True))
        shapes.append([sizes.get(name, 1) for name in (*result, *summed)])
    dims = range(len(result), len(result) + len(summed))
    alone = [tuple([k for k in dims if one[k] != 1 == other[k]]) for one, other in (shapes, shapes[::-1])]
    both = [k for k in dims if shapes[0][k] != 1 != shapes[1][k]]
    whole = numpy.broadcast_shapes(*[shape[: len(result)] for shape in shapes]) if summed else None
    return plans, alone, both, whole


def _contract_two(
    x: Tensor, y: Tensor, plans: Any, alone: Any, both: list[int], shape: tuple[int, ...] | None
) -> Tensor:
    x, y = (
        _reduce.sum(laid, axes, True) if axes else laid
        for laid, axes in ((_in_layout(x, *plans[0]), alone[0]), (_in_layout(y, *plans[1]), alone[1]))
    )
    result = _pair(x, y, both)
    return result if shape is None else view_block(result, shape)


def _contract(laid: list[Tensor], kept: int, path: list[tuple[int, int]] | None) -> Tensor:
    """Return the product of ``laid``, the operands of ``einsum``, with dimensions from ``kept`` on summed to size 1.

    The operands already have their dimensions in the same order. The list ``laid`` is modified: in each step, two
    tensors are removed and their product is inserted.

    ``path`` holds the positions of the two tensors in the list for each step; their product is appended to the list. If
    ``path`` is None, the tensors are multiplied from left to right.
    """
    dims = range(kept, laid[0]._array.ndim)
    users = {dim: sum(each._array.shape[dim] != 1 for each in laid) for dim in dims}
    steps = iter(path or ())
    while len(laid) > 1:
        i, j = sorted(next(steps, (0, 1)))
        y, x = laid.pop(j), laid.pop(i)
        both: list[int] = []
        left: list[int] = []
        right: list[int] = []
        for dim in dims:
            in_x, in_y = x._array.shape[dim] != 1, y._array.shape[dim] != 1
            if in_x and in_y:
                users[dim] -= 1
            if users[dim] == 1 and (in_x or in_y):
                (both if in_x and in_y else left if in_x else right).append(dim)
                users[dim] = 0
        x = _reduce.sum(x, tuple(left), True) if left else x
        y = _reduce.sum(y, tuple(right), True) if right else y
        laid.insert(0 if path is None else len(laid), _pair(x, y, both))
    return laid[0]


def _pair(x: Tensor, y: Tensor, summed: list[int]) -> Tensor:
    """Return ``x * y``, summed over the dimensions ``summed``, which are kept with size 1.

    The product and the sum are computed by one batched matrix product. If ``summed`` is empty, the result is ``x * y``.
    """
    if not summed:
        return x * y
    first, rows, columns, sizes, back = _product(x._array.shape, y._array.shape, tuple(summed))
    if not first:
        x, y = y, x
    product = bmm(reshape(permute_block(x, rows[0]), rows[1]), reshape(permute_block(y, columns[0]), columns[1]))
    result: Tensor = permute_block(view_block(product, sizes), back)
    return result


@lru_cache
def _product(a: tuple[int, ...], b: tuple[int, ...], summed: tuple[int, ...]) -> tuple[Any, ...]:
    """Helper of :func:`_pair`: return the parameters of the batched matrix product of two operands.

    ``a`` and ``b`` are the shapes of the operands, and ``summed`` are the dimensions to sum. The result is a tuple of
    five items:

    first    whether the first operand is the left factor of the matrix product
    rows     the permutation and the shape that make the left factor a batch of matrices
    columns  the permutation and the shape that make the right factor a batch of matrices
    sizes    the shape to which the matrix product is reshaped first
    order    the permutation that is then applied to it
    """
    first = True
    rest = [dim for dim in range(len(a)) if dim not in summed]
    batch = [dim for dim in rest if a[dim] != 1 != b[dim]]
    left = [dim for dim in rest if a[dim] != 1 == b[dim]]
    right = [dim for dim in rest if a[dim] == 1]
    if left and right and right[-1] < left[0]:  # the result is then already in the required order
        a, b, left, right, first = b, a, right, left, False
    count, n, k, m = (
        math.prod(shape[dim] for dim in group)
        for shape, group in ((a, batch), (a, left), (a, summed), (b, right))
    )  # fmt: skip
    order = [*batch, *left, *summed, *right]
    sizes = [1 if dim in summed else max(a[dim], b[dim]) if 0 not in (a[dim], b[dim]) else 0 for dim in order]
    rows = (*batch, *left, *summed, *right), (count, n, k)
    columns = (*batch, *summed, *right, *left), (count, k, m)
    return first, rows, columns, tuple(sizes), tuple([order.index(dim) for dim in range(len(order))])


# -- Contraction order -----------------------------------------------------------------------------------------------


@lru_cache
def _contraction_path(equation: str, shapes: tuple[tuple[int, ...], ...]) -> list[tuple[int, int]] | None:
    """Return the order in which ``einsum`` multiplies operands of these ``shapes``, as a list of pairs of indices.

    A pair contains the indices of two operands in the current list of operands. After their multiplication, both are
    removed from the list, and their product is appended. The result is None if the operands are multiplied from left to
    right.
    """
    if len(shapes) < 3:
        return None
    try:
        import opt_einsum  # type: ignore[import-not-found]
    except ImportError:
        terms, result, _ = _dimension_names(equation, shapes)
        return _greedy_path(shapes, terms, result)
    return list(opt_einsum.contract_path(equation, *shapes, optimize="auto", shapes=True)[0])


def _greedy_path(
    shapes: tuple[tuple[int, ...], ...], terms: list[list[str]], result: list[str]
) -> list[tuple[int, int]] | None:
    """Return an order of multiplication for ``einsum``: in each step, the cheapest pair of operands is multiplied.

    The cost of a pair is its number of scalar multiplications. The order is a list of pairs of indices, in the format
    of :func:`_contraction_path`. The result is None if multiplying from left to right is not more expensive. ``terms``
    are the dimension names of the operands, and ``result`` are those of the result of ``einsum``.
    """
    sizes: dict[str, int] = {}
    for names, shape in zip(terms, shapes, strict=True):
        for name, size in zip(names, shape, strict=True):
            sizes[name] = max(size, sizes.get(name, 1))

    def follow(choose: Any, end: bool) -> tuple[int, list[tuple[int, int]]]:
        left, total, steps = [frozenset(term) for term in terms], 0, []
        while len(left) > 1:
            i, j = choose(left)
            both = left[i] | left[j]
            steps.append((i, j))
            total += math.prod(sizes[name] for name in both)
            left = [each for k, each in enumerate(left) if k not in (i, j)]
            still = both & frozenset(result).union(*left)
            left.insert(len(left) if end else 0, still)
        return total, steps

    def best(left: list[frozenset[str]]) -> tuple[int, int]:
        pairs = combinations(range(len(left)), 2)
        return min(pairs, key=lambda pair: math.prod(sizes[name] for name in left[pair[0]] | left[pair[1]]))

    plain, _ = follow(lambda left: (0, 1), False)
    cost, steps = follow(best, True)
    return steps if cost < plain else None
