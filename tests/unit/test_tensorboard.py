"""``utils.tensorboard``: events written, read back with the tensorboard package."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy
import pytest

import retrograd as torch

pytest.importorskip("tensorboard")

from tensorboard.compat.proto import event_pb2, graph_pb2

from retrograd.utils.tensorboard import SummaryWriter


def events(folder: Path) -> list[Any]:
    """Return all events of the one file in a folder, without the first, which is the file version."""
    (path,) = folder.glob("events.out.tfevents.*")
    data, found = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        found.append(event_pb2.Event.FromString(data[12 : 12 + length]))
        data = data[16 + length :]
    assert found[0].file_version == "brain.Event:2"
    return found[1:]


def logged(folder: Path, *calls: tuple[Any, ...], **options: Any) -> list[Any]:
    """Return the values that calls (name, arguments …) of a writer's methods log."""
    with SummaryWriter(folder) as writer:
        for name, *arguments in calls:
            getattr(writer, name)(*arguments, **options)
    return [value for event in events(folder) for value in event.summary.value]


def test_scalars(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path, purge_step=3) as writer:
        writer.add_scalar("loss", torch.tensor(0.5, requires_grad=True), 4, walltime=7.0)
        writer.add_scalar("new", 0.25, 4, new_style=True)
        writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 5)
        with pytest.raises(
            NotImplementedError, match="Got <class 'list'>, but numpy array or torch tensor are expected"
        ):
            writer.add_scalar("list", [1])
    version, start, loss, new = events(tmp_path)
    assert version.step == start.step == 3 and start.session_log.status == event_pb2.SessionLog.START
    assert (loss.step, loss.wall_time, loss.summary.value[0].simple_value) == (4, 7.0, 0.5)
    assert new.summary.value[0].tensor.float_val == [0.25]
    assert events(tmp_path / "both_b")[0].summary.value[0].simple_value == 2


def test_histograms(tmp_path: Path) -> None:
    x = torch.tensor([-1.0, 0.1, 0.1, 3.0])
    usual, few = logged(tmp_path, ("add_histogram", "x", x), ("add_histogram", "few", x, None, [-2, 0, 1, 2, 3, 4, 5]))
    assert (usual.histo.min, usual.histo.max, usual.histo.num) == (-1, 3, 4)
    assert sum(usual.histo.bucket) == 4 and len(usual.histo.bucket) == len(usual.histo.bucket_limit)
    assert few.histo.bucket == [0, 1, 2, 0, 0, 1] and few.histo.bucket_limit == [-2, 0, 1, 2, 3, 4]


def test_images_and_audio(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    picture = torch.rand(3, 4, 6)
    films = torch.zeros(3, 2, 1, 4, 4, dtype=torch.uint8)
    found = logged(
        tmp_path, ("add_image", "i", picture), ("add_images", "is", torch.rand(10, 1, 4, 6)),
        ("add_image_with_boxes", "b", picture, torch.tensor([[1.0, 1, 3, 3]])), ("add_video", "v", films),
        ("add_audio", "a", torch.linspace(-1, 2, 50)),
    )  # fmt: skip
    assert [(each.image.height, each.image.width) for each in found[:4]] == [(4, 6), (8, 48), (4, 6), (8, 8)]
    assert found[0].image.encoded_image_string.startswith(b"\x89PNG") and b"GIF8" in found[3].image.encoded_image_string
    assert found[4].audio.length_frames == 50 and found[4].audio.encoded_audio_string.startswith(b"RIFF")


def test_curves_layouts_meshes_texts(tmp_path: Path) -> None:
    labels, chances = torch.tensor([0, 1, 1, 0, 1]), torch.tensor([0.1, 0.4, 0.35, 0.8, 0.9])
    curve, text, layout, vertex, face = logged(
        tmp_path, ("add_pr_curve", "pr", labels, chances, 1, 3), ("add_text", "t", "*x*"),
        ("add_custom_scalars", {"c": {"m": ["Multiline", ["a", "b"]]}}),
        ("add_mesh", "m", torch.ones(1, 3, 3), None, torch.tensor([[[0, 1, 2]]])),
    )  # fmt: skip
    assert numpy.reshape(curve.tensor.float_val, (6, 3))[:4].tolist() == [[3, 1, 0], [2, 1, 0], [0, 1, 2], [0, 2, 3]]
    assert text.tag == "t/text_summary" and text.tensor.string_val == [b"*x*"]
    assert layout.tag == "custom_scalars__config__" and b"a" in layout.tensor.string_val[0]
    assert (vertex.tag, face.tag) == ("m_VERTEX", "m_FACE") and face.tensor.float_val == [0, 1, 2]


def test_hparams_and_embeddings(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": 0.1, "opt": "sgd"}, {"acc": 0.5}, {"lr": [0.1, 0.2]}, run_name="run")
        writer.add_embedding(torch.eye(2), [["a", 1], ["b", 2]], None, 3, metadata_header=["n", "k"])
    tags = [value.tag for event in events(tmp_path / "run") for value in event.summary.value]
    assert tags == ["_hparams_/experiment", "_hparams_/session_start_info", "_hparams_/session_end_info", "acc"]
    assert (tmp_path / "00003/default/metadata.tsv").read_text() == "n\tk\na\t1\nb\t2\n"
    assert (tmp_path / "00003/default/tensors.tsv").read_text() == "1.0\t0.0\n0.0\t1.0\n"
    assert 'tensor_name: "default:00003"' in (tmp_path / "projector_config.pbtxt").read_text()


def test_graphs(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()), torch.ones(1, 3))
    graph = graph_pb2.GraphDef.FromString(events(tmp_path)[0].graph_def)
    found = {node.name: list(node.input) for node in graph.node}
    assert found["output/output_0"] == ["Sequential/ReLU[1]/Relu"]
    assert found["Sequential/ReLU[1]/Relu"] == ["Sequential/Linear[0]/Addmm"]
    assert {"input/input_0", "Sequential/Linear[0]/bias"} < set(found["Sequential/Linear[0]/Addmm"])
