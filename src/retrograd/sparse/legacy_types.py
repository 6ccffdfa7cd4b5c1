"""PyTorch's legacy types of sparse tensors, such as ``torch.sparse.FloatTensor``: constructors and tests of the type."""

from __future__ import annotations

from typing import Any

from ..compat.type_names import type_name
from ..core import dtypes
from ..core.dtypes import dtype
from ..core.size import Size
from ..core.tensor import Tensor, sparse_coo
from ..operations.creation.conversion import LEGACY_TYPES
from ..operations.creation.legacy_types import DTYPE_BY_LEGACY_NAME, is_count
from ..runtime.user_frame import strips_frames, warn
from .creation import sparse_coo_tensor
from .tensor import SparseTensor

_warned: set[str] = set()
_FORMS = "".join(
    f"\n * ({form}*, torch.device device = None)"
    for form in ("", "Tensor indices, Tensor values, ", "Tensor indices, Tensor values, tuple of ints size, ",
                 "tuple of ints size, ")
)  # fmt: skip


def _deprecate(given: str, instead: str) -> None:
    """Warn once for each form ``given`` of the arguments that ``sparse_coo_tensor`` replaces the constructor."""
    if given not in _warned:
        _warned.add(given)
        separator = ", " if given else ""
        warn(
            f"torch.sparse.SparseTensor({given}{f'{separator}*, device=' if given else ''}) is deprecated.  Please use "
            f"torch.sparse_coo_tensor({instead})."
        )


def _construct(kind: dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SparseTensor:
    """Return a sparse tensor from indices and values, whose dtype it has, or an empty one of dtype ``kind`` from sizes."""
    got = [type_name(each) for each in args] + [f"{key}={type_name(value)}" for key, value in kwargs.items()]
    device = kwargs.pop("device", None)
    given = dict(zip(("indices", "values", "size"), args, strict=False)) | kwargs
    indices, values, size = (given.get(name) for name in ("indices", "values", "size"))
    if not given:
        _deprecate("", "(0,), dtype=")
        return sparse_coo_tensor((0,), dtype=kind, device=device)
    if not kwargs and args and is_count(args[0]):
        for position, each in enumerate(args):
            if not is_count(each):
                raise TypeError(
                    f"new(): argument 'size' failed to unpack the object at pos {position + 1} with error \"type must be "
                    f'tuple of ints,but got {type_name(each)}"'
                )
        args = (Size(args),)
    elif len(args) == 1 and isinstance(args[0], list | tuple) and not isinstance(args[0], Size) and not kwargs:
        raise TypeError(
            "torch.sparse.SparseTensor(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or construct a "
            "strided tensor and convert it to sparse via to_sparse."
        )
    if len(args) == 1 and isinstance(args[0], Size) and not kwargs:
        _deprecate("shape", "shape, dtype=, device=")
        return sparse_coo_tensor(args[0], dtype=kind, device=device)
    if set(given) not in ({"indices", "values"}, {"indices", "values", "size"}) or not (
        isinstance(indices, Tensor) and isinstance(values, Tensor) and isinstance(size, list | tuple | None)
    ):
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({', '.join(got)}), but expected one of:{_FORMS}\n"
        )
    if indices.dtype is not dtypes.int64:
        raise RuntimeError(f"expected scalar type Long but found {dtypes.scalar_name(indices.dtype)}")
    forms = "indices, values" if size is None else "indices, values, shape"
    _deprecate(forms, f"{forms}, dtype=, device=")
    return sparse_coo_tensor(indices, values, size, device=device)


class _SparseTypeMeta(type):
    """Metaclass of the types: a tensor in coordinate format is an instance of the type of its dtype."""

    element: dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, SparseTensor) and instance.layout is sparse_coo and instance.dtype is cls.element

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


def _sparse_type(name: str, kind: dtype) -> Any:
    @strips_frames
    def construct(cls: Any, *args: Any, **kwargs: Any) -> SparseTensor:
        return _construct(kind, args, kwargs)

    doc = f"Legacy type that creates tensors in coordinate format, of dtype ``{kind}`` if from sizes alone."
    names = {"__new__": construct, "element": kind, "dtype": kind, "layout": sparse_coo, "is_sparse": True}
    return _SparseTypeMeta(name, (), {**names, "__module__": "torch.sparse", "__doc__": doc})


#: The types by name; PyTorch has none of bool and of complex numbers.
SPARSE_TYPES = {
    name: _sparse_type(name, kind)
    for name, kind in DTYPE_BY_LEGACY_NAME.items()
    if kind is not dtypes.bool_ and not name.startswith("Complex")
}
LEGACY_TYPES.update({f"torch.sparse.{name}": each for name, each in SPARSE_TYPES.items()})
