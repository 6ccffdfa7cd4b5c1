"""Named tuples of results: the classes of ``torch.return_types``."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ..compat.pickle_names import pickled_as

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

    from ..core.typing import Function
    from .typing import Result, ResultTuple


def named(name: str, fields: Sequence[str]) -> ResultTuple:
    """Create the tuple class ``torch.return_types.<name>``, whose items are also the attributes ``fields``.

    Return the class. Its instances have PyTorch's repr, and their pickles are compatible with PyTorch's.
    """

    def text(self: tuple[object, ...]) -> str:
        shown = ",\n".join(f"{field}={value!r}" for field, value in zip(fields, self, strict=True))
        return f"torch.return_types.{name}(\n{shown})"

    def make(
        cls: type[tuple[object, ...]], values: Iterable[object], attributes: object = None
    ) -> tuple[object, ...]:  # PyTorch's pickles pass attributes
        return tuple.__new__(cls, values)

    def reduce(self: tuple[object, ...]) -> tuple[Function, tuple[str, tuple[object, ...]]]:
        return rebuild, (name, tuple(self))

    def refuse(self: tuple[object, ...], field: str) -> NoReturn:
        raise AttributeError(f"'torch.return_types.{name}' object has no attribute '{field}'")

    body: dict[str, Any] = {field: property(itemgetter(i)) for i, field in enumerate(fields)}
    body |= {
        "__slots__": (),
        "__module__": "torch.return_types",
        "__repr__": text,
        "__new__": make,
        "__reduce__": reduce,
        "__getattr__": refuse,
    }
    RESULTS[name] = type(name, (tuple,), body)
    return RESULTS[name]


@pickled_as("return_type")
def rebuild(name: str, values: tuple[object, ...]) -> Result:
    """Return an instance of ``torch.return_types.<name>`` with the items ``values``; pickles call this function."""
    return RESULTS[name](values)


#: The classes by name.
RESULTS: dict[str, ResultTuple] = {}
