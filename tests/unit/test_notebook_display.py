"""HTML of tensors and modules for notebooks: the text, heat maps, trees, and what remains as it was."""

import base64
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from html import unescape
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.inspection import heat_map as heat_maps
from retrograd.inspection.heat_map import GAP, INF, MINUS_INF, NAN, SHADES, heat_map

nan, inf = float("nan"), float("inf")


def pixels(html: str) -> Any:
    """Return the colours of the image in ``html`` as an array of height, width, and red, green, blue, alpha."""
    found = re.search(r'src="data:image/png;base64,([^"]+)"', html)
    assert found
    data = base64.b64decode(found[1])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, place = {}, 8
    while place < len(data):
        length, kind = struct.unpack_from(">I4s", data, place)
        chunks[kind] = data[place + 8 : place + 8 + length]
        assert struct.unpack_from(">I", data, place + 8 + length)[0] == zlib.crc32(kind + chunks[kind])
        place += length + 12
    width, height = struct.unpack_from(">II", chunks[b"IHDR"])
    colours = numpy.frombuffer(chunks[b"PLTE"], numpy.uint8).reshape(-1, 3)
    alphas = numpy.full(len(colours), 255)
    alphas[: len(chunks[b"tRNS"])] = numpy.frombuffer(chunks[b"tRNS"], numpy.uint8)
    lines = numpy.frombuffer(zlib.decompress(chunks[b"IDAT"]), numpy.uint8).reshape(height, width + 1)
    assert not lines[:, 0].any()
    return numpy.dstack([colours[lines[:, 1:]], alphas[lines[:, 1:]]])


def html_of(x: Any) -> str:
    html = x._repr_html_()
    assert isinstance(html, str)
    return html


def text_of(html: str) -> str:
    found = re.search(r"<pre[^>]*>(.*?)</pre>", html, re.DOTALL)
    assert found
    return unescape(found[1])


KINDS = {
    "vector": torch.arange(5.0) - 2, "int": torch.arange(12).reshape(3, 4) - 5, "uint64": torch.tensor([2**63, 5], dtype=torch.uint64),
    "bool": torch.tensor([[True, False]]), "complex": torch.tensor([3 + 4j, 0j]), "bfloat16": torch.randn(4, 4).bfloat16(),
    "float8": torch.randn(4, 4).to(torch.float8_e4m3fn), "nan": torch.tensor([nan, inf, -inf, 1]),
    "only nan": torch.full((2, 2), nan), "zeros": torch.zeros(3, 3), "tiny": torch.tensor([1e-45, -1e-45]), "large": torch.tensor([3e38, -3e38]),
    "float64": torch.tensor([1.7e308, -1.7e308], dtype=torch.float64), "graded": torch.randn(3, 3, requires_grad=True), "result": torch.randn(3, 3, requires_grad=True) * 2,
    "parameter": torch.nn.Parameter(torch.randn(3, 3)), "four": torch.randn(2, 2, 3, 4), "expanded": torch.ones(1).expand(3, 10**9),
    "turned": torch.randn(3, 5).T, "many": torch.randn(300, 200), "summarised": torch.randn(5000), "tall": torch.randn(5000, 2),
    "view": torch.randn(6)[::2],
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_text_and_size(kind: str) -> None:
    x = KINDS[kind]
    version, html = x._version, html_of(x)
    assert text_of(html) == repr(x) and x._version == version
    assert len(html) - len(repr(x)) < 8000
    image = pixels(html)
    assert max(image.shape[:2]) <= 320
    assert (
        "<script" not in html and "http" not in html and html.count("<details open>") == html.count("</details>") == 1
    )


class OwnText(torch.Tensor):
    def __repr__(self) -> str:  # type: ignore[override]
        return "own text"


@pytest.mark.parametrize(
    "x",
    [
        torch.tensor(1.0), torch.ones(1, 1), torch.empty(0, 3), torch.eye(3).to_sparse(), torch.ones(2, 2, device="meta"),
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), torch.nn.UninitializedParameter(),
        torch.ones(2).as_subclass(OwnText),
    ],
    ids=lambda x: type(x).__name__,
)  # fmt: skip
def test_others_are_shown_as_text(x: Any) -> None:
    assert x._repr_html_() is None


def test_tensors_inside_a_transform_are_shown_as_text() -> None:
    def inside(x: Any) -> Any:
        assert x._repr_html_() is None
        return x

    torch.func.vmap(inside)(torch.ones(3, 2))


def test_a_subclass_has_its_own_name() -> None:
    class Named(torch.Tensor):
        pass

    assert text_of(html_of(torch.ones(2).as_subclass(Named))) == "Named([1., 1.])"


def test_colours_are_symmetric_about_zero() -> None:
    image = pixels(html_of(torch.tensor([[-4.0, -2.0, 0.0, 2.0, 4.0]])))
    cells = image[0, :: image.shape[1] // 5]
    assert list(cells[:, 3]) == [255, *[round(255 * 16 / 31)], 0, round(255 * 16 / 31), 255]
    assert len({tuple(each) for each in cells[:2, :3]}) == len({tuple(each) for each in cells[3:, :3]}) == 1
    assert tuple(cells[0, :3]) != tuple(cells[4, :3])
    # The scale is that of the greatest magnitude, so a tensor without negative elements has no blue.
    assert len({tuple(each) for each in pixels(html_of(torch.tensor([1.0, 2.0])))[0, :, :3]}) == 1


def test_marks() -> None:
    shown = heat_map(numpy.array([[nan, inf, -inf, 2.0]]))
    assert shown.cells.tolist() == [[NAN, INF, MINUS_INF, 2 * SHADES]]
    assert (shown.counts, shown.low, shown.high) == ([1, 1, 1], 2.0, 2.0)
    html = html_of(torch.tensor([[nan, inf, -inf, 2.0]]))
    assert "1 nan" in html and "1 inf" in html and "1 -inf" in html and "negative" not in html
    assert (pixels(html)[0, :, 3] == 255).all()


def test_blocks_show_what_is_rare() -> None:
    values = numpy.zeros((640, 640))
    values[17, 21], values[300, 5], values[639, 639] = nan, -3.0, 3.0
    shown = heat_map(values)
    assert shown.block == (10, 10) and shown.cells.shape == (64, 64)
    assert shown.cells[1, 2] == NAN and shown.cells[30, 0] == 0 and shown.cells[63, 63] == 2 * SHADES
    assert (shown.cells == SHADES).sum() == 64 * 64 - 3
    ragged = heat_map(numpy.arange(65.0 * 3).reshape(65, 3))
    assert ragged.block == (2, 1) and ragged.cells.shape == (33, 3) and ragged.cells[32, 2] == 2 * SHADES


def test_vectors_are_shown_in_rows() -> None:
    shown = heat_map(numpy.ones(70))
    assert (
        shown.cells.shape == (2, 64) and (shown.cells[1, 6:] == GAP).all() and (shown.cells[1, :6] == 2 * SHADES).all()
    )
    assert shown.counts == [0, 0, 0]
    assert heat_map(numpy.ones(10**6)).cells.shape <= (64, 64)


def test_matrices_are_shown_beside_each_other() -> None:
    shown = heat_map(numpy.arange(40 * 6.0).reshape(4, 10, 2, 3))
    assert shown.tiles == (24, 40)
    assert shown.cells.max() == GAP and (shown.cells[0] == GAP).sum() == 23
    assert "the first 24 of 40 matrices" in html_of(torch.ones(4, 10, 2, 3))


def test_large_arrays_are_looked_at_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heat_maps, "ELEMENTS", 1000)
    for shape in ((10**6,), (1000, 1000), (4, 10**5), (10**5, 4), (50, 10, 300)):
        shown = heat_map(numpy.broadcast_to(numpy.float32(1), shape))
        assert shown.skipped > 1 and shown.low == shown.high == 1
        assert (shown.cells[shown.cells != GAP] == 2 * SHADES).all()


@pytest.fixture
def switched_off() -> Iterator[None]:
    torch.set_notebook_display(False)
    yield
    torch.set_notebook_display(True)


@pytest.mark.thread_unsafe
@pytest.mark.usefixtures("switched_off")
def test_the_switch() -> None:
    assert torch.ones(2, 2)._repr_html_() is None and torch.nn.Linear(2, 2)._repr_html_() is None


# -- Modules -----------------------------------------------------------------------------------------------------------


def lines_of(module: Any) -> list[str]:
    """Return the text of the tree of ``module``, one line for each module, parameter or buffer."""
    html = html_of(module)
    assert html.count("<details") == html.count("</details>") and html.count("<div") == html.count("</div>")
    broken = re.sub(r"</?(div|details|summary)[^>]*>", "\n", html)
    return [" ".join(unescape(re.sub(r"<[^>]+>", "", line)).split()) for line in broken.split("\n") if line.strip()]


def test_counts_of_parameters() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(5))
            self.embed = torch.nn.Embedding(10, 4)
            self.head = torch.nn.Linear(4, 10)
            self.head.weight = self.embed.weight
            self.norm = torch.nn.BatchNorm1d(4).requires_grad_(False)
            self.again = self.embed

    net = Net()
    assert lines_of(net) == [
        "Net · 63 parameters, 5 own, 55 trainable",
        "scale (5,) · float32 · 20 bytes",
        "(embed): Embedding(10, 4) · 40 parameters",
        "weight (10, 4) · float32 · 160 bytes",
        "(head): Linear(in_features=4, out_features=10, bias=True) · 50 parameters",
        "weight: the same parameter as embed.weight",
        "bias (10,) · float32 · 40 bytes",
        f"(norm): {net.norm!r} · 8 parameters, none trainable",
        "weight (4,) · float32 · 16 bytes · frozen",
        "bias (4,) · float32 · 16 bytes · frozen",
        "running_mean (4,) · float32 · 16 bytes · buffer",
        "running_var (4,) · float32 · 16 bytes · buffer",
        "num_batches_tracked () · int64 · 8 bytes · buffer",
        "(again): the same module as embed",
    ]
    assert sum(each.numel() for each in net.parameters()) == 63


def test_modules_without_parameters_and_without_shapes() -> None:
    assert lines_of(torch.nn.ReLU()) == ["ReLU()"]
    assert "weight: parameter without a shape yet" in lines_of(torch.nn.LazyLinear(3))


def test_a_module_with_its_own_text_keeps_it() -> None:
    class Own(torch.nn.Module):
        def __repr__(self) -> str:
            return "own text"

    assert Own()._repr_html_() is None
    assert torch.nn.ModuleList([torch.nn.ReLU()])._repr_html_() is not None


def test_names_are_escaped() -> None:
    module = torch.nn.Module()
    module.add_module("<script>alert(1)</script>", torch.nn.ReLU())
    module.register_parameter("<b>", torch.nn.Parameter(torch.ones(1)))
    module.extra_repr = lambda: "<i>&"  # type: ignore[method-assign]
    html = html_of(module)
    assert "<script" not in html and "<b>" not in html and "<i>" not in html and "&lt;script&gt;" in html


def test_large_models_are_bounded() -> None:
    model = torch.nn.Sequential(*(torch.nn.ReLU() for _ in range(3000)))
    html = html_of(model)
    assert "… 2001 more modules" in html and len(html) < 100_000


def test_deep_models_are_bounded() -> None:
    model: torch.nn.Module = torch.nn.Linear(2, 3)
    for _ in range(3000):
        model = torch.nn.Sequential(model)
    lines = lines_of(model)
    assert lines[0] == "Sequential · 9 parameters" and lines[-1] == "…" and len(lines) < 100


# -- What remains as it was ---------------------------------------------------------------------------------------------


def test_nothing_is_loaded_and_no_name_is_listed() -> None:
    assert "_repr_html_" not in dir(torch.ones(2)) and "_repr_html_" not in dir(torch.nn.ReLU())
    assert not {"load_ipython_extension", "unload_ipython_extension"} & {*dir(torch), *torch.__all__}
    text = (
        "import sys, retrograd as torch; repr(torch.ones(2)), repr(torch.nn.ReLU()); "
        "print({'retrograd.inspection.notebook', 'retrograd.ipython_extension', 'html', 'base64'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
