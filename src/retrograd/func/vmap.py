"""``vmap``: returns a function that applies a given function to all slices of its arguments at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..core.pytree import TreeSpec, broadcast_to_and_flatten, tree_flatten, tree_is_leaf
from ..core.tensor import Tensor
from ..dispatch.op import TENSORS as F
from ..operations.creation.random import get_rng_state, set_rng_state
from . import vmap_rules  # noqa: F401 - registers the rules
from .batched_tensor import Batch, VmapRun, batch, expand_over_slices, move_dim

RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that calls ``func`` once for all slices of its arguments and returns the stacked results.

    Args:
        func: a function whose arguments and results are tensors or nested structures (pytrees) of tensors. Arguments
            may also be other values.
        in_dims: the batch dimension of each argument, or None for an argument that is the same for all slices. An int
            applies to all arguments. A tuple has an item for each argument; for a pytree the item may be a pytree of
            the same structure.
        out_dims: the batch dimension of the results. An int applies to all results; a pytree has an item for each of
            them.
        randomness: treatment of random operations in ``func``. They raise an error with ``"error"``, draw the same
            values for every slice with ``"same"``, and different values with ``"different"``.
        chunk_size: the number of slices that are computed at a time, to limit memory; None means all.

    Raises ValueError if sizes, dimensions or structures do not match. Raises RuntimeError for operations that depend on
    the elements of a slice, such as ``.item()``, an ``if`` on a tensor, or an operation whose result shape depends on
    the elements.

    >>> import retrograd as torch
    >>> torch.vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3))
    tensor([3., 3.])

    See https://docs.pytorch.org/docs/stable/generated/torch.func.vmap.html.
    """
    check_randomness(randomness)
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return over_slices(func, in_dims, out_dims, randomness, chunk_size, args, kwargs)

    return wrapped


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """Return :func:`vmap` of ``func``; results that are None stay None if ``allow_none_pass_through`` is true."""
    if not allow_none_pass_through:
        return vmap(func, in_dims, out_dims)

    def wrapped(*args: Any) -> Any:
        results: list[Any] = []

        def without_none(*slices: Any) -> Any:
            found = func(*slices)
            results[:] = found if isinstance(found, tuple) else [found]
            return tuple(each for each in results if each is not None)

        batches = iter(vmap(without_none, in_dims, out_dims)(*args))
        filled = tuple(None if each is None else next(batches) for each in results)
        return filled if len(filled) > 1 else filled[0]

    return wrapped


def check_randomness(randomness: str) -> None:
    """Raise RuntimeError unless ``randomness`` is ``"error"``, ``"same"`` or ``"different"``."""
    if randomness not in RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")


def over_slices(
    func: Any, in_dims: Any, out_dims: Any, randomness: str, chunk: int | None, args: tuple[Any, ...], kwargs: Any
) -> Any:
    """Return the results of ``func`` for all slices of ``args``; this function implements :func:`vmap`.

    If ``chunk`` is not None, only this number of slices is computed at a time. ``kwargs`` are keyword arguments, which
    are the same for all slices. The other parameters have the same meaning as in :func:`vmap`.
    """
    size, dims, leaves, spec = _flatten_inputs(func, in_dims, args)
    if chunk is None or not size:
        return _call_batched(func, out_dims, randomness, size, dims, leaves, spec, kwargs)
    parts = []
    state = get_rng_state() if randomness == "same" else None
    for start in range(0, size, chunk):
        if state is not None:  # the same random numbers for all chunks
            set_rng_state(state)
        width = min(chunk, size - start)
        some = [each if dim is None else each.narrow(dim, start, width) for each, dim in zip(leaves, dims, strict=True)]
        parts.append(_call_batched(func, out_dims, randomness, width, dims, some, spec, kwargs))
    shape = tree_flatten(parts[0])[1]
    columns = zip(*(tree_flatten(each)[0] for each in parts), strict=True)
    where = _out_dims(func, out_dims, shape)
    return shape.unflatten(
        [column[0] if dim is None else F.cat(list(column), dim) for column, dim in zip(columns, where, strict=True)]
    )


def _call_batched(
    func: Any, out_dims: Any, randomness: str, size: int, dims: Sequence[Any], leaves: Any, spec: TreeSpec, kwargs: Any
) -> Any:
    run = VmapRun(size, randomness)

    def sliced() -> Any:
        given = [
            each if dim is None else batch(run, each, dim % each._array.ndim)
            for each, dim in zip(leaves, dims, strict=True)
        ]
        result = func(*spec.unflatten(given), **kwargs)
        outs, shape = tree_flatten(result)
        where = _out_dims(func, out_dims, shape)
        for each, dim in zip(outs, where, strict=True):
            if not isinstance(each, Tensor) and dim is not None:
                raise ValueError(
                    f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type {type(each)}. Did you "
                    "mean to set out_dims= to None for output?"
                )
        return shape.unflatten([_unwrap_output(func, each, dim, run) for each, dim in zip(outs, where, strict=True)])

    return run.around(sliced)


def _unwrap_output(func: Any, x: Any, dim: int | None, run: VmapRun) -> Any:
    batched = isinstance(x, Batch) and x._run is run
    if dim is None:
        if batched:
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when out_dim is None"
            )
        return x
    value, source = (x._inner, x._dim) if batched else (expand_over_slices(x, run), 0)
    rank = value._array.ndim
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    return move_dim(value, source, dim % rank)


# --- Dimensions of arguments and results ------------------------------------------------------------------------------


def _name(func: Any) -> str:
    return getattr(func, "__name__", None) or repr(func)


def _flatten_inputs(func: Any, in_dims: Any, args: tuple[Any, ...]) -> tuple[int, list[Any], list[Any], TreeSpec]:
    """Flatten ``args``, the arguments of a call of vmap, and check that ``in_dims`` matches them.

    The result is a tuple of four items: the number of slices; a list with the batch dimension, or None, of each leaf; a
    list of the leaves, which are the tensors and other values in ``args``; and the nested structure of ``args``. Raises
    ValueError if ``in_dims`` does not match (``func`` is named in the message).
    """
    name = _name(func)
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) tuple "
            f"matching the structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of `inputs`. "
            f"in_dims has structure {tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    for each, dim in zip(leaves, dims, strict=True):
        _check_in_dim(name, in_dims, each, dim)
    sizes = [each._array.shape[dim] for each, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped "
            "dimension. Remedy: pass in_dims with the batch dimension of each argument, or None for a shared one."
        )
    return sizes[0], dims, leaves, spec


def _check_in_dim(name: str, in_dims: Any, each: Any, dim: Any) -> None:
    if dim is None:
        return
    prefix = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for "
    if not isinstance(dim, int):
        raise ValueError(f"{prefix}an input but in_dim must be either an integer dimension or None.")
    if not isinstance(each, Tensor):
        raise ValueError(
            f"{prefix}an input but the input is of type {type(each)}. We cannot vmap over non-Tensor arguments, please use "
            "None as the respective in_dim"
        )
    rank = each._array.ndim
    if not -rank <= dim < rank:
        raise ValueError(
            f"{prefix}some input, but that input is a Tensor of dimensionality {rank} so expected in_dim to satisfy "
            f"-{rank} <= in_dim < {rank}."
        )


def _out_dims(func: Any, out_dims: Any, spec: TreeSpec) -> list[Any]:
    name = _name(func)
    if not all(each is None or isinstance(each, int) for each in tree_flatten(out_dims)[0]):
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints "
            "representing where in the outputs the vmapped dimension should appear."
        )
    if spec.is_leaf() and not tree_is_leaf(out_dims):
        dims = [*out_dims] if isinstance(out_dims, tuple) and len(out_dims) == 1 else None
    else:
        dims = broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    return dims


vmap.__module__ = "retrograd.func"
__all__ = ["check_randomness", "over_slices", "vmap"]
