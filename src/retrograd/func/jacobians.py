"""``jacrev``, ``jacfwd`` and ``hessian``: Jacobians whose rows or columns are computed in one call of vmap."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy

from ..core.pytree import tree_flatten, tree_map
from ..core.tensor import Tensor, wrap
from ..dispatch.op import TENSORS as F
from ..dispatch.transform_tensor import active_levels
from .batched_tensor import first_slice
from .transforms import Argnums, check_argnums, jvp, outside_inference, replace_args, select_args, vjp_of
from .vmap import check_randomness, vmap


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of ``func`` by reverse mode, which is efficient for few outputs.

    For an output of shape ``o`` and an argument of shape ``i`` the Jacobian has shape ``o + i``. If ``func`` returns a
    nested structure (pytree) of tensors, the result has the same structure, with a Jacobian for each tensor. If the
    argument is a pytree, each Jacobian is a pytree with one item for each tensor in the argument.

    ``chunk_size`` is the number of rows of the Jacobian that are computed at a time; None means all. ``argnums`` and
    ``has_aux`` have the same meaning as in :func:`grad`.

    >>> import retrograd as torch
    >>> torch.func.jacrev(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    @outside_inference
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = check_argnums(argnums, len(args))
        inputs = select_args(args, numbers)
        primals = (inputs,) if isinstance(numbers, int) else inputs
        found = vjp_of(lambda *given: func(*_with_values(args, numbers, given), **kwargs), primals, has_aux)
        outs, spec = tree_flatten(found[0])
        _check_real("jacrev", "inputs", tree_flatten(inputs)[0])
        _check_real("jacrev", "outputs", outs)
        bases = _basis(outs)
        pull = found[1]

        def products(*rows: Any) -> list[Any]:
            return tree_flatten(pull(spec.unflatten(rows)))[0]

        if len(outs) == 1 and outs[0].numel() == 1:  # one row, as of a gradient: without the overhead of vmap
            columns = [each[None] for each in products(bases[0][0])]
        else:
            columns = vmap(products, chunk_size=chunk_size)(*bases)
        structure = tree_flatten(inputs)[1]
        rows = [list(each.split([out.numel() for out in outs], 0)) for each in columns]
        result = [
            structure.unflatten([
                column[k].reshape((*out._array.shape, *column[k]._array.shape[1:])) for column in rows
            ])
            for k, out in enumerate(outs)
        ]  # fmt: skip
        jacobian = spec.unflatten(result)
        return (jacobian, found[2]) if has_aux else jacobian

    return wrapper


def _with_values(args: tuple[Any, ...], numbers: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return replace_args(args, numbers, values[0] if isinstance(numbers, int) else values)


def _basis(tensors: list[Any]) -> list[Any]:
    """Return the standard basis of the space of all elements of ``tensors``.

    For each basis vector, :func:`jacrev` or :func:`jacfwd` computes one row or column of a Jacobian. For each tensor of
    shape ``s``, the result has a tensor of shape ``(n, *s)``, where n is the total number of elements. Index k along
    the first dimension belongs to the k-th unit vector.
    """
    total, at, parts = sum(each.numel() for each in tensors), 0, []
    for each in tensors:
        size = math.prod(each._array.shape)
        rows = numpy.zeros((total, size), each._array.dtype)
        rows[at : at + size] = numpy.eye(size, dtype=each._array.dtype)
        parts.append(wrap(rows.reshape(total, *each._array.shape)).to(each.device))
        at += size
    return parts


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of ``func`` by forward mode, which is efficient for few inputs.

    The shapes and the structure of the result are the same as for :func:`jacrev`. ``argnums`` and ``has_aux`` have the
    same meaning as in :func:`grad`, and ``randomness`` as in :func:`vmap`.

    >>> import retrograd as torch
    >>> torch.func.jacfwd(torch.sin)(torch.tensor([0.0, 1.0]))
    tensor([[1.0000, 0.0000],
            [0.0000, 0.5403]])
    """
    check_randomness(randomness)

    @functools.wraps(func)
    @outside_inference
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = check_argnums(argnums, len(args))
        inputs = select_args(args, numbers)
        primals = (inputs,) if isinstance(numbers, int) else inputs
        leaves, structure = tree_flatten(primals)
        for each in leaves:
            if not isinstance(each, Tensor):
                raise RuntimeError(
                    f"jvp(f, primals, tangents): Expected primals to only contain Tensors, got {type(each)}"
                )
        _check_real("jacfwd", "inputs", leaves)

        def push(*tangents: Any) -> Any:
            _, slope, *aux = jvp(
                lambda *given: func(*_with_values(args, numbers, given), **kwargs),
                primals, structure.unflatten(tangents), has_aux=has_aux,
            )  # fmt: skip
            return slope, tree_map(first_slice, aux)

        slopes, aux = vmap(push, randomness=randomness, out_dims=(0, None))(*_basis(leaves))
        outs, spec = tree_flatten(slopes)
        _check_real("jacfwd", "outputs", outs)
        result = []
        for each in outs:
            sizes = [leaf.numel() for leaf in leaves]
            # One of several views must not be modified in place; in transforms, which may record it, PyTorch allows it.
            parts = [each] if len(sizes) == 1 and active_levels() else each.split(sizes, 0)
            shaped = [_leaf_last(part, leaf) for part, leaf in zip(parts, leaves, strict=True)]
            tree = structure.unflatten(shaped)
            result.append(tree[0] if isinstance(numbers, int) else tree)
        jacobian = spec.unflatten(result)
        return (jacobian, aux[0]) if has_aux else jacobian

    return wrapper


def _check_real(name: str, what: str, tensors: list[Any]) -> None:
    for index, each in enumerate(tensors):
        if each.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened {what[:-1]} idx: {index}"
            )


def _leaf_last(part: Any, leaf: Any) -> Any:
    """Return ``part``, a part of a Jacobian, with the dimensions of the input after those of the output.

    ``part`` has the shape ``(n, *result)``, where n is the number of elements of the input tensor ``leaf``, and
    ``result`` is the shape of an output. The returned tensor has the shape ``(*result, *leaf.shape)``.
    """
    rank = part._array.ndim
    return F.permute(part, (*range(1, rank), 0)).reshape((*part._array.shape[1:], *leaf._array.shape))


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that computes the Hessian (the second derivatives) of ``func``, as ``jacfwd(jacrev(func))``.

    ``argnums`` has the same meaning as in :func:`grad`.

    >>> import retrograd as torch
    >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


for _function in (jacrev, jacfwd, hessian):
    _function.__module__ = "retrograd.func"
