"""``torch.distributed.elastic``: errors of ranks and the names that programs import; ``launcher`` starts the ranks."""

from ...compat.lazy_imports import module_getattr

__getattr__ = module_getattr(__name__, {"multiprocessing": "multiprocessing"})
