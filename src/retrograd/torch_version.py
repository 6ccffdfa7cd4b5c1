"""``TorchVersion``, the class of ``torch.__version__``: a string that is compared as a version number."""

from __future__ import annotations

import functools
import re
from typing import Any


@functools.cache
def _pattern() -> re.Pattern[str]:
    """Return the compiled regular expression for version strings in the common forms of PEP 440."""
    return re.compile(
        r"v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
        r"(?:[-_.]?(?P<pre>a|b|c|rc|alpha|beta|pre|preview)[-_.]?(?P<pre_number>\d*))?"
        r"(?P<post>[-_.]?(?:post|rev|r)[-_.]?(?P<post_number>\d*))?"
        r"(?P<dev>[-_.]?dev[-_.]?(?P<dev_number>\d*))?"
        r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?",
        re.IGNORECASE,
    )


_STAGE = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}
_FINAL = (3, 0)


def _sort_key(text: str) -> tuple[Any, ...] | None:
    """Return a tuple by which the version ``text`` can be compared, or None if ``text`` is not a version."""
    found = _pattern().fullmatch(text.strip())
    if found is None:
        return None
    release = [int(each) for each in found["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    pre = (_STAGE[found["pre"].lower()], int(found["pre_number"] or 0)) if found["pre"] else _FINAL
    if found["dev"] and not found["pre"] and not found["post"]:
        pre = (-1, 0)
    post = int(found["post_number"] or 0) if found["post"] else -1
    dev = int(found["dev_number"] or 0) if found["dev"] else float("inf")
    parts = re.split(r"[-_.]", found["local"].lower()) if found["local"] else []
    local = tuple((1, int(each), "") if each.isdigit() else (0, 0, each) for each in parts)
    return int(found["epoch"] or 0), tuple(release), pre, post, dev, local


class TorchVersion(str):
    """String that is compared as a version number to a string or to a sequence of numbers.

    If one of the two operands is not a version, they are compared as strings.

    >>> version = TorchVersion("2.13.0+retrograd.0.1.0")
    >>> version >= "2.9", version < (3,), version == "2.13.0"
    (True, True, False)
    """

    __module__ = "torch.torch_version"
    __slots__ = ()

    def _compared(self, other: Any, how: str) -> Any:
        if not isinstance(other, str):
            if not isinstance(other, (tuple, list)):
                raise ValueError(f"can't compare a version with {other!r}")
            other = ".".join(map(str, other))
        mine, yours = _sort_key(self), _sort_key(other)
        if mine is None or yours is None:
            return getattr(str, how)(self, other)
        return getattr(mine, how)(yours)

    def __eq__(self, other: object) -> Any:
        return self._compared(other, "__eq__")

    def __ne__(self, other: object) -> Any:
        return self._compared(other, "__ne__")

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, "__lt__")

    def __le__(self, other: Any) -> Any:
        return self._compared(other, "__le__")

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, "__gt__")

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, "__ge__")

    __hash__ = str.__hash__


__all__ = ["TorchVersion"]
