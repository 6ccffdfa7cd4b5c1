"""Module that installs the import hook in child processes and replaces itself by retrograd.

Processes that a program started under the import hook creates with multiprocessing inherit the program's path, which
contains this folder, but not the hook. Their ``import torch`` therefore finds this module. It installs the hook for the
life of the process and stores retrograd as ``torch`` in ``sys.modules``.
"""

import sys
from pathlib import Path

PARENT = str(Path(__file__).resolve().parents[2])
if PARENT not in sys.path:
    sys.path.append(PARENT)

import retrograd  # noqa: E402 - found on the path that was just completed
from retrograd import import_hook  # noqa: E402 - the same

import_hook.installed().__enter__()
sys.modules["torch"] = retrograd
