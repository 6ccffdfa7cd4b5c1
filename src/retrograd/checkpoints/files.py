"""``atomic_write``: replaces a file only after its new content is complete; ``read_into``: reads into an array."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from typing import Any

_CHUNK = 2**20  # bytes


@contextlib.contextmanager
def atomic_write(path: str, sync: bool = True) -> Iterator[Any]:
    """Return a context manager with a temporary file that replaces the file at ``path`` when the ``with`` block ends.

    If the block raises an exception, the file at ``path`` is unchanged. A device or a pipe at ``path`` is written
    directly. Without ``sync``, the file may be lost if the machine fails. Raises RuntimeError if the folder does not
    exist.
    """
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(path) or folder} does not exist.")
    mode = os.stat(target).st_mode if os.path.exists(target) else None
    if mode is not None and not stat.S_ISREG(mode):  # a device or a pipe cannot be replaced
        with open(target, "wb") as file:
            yield file
        return
    beside = os.path.join(folder, f".{secrets.token_hex(8)}.tmp")
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        if mode is not None:
            os.chmod(beside, stat.S_IMODE(mode))
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
    if sync:
        _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """Flush the directory entries of ``folder`` to disk, so that renaming a file in ``folder`` survives a crash.

    Errors are ignored, because some systems do not support this.
    """
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read_into(file: Any, target: Any) -> int:
    """Fill the uint8 array ``target`` with the next bytes of the binary file ``file``, and return their number.

    The number is smaller than the length of ``target`` only at the end of the file. ``file`` may return fewer bytes
    than requested, and may have no method ``readinto``.
    """
    done = 0
    view = memoryview(target)
    while done < len(view):
        if hasattr(file, "readinto"):
            count = file.readinto(view[done:])
        else:
            chunk = file.read(min(len(view) - done, _CHUNK))
            count = len(chunk)
            if count <= len(view) - done:
                view[done : done + count] = chunk
        if not count:
            break
        if count > len(view) - done:
            raise OSError(f"the file returned {count} bytes, more than requested")
        done += count
    return done
