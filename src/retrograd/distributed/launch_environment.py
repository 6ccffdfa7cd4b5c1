"""Ranks of processes that ``mpiexec`` or ``srun`` has started, as their environment variables give them.

References: the manual of Slurm's ``srun``, "Output environment variables"; the manuals of MPICH, Intel MPI and Open MPI.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

#: Names of the rank, of the number of ranks, and of the rank among those of the machine, for each launcher of MPI.
MPI_LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),  # Open MPI
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),  # MPICH, Intel MPI, srun --mpi=pmi2
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),  # srun --mpi=pmix
)


def mpi_rank(environment: Mapping[str, str] = os.environ) -> tuple[int, int] | None:
    """Return the rank and the number of ranks that a launcher of MPI has given this process, or None."""
    for rank, size, _ in MPI_LAUNCHERS:
        if rank in environment and size in environment:
            return int(environment[rank]), int(environment[size])
    return None


def variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return ``RANK``, ``WORLD_SIZE`` and ``LOCAL_RANK`` of a process started by ``mpiexec`` or ``srun``, otherwise {}.

    For ``srun``, the result has ``MASTER_ADDR``, the first machine of the step, and ``MASTER_PORT``, a number that
    follows from those of the job and of the step.
    """
    found: dict[str, str] = {}
    for rank, size, local in MPI_LAUNCHERS:
        if rank in environment and size in environment:
            found = {"RANK": environment[rank], "WORLD_SIZE": environment[size]}
            if local in environment or "SLURM_LOCALID" in environment:
                found["LOCAL_RANK"] = environment.get(local) or environment["SLURM_LOCALID"]
            break
    if not {"SLURM_PROCID", "SLURM_STEP_ID"} <= environment.keys():  # a batch script has the former, but is no rank
        return found
    if not found:
        size = environment.get("SLURM_STEP_NUM_TASKS") or environment.get("SLURM_NTASKS", "1")
        found = {"RANK": environment["SLURM_PROCID"], "WORLD_SIZE": size, "LOCAL_RANK": environment["SLURM_LOCALID"]}
    nodes = next((environment[each] for each in ("SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NODELIST")
                  if each in environment), "")  # fmt: skip
    if nodes:
        number = int(environment.get("SLURM_JOB_ID", "0")) * 7 + int(environment["SLURM_STEP_ID"])
        found |= {"MASTER_ADDR": first_node(nodes), "MASTER_PORT": str(20000 + number % 12000)}
    return found


def first_node(nodes: str) -> str:
    """Return the first name of a list of machines in Slurm's form.

    >>> first_node("node[08-10,12]-ib,login1")
    'node08-ib'
    """
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)
    assert first is not None
    return re.sub(r"\[([^\],-]*)[^\]]*\]", r"\1", first[0])
