"""Start of MPI in processes that share a store, or that ``mpiexec`` or ``srun`` has started.

Without ``mpiexec``, rank 0 starts the coordinator (``coordinator.py``), a process that answers MPI's requests. All ranks
meet in the store first, so that a missing rank, or an error of one rank, is raised by all ranks. Then they connect to the
coordinator, and only when all have done so, they start MPI: ``MPI_Init`` holds the interpreter's lock until all ranks have
called it, and rank 0 could not serve its store meanwhile.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from ..runtime.extras import how_to_install
from ..runtime.user_frame import warn
from .errors import DistBackendError, DistError, DistNetworkError, DistStoreError
from .launch_environment import mpi_rank
from .store_server import connect, in_seconds
from .stores import HashStore, PrefixStore, Store, TCPStore
from .watch import Watch

#: Names of the shared memory of MPICH and of Intel MPI.
SEGMENTS = ("mpich_shm_", "Intel_MPI_")
#: Environment variable that gives another name for this machine, to simulate several machines.
NODE = "RETROGRAD_NODE"
INSTALL = (
    f"several processes need mpi4py and an MPI library: {how_to_install('distributed')}. A group of one process works "
    "without them: world_size=1, rank=0."
)


class World(NamedTuple):
    """MPI of this process, which can be started once."""

    comm: Any
    watch: Watch
    rank: int
    size: int
    process: int
    coordinator: subprocess.Popen[bytes] | None


_world: World | None = None
#: The number of calls of :func:`start`, so that a second one does not meet the keys of the first.
_starts = 0


def start(store: Store, rank: int, size: int, timeout: timedelta) -> tuple[Any, Watch]:
    """Return an MPI communicator of ``size`` ranks, of which this process is ``rank``, and its :class:`Watch`.

    All ranks call the function with the same store. An error of one rank before the start of MPI is raised by all ranks.
    A second call returns the MPI of the first one.
    """
    global _starts, _world
    if isinstance(_without_prefixes(store), HashStore):
        raise ValueError(
            "a HashStore is in the memory of one process; several processes need a TCPStore or a FileStore"
        )
    meeting = Meeting(store, _starts, rank, size, timeout)
    _starts += 1
    coordinator = None
    try:
        _check_second_start(rank, size)
        if _world is None:
            if rank == 0:
                coordinator, address = _start_coordinator(store, size, timeout)
            mpi = _library(rank, size)  # meanwhile the coordinator starts
            if coordinator is not None:
                meeting.publish({**address, "port": _port(coordinator)})
        meeting.arrive()
        meeting.wait()
        if _world is None:
            _world = _start_mpi(mpi, meeting.coordinator(), rank, size, timeout, coordinator)
            _finalize_at_exit()
    except BaseException as error:
        meeting.fail(error)
        if coordinator is not None:
            _stop(coordinator)
        raise
    return _world.comm, _world.watch


def _check_second_start(rank: int, size: int) -> None:
    """Raise an error if MPI of this process cannot be used for a group of this size."""
    if _world is None:
        return
    if _world.process != os.getpid():
        raise RuntimeError(_world.watch.failure)
    if (rank, size) != (_world.rank, _world.size):
        raise RuntimeError(
            f"this process is rank {_world.rank} of {_world.size}: after destroy_process_group, init_process_group needs "
            f"the same rank and world_size again, not rank {rank} of {size}. Start new processes for another group."
        )
    if _world.watch.failure:
        raise DistBackendError(_world.watch.failure)


def _library(rank: int, size: int) -> Any:
    """Return mpi4py's module ``MPI``, before MPI is started; raise an error if it cannot start ``size`` ranks."""
    try:
        import mpi4py

        if "mpi4py.MPI" not in sys.modules:
            mpi4py.rc.initialize = mpi4py.rc.finalize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: no MPI library was found
        raise RuntimeError(f"world_size is {size}: {INSTALL} ({error})") from None
    if MPI.Is_finalized():
        raise RuntimeError("MPI has been finalized in this process, and cannot be started again")
    if MPI.Is_initialized():
        if MPI.COMM_WORLD.size != size:
            raise RuntimeError(
                f"MPI was started before init_process_group, with {MPI.COMM_WORLD.size} ranks instead of {size}; "
                "`from mpi4py import MPI` does so. Call init_process_group first, or start the program by mpiexec."
            )
    elif MPI.Get_library_version().startswith("Open MPI") and mpi_rank() is None:
        raise RuntimeError(
            f"Open MPI cannot start processes without its mpiexec: mpiexec -n {size} retrograd run program.py, or install "
            "another MPI library: pip install mpich"
        )
    return MPI


# -- The meeting in the store ------------------------------------------------------------------------------------------


class Meeting:
    """Meeting number ``number`` of ``size`` ranks in ``store``. It uses only methods that every Store has."""

    rank: int
    size: int
    timeout: timedelta

    def __init__(self, store: Store, number: int, rank: int, size: int, timeout: timedelta) -> None:
        self.store: PrefixStore = PrefixStore(f"start{number}", store)
        self.rank, self.size, self.timeout = rank, size, timeout
        self.end: float = time.monotonic() + in_seconds(timeout)
        self.me: str = f"rank {rank} (process {os.getpid()} on {socket.gethostname()})"

    def arrive(self) -> None:
        """Register this rank; raise an error if its number is taken or the world size is another one."""
        first = self.store.add("seen", 1) == 1
        if first:
            self.store.set("size", f"{self.size} {self.me}")
        size, _, other = self.store.get("size").decode().partition(" ")
        if int(size) != self.size:
            raise DistStoreError(
                f"the ranks have different world sizes: {self.size} in {self.me}, and {size} in {other}"
            )
        if not 0 <= self.rank < self.size:
            raise ValueError(f"Invalid rank {self.rank}, rank should be in the interval [0, {self.size - 1}]")
        if self.store.add(f"count{self.rank}", 1) > 1:
            self.store.wait([f"who{self.rank}"], timedelta(seconds=5))
            raise DistStoreError(
                f"two processes have one rank: {self.store.get(f'who{self.rank}').decode()} and {self.me}. If the first one "
                "is not a process of this job, its address or its file serves another job, or is left from an earlier one."
            )
        self.store.set(f"who{self.rank}", self.me)
        if self.store.add("arrived", 1) == self.size and not self.store.check(["verdict"]):
            self.store.set("verdict", "go")

    def publish(self, address: dict[str, Any]) -> None:
        """Publish the address of the coordinator for the other ranks."""
        self.store.set("coordinator", json.dumps(address))

    def coordinator(self) -> dict[str, Any]:
        """Return where the coordinator is."""
        return json.loads(self.store.get("coordinator"))

    def wait(self) -> None:
        """Wait for the other ranks; raise the error of any of them, or DistStoreError that names the missing ones."""
        try:
            self.store.wait(["verdict"], timedelta(seconds=max(0.001, self.end - time.monotonic())))
        except DistNetworkError as error:
            raise DistNetworkError(f"the store was lost while {self.me} waited for the other ranks: {error}") from None
        except DistStoreError:
            missing = [each for each in range(self.size) if not self.store.check([f"who{each}"])]
            joined, names = self.size - len(missing), ", ".join(map(str, missing))
            if missing:
                raise DistStoreError(
                    f"Timed out after {self.timeout.total_seconds():g} seconds waiting for clients. "
                    f"{joined}/{self.size} clients joined. Missing: rank{'s' * (len(missing) > 1)} {names}."
                ) from None
        verdict = self.store.get("verdict").decode()
        if verdict != "go":
            self._inform(self.size)
            kind, _, text = verdict.partition(" ")
            raise (DistStoreError if kind == "DistStoreError" else DistBackendError)(text)

    def refuse_second_master(self, address: str) -> None:
        """Let the ranks that wait fail: another process, this one, is rank 0 as well."""
        if self.store.check(["who0"]) and not self.store.check(["verdict"]):
            other = self.store.get("who0").decode()
            text = f"two processes have one rank, or two jobs one address, {address}: {other} and {self.me}"
            self.store.set("verdict", f"DistStoreError {text}")

    def fail(self, error: BaseException) -> None:
        """Publish an error of this rank for the other ranks."""
        with suppress(DistError, OSError):
            if self.store.check(["verdict"]):
                return
            own = isinstance(error, DistStoreError)  # the text says which ranks
            text = str(error) if own else f"{self.me} has failed: {type(error).__name__}: {error}"
            self.store.set("verdict", f"{type(error).__name__} {text}")
            if isinstance(error, Exception):
                present = [each for each in range(self.size) if self.store.check([f"who{each}"])]
                self._inform(len(present) if own else self.size)

    def _inform(self, expected: int) -> None:
        """Count this rank as informed of an error; in rank 0, whose process may have the store, wait for the others."""
        end = time.monotonic() + 5
        informed = self.store.add("informed", 1)
        while self.rank == 0 and informed < expected and time.monotonic() < end:
            time.sleep(0.01)
            informed = self.store.add("informed", 0)


# -- The coordinator ---------------------------------------------------------------------------------------------------


def _start_coordinator(
    store: Store, size: int, timeout: timedelta
) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:  # fmt: skip
    """Start the coordinator; return its process, and its address without the port."""
    hosts, bind = _listening(store)
    token = secrets.token_hex(16)
    name = f"retrograd_{os.getpid()}_{secrets.token_hex(8)}"
    program = Path(__file__).with_name("coordinator.py")
    # A session of its own: Ctrl-C in a terminal ends the ranks, and the coordinator after them.
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(program), bind, str(size), name, str(in_seconds(timeout))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.write(token.encode() + b"\n")
        process.stdin.flush()
    return process, {"hosts": hosts, "token": token, "node": _node()}


def _port(coordinator: subprocess.Popen[bytes]) -> int:
    """Wait until the coordinator listens, and return its port."""
    assert coordinator.stdout is not None
    with coordinator.stdout:
        port = coordinator.stdout.readline()
    if not port.strip():
        raise DistBackendError(f"the coordinator of the job did not start (exit status {coordinator.wait()})")
    return int(port)


def _stop(coordinator: subprocess.Popen[bytes]) -> None:
    """End the coordinator after a failed start."""
    for each in (coordinator.stdin, coordinator.stdout):
        if each is not None:
            each.close()
    try:
        coordinator.wait(2)
    except subprocess.TimeoutExpired:  # connected ranks wait
        coordinator.kill()
        coordinator.wait()


def _listening(store: Store) -> tuple[list[str], str]:
    """Return the names and addresses of this machine, best first, and the address on which to listen, "" for all."""
    root = _without_prefixes(store)
    host = root.host if isinstance(root, TCPStore) else ""
    if host in ("localhost", "::1") or host.startswith("127."):
        return ["127.0.0.1"], "127.0.0.1"
    return list(dict.fromkeys([*filter(None, [host]), *own_addresses(host)])), ""


def _without_prefixes(store: Store) -> Store:
    return store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store


def own_addresses(target: str) -> list[str]:
    """Return the address of this machine towards ``target``, by default towards other networks, and its name."""
    found = []
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
        route.connect((target or "192.0.2.1", 9))  # sends nothing; selects the address of this machine
        found.append(str(route.getsockname()[0]))
    return [*found, socket.gethostname()]


def _node() -> str:
    """Return a name of this machine, or rather of the shared memory that its processes have in common."""
    if NODE in os.environ:
        return os.environ[NODE]
    boot = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip() + f"-{os.stat('/dev/shm').st_dev}"
    return f"{socket.gethostname()}-{boot}"


def _connect(address: dict[str, Any], kind: str, rank: int, timeout: timedelta) -> socket.socket:
    """Return a connection to the coordinator for ``kind``, "pmi" or "watch"."""
    hosts = ["127.0.0.1"] if address["node"] == _node() else address["hosts"]
    end, port, reasons = time.monotonic() + in_seconds(timeout), address["port"], {}
    while True:
        for host in hosts:
            try:
                connection = connect(host, port, min(5.0, max(0.5, end - time.monotonic())))
            except DistNetworkError as error:
                reasons[host] = str(error).rpartition("the last error: ")[2]
                continue
            hello = {"token": address["token"], "kind": kind, "rank": rank, "process": os.getpid(),
                     "host": socket.gethostname(), "node": _node()}  # fmt: skip
            connection.sendall(json.dumps(hello).encode() + b"\n")
            return connection
        if time.monotonic() > end:
            raise DistNetworkError(
                f"rank {rank} cannot connect to the coordinator of the job beside rank 0 within "
                f"{timeout.total_seconds():g} s; tried port {port} of "
                + "; ".join(f"{host}: {why}" for host, why in reasons.items())
            )


# -- The start of MPI --------------------------------------------------------------------------------------------------


def _start_mpi(
    mpi: Any, address: dict[str, Any], rank: int, size: int, timeout: timedelta, coordinator: subprocess.Popen[bytes] | None
) -> World:  # fmt: skip
    """Start MPI, by the coordinator or as ``mpiexec`` has prepared it, and return it."""
    launched = mpi.Is_initialized() or mpi_rank() == (rank, size)
    if not launched:
        connection = _connect(address, "pmi", rank, timeout)
        os.environ.update(PMI_FD=str(connection.fileno()), PMI_RANK=str(rank), PMI_SIZE=str(size))
    try:
        watch = Watch(_connect(address, "watch", rank, timeout), rank, size)
        watch.wait_for_all(timeout)
        if not mpi.Is_initialized():
            mpi.Init_thread(mpi.THREAD_MULTIPLE)
    finally:
        if not launched:
            for each in ("PMI_FD", "PMI_RANK", "PMI_SIZE"):  # child processes are no ranks
                os.environ.pop(each, None)
    if not launched:
        connection.detach()  # MPI uses it until the end
    if mpi.Query_thread() < mpi.THREAD_MULTIPLE:
        warn("this MPI library allows calls from one thread at a time only: operations with async_op=True may fail")
    comm = mpi.COMM_WORLD
    if comm.size != size:
        raise DistBackendError(
            f"MPI has started {comm.size} ranks instead of {size}: this MPI library ({mpi.Get_library_version().split()[0]}) "
            "needs its own launcher, such as mpiexec or srun --mpi"
        )
    if launched:
        comm = comm.Split(0, rank)  # the launcher may have numbered the ranks in another order
    else:
        comm.Barrier()
    _unlink_segments()
    watch.report(do="ready")
    return World(comm, watch, rank, size, os.getpid(), coordinator)


def broadcast_by_launcher(value: Any, size: int) -> Any:
    """Start MPI as ``mpiexec`` has prepared it, and return the ``value`` of its rank 0."""
    mpi = _library(0, size)
    if not mpi.Is_initialized():
        mpi.Init_thread(mpi.THREAD_MULTIPLE)
    return mpi.COMM_WORLD.bcast(value)


def _unlink_segments() -> None:
    """Remove the names of the shared memory that all ranks have mapped, so that none is left after a crash."""
    with suppress(OSError), open("/proc/self/maps") as maps:
        for path in {line.split(maxsplit=5)[-1].strip() for line in maps if "/dev/shm/" in line}:
            if Path(path).name.startswith(SEGMENTS):
                with suppress(OSError):
                    os.unlink(path)


def _finalize_at_exit() -> None:
    """Call :func:`_finalize` at the end of this process."""
    if "multiprocessing.process" in sys.modules and sys.modules["multiprocessing.process"].parent_process() is not None:
        from multiprocessing.util import Finalize  # these processes skip atexit if they were forked

        Finalize(None, _finalize, exitpriority=100)
    else:
        atexit.register(_finalize)


def _finalize() -> None:
    """Finalize MPI together with the other ranks, unless one of them, or this one, has failed."""
    global _world
    world, _world = _world, None
    if world is None or world.process != os.getpid():
        return
    error, unfinished = _last_error(), None
    groups, engine = (sys.modules.get(f"{__package__}.{each}") for each in ("groups", "mpi_engine"))
    with suppress(Exception):
        if groups is not None:
            groups._close_groups()
        if engine is not None:
            engine.PROGRESS.stop()
            unfinished = engine.unfinished()  # MPI would wait for it
    if error is not None:
        world.watch.close(f"its program has ended by {type(error).__name__}: {error}")
    elif unfinished:
        world.watch.close(unfinished)
    elif world.watch.leave():
        from mpi4py import MPI

        if not MPI.Is_finalized():
            MPI.Finalize()
        world.watch.close()
    else:
        world.watch.close()


def _last_error() -> BaseException | None:
    """Return the error by which the program ends, or None."""
    error = sys.exc_info()[1]  # in a process of multiprocessing, which calls this function before it leaves the program
    if error is None and not hasattr(sys, "ps1"):
        error = getattr(sys, "last_value", None)
    return None if isinstance(error, SystemExit) and error.code in (None, 0) else error
