"""Helpers of data pipes."""

from . import common as common

__all__ = ["common"]
