"""``SummaryWriter``: writes TensorBoard's event files; its methods log scalars, images, histograms and more."""

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
    """Writer of one TensorBoard event file in the folder ``log_dir``."""

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "") -> None:
        self.event_writer: Any = _files.EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """Return the path of the folder that contains the event file."""
        return self.event_writer.get_logdir()

    def add_event(self, event: Any, step: Step = None, walltime: When = None) -> None:
        """Write ``event``, an Event message of TensorBoard, to the event file.

        The time of the event is set to ``walltime`` in seconds, by default the current time. Its step is set to
        ``step`` unless ``step`` is None.
        """
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: Step = None, walltime: When = None) -> None:
        """Write ``summary``, a Summary message of TensorBoard, as an event (see :meth:`add_event`)."""
        self.add_event(_events.Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_def: Any, walltime: When = None) -> None:
        """Write ``graph_def``, the graph of a model, as an event.

        A second event contains a RunMetadata message of TensorBoard, which names the CPU as the device.
        """
        self.add_event(_events.Event(graph_def=graph_def.SerializeToString()), None, walltime)
        stats = _steps.StepStats(dev_stats=[_steps.DeviceStepStats(device="/device:CPU:0")])
        run = _runs.RunMetadata(step_stats=stats).SerializeToString()
        self.add_event(_events.Event(tagged_run_metadata={"tag": "step1", "run_metadata": run}), None, walltime)

    def flush(self) -> None:
        """Write all buffered events to the file."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write all buffered events to the file and close it."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Open a new event file, after the file was closed by :meth:`close`."""
        self.event_writer.reopen()


class SummaryWriter:
    """Writer of TensorBoard event files in the folder ``log_dir``, by default a new folder in ``runs``.

    ``comment`` is appended to the name of the default folder. With ``purge_step``, TensorBoard discards events of an
    earlier run from this step on. At most ``max_queue`` events are buffered, for at most ``flush_secs`` seconds. As a
    context manager, the writer closes its files at the end. Most methods have the parameters ``tag``, the name of the
    data, ``global_step``, the training step, and ``walltime``, the time in seconds (by default the current time).
    """

    filename_suffix: str
    flush_secs: int
    max_queue: int

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
        flush_secs: int = 120, filename_suffix: str = "",
    ) -> None:  # fmt: skip
        started = time.strftime("%b%d_%H-%M-%S")
        self.log_dir: str = str(log_dir or os.path.join("runs", f"{started}_{socket.gethostname()}{comment}"))
        self.purge_step = purge_step
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] = {}
        self.default_bins: list[float] = summaries.default_bins()
        self._points = projector.configuration()
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        """Return the writer of the main event file, which is opened again if it was closed."""
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
        """Return the path of the folder of the event files."""
        return self.log_dir

    def _add(self, values: Any, step: Step, walltime: When) -> None:
        values = values if isinstance(values, list) else [values]
        self._get_file_writer().add_summary(_summaries.Summary(value=values), step, walltime)

    # -- Scalars, histograms, curves

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Step = None, walltime: When = None, new_style: bool = False,
        double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Write the number ``scalar_value`` under the name ``tag``.

        If ``new_style`` is true, the number is stored as a tensor. Its dtype is float64 if ``double_precision`` is
        true, otherwise float32.
        """
        self._add(summaries.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: Step = None, walltime: When = None
    ) -> None:
        """Write several numbers, which TensorBoard shows in the chart ``main_tag``.

        ``tag_scalar_dict`` maps names to numbers. Each number is written to a file in a separate subfolder.
        """
        for tag, value in tag_scalar_dict.items():
            writer = self._below(f"{self._get_file_writer().get_logdir()}/{main_tag.replace('/', '_')}_{tag}")
            found = summaries.scalar(main_tag, value, False, False)
            writer.add_summary(_summaries.Summary(value=[found]), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Tensor, global_step: Step = None, walltime: When = None) -> None:
        """Write ``tensor`` under the name ``tag``."""
        self._add(summaries.tensor(tag, tensor), global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: Step = None, bins: Any = "tensorflow", walltime: When = None,
        max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Write a histogram of ``values`` under the name ``tag``.

        ``bins`` is ``"tensorflow"`` for the default bins, or the argument ``bins`` of :func:`numpy.histogram`. If there
        are more than ``max_bins`` bins, adjacent bins are merged.
        """
        edges = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        self._add(summaries.histogram(tag, array_of(values), edges, max_bins), global_step, walltime)

    def add_histogram_raw(
        self, tag: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any, bucket_limits: Any,
        bucket_counts: Any, global_step: Step = None, walltime: When = None,
    ) -> None:  # fmt: skip
        """Write a histogram under the name ``tag`` from its counts and statistics.

        ``bucket_counts`` contains one count for each bin, and ``bucket_limits`` the upper limit of each bin. ``min``,
        ``max``, ``num``, ``sum`` and ``sum_squares`` are the minimum, the maximum, the number, the sum and the sum of
        squares of the values. Raises ValueError if the numbers of limits and counts differ.
        """
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
        """Write a precision-recall curve at ``num_thresholds`` thresholds under the name ``tag``.

        ``labels`` are 0 or 1, ``predictions`` are probabilities, and ``weights`` are the weights of the samples.
        """
        found = summaries.curve(tag, array_of(labels), array_of(predictions), num_thresholds, weights)
        self._add(found, global_step, walltime)

    def add_pr_curve_raw(
        self, tag: str, true_positive_counts: Any, false_positive_counts: Any, true_negative_counts: Any,
        false_negative_counts: Any, precision: Any, recall: Any, global_step: Step = None, num_thresholds: int = 127,
        weights: Any = None, walltime: When = None,
    ) -> None:  # fmt: skip
        """Write a precision-recall curve under the name ``tag``.

        The counts, ``precision`` and ``recall`` contain one value for each of ``num_thresholds`` thresholds.
        """
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
        """Write the image ``img_tensor``, uint8 or floats between 0 and 1, under the name ``tag``.

        ``dataformats`` names the dimensions of ``img_tensor``: C is channels, H height and W width.
        """
        array = pictures.to_uint8(pictures.to_image(array_of(img_tensor), dataformats))
        self._add(summaries.image(tag, array), global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: Step = None, walltime: When = None, dataformats: str = "NCHW"
    ) -> None:
        """Write the images ``img_tensor`` under the name ``tag``, as one image with eight of them in each row.

        ``dataformats`` names the dimensions of ``img_tensor``: N is the number, C channels, H height and W width.
        """
        if isinstance(img_tensor, list):
            img_tensor = numpy.stack([array_of(each) for each in img_tensor])
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(
        self, tag: str, img_tensor: Any, box_tensor: Any, global_step: Step = None, walltime: When = None,
        rescale: float = 1, dataformats: str = "CHW", labels: Any = None,
    ) -> None:  # fmt: skip
        """Write the image ``img_tensor`` with red frames around boxes under the name ``tag``.

        Each row of ``box_tensor`` is (left, top, right, bottom), in pixels. The texts ``labels`` are written above the
        frames. The image is enlarged by the factor ``rescale``.
        """
        boxes = array_of(box_tensor)
        labels = [labels] if isinstance(labels, str) else labels
        labels = None if labels is None or len(labels) != len(boxes) else labels
        array = pictures.to_uint8(pictures.to_image(array_of(img_tensor), dataformats))
        self._add(summaries.image(tag, pictures.with_boxes(array, boxes, labels), rescale), global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: Step = None, close: bool = True, walltime: When = None
    ) -> None:
        """Write ``figure``, a matplotlib figure, under the name ``tag``; a list of figures is written as one image.

        If ``close`` is true, the figures are closed.
        """
        several = figure if isinstance(figure, list) else [figure]
        self.add_image(tag, pictures.render_figures(several, close), global_step, walltime, "NHWC")

    def add_video(
        self, tag: str, vid_tensor: Any, global_step: Step = None, fps: float = 4, walltime: When = None
    ) -> None:
        """Write the videos ``vid_tensor``, arranged in a grid, with ``fps`` frames per second, under the name ``tag``.

        ``vid_tensor`` has the dimensions (number, frames, channels, height, width).
        """
        self._add(summaries.video(tag, array_of(vid_tensor), fps), global_step, walltime)

    def add_audio(
        self, tag: str, snd_tensor: Any, global_step: Step = None, sample_rate: int = 44100, walltime: When = None
    ) -> None:
        """Write the sound ``snd_tensor``, samples between -1 and 1, under the name ``tag``.

        ``sample_rate`` is the number of samples per second.
        """
        self._add(summaries.audio(tag, array_of(snd_tensor), sample_rate), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: Step = None, walltime: When = None) -> None:
        """Write the Markdown text ``text_string`` under the name ``tag``."""
        self._add(summaries.text(tag, text_string), global_step, walltime)

    # -- Models, embeddings, meshes, hyperparameters

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Write the autograd graph of the call ``model(*input_to_model)``.

        ``input_to_model`` is a tuple of arguments, or a single tensor. If ``verbose`` is true, the graph is also
        printed.
        """
        found = graph.graph_of(model, () if input_to_model is None else input_to_model)
        if verbose:
            print(found)
        self._get_file_writer().add_graph(found)

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: Step = None, tag: str = "default",
        metadata_header: Any = None,
    ) -> None:  # fmt: skip
        """Write the embeddings ``mat`` (number, dimensions) for TensorBoard's projector, under the name ``tag``.

        ``metadata`` contains a label for each embedding. If the column names ``metadata_header`` are passed,
        ``metadata`` contains a row of labels for each embedding. ``label_img`` contains an image for each embedding.
        """
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
        """Write a mesh under the name ``tag``: ``vertices`` and, if passed, ``colors`` and ``faces``.

        ``vertices`` has the dimensions (batch, number, 3). ``config_dict`` contains options of TensorBoard's viewer.
        """
        parts = {"VERTEX": vertices, "FACE": faces, "COLOR": colors}
        arrays = {name: None if each is None else array_of(each) for name, each in parts.items()}
        self._add(summaries.mesh(tag, config_dict, **arrays), global_step, walltime)

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: Any = None,
        run_name: str | None = None, global_step: Step = None,
    ) -> None:  # fmt: skip
        """Write hyperparameters and metrics to a file in the subfolder ``run_name``.

        ``hparam_dict`` and ``metric_dict`` map names to values. The default of ``run_name`` is the current time.
        ``hparam_domain_discrete`` maps names of hyperparameters to lists of their possible values.
        """
        found = summaries.hyperparameters(hparam_dict, metric_dict, hparam_domain_discrete)
        with SummaryWriter(os.path.join(self.log_dir, run_name or str(time.time()))) as writer:
            for each in found:
                writer._add(each, global_step, None)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_custom_scalars(self, layout: dict[str, dict[str, Any]]) -> None:
        """Group scalars in charts, as ``layout`` describes: ``{category: {chart: ["Multiline", tags]}}``.

        ``tags`` are the names of the scalars. With ``"Margin"`` instead of ``"Multiline"``, ``tags`` are the names of
        a value, its lower limit and its upper limit.
        """
        self._add(summaries.layout(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Show the scalars named ``tags`` in one chart named ``title``, in the group of charts ``category``."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Show the scalar ``tags[0]`` in a chart named ``title``, between the limits ``tags[1]`` and ``tags[2]``.

        ``category`` is the name of a group of charts.
        """
        if len(tags) != 3:
            raise AssertionError
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    # -- Files

    def flush(self) -> None:
        """Write all buffered events to the files."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self) -> None:
        """Write all buffered events and close the files; the next event opens new files."""
        for writer in self.all_writers.values():
            writer.flush()
            writer.close()
        self.file_writer, self.all_writers = None, {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
