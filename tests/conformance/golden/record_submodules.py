"""Record what each public submodule of PyTorch is as an attribute of its package: ``python -m tests.conformance.golden.record_submodules``.

Needs PyTorch. Writes ``submodules.json``: by the module's name ``module``, ``class``, ``function`` or ``absent``.
"""

import contextlib
import importlib
import io
import json
import pathlib
import pkgutil
import sys
import warnings

from torch import __path__ as path

from tests.conformance.submodule_kinds import kind_of_attribute

#: Packages of which retrograd has nothing, and which take long to import or start something.
PASSED_OVER = ("ao", "contrib", "distributed", "export", "fx", "onnx", "package", "quantization", "test", "testing")


def main() -> None:
    """Import every public submodule, and write what stands in its package then."""
    found = {}
    for each in pkgutil.walk_packages(path, "torch.", onerror=lambda name: None):
        parts = each.name.split(".")
        if any(part.startswith("_") for part in parts) or parts[1] in PASSED_OVER or "tensorboard" in parts:
            continue
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            try:
                importlib.import_module(each.name)
            except Exception:
                continue
        found[each.name] = ""
    for name in found:
        found[name] = kind_of_attribute(sys.modules, name)
    target = pathlib.Path(__file__).with_name("submodules.json")
    target.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
