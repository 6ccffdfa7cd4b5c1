"""``save`` and ``load``: PyTorch's checkpoints, written and read without PyTorch.

By default no code in a file is executed: ``checkpoints/unpickler.py`` interprets the pickle, and
``checkpoints/storages.py`` lists the objects that it may create. ``checkpoints/archive.py`` and
``checkpoints/legacy.py`` implement the file formats.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import pickle
import pickletools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, TypeAlias

from .checkpoints import legacy, zip_format
from .checkpoints.archive import Reader
from .checkpoints.files import atomic_write
from .checkpoints.formatting import shortened_text
from .checkpoints.safetensors import load_safetensors, save_safetensors
from .checkpoints.storages import (
    TensorType,
    allowed_names,
)
from .checkpoints.unpickler import BROKEN, Blocked, Interpreter, NotAllowed, Refused, Source
from .core import devices
from .core.devices import device
from .operations.creation.storage import UntypedStorage

DEFAULT_PROTOCOL = 2
MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | device | str | dict[str, str] | None

# -- Saving ----------------------------------------------------------------------------------------------------------


def save(
    obj: Any, f: Any, pickle_module: Any = pickle, pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True, _disable_byteorder_record: bool = False,
) -> None:  # fmt: skip
    """Write ``obj`` (tensors, containers of them, a ``state_dict``) to a file that PyTorch's ``load`` can read.

    ``f`` is a path, or a binary file open for writing. A file at a path is replaced only after everything is written,
    so that an error leaves it unchanged. Tensors that share memory still share memory after loading.

    >>> import io
    >>> import retrograd as torch
    >>> file = io.BytesIO()
    >>> torch.save({"weight": torch.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'weight': tensor([1., 1.])}
    """
    write = zip_format.write if _use_new_zipfile_serialization else _write_legacy
    if isinstance(f, str | os.PathLike):
        name = Path(f).name.rpartition(".")[0] or Path(f).name
        with atomic_write(os.fspath(f)) as file:
            write(obj, file, name, pickle_protocol, not _disable_byteorder_record)
        return
    if not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    write(
        obj, f if hasattr(f, "seek") else _WriteOnlyFile(f), "archive", pickle_protocol, not _disable_byteorder_record
    )


class _WriteOnlyFile:
    """File object that :func:`save` uses if the user's object ``target`` has a method ``write``, but no ``seek``."""

    def __init__(self, target: Any) -> None:
        self.target = target

    def write(self, data: Any) -> int:
        self.target.write(bytes(data))
        return len(data)

    def flush(self) -> None:
        if hasattr(self.target, "flush"):
            self.target.flush()


def _write_legacy(obj: Any, file: Any, name: str, protocol: int, order: bool) -> None:
    legacy.write(obj, file, protocol)


# -- Allowed names ---------------------------------------------------------------------------------------------------


class _SafeGlobals:
    """Classes and functions that :func:`add_safe_globals` has allowed in checkpoints.

    The attribute ``names`` is a dictionary from a name in a checkpoint to the class or function.
    """

    names: dict[str, Any]

    def __init__(self) -> None:
        self.names = {}
        self.lock = threading.Lock()


_safe = _SafeGlobals()


def _full_name(value: Any) -> str:
    module = value.__module__
    if module.partition(".")[0] == "retrograd":
        module = "torch" + module.removeprefix("retrograd")
    return f"{module}.{value.__qualname__}"


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow checkpoints to refer to the classes and functions in the list ``safe_globals``.

    :func:`load` may then call them with arguments from the file. An item of the list is a class or a function, or a
    pair: a class or function, and the name by which the file refers to it.
    """
    found = {}
    for each in safe_globals:
        value, name = each if isinstance(each, tuple) else (each, None)
        found[name or _full_name(value)] = value
    with _safe.lock:
        _safe.names = {**_safe.names, **found}


def get_safe_globals() -> list[Any]:
    """Return the list of the classes and functions that :func:`add_safe_globals` has allowed."""
    return list(_safe.names.values())


def clear_safe_globals() -> None:
    """Remove all classes and functions that :func:`add_safe_globals` has allowed."""
    with _safe.lock:
        _safe.names = {}


class safe_globals:
    """Context manager that allows the classes and functions ``safe_globals``, as :func:`add_safe_globals` does."""

    def __init__(self, safe_globals: list[Any]) -> None:
        self.given = safe_globals

    def __enter__(self) -> None:
        self.before = _safe.names
        add_safe_globals(self.given)

    def __exit__(self, *error: object) -> None:
        with _safe.lock:
            _safe.names = self.before


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Return a list of the names of classes and functions in the checkpoint ``f`` that :func:`load` does not allow.

    ``f`` is a path or an open file in PyTorch's zip format.
    """
    with _opened(f) as file:
        data = Reader(file).bytes("data.pkl")
    names = [str(argument).replace(" ", ".") for code, argument, _ in pickletools.genops(data) if code.name == "GLOBAL"]
    allowed = {*allowed_names(), *_safe.names}
    return sorted({name for name in names if name not in allowed})


# -- Loading ---------------------------------------------------------------------------------------------------------


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None,
    mmap: bool | None = None, **pickle_load_args: Any,
) -> Any:  # fmt: skip
    """Return the object that PyTorch's ``save`` or :func:`save` wrote to ``f``, a path or a readable binary file.

    By default, no code in the file is executed: the file may contain tensors, numbers, strings and plain containers,
    and the names of classes and functions that :func:`add_safe_globals` allows. ``weights_only=False`` removes this
    restriction, so that the file can execute any code. ``map_location`` (a device, a string, a dict of strings, or a
    function of a storage and its location) selects the device of the storages. ``mmap=True`` maps the file into memory,
    so that only the parts that the program uses are read.

    Raises UnpicklingError if the pickle in the file is damaged or contains a name that is not allowed, EOFError if the
    file is empty, and RuntimeError or ValueError if another part of the file is damaged.

    >>> import retrograd as torch
    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save({"weight": torch.tensor([1.0, 2.0])}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'weight': tensor([1., 2.])}
    """
    if weights_only is None:
        weights_only = pickle_module is None
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if mmap and not isinstance(f, str | os.PathLike):
        raise ValueError("f must be a file path in order to use the mmap argument")
    with _opened(f) as file:
        start = file.tell()
        magic = file.read(4)
        file.seek(start)
        to = _MapLocation(map_location)
        reading = _PickleReader(weights_only, pickle_module or pickle, pickle_load_args)
        if magic == b"PK\x03\x04":
            return zip_format.read(file, to.move, reading, bool(mmap))
        if mmap:
            raise RuntimeError(
                f"mmap can only be used with files saved with `torch.save({f}, _use_new_zipfile_serialization=True), "
                "please torch.save your checkpoint with this option in order to use mmap."
            )
        return legacy.read(file, to.move, reading)


@contextlib.contextmanager
def _opened(f: Any) -> Iterator[Any]:
    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            yield file
        return
    for name in ("seek", "tell", "read", "readline"):
        if not hasattr(f, name):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{name}'. You can only torch.load from a file that is "
                "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
            )
    try:
        f.seek(f.tell())
    except io.UnsupportedOperation as error:
        raise io.UnsupportedOperation(
            f"{error}. You can only torch.load from a file that is seekable. Please pre-load the data into a buffer like "
            "io.BytesIO and try to load from it instead."
        ) from None
    yield f


class _MapLocation:
    """Mapping of storages to devices by ``map_location``, the argument of :func:`load`."""

    def __init__(self, map_location: Any) -> None:
        self.given = map_location

    def move(self, array: Any, place: str) -> Any:
        """Return ``array`` on the device that ``map_location`` selects.

        ``place`` is the location that the file contains, such as ``"cuda:0"``.
        """
        given = self.given
        if given is None:
            return _to_location(array, place)
        if isinstance(given, dict):
            return _to_location(array, str(given.get(place, place)))
        if isinstance(given, str | bytes):
            return _to_location(array, given if isinstance(given, str) else given.decode())
        if isinstance(given, device):
            return _to_location(array, str(given))
        result = given(UntypedStorage(array), place)
        if result is None:
            return _to_location(array, place)
        if isinstance(result, UntypedStorage):
            moved = result._memory
            return moved if moved.dtype == array.dtype else moved.view(array.dtype)
        raise RuntimeError(f"map_location must give a storage or None, but gave {type(result).__name__}")


def _to_location(array: Any, place: str) -> Any:
    if place == "cpu":
        return array
    if place.partition(":")[0] != "cuda":
        raise RuntimeError(
            f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {shortened_text(place)})"
        )
    count = devices.gpu_count()
    if count == 0:
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
            "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
            "storages to the CPU."
        )
    index = devices.device(place).index
    index = devices.gpu_index("cuda") if index is None else index
    if index >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {index} but torch.cuda.device_count() is {count}. Please "
            "use torch.load with map_location to map your storages to an existing device."
        )
    return devices.to_device(array, devices.device("cuda", index))


# -- Reading pickles -------------------------------------------------------------------------------------------------

_WEIGHTS_HINT = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to `True`. "
    "Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code "
    "execution. Do it only if you got the file from a trusted source."
)
_TYPES_HINT = (
    "\n\nCheck the documentation of torch.load to learn more about types accepted by default with weights_only "
    "https://pytorch.org/docs/stable/generated/torch.load.html."
)


class _PickleReader:
    """Reader of the pickles in one file, used by :func:`load`.

    If ``weights_only`` is true, the pickles are read by an interpreter that executes no code from the file. Otherwise
    they are read by ``pickle_module.Unpickler``, with the keyword arguments ``options``.
    """

    def __init__(self, weights_only: bool, pickle_module: Any, options: dict[str, Any]) -> None:
        self.weights_only, self.pickle_module, self.options = weights_only, pickle_module, options
        self.known = allowed_names()
        self.torchscript_error = (
            "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. " + _WEIGHTS_HINT
            if weights_only
            else "TorchScript archives can not be loaded: they hold compiled programs"
        )

    def run(self, source: Source, persistent: Callable[[Any], Any]) -> Any:
        """Return the object of the pickle that begins at the current position of ``source``.

        Afterwards, the position is the end of the pickle. ``persistent(id)`` is a function that returns the storage to
        which the pickle refers by ``id``. With ``weights_only``, UnpicklingError is raised if the pickle is damaged or
        contains a name that is not allowed.
        """
        if not self.weights_only:
            return self._run_python_pickle(source, persistent)
        safe = dict(_safe.names)
        classes = tuple(value for value in safe.values() if isinstance(value, type))
        storages = _StorageReader(persistent)
        machine = Interpreter(source, lambda module, name: self._find(f"{module}.{name}", safe), storages, classes)
        try:
            return machine.run()
        except Blocked as error:
            raise UnpicklingError(f"Weights only load failed. {_WEIGHTS_HINT}\n\n\n{error}{_TYPES_HINT}") from None
        except NotAllowed as error:
            raise UnpicklingError(
                "Weights only load failed. This file can still be loaded, to do so you have two options, \033[1mdo those "
                f"steps only if you trust the source of the checkpoint\033[0m. \n\t(1) {_WEIGHTS_HINT}\n\t(2) Alternatively, to "
                "load with `weights_only=True` please check the recommended steps in the following error message.\n\t"
                f"WeightsUnpickler error: {error}{_TYPES_HINT}"
            ) from None
        except Refused as error:
            raise UnpicklingError(
                f"Weights only load failed. {_WEIGHTS_HINT}\nPlease file an issue with the following so that we can make "
                "`weights_only=True` compatible with your use case: WeightsUnpickler error: \n\n"
                f"{error}{_TYPES_HINT}"
            ) from None
        except BROKEN as error:
            if error is storages.error:  # the error is from reading a storage, not from the pickle
                raise
            raise UnpicklingError(
                f"Weights only load failed: the pickle in the file is damaged ({type(error).__name__}: "
                f"{shortened_text(str(error))})"
            ) from error

    def _find(self, name: str, safe: dict[str, Any]) -> Any:
        if name in self.known:
            return self.known[name]
        if name in safe:
            return safe[name]
        name, module = shortened_text(name), shortened_text(name.rpartition(".")[0])
        if module.partition(".")[0] in _BLOCKED:
            raise Blocked(f"Trying to load unsupported GLOBAL {name} whose module {module} is blocked.")
        raise NotAllowed(
            f"Unsupported global: GLOBAL {name} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{name}])` or the `torch.serialization.safe_globals([{name}])` "
            "context manager to allowlist this global if you trust this class/function."
        )

    def _run_python_pickle(self, source: Source, persistent: Callable[[Any], Any]) -> Any:
        known = self.known

        class Unpickler(self.pickle_module.Unpickler):  # type: ignore[misc, name-defined]
            def find_class(self, module: str, name: str) -> Any:
                found = known.get(f"{module}.{name}")
                if found is not None:
                    return found.cls if isinstance(found, TensorType) else found
                if module.partition(".")[0] == "torch":
                    return _find_in_package(module, name)
                return super().find_class(module, name)

            def persistent_load(self, identity: Any) -> Any:
                return persistent(identity)

        file = io.BytesIO(source.data)
        file.seek(source.position)
        found = Unpickler(file, **self.options).load()
        source.position = file.tell()
        return found


class _StorageReader:
    """Function that returns the storage with a given id, and stores the exception if it raises one.

    The storage is ``read(id)``, where ``id`` is the id by which a pickle refers to the storage. The exception is stored
    in the attribute ``error``, so that the caller can distinguish an exception of the user's ``map_location`` from an
    error of the pickle.
    """

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self.read = read
        self.error: BaseException | None = None

    def __call__(self, found: Any) -> Any:
        try:
            return self.read(found)
        except Exception as error:
            self.error = error
            raise


_BLOCKED = {"sys", "os", "posix", "nt", "subprocess"}


#: Owners that PyTorch's pickles name for functions and methods in C++, and the owners here.
_CPP_OWNERS = {("torch._C", "_VariableFunctionsClass"): ("torch", ""), ("torch._C", "TensorBase"): ("torch", "Tensor")}


def _find_in_package(module: str, name: str) -> Any:
    """Return retrograd's object for the object ``name`` of the PyTorch module ``module``.

    If the corresponding module of retrograd does not exist or has no such object, the parent modules are searched.
    AttributeError is raised if no module has the object.
    """
    if (module, name) in _CPP_OWNERS:
        module, name = _CPP_OWNERS[module, name]
    elif module.startswith("torch._C._"):  # the operation's name has the submodule as a prefix
        part = module.removeprefix("torch._C._")
        module, name = f"torch.{part}".replace("torch.nn", "torch.nn.functional"), name.removeprefix(f"{part}_")
    parts = module.split(".")[1:]
    for length in range(len(parts), -1, -1):
        with contextlib.suppress(ImportError, AttributeError):
            found = importlib.import_module(".".join(["retrograd", *parts[:length]]))
            for each in filter(None, name.split(".")):
                found = getattr(found, each)
            return found
    raise AttributeError(f"Can't get attribute {name!r} on module {module!r}: retrograd has nothing of that name")


__all__ = [
    "add_safe_globals", "clear_safe_globals", "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load",
    "load_safetensors", "safe_globals", "save", "save_safetensors",
]  # fmt: skip
