"""``StreamWrapper``: a file that is closed with its last reference."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


class StreamWrapper:
    """Open file ``file_obj`` with the methods of the file; it is closed when the wrapper is deleted.

    >>> import io
    >>> stream = StreamWrapper(io.StringIO("one two"), name="text")
    >>> stream.read(3)
    'one'
    >>> stream.close()
    >>> stream.closed
    True
    """

    def __init__(self, file_obj: Any, parent_stream: Any = None, name: str | None = None) -> None:
        self.file_obj, self.parent_stream, self.name = file_obj, parent_stream, name

    def __getattr__(self, name: str) -> Any:
        if name == "file_obj":
            raise AttributeError(name)
        return getattr(self.file_obj, name)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Close the file."""
        with contextlib.suppress(AttributeError):
            self.file_obj.close(*args, **kwargs)

    def autoclose(self) -> None:
        """Close the file."""
        self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __del__(self) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"StreamWrapper<{self.file_obj!r}>"
            if self.name is None
            else f"StreamWrapper<{self.name},{self.file_obj!r}>"
        )


__all__ = ["StreamWrapper"]
