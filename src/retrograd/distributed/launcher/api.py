"""``LaunchConfig``, ``elastic_launch`` and ``launch_agent``: start a program or a function in several processes."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..elastic.multiprocessing import DefaultLogsSpecs


@dataclass
class LaunchConfig:
    """Options of a job; docs/distributed.md describes those of the command.

    ``min_nodes`` and ``max_nodes`` are the number of nodes, ``nproc_per_node`` the number of ranks on this node. The nodes
    meet at ``rdzv_endpoint``, ``"host:port"``; ``rdzv_backend`` is ``"static"``, with ``rdzv_configs["rank"]`` as the
    number of this node, or another name, by which the nodes are numbered as they arrive. ``rdzv_configs["timeout"]`` are
    the seconds to wait for the others. ``monitor_interval`` has no effect, because the launcher does not poll.
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: Any = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "c10d"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None

    def __post_init__(self) -> None:
        if self.rdzv_timeout != -1:
            self.rdzv_configs["timeout"] = self.rdzv_timeout
        self.rdzv_configs.setdefault("timeout", 900)
        if self.logs_specs is None:
            self.logs_specs = DefaultLogsSpecs()
        if self.shutdown_timeout is None:
            self.shutdown_timeout = int(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"))
        elif self.shutdown_timeout < 0:
            raise ValueError(f"shutdown_timeout must be non-negative, got {self.shutdown_timeout}")


def launch_agent(config: LaunchConfig, entrypoint: Callable[..., Any] | str | None, args: list[Any]) -> dict[int, Any]:
    """Run ``entrypoint``, a function or a command, with ``args`` in the ranks of this node, and wait for them.

    Return a dictionary from ranks to results: what the function has returned, or None for a command. ChildFailedError is
    raised if a rank fails more often than ``config.max_restarts`` times, SignalException after a signal to this process.
    """
    from .agent import Agent  # after the options are checked

    if not config.run_id:
        config.run_id = str(uuid.uuid4().int)
    return Agent(config, entrypoint, args).run()


class elastic_launch:
    """Launcher of ``entrypoint``, a function or a command, with the options ``config``; call it with the arguments."""

    def __init__(self, config: LaunchConfig, entrypoint: Callable[..., Any] | str | None) -> None:
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        return launch_agent(self._config, self._entrypoint, list(args))


__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
