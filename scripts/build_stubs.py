"""Hook of the build: put the type stubs into the wheel, beside the modules that they describe.

With ``RETROGRAD_BUILD_COMPILED=1`` the wheel also has the compiled functions (``scripts/build_compiled.py``), and is one
for this platform and version of Python.

An editable installation has none, because type checkers then read the sources, or the folder that ``scripts/stubs.py``
writes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class StubsHook(BuildHookInterface[Any]):
    """Build hook that generates the stubs in a temporary folder, in a process of its own."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the stubs to the files of the wheel; ``version`` is ``standard`` or ``editable``."""
        if version == "editable":
            return
        self.temporary = tempfile.TemporaryDirectory()
        folder = Path(self.temporary.name)
        subprocess.run([sys.executable, str(Path(self.root, "scripts", "stubs.py")), str(folder)], check=True)
        for path in sorted(folder.rglob("*.pyi")):
            build_data["force_include"][str(path)] = path.relative_to(folder).as_posix()
        if os.environ.get("RETROGRAD_BUILD_COMPILED") == "1":
            subprocess.run(
                [sys.executable, str(Path(self.root, "scripts", "build_compiled.py")), str(folder)], check=True
            )
            for path in folder.glob("_compiled.*"):
                build_data["force_include"][str(path)] = f"retrograd/runtime/{path.name}"
            build_data.update(pure_python=False, infer_tag=True)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary folder."""
        if version != "editable":
            self.temporary.cleanup()
