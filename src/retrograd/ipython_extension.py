"""IPython extension: after ``%load_ext retrograd``, ``import torch`` imports retrograd in every later cell of a notebook.

``retrograd.load_ipython_extension`` and ``retrograd.unload_ipython_extension``, which IPython calls, call this module.
"""

from __future__ import annotations

from contextlib import ExitStack

from . import import_hook

_loaded = ExitStack()


def load() -> None:
    """Install the import hook, also for commands that cells start, such as ``!python program.py``."""
    unload()
    _loaded.enter_context(import_hook.commands_find_retrograd())
    _loaded.enter_context(import_hook.installed())


def unload() -> None:
    """Remove the import hook if :func:`load` has installed it."""
    _loaded.close()
