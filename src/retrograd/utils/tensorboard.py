"""``torch.utils.tensorboard``: writes what a training program logs for TensorBoard, if the package tensorboard is there."""

from __future__ import annotations

import importlib
import os
import socket
import time
from typing import Any, Self

import numpy

from ..core.absent import absent, listed
from ..core.tensor import Tensor

# Without the package, this module is not to be had: ModuleNotFoundError, "No module named 'tensorboard'", as PyTorch's.
_files = importlib.import_module("tensorboard.summary.writer.event_file_writer")
_summaries = importlib.import_module("tensorboard.compat.proto.summary_pb2")
_events = importlib.import_module("tensorboard.compat.proto.event_pb2")


def _numbers(value: Any) -> Any:
    return numpy.asarray(value.detach().cpu().numpy() if isinstance(value, Tensor) else value)


class SummaryWriter:
    """Writes scalars, texts and histograms to a file of events in ``log_dir`` (by default below ``runs``)."""

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
        flush_secs: int = 120, filename_suffix: str = "",
    ) -> None:  # fmt: skip
        started = time.strftime("%b%d_%H-%M-%S")
        self.log_dir = str(log_dir or os.path.join("runs", f"{started}_{socket.gethostname()}{comment}"))
        self._writer = _files.EventFileWriter(self.log_dir, max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder of the file."""
        return self.log_dir

    def _add(self, value: Any, step: int | None, walltime: float | None) -> None:
        event = _events.Event(wall_time=time.time() if walltime is None else walltime)
        event.summary.CopyFrom(_summaries.Summary(value=[value]))
        if step is not None:
            event.step = int(step)
        self._writer.add_event(event)

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None, **options: Any
    ) -> None:
        """Write a number."""
        value = _summaries.Summary.Value(tag=tag, simple_value=float(_numbers(scalar_value).reshape(())))
        self._add(value, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write several numbers under one name."""
        for tag, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{tag}", value, global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, bins: Any = "auto", walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Write how numbers are distributed."""
        found = _numbers(values).astype(numpy.float64).reshape(-1)
        counts, edges = numpy.histogram(found, bins="auto" if bins == "tensorflow" else bins)
        histogram = _summaries.HistogramProto(
            min=found.min(), max=found.max(), num=found.size, sum=found.sum(), sum_squares=found @ found,
            bucket_limit=edges[1:].tolist(), bucket=counts.tolist(),
        )  # fmt: skip
        self._add(_summaries.Summary.Value(tag=tag, histo=histogram), global_step, walltime)

    def flush(self) -> None:
        """Write what waits to be written."""
        self._writer.flush()

    def close(self) -> None:
        """Write what waits and close the file."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


__all__ = ["SummaryWriter"]
__getattr__, __dir__ = absent(__name__), listed(globals())
