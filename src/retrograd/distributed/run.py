"""``torchrun``: starts a program in several processes, one for each rank, on one or several nodes.

It is the command ``retrograd launch``, ``python -m torch.distributed.run`` of programs under ``retrograd run``, and their
command ``torchrun``. docs/distributed.md describes it.
"""

from __future__ import annotations

import argparse
import os
import sys
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from .elastic.multiprocessing import DefaultLogsSpecs, SignalException, Std
from .elastic.multiprocessing.errors import ChildFailedError
from .launcher.api import LaunchConfig, elastic_launch


def get_args_parser(prog: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of the command's arguments.

    Each option may also be given by the environment variable with its name in capitals and the prefix ``PET_``.
    """
    parser = argparse.ArgumentParser(prog=prog, description="Start a program in several processes, one for each rank.")

    def add(*names: str, default: Any = None, help: str, **options: Any) -> None:
        long = next(each for each in names if each.startswith("--"))
        underscored = "--" + long[2:].replace("-", "_")
        every = [*names, underscored] if underscored != long else list(names)
        variable = "PET_" + underscored[2:].upper()
        if options.get("action") == "store_true":
            default = os.environ.get(variable, "0") == "1"
        else:
            default = os.environ.get(variable, default)
        parser.add_argument(*every, default=default, help=help, **options)

    add("--nnodes", default="1:1", help="number of nodes, or MIN:MAX: as many as come until the last call")
    add("--nproc-per-node", default="1", help="number of ranks on this node, or auto, cpu, gpu")
    add("--node-rank", type=int, default=0, help="number of this node, from 0; node 0 hosts the store")
    add("--master-addr", default="127.0.0.1", help="host name or address of node 0")
    add("--master-port", type=int, help="port of the store on node 0; 29500, or for one node an unused port")
    add("--standalone", action="store_true", help="one node, with the store at an unused port")
    add("--max-restarts", type=int, default=0, help="how often the ranks are started again after a failure")
    add("--rdzv-backend", default="static", help="static (--node-rank), or c10d (nodes are numbered as they arrive)")
    add(
        "--rdzv-endpoint", default="", help="host:port where the nodes meet, instead of --master-addr and --master-port"
    )
    add("--rdzv-id", default="none", help="name of the job")
    add("--rdzv-conf", default="", help="key=value,…: join_timeout, last_call_timeout in seconds, is_host")
    add("--monitor-interval", type=float, default=0.1, help="accepted; the launcher does not poll")
    add("--start-method", default="spawn", choices=["spawn", "fork", "forkserver"], help="for functions and --run-path")
    add("--role", default="default", help="name of the ranks' role, for programs and prefixes")
    add("-m", "--module", action="store_true", help="the program is a module, as with python -m")
    add("--no-python", action="store_true", help="the program is a command, not a Python program")
    add("--run-path", action="store_true", help="run the program in processes of multiprocessing")
    add("--log-dir", help="folder for the files of --redirects and --tee")
    add("-r", "--redirects", default="0", help="write streams to files: 1 output, 2 errors, 3 both, or RANK:STREAMS,…")
    add("-t", "--tee", default="0", help="the same, and show them with a prefix")
    add("--local-ranks-filter", default="", help="show the streams of these local ranks only: 0,1,…")
    add("--local-addr", help="address of this node, for the others")
    add("--signals-to-handle", default="SIGTERM,SIGINT,SIGHUP,SIGQUIT", help="signals that are passed on to the ranks")
    add("--shutdown-timeout", type=int, help="seconds between SIGTERM and SIGKILL for ranks that are ended; 30")
    add(
        "--virtual-local-rank", action="store_true", help="LOCAL_RANK=0 and one device in CUDA_VISIBLE_DEVICES per rank"
    )
    parser.add_argument("training_script", metavar="program", help="the program, followed by its arguments")
    parser.add_argument("training_script_args", metavar="arguments", nargs=argparse.REMAINDER)
    return parser


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command's arguments, by default those of this process."""
    return get_args_parser().parse_args(args)


def parse_min_max_nnodes(nnodes: str) -> tuple[int, int]:
    """Return the least and the largest number of nodes in ``"2"`` or ``"2:4"``.

    >>> parse_min_max_nnodes("2:4")
    (2, 4)
    """
    numbers = [int(each) for each in nnodes.split(":")]
    if len(numbers) > 2:
        raise RuntimeError(f'nnodes={nnodes} is not in "MIN:MAX" format')
    return numbers[0], numbers[-1]


def determine_local_world_size(nproc_per_node: str) -> int:
    """Return the number of ranks of this node: a number, or that of its processors (``"cpu"``) or GPUs (``"gpu"``)."""
    from .. import cuda

    try:
        return int(nproc_per_node)
    except ValueError:
        pass
    if nproc_per_node == "gpu":
        if not cuda.is_available():
            raise ValueError("Cuda is not available.")
        return cuda.device_count()
    if nproc_per_node == "xpu":
        raise ValueError("Xpu is not available.")
    if nproc_per_node == "auto" and cuda.is_available():
        return cuda.device_count()
    if nproc_per_node in ("auto", "cpu"):
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    raise ValueError(f"Unsupported nproc_per_node value: {nproc_per_node}")


def config_from_args(args: argparse.Namespace) -> tuple[LaunchConfig, Callable[..., Any] | str, list[str]]:
    """Return the options, the command (or the function) and its arguments for the parsed arguments ``args``."""
    min_nodes, max_nodes = parse_min_max_nnodes(args.nnodes)
    if not 0 < min_nodes <= max_nodes:
        raise AssertionError(
            f"min_nodes must be > 0 and <= max_nodes, got min_nodes={min_nodes}, max_nodes={max_nodes}"
        )
    if args.max_restarts < 0:
        raise AssertionError("max_restarts must be >= 0")
    ranks = determine_local_world_size(args.nproc_per_node)
    if ranks < 1:
        raise ValueError(f"--nproc-per-node must be at least 1, got {ranks}")
    if "OMP_NUM_THREADS" not in os.environ and ranks > 1:
        print(
            "retrograd launch: OMP_NUM_THREADS=1 for each rank, so that they do not overload the machine; set the variable "
            "to give them more threads",
            file=sys.stderr, flush=True,
        )  # fmt: skip
        os.environ["OMP_NUM_THREADS"] = "1"
    configuration: dict[str, Any] = dict(each.split("=", 1) for each in args.rdzv_conf.split(",") if each)
    if args.rdzv_backend == "static":
        configuration["rank"] = args.node_rank
    shown = None
    if args.local_ranks_filter:
        try:
            shown = {int(each) for each in args.local_ranks_filter.split(",")}
        except ValueError:
            raise ValueError(
                "--local_ranks_filter must be a comma-separated list of integers e.g. --local_ranks_filter=0,1,2"
            ) from None
    endpoint = args.rdzv_endpoint
    if args.rdzv_backend == "static" and not endpoint:
        address = f"[{args.master_addr}]" if ":" in args.master_addr else args.master_addr
        endpoint = f"{address}:{args.master_port}"
    config = LaunchConfig(
        min_nodes=min_nodes, max_nodes=max_nodes, nproc_per_node=ranks, run_id=args.rdzv_id, role=args.role,
        rdzv_endpoint=endpoint, rdzv_backend=args.rdzv_backend, rdzv_configs=configuration,
        max_restarts=args.max_restarts, monitor_interval=args.monitor_interval, start_method=args.start_method,
        log_line_prefix_template=os.environ.get("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"), local_addr=args.local_addr,
        logs_specs=DefaultLogsSpecs(args.log_dir, Std.from_str(args.redirects), Std.from_str(args.tee), shown),
        signals_to_handle=args.signals_to_handle, virtual_local_rank=args.virtual_local_rank,
        shutdown_timeout=args.shutdown_timeout,
    )  # fmt: skip
    # torch.distributed.launch gives the local rank to the program as an argument, too.
    local_rank = [] if getattr(args, "use_env", True) else ["--local-rank=${local_rank}"]
    rest = [*local_rank, *args.training_script_args]
    if args.run_path:
        return config, run_script_path, [args.training_script, *rest]
    if args.no_python:
        if args.module:
            raise ValueError("Don't use both the '--no-python' flag and the '--module' flag at the same time.")
        return config, args.training_script, rest
    python = os.environ.get("PYTHON_EXEC", sys.executable)
    first = ["-u", "-m", RANK_PROGRAM, *["-m"] * args.module]
    return config, python, [*first, args.training_script, *rest]


#: Module that runs a program as one rank.
RANK_PROGRAM = "retrograd.distributed.launcher.rank"


def run_script_path(training_script: str, *training_script_args: str) -> None:
    """Run the program at the path ``training_script`` in this process."""
    from ..cli import main as command

    command(["run", training_script, *training_script_args])


def run(args: argparse.Namespace) -> None:
    """Run the ranks for the parsed arguments ``args``, and wait for them.

    ChildFailedError is raised if a rank has failed, SignalException after a signal to this process.
    """
    alone = args.rdzv_backend == "static" and not args.rdzv_endpoint and args.master_port is None
    if args.standalone or (alone and parse_min_max_nnodes(args.nnodes)[1] == 1):
        args.rdzv_backend, args.rdzv_endpoint, args.rdzv_id = "c10d", "localhost:0", str(uuid.uuid4())
    if args.master_port is None:
        args.master_port = 29500
    config, command, rest = config_from_args(args)
    elastic_launch(config, command)(*rest)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command with the arguments ``args``, by default those of this process."""
    run(parse_args(args))


def command(parsed: argparse.Namespace, start: Callable[[argparse.Namespace], None] = run) -> int:
    """Run the command, print its errors, and return its exit status: 0 if every rank has ended with 0, otherwise 1."""
    try:
        start(parsed)
    except ChildFailedError as error:
        print(error, file=sys.stderr)
    except SignalException as error:
        print(f"retrograd launch: {error.sigval.name}; the ranks are ended", file=sys.stderr)
    except (RuntimeError, OSError, ValueError, AssertionError) as error:
        print(f"retrograd launch: {error}", file=sys.stderr)
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(command(parse_args(None)))
