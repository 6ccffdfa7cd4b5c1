"""Conversion between checkpoints of ``torch.distributed.checkpoint`` and files of ``torch.save``."""

from __future__ import annotations

import os
from typing import Any

from ...serialization import load as load_file
from ...serialization import save as save_file
from .default_planner import _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .state_dict_loader import load_state
from .state_dict_saver import save_state


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]) -> None:
    """Write the checkpoint in the folder ``dcp_checkpoint_dir``, with whole tensors, to the file ``torch_save_path``.

    One process calls this function.

    >>> import tempfile
    >>> from retrograd.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = checkpoint.save({"w": torch.ones(2), "step": 3}, checkpoint_id=folder, no_dist=True)
    ...     dcp_to_torch_save(folder, f"{folder}/state.pt")
    ...     torch.load(f"{folder}/state.pt")
    {'w': tensor([1., 1.]), 'step': 3}
    """
    state: dict[str, Any] = {}
    load_state(state, FileSystemReader(dcp_checkpoint_dir), None, 0, True, _EmptyStateDictLoadPlanner())
    save_file(state, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]) -> None:
    """Write the dict in ``torch_save_path``, a file of ``torch.save``, as a checkpoint to ``dcp_checkpoint_dir``.

    One process calls this function.

    >>> import tempfile
    >>> from retrograd.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     torch.save({"w": torch.ones(2)}, f"{folder}/state.pt")
    ...     torch_save_to_dcp(f"{folder}/state.pt", f"{folder}/checkpoint")
    ...     state = {"w": torch.zeros(2)}
    ...     checkpoint.load(state, checkpoint_id=f"{folder}/checkpoint", no_dist=True)
    >>> state
    {'w': tensor([1., 1.])}
    """
    save_state(load_file(torch_save_path), FileSystemWriter(dcp_checkpoint_dir), None, 0, True, None)


__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]
