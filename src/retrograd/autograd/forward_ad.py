"""``torch.autograd.forward_ad``: forward mode with explicitly created and unpacked dual tensors.

>>> import retrograd as torch
>>> import retrograd.autograd.forward_ad as fwAD
>>> with fwAD.dual_level():
...     y = fwAD.make_dual(torch.tensor(2.0), torch.tensor(1.0)) ** 3
...     fwAD.unpack_dual(y)
UnpackedDualTensor(primal=tensor(8.), tangent=tensor(12.))

See https://docs.pytorch.org/docs/stable/autograd.html#forward-mode-automatic-differentiation.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from ..compat.missing_names import missing_name_error
from ..core.error_context import with_remedy
from ..core.tensor import Tensor, element_strides, memory_owner
from ..core.views import overlaps
from ..dispatch.transform_tensor import TransformLevel, active_levels
from ..operations.shape.views import view
from .dual import make_dual_tensor, primal_at, tangent_at


class DualRun(TransformLevel):
    """Open level of forward mode, which exists from :func:`enter_dual_level` to :func:`exit_dual_level`.

    Dual tensors can be created only while a level is open. At most one level is open at a time.
    """

    __slots__ = ()
    strict = False


def _open() -> DualRun | None:
    return next((each for each in active_levels() if each.__class__ is DualRun), None)


def __getattr__(name: str) -> Any:
    if name == "_current_level":  # number of the open level, or -1; programs read it to detect forward mode
        return -1 if _open() is None else 0
    raise missing_name_error(__name__, name, sys._getframe(1))


def enter_dual_level() -> int:
    """Open a level of forward mode, in which dual tensors can be created, and return its number, which is always 0.

    :func:`exit_dual_level` closes the level. RuntimeError is raised if a level is open already.

    >>> import retrograd as torch
    >>> import retrograd.autograd.forward_ad as fwAD
    >>> fwAD.enter_dual_level()
    0
    >>> fwAD.exit_dual_level()
    """
    if _open() is not None:
        text = "Nested forward mode AD is not supported at the moment"
        raise RuntimeError(with_remedy(text, "nest torch.func.jvp instead"))
    DualRun().__enter__()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the open level of forward mode; dual tensors created in the level act as their primals afterwards.

    ``level`` is the number of the level to close; None means the open level. RuntimeError is raised if this level is
    not open.

    >>> import retrograd as torch
    >>> import retrograd.autograd.forward_ad as fwAD
    >>> fwAD.enter_dual_level()
    0
    >>> dual = fwAD.make_dual(torch.tensor(3.0), torch.tensor(1.0))
    >>> fwAD.exit_dual_level()
    >>> dual
    tensor(3.)
    """
    run = _open()
    if run is None and level is None:
        raise RuntimeError("Dual level must be a positive number.")
    if run is None or level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    run.__exit__()


class dual_level:
    """Context manager that opens a level of forward mode, in which dual tensors can be created.

    >>> import retrograd as torch
    >>> import retrograd.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     dual = fwAD.make_dual(torch.tensor(3.0), torch.tensor(1.0))
    ...     print(fwAD.unpack_dual(dual**2).tangent)
    tensor(6.)
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *error: object) -> None:
        exit_dual_level()


class UnpackedDualTensor(NamedTuple):
    """Primal and tangent of a dual tensor; the tangent is None for a tensor that is not a dual tensor.

    >>> import retrograd as torch
    >>> import retrograd.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     dual = fwAD.make_dual(torch.tensor(3.0), torch.tensor(1.0))
    ...     print(fwAD.unpack_dual(dual**2))
    UnpackedDualTensor(primal=tensor(9.), tangent=tensor(6.))
    """

    primal: Tensor
    tangent: Tensor | None


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a dual tensor with the primal ``tensor`` and the tangent ``tangent``, which must have the same shape.

    Results computed from a dual tensor have tangents. Raises RuntimeError outside :class:`dual_level` or if the shapes
    differ, and ValueError for integers and booleans. ``level`` has no effect, because only one level can be open.

    >>> import retrograd as torch
    >>> import retrograd.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     fwAD.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0])) * 3
    tensor([3., 6.], tangent=tensor([3., 0.]))
    """
    run = _open()
    if run is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
            " Remedy: do so within `with torch.autograd.forward_ad.dual_level():`."
        )
    for name, each in (("primal", tensor), ("tangent", tangent)):
        if not (each.is_floating_point() or each.is_complex()):
            text = f"Expected {name} to be floating point or complex, but got: {each.dtype}"
            raise ValueError(with_remedy(text, "convert it, as by .float()"))
    if tangent_at(tensor, run) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported. Remedy: pass unpack_dual(tensor).primal."
        )
    if tangent_at(tangent, run) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level0 is not supported. Remedy: pass "
            "unpack_dual(tangent).primal."
        )
    if tangent._array.shape != tensor._array.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor._array.shape)} while the given forward gradient is of size "
            f"{list(tangent._array.shape)}.{with_remedy('', 'pass a tangent of its shape', tensor._grad_edge, 'The tensor is')}"
        )
    dual: Tensor = make_dual_tensor(run, view(tensor, tensor._array.shape), _with_layout_of(tensor, tangent))
    return dual


def _with_layout_of(tensor: Tensor, tangent: Tensor) -> Tensor:
    """Return ``tangent``, copied if necessary, so that views of ``tensor`` apply to it.

    The copy has the strides, the storage offset and the size of the storage of ``tensor``.
    """
    array = tensor._array
    if tensor.__class__ is not Tensor or tangent.__class__ is not Tensor or not array.size or overlaps(tensor):
        return tangent
    size, start, strides = memory_owner(array).nbytes // array.itemsize, tensor.storage_offset(), element_strides(array)
    if memory_owner(tangent._array).nbytes == size * array.itemsize and tangent.storage_offset() == start:
        steps = zip(array.shape, strides, element_strides(tangent._array), strict=True)
        if all(length == 1 or mine == other for length, mine, other in steps):
            return tangent
    made: Tensor = tangent.new_zeros(size).as_strided(array.shape, strides, start).copy_(tangent)
    return made


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return the primal and the tangent of the dual tensor ``tensor``.

    For a tensor that is not a dual tensor, the primal is the tensor itself and the tangent is None. The tangent is also
    None outside :class:`dual_level`. ``level`` has no effect, because only one level can be open.

    >>> import retrograd as torch
    >>> import retrograd.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     dual = fwAD.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0])) * 3
    ...     primal, tangent = fwAD.unpack_dual(dual)
    >>> tangent
    tensor([3., 0.])
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {type(tensor).__name__}")
    run = _open()
    if run is None:
        return UnpackedDualTensor(tensor, None)
    primal = primal_at(tensor, run)
    return UnpackedDualTensor(view(primal, primal._array.shape), tangent_at(tensor, run))


__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]
