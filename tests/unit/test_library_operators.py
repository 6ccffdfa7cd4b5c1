"""``torch.library.Library``, and the operators that replace compiled libraries: values by hand, and PyTorch's errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import retrograd as torch


@pytest.fixture
def vision(tmp_path: Path) -> Any:
    """The operators of torchvision, loaded by the path of an empty file."""
    (tmp_path / "torchvision").mkdir()
    library = tmp_path / "torchvision" / "_C.cpython-311-x86_64-linux-gnu.so"
    library.write_bytes(b"")
    torch.ops.load_library(library)
    return torch.ops.torchvision


def test_libraries_without_operators_in_python_are_refused(tmp_path: Path) -> None:
    (tmp_path / "image.so").write_bytes(b"")
    for path in (tmp_path / "image.so", tmp_path / "torchvision" / "_C.so"):
        with pytest.raises(OSError, match=r"Could not load this library: .*so"):
            torch.ops.load_library(path)


def test_nms_keeps_boxes_in_the_order_of_scores(vision: Any) -> None:
    boxes = torch.tensor([[0.0, 0, 10, 10], [0, 0, 10, 9], [20, 20, 30, 30], [0, 0, 10, 5], [1, 1, 1, 1], [1, 1, 1, 1]])
    scores = torch.tensor([0.5, 0.9, 0.7, 0.6, 0.1, 0.1])
    assert vision.nms(boxes, scores, 0.6).tolist() == [1, 2, 3, 4, 5]  # 9/10 is more, 5/9 is less than 0.6
    assert vision.nms(boxes, scores, 0.5).tolist() == [1, 2, 4, 5]
    assert vision.nms(boxes, scores, 5 / 9 + 1e-6).tolist() == [1, 2, 3, 4, 5]
    assert vision.nms(torch.empty(0, 4), torch.empty(0), 0.5).dtype == torch.int64
    for words, arguments in (
        ("boxes should be a 2d tensor, got 1D", (torch.ones(4), torch.ones(1), 0.5)),
        ("boxes should have 4 elements in dimension 1, got 3", (torch.ones(1, 3), torch.ones(1), 0.5)),
        ("scores should be a 1d tensor, got 2D", (torch.ones(1, 4), torch.ones(1, 1), 0.5)),
        (
            "boxes and scores should have same number of elements in dimension 0, got 1 and 2",
            (torch.ones(1, 4), torch.ones(2), 0.5),
        ),
    ):
        with pytest.raises(RuntimeError, match=words):
            vision.nms(*arguments)


def test_roi_align_averages_samples_of_each_bin(vision: Any) -> None:
    image = torch.arange(16.0).reshape(1, 1, 4, 4)  # linear, so that an average is the value at the middle
    region = torch.tensor([[0.0, 0.0, 0.0, 2.0, 2.0]])
    assert vision.roi_align(image, region, 1.0, 2, 2, 2, False).tolist() == [[[[2.5, 3.5], [6.5, 7.5]]]]
    assert vision.roi_align(image, region, 1.0, 1, 1, -1, False).item() == 5.0
    assert vision.roi_align(image, region + torch.tensor([0, 0.5, 0.5, 0.5, 0.5]), 1.0, 1, 1, 2, True).item() == 5.0
    # A box has at least the length 1 if it is not aligned, and no samples if its length is 0.
    point = torch.tensor([[0.0, 1.0, 1.0, 1.0, 1.0]])
    assert vision.roi_align(image, point, 1.0, 1, 1, -1, False).item() == 7.5
    assert vision.roi_align(image, point, 1.0, 1, 1, -1, True).item() == 0.0
    # Samples in the image's margin have the value of the edge, and those beyond -1 or the size count as 0.
    outside = torch.tensor([[0.0, -3.0, 0.0, 1.0, 1.0]])
    found = vision.roi_align(image + 1, outside, 1.0, 1, 4, 1, False)
    assert found.tolist() == [[[[0.0, 0.0, 3.0, 3.5]]]]
    with pytest.raises(RuntimeError, match="rois must have shape as Tensor"):
        vision.roi_align(image, torch.ones(1, 4), 1.0, 1, 1, 1, False)


def test_gradient_of_roi_align_is_its_transpose(vision: Any) -> None:
    torch.manual_seed(0)
    images, regions = torch.randn(2, 3, 7, 8).double(), torch.rand(5, 5).double() * 4
    regions[:, 0] = torch.tensor([0.0, 1, 0, 1, 1])
    regions[:, 3:] += regions[:, 1:3]
    for ratio, aligned in ((-1, True), (2, False)):
        options = 0.9, 2, 3
        pooled = vision.roi_align(images, regions, *options, ratio, aligned)
        g = torch.randn_like(pooled)
        back = vision._roi_align_backward(g, regions, *options, *images.shape, ratio, aligned)
        torch.testing.assert_close((pooled * g).sum(), (images * back).sum())


def test_operators_without_an_implementation_raise_with_their_name(vision: Any) -> None:
    with pytest.raises(
        NotImplementedError, match="Could not run 'torchvision::deform_conv2d' with arguments from the 'CPU'"
    ):
        vision.deform_conv2d(torch.ones(1))
    with pytest.raises(AttributeError, match="'_OpNamespace' 'torchvision' object has no attribute 'nothing'"):
        vision.nothing


def test_libraries_of_a_program() -> None:
    mine = torch.library.Library("tests_library", "DEF")
    assert mine.define("halve(Tensor x) -> Tensor") == "halve"
    with pytest.raises(NotImplementedError, match="Could not run 'tests_library::halve'"):
        torch.ops.tests_library.halve(torch.ones(1))
    mine.impl("halve", lambda x: x / 2, "CompositeExplicitAutograd")
    mine.impl(torch.ops.tests_library.halve.default, lambda x: x, "Meta")
    assert torch.ops.tests_library.halve(torch.ones(1)).item() == 0.5
    torch.library.define("tests_library::third", "(Tensor x) -> Tensor")
    torch.library.impl("tests_library::third", "cpu")(lambda x: x / 3)
    torch.library.impl("tests_library::third", "cuda", lambda x: x)
    assert torch.ops.tests_library.third(torch.tensor(6.0)).item() == 2.0
    with pytest.raises(ValueError, match="Unsupported kind"):
        torch.library.Library("tests_library", "OTHER")
    with pytest.raises(TypeError, match="Input function is required to be a callable"):
        mine.impl("halve", 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected qualname to be instance of str of the form"):
        torch.library.define("halve", "(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="get_ctx\\(\\) can only be called inside a fake"):
        torch.library.get_ctx()
