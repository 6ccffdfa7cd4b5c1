"""``torch.hub``: models of local folders, and files that were downloaded before; nothing is downloaded."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

from .serialization import load as _load_file

#: Regular expression for the beginning of a hash within a file name.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_CONFIGURATION = "hubconf.py"
_folder: list[str | None] = [None]


def _progress_bar(iterable: Any = (), *args: Any, **kwargs: Any) -> Any:
    """Return the progress bar ``tqdm`` of the package ``tqdm``, whose arguments these are."""
    from tqdm import tqdm  # only to show progress

    return tqdm(iterable, *args, **kwargs)


tqdm = _progress_bar


def _get_torch_home() -> str:
    """Return the folder of PyTorch's files: ``$TORCH_HOME``, by default ``~/.cache/torch``."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """Return the folder of downloaded files: ``$TORCH_HOME/hub``, by default in ``~/.cache/torch``.

    >>> import retrograd as torch
    >>> before = torch.hub.get_dir()
    >>> torch.hub.set_dir("models")
    >>> torch.hub.get_dir()
    'models'
    >>> torch.hub.set_dir(before)
    """
    return os.path.join(_get_torch_home(), "hub") if _folder[0] is None else _folder[0]


def set_dir(d: Any) -> None:
    """Set the folder of downloaded files.

    >>> import retrograd as torch
    >>> before = torch.hub.get_dir()
    >>> torch.hub.set_dir("models")
    >>> torch.hub.get_dir()
    'models'
    >>> torch.hub.set_dir(before)
    """
    _folder[0] = os.path.expanduser(d)


def _offline(what: str) -> RuntimeError:
    return RuntimeError(f"{what} is not on this machine, and retrograd downloads nothing")


def _configuration(repo_or_dir: Any, source: str) -> ModuleType:
    """Return the module ``hubconf.py`` of a local folder, or of a repository that PyTorch has downloaded."""
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = os.fspath(repo_or_dir)
    if source == "github":
        repository, _, branch = folder.partition(":")
        start = repository.replace("/", "_") + "_" + branch.replace("/", "_")
        known = sorted(os.listdir(get_dir())) if os.path.isdir(get_dir()) else []
        found = [each for each in known if each.startswith(start) and os.path.isdir(os.path.join(get_dir(), each))]
        if not found:
            raise _offline(f"the repository {folder!r}")
        folder = os.path.join(get_dir(), found[0])
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location("hubconf", os.path.join(folder, _CONFIGURATION))
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module


def list(
    github: Any, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None, verbose: bool = True,
    source: str = "local",
) -> Any:  # fmt: skip
    """Return a list of the names of the models that the ``hubconf.py`` of a local folder defines.

    >>> import retrograd as torch
    >>> import pathlib, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = pathlib.Path(folder, "hubconf.py").write_text("def double(x): return 2 * x")
    >>> torch.hub.list(folder)
    ['double']
    """
    module = _configuration(github, source)
    return [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]


def _entry(module: ModuleType, model: str) -> Any:
    found = getattr(module, model, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found


def help(
    github: Any, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None,
    source: str = "local",
) -> str | None:  # fmt: skip
    """Return the docstring of ``model`` in the ``hubconf.py`` of a local folder.

    >>> import retrograd as torch
    >>> import pathlib, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = pathlib.Path(folder, "hubconf.py").write_text("def double(x): 'Return twice x.'")
    >>> torch.hub.help(folder, "double")
    'Return twice x.'
    """
    found: str | None = _entry(_configuration(github, source), model).__doc__
    return found


def load(
    repo_or_dir: Any, model: str, *args: Any, source: str = "github", trust_repo: Any = None, force_reload: bool = False,
    verbose: bool = True, skip_validation: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Return ``model(*args, **kwargs)``, a function of the ``hubconf.py`` of a folder.

    With ``source="local"``, ``repo_or_dir`` is the folder. Otherwise it is a repository that was downloaded before.

    >>> import retrograd as torch
    >>> import pathlib, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = pathlib.Path(folder, "hubconf.py").write_text("def double(x): return 2 * x")
    >>> torch.hub.load(folder, "double", 21, source="local")
    42
    """
    return _entry(_configuration(repo_or_dir, source), model)(*args, **kwargs)


def load_state_dict_from_url(
    url: str, model_dir: Any = None, map_location: Any = None, progress: bool = True, check_hash: bool = False,
    file_name: str | None = None, weights_only: bool = False,
) -> Any:  # fmt: skip
    """Return the object in the file that was downloaded from ``url`` before, to the folder ``model_dir``.

    The default folder is ``checkpoints`` in :func:`get_dir`. RuntimeError is raised if the file does not exist.

    >>> import retrograd as torch
    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> torch.save({"weight": torch.ones(2)}, os.path.join(folder, "model.pt"))  # as if it were downloaded
    >>> torch.hub.load_state_dict_from_url("https://example.org/model.pt", model_dir=folder)
    {'weight': tensor([1., 1.])}
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    path = os.path.join(folder, file_name or os.path.basename(urlparse(url).path))
    if not os.path.exists(path):
        raise _offline(f"{path!r}, the file of {url},")
    return _load_file(path, map_location=map_location, weights_only=weights_only)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Raise RuntimeError, because nothing is downloaded."""
    raise _offline(url)


__all__ = [
    "download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir",
]  # fmt: skip
