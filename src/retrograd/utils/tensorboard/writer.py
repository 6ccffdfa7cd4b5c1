"""``SummaryWriter``: writes event files; its methods log scalars, images, histograms and more."""

from __future__ import annotations

import importlib
import os
import socket
import time
from typing import Any, Self

import numpy

from ...core.tensor import Tensor
from . import graph, pictures, projector, summaries
from .summaries import array_of

_files = importlib.import_module("tensorboard.summary.writer.event_file_writer")
_summaries = importlib.import_module("tensorboard.compat.proto.summary_pb2")
_events = importlib.import_module("tensorboard.compat.proto.event_pb2")
_steps = importlib.import_module("tensorboard.compat.proto.step_stats_pb2")
_runs = importlib.import_module("tensorboard.compat.proto.config_pb2")

Step = int | None
When = float | None


class FileWriter:
    """Writer of events to one file in ``log_dir``."""

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "") -> None:
        self.event_writer = _files.EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """Return the folder of the file."""
        return self.event_writer.get_logdir()

    def add_event(self, event: Any, step: Step = None, walltime: When = None) -> None:
        """Write an event, with a step and the time."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: Step = None, walltime: When = None) -> None:
        """Write values."""
        self.add_event(_events.Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_def: Any, walltime: When = None) -> None:
        """Write a graph, and that it ran on the CPU."""
        self.add_event(_events.Event(graph_def=graph_def.SerializeToString()), None, walltime)
        stats = _steps.StepStats(dev_stats=[_steps.DeviceStepStats(device="/device:CPU:0")])
        run = _runs.RunMetadata(step_stats=stats).SerializeToString()
        self.add_event(_events.Event(tagged_run_metadata={"tag": "step1", "run_metadata": run}), None, walltime)

    def flush(self) -> None:
        """Write all buffered events to disk."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write all buffered events and close the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Open a new file after :meth:`close`."""
        self.event_writer.reopen()


class SummaryWriter:
    """Writer of TensorBoard event files in ``log_dir`` (by default a new folder below ``runs``).

    ``comment``: suffix of the default folder's name. ``purge_step``: events from this step on, from an earlier run, are
    discarded. ``max_queue``, ``flush_secs``: number of events and seconds after which events are written. As a context
    manager it closes the files.
    """

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
        flush_secs: int = 120, filename_suffix: str = "",
    ) -> None:  # fmt: skip
        started = time.strftime("%b%d_%H-%M-%S")
        self.log_dir = str(log_dir or os.path.join("runs", f"{started}_{socket.gethostname()}{comment}"))
        self.purge_step = purge_step
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] = {}
        self.default_bins = summaries.default_bins()
        self._points = projector.configuration()
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        """Return the writer of the main file, opened again if it was closed."""
        if self.file_writer is None:
            self.file_writer = self._below(self.log_dir)
            if self.purge_step is not None:
                start = _events.SessionLog(status=_events.SessionLog.START)
                for event in (_events.Event(file_version="brain.Event:2"), _events.Event(session_log=start)):
                    self.file_writer.add_event(event, self.purge_step)
                self.purge_step = None
        return self.file_writer

    def _below(self, folder: str) -> FileWriter:
        if folder not in self.all_writers:
            made = FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers[folder] = made
        return self.all_writers[folder]

    def get_logdir(self) -> str:
        """Return the folder of the file."""
        return self.log_dir

    def _add(self, values: Any, step: Step, walltime: When) -> None:
        values = values if isinstance(values, list) else [values]
        self._get_file_writer().add_summary(_summaries.Summary(value=values), step, walltime)

    # -- Scalars, histograms, curves

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Step = None, walltime: When = None, new_style: bool = False,
        double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Write a number; with ``new_style`` as a tensor, in float64 if ``double_precision``."""
        self._add(summaries.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: Step = None, walltime: When = None
    ) -> None:
        """Write several numbers of one chart, each to a separate file below the folder."""
        for tag, value in tag_scalar_dict.items():
            writer = self._below(f"{self._get_file_writer().get_logdir()}/{main_tag.replace('/', '_')}_{tag}")
            found = summaries.scalar(main_tag, value, False, False)
            writer.add_summary(_summaries.Summary(value=[found]), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Tensor, global_step: Step = None, walltime: When = None) -> None:
        """Write a tensor."""
        self._add(summaries.tensor(tag, tensor), global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: Step = None, bins: Any = "tensorflow", walltime: When = None,
        max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Write a histogram. ``bins`` is ``"tensorflow"`` or an argument of :func:`numpy.histogram`."""
        edges = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        self._add(summaries.histogram(tag, array_of(values), edges, max_bins), global_step, walltime)

    def add_histogram_raw(
        self, tag: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any, bucket_limits: Any,
        bucket_counts: Any, global_step: Step = None, walltime: When = None,
    ) -> None:  # fmt: skip
        """Write a histogram from its counts. Raises ValueError unless there is a limit for each count."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        found = summaries.raw_histogram(
            tag, min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits,
            bucket=bucket_counts,
        )  # fmt: skip
        self._add(found, global_step, walltime)

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: Step = None, num_thresholds: int = 127,
        weights: Any = None, walltime: When = None,
    ) -> None:  # fmt: skip
        """Write a precision-recall curve at ``num_thresholds`` thresholds, from labels (0 or 1) and probabilities."""
        found = summaries.curve(tag, array_of(labels), array_of(predictions), num_thresholds, weights)
        self._add(found, global_step, walltime)

    def add_pr_curve_raw(
        self, tag: str, true_positive_counts: Any, false_positive_counts: Any, true_negative_counts: Any,
        false_negative_counts: Any, precision: Any, recall: Any, global_step: Step = None, num_thresholds: int = 127,
        weights: Any = None, walltime: When = None,
    ) -> None:  # fmt: skip
        """Write a precision-recall curve from its counts."""
        rows = (
            true_positive_counts,
            false_positive_counts,
            true_negative_counts,
            false_negative_counts,
            precision,
            recall,
        )
        self._add(summaries.raw_curve(tag, numpy.stack(rows), num_thresholds), global_step, walltime)

    # -- Images, videos, sounds, text

    def add_image(
        self, tag: str, img_tensor: Any, global_step: Step = None, walltime: When = None, dataformats: str = "CHW"
    ) -> None:
        """Write an image: uint8, or floats between 0 and 1. ``dataformats`` names its dimensions."""
        array = pictures.to_uint8(pictures.to_image(array_of(img_tensor), dataformats))
        self._add(summaries.image(tag, array), global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: Step = None, walltime: When = None, dataformats: str = "NCHW"
    ) -> None:
        """Write several images as one, eight in a row."""
        if isinstance(img_tensor, list):
            img_tensor = numpy.stack([array_of(each) for each in img_tensor])
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(
        self, tag: str, img_tensor: Any, box_tensor: Any, global_step: Step = None, walltime: When = None,
        rescale: float = 1, dataformats: str = "CHW", labels: Any = None,
    ) -> None:  # fmt: skip
        """Write an image with labelled frames around boxes (left, top, right, bottom)."""
        boxes = array_of(box_tensor)
        labels = [labels] if isinstance(labels, str) else labels
        labels = None if labels is None or len(labels) != len(boxes) else labels
        array = pictures.to_uint8(pictures.to_image(array_of(img_tensor), dataformats))
        self._add(summaries.image(tag, pictures.with_boxes(array, boxes, labels), rescale), global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: Step = None, close: bool = True, walltime: When = None
    ) -> None:
        """Write a matplotlib figure, or several as one image, and close them."""
        several = figure if isinstance(figure, list) else [figure]
        self.add_image(tag, pictures.render_figures(several, close), global_step, walltime, "NHWC")

    def add_video(
        self, tag: str, vid_tensor: Any, global_step: Step = None, fps: float = 4, walltime: When = None
    ) -> None:
        """Write videos (number, frames, channels, height, width) in a grid, with ``fps`` frames a second."""
        self._add(summaries.video(tag, array_of(vid_tensor), fps), global_step, walltime)

    def add_audio(
        self, tag: str, snd_tensor: Any, global_step: Step = None, sample_rate: int = 44100, walltime: When = None
    ) -> None:
        """Write a sound with samples between -1 and 1."""
        self._add(summaries.audio(tag, array_of(snd_tensor), sample_rate), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: Step = None, walltime: When = None) -> None:
        """Write a Markdown text."""
        self._add(summaries.text(tag, text_string), global_step, walltime)

    # -- Models, embeddings, meshes, hyperparameters

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Write the graph that a call of ``model`` with ``input_to_model`` (a tensor or a tuple) records."""
        found = graph.graph_of(model, () if input_to_model is None else input_to_model)
        if verbose:
            print(found)
        self._get_file_writer().add_graph(found)

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: Step = None, tag: str = "default",
        metadata_header: Any = None,
    ) -> None:  # fmt: skip
        """Write embeddings (number, dimensions) for the projector, with labels (or rows of them) and images."""
        number = str(global_step or 0).zfill(5)
        folder = f"{number}/{tag.replace('/', '%2F')}"
        images = None if label_img is None else array_of(label_img)
        projector.add(
            self._points, self.log_dir, folder, array_of(mat), metadata, metadata_header, images, f"{tag}:{number}"
        )

    def add_mesh(
        self, tag: str, vertices: Any, colors: Any = None, faces: Any = None, config_dict: Any = None,
        global_step: Step = None, walltime: When = None,
    ) -> None:  # fmt: skip
        """Write vertices (batch, number, 3) and, optionally, their colours and faces."""
        parts = {"VERTEX": vertices, "FACE": faces, "COLOR": colors}
        arrays = {name: None if each is None else array_of(each) for name, each in parts.items()}
        self._add(summaries.mesh(tag, config_dict, **arrays), global_step, walltime)

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: Any = None,
        run_name: str | None = None, global_step: Step = None,
    ) -> None:  # fmt: skip
        """Write hyperparameters and metrics to a separate file below the folder."""
        found = summaries.hyperparameters(hparam_dict, metric_dict, hparam_domain_discrete)
        with SummaryWriter(os.path.join(self.log_dir, run_name or str(time.time()))) as writer:
            for each in found:
                writer._add(each, global_step, None)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_custom_scalars(self, layout: dict[str, dict[str, Any]]) -> None:
        """Group scalars in charts: ``{category: {chart: ["Multiline", tags]}}`` (``"Margin"`` takes three tags)."""
        self._add(summaries.layout(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Show the scalars of these tags in one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Show the first of three scalars between the other two, in one chart."""
        if len(tags) != 3:
            raise AssertionError
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    # -- Files

    def flush(self) -> None:
        """Write all buffered events to disk."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self) -> None:
        """Write all buffered events and close the files; the next event opens new ones."""
        for writer in self.all_writers.values():
            writer.flush()
            writer.close()
        self.file_writer, self.all_writers = None, {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
