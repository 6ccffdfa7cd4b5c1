"""What is said about a name of PyTorch that retrograd does not have.

Every public module ends with ``__getattr__ = absent(__name__)``; the import hook (``retrograd.shim``) says the same of
whole modules. Knows no operation and imports nothing of the package.
"""

from __future__ import annotations

import opcode
import re
import sys
from collections.abc import Callable
from typing import Any

# Note [Absent on import]
# ``from torch import foo`` asks the module for ``foo``, throws our AttributeError away and raises an ImportError of
# Python's own, without the pointer to the page. Any other exception goes through; so a module that is being asked by
# the instruction IMPORT_FROM of the calling frame raises the ImportError itself.
IMPORT_FROM = opcode.opmap["IMPORT_FROM"]

PAGE = "docs/differences.md"

# What is left out on purpose, by patterns that the whole name below ``torch.`` matches.
LEFT_OUT: dict[str, re.Pattern[str]] = {
    what: re.compile(rf"(?:{names})(?:\..*)?")
    for what, names in {
        "sparse tensors": r"(.*\.)?(sparse\w*|\w+_sparse(_\w+)?|to_dense|[hs]?spmm|smm|sspaddmm)",
        "quantized tensors": r"(.*\.)?(\w*quantiz[ei]\w*|q(u?int\d+(x\d)?|_\w+)|quint\w+|choose_qparams_\w+)|ao",
        "nested tensors": r"(.*\.)?nested\w*",
        "named tensors": r"(Tensor\.)?(align_(as|to|tensors)|names|rename_?|refine_names)",
        "compiling and exporting programs": r"jit|compiler?|export|fx|onnx|package|utils\.cpp_extension",
        "distribution over machines and processes": r"distributed|nn\.parallel|multiprocessing",
        "devices other than the CPU and NVIDIA's GPUs": r"mps|xpu|mtia|xla|hip|vulkan",
        "downloads": r"hub",
        "private names": r"(.*\.)?_[^_.]\w*",
    }.items()
}


def torch_name(module_name: str) -> str:
    """The name under which a PyTorch program knows a module of the package.

    >>> torch_name("retrograd.nn.functional")
    'torch.nn.functional'
    """
    package, dot, rest = module_name.partition(".")
    return "torch" + dot + rest if package == "retrograd" else module_name


def why_absent(full_name: str) -> str:
    """What follows PyTorch's own message where a name is missing: why, and the page to read.

    >>> why_absent("torch.jit.script")
    'left out of retrograd on purpose: compiling and exporting programs; see docs/differences.md'
    >>> why_absent("torch.no_such_function")
    'not in retrograd; see docs/differences.md'
    """
    below_torch = full_name.partition(".")[2]
    for what, names in LEFT_OUT.items():
        if names.fullmatch(below_torch):
            return f"left out of retrograd on purpose: {what}; see {PAGE}"
    return f"not in retrograd; see {PAGE}"


def absent(module_name: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a public module: names what is missing and points to the page of differences.

    >>> __getattr__ = absent("retrograd.fft")
    >>> __getattr__("nothing")
    Traceback (most recent call last):
    AttributeError: module 'torch.fft' has no attribute 'nothing' (not in retrograd; see docs/differences.md)
    """
    torch_module = torch_name(module_name)

    def __getattr__(name: str) -> Any:  # noqa: N807 - this is the name Python calls
        message = f"module {torch_module!r} has no attribute {name!r}"
        # Python and its libraries ask modules for __path__, __wrapped__ and the like: that is nobody's mistake.
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(message)
        why = why_absent(f"{torch_module}.{name}")
        caller = sys._getframe(1)
        if caller.f_lasti >= 0 and caller.f_code.co_code[caller.f_lasti] == IMPORT_FROM:
            raise ImportError(f"cannot import name {name!r} from {torch_module!r} ({why})", name=torch_module)
        raise AttributeError(f"{message} ({why})", name=name, obj=sys.modules.get(module_name))

    return __getattr__
