"""Metadata of a distribution named torch: packages ask ``importlib.metadata`` for the version of PyTorch."""

from __future__ import annotations

from importlib.metadata import Distribution
from os import PathLike
from pathlib import Path


class TorchDistribution(Distribution):
    """Distribution named torch, of the version ``torch_version`` and without files."""

    def __init__(self, torch_version: str) -> None:
        self.torch_version = torch_version

    def read_text(self, filename: str) -> str | None:
        """Return the text of the file METADATA, or None for any other file."""
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {self.torch_version}\nSummary: Provided by retrograd\n"

    def locate_file(self, path: str | PathLike[str]) -> Path:
        """Return the path of a file in the folder of the package."""
        return Path(__file__).parents[1] / path


__all__ = ["TorchDistribution"]
