"""Found as ``torch`` by the processes that a program under the import hook starts with multiprocessing.

They inherit the program's path, on which this folder stands, but not its hook: so this installs the hook, for the
process's whole life, and gives retrograd in its own place.
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
