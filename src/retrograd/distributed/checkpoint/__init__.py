"""``torch.distributed.checkpoint``: the module ``hf_storage``, from which packages import classes."""

__all__: list[str] = []
