"""``rendezvous``: the store, the rank and the number of ranks that a URL names (``env://``, ``tcp://``, ``file://``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlparse

from . import launch_environment
from .errors import DistError, DistNetworkError
from .stores import FileStore, PrefixStore, Store, TCPStore

#: Default of ``timeout`` of process groups.
default_pg_timeout = timedelta(seconds=1800)
Found = Iterator[tuple[Store, int, int]]
_HANDLERS: dict[str, Callable[..., Found]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Found]) -> None:
    """Register ``handler`` for URLs with ``scheme``; raise RuntimeError if the scheme has a handler.

    ``handler(url, timeout=timeout)`` returns an iterator over tuples (store, rank, number of ranks).

    >>> from retrograd import distributed as dist
    >>> def handler(url, timeout=None, **options):
    ...     yield dist.HashStore(), 0, 1
    >>> dist.register_rendezvous_handler("memory", handler)
    >>> dist.init_process_group("gloo", init_method="memory://")
    >>> dist.get_world_size()
    1
    >>> dist.destroy_process_group()
    """
    if scheme in _HANDLERS:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _HANDLERS[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Found:
    """Return an iterator over tuples (store, rank, number of ranks) for ``url``.

    ``rank`` and ``world_size``, if they are not negative, are used instead of those in the URL or in the environment.

    >>> import tempfile
    >>> from retrograd import distributed as dist
    >>> folder = tempfile.TemporaryDirectory()
    >>> store, rank, world_size = next(dist.rendezvous(f"file://{folder.name}/store?rank=0&world_size=1"))
    >>> rank, world_size
    (0, 1)
    >>> store.set("key", "value")
    >>> store.get("key")
    b'value'
    >>> del store
    >>> folder.cleanup()
    """
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    parsed = urlparse(url)
    given = {name: value for name, value in (("rank", rank), ("world_size", world_size)) if value != -1}
    if given:
        if {"rank", "world_size"} & dict(parse_qsl(parsed.query)).keys():
            raise AssertionError(f"The url: {url} has node-specific arguments(rank, world_size) already.")
        query = "&".join(filter(None, [parsed.query, *(f"{name}={value}" for name, value in given.items())]))
        url = parsed._replace(query=query).geturl()
    if parsed.scheme not in _HANDLERS:
        raise RuntimeError(f"No rendezvous handler for {parsed.scheme}://")
    return _HANDLERS[parsed.scheme](url, **kwargs)


def _error(scheme: str, problem: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {problem}")


def _rank_and_size(scheme: str, query: dict[str, str]) -> tuple[int, int]:
    for name, words in (("rank", "rank"), ("world_size", "world size")):
        if name not in query:
            raise _error(scheme, f"{words} parameter missing")
    return int(query["rank"]), int(query["world_size"])


#: The masters of addresses. They stay open until the end of the process: a further ``init_process_group`` of another
#: process may connect before this process has closed the first one.
_MASTERS: dict[int, TCPStore] = {}


def _store_at(host: str, port: int, rank: int, world_size: int, timeout: timedelta) -> Store:
    """Return the store of an address, whose master is rank 0, or the launcher of the ranks."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        return PrefixStore(f"/worker/attempt_{attempt}", TCPStore(host, port, world_size, False, timeout))
    # The start of MPI waits for the other ranks, and names those that are missing.
    try:
        store = TCPStore(host, port, world_size, rank == 0, timeout, wait_for_workers=False, multi_tenant=True)
    except DistNetworkError as error:
        if rank == 0 and "EADDRINUSE" in str(error):
            _report_second_master(host, port, world_size)
        raise
    if rank == 0:
        _MASTERS.setdefault(store.port, store)
    return store


def _report_second_master(host: str, port: int, world_size: int) -> None:
    """If another process is rank 0 of a job at the address that waits for its ranks, let the job fail."""
    from .mpi_start import Meeting

    limit = timedelta(seconds=1)
    with suppress(DistError):
        store = PrefixStore("default_pg", TCPStore(host, port, timeout=limit))
        Meeting(store, 0, 0, world_size, limit).refuse_second_master(f"{host}:{port}")


def _store_of_mpi(rank: int, world_size: int, timeout: timedelta) -> Store:
    """Return a store whose address rank 0 tells the others through the MPI that ``mpiexec`` has prepared."""
    from .mpi_start import broadcast_by_launcher, own_addresses

    if rank != 0:
        host, port = broadcast_by_launcher(None, world_size)
        return TCPStore(host, port, world_size, False, timeout)
    store = TCPStore("", 0, world_size, True, timeout, wait_for_workers=False, multi_tenant=True)
    store.host = own_addresses("")[0]
    _MASTERS[store.port] = store
    if world_size > 1:
        broadcast_by_launcher((store.host, store.port), world_size)
    return store


def _from_environment(url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any) -> Found:
    """Handler of ``env://``: ``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR`` and ``MASTER_PORT`` of the environment.

    If ``RANK`` is not set, the variables of ``mpiexec`` or ``srun`` are used.
    """
    query = dict(parse_qsl(urlparse(url).query))
    found = {**({} if "RANK" in os.environ else launch_environment.variables()), **os.environ}

    def value(name: str) -> str:
        if name.lower() in query:
            return query[name.lower()]
        if name not in found:
            raise _error("env", f"environment variable {name} expected, but not set")
        return found[name]

    rank, world_size = int(value("RANK")), int(value("WORLD_SIZE"))
    if "MASTER_ADDR" not in found and launch_environment.mpi_rank() == (rank, world_size):
        yield _store_of_mpi(rank, world_size, timeout), rank, world_size
        return
    host, port = value("MASTER_ADDR"), int(value("MASTER_PORT"))
    yield _store_at(host, port, rank, world_size, timeout), rank, world_size


def _from_address(url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any) -> Found:
    """Handler of ``tcp://host:port``."""
    parsed = urlparse(url)
    if parsed.port is None:
        raise _error("tcp", "port number missing")
    rank, world_size = _rank_and_size("tcp", dict(parse_qsl(parsed.query)))
    yield _store_at(parsed.hostname or "", parsed.port, rank, world_size, timeout), rank, world_size


def _from_file(url: str, **kwargs: Any) -> Found:
    """Handler of ``file://path``."""
    parsed = urlparse(url)
    if not parsed.path:
        raise _error("file", "path missing")
    rank, world_size = _rank_and_size("file", dict(parse_qsl(parsed.query)))
    yield FileStore(parsed.path, world_size), rank, world_size


register_rendezvous_handler("env", _from_environment)
register_rendezvous_handler("tcp", _from_address)
register_rendezvous_handler("file", _from_file)

__all__ = ["default_pg_timeout", "register_rendezvous_handler", "rendezvous"]
