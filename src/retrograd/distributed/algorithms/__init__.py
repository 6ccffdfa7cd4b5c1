"""``torch.distributed.algorithms``: the context manager ``Join``."""

from .join import Join as Join

__all__: list[str] = []
