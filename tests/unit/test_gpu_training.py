"""Training on a GPU, on the stand-in for CuPy: optimizers, autocast, GradScaler, clipping, programs, and ``check-gpu``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
from retrograd import check_gpu, cli
from retrograd.check_gpu.parts import _difference
from retrograd.check_gpu.programs import PROGRAMS
from retrograd.check_gpu.steps import STEPS
from tests.cupy_stand_in import counted, installed

F = torch.nn.functional
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "Adadelta": {}, "Adafactor": {}, "Adagrad": {}, "Adam": {"amsgrad": True}, "AdamW": {}, "Adamax": {}, "ASGD": {},
    "LBFGS": {"max_iter": 3}, "Muon": {}, "NAdam": {}, "RAdam": {}, "RMSprop": {"momentum": 0.5}, "Rprop": {},
    "SGD": {"momentum": 0.9, "nesterov": True}, "SparseAdam": {},
}  # fmt: skip


def trained(name: str, device: str, options: dict[str, Any], steps: int = 4) -> tuple[list[Any], Any]:
    """Return the parameters after some steps of an optimizer on a device, and the optimizer."""
    torch.manual_seed(0)
    weights = [torch.randn(4, 3).to(device).requires_grad_()]
    if name not in ("Muon", "SparseAdam"):
        weights.append(torch.randn(3).to(device).requires_grad_())
    optimizer = getattr(torch.optim, name)(weights, **options)
    x = torch.randn(5, 4).to(device)

    def closure() -> Any:
        optimizer.zero_grad()
        if name == "SparseAdam":
            loss = F.embedding(torch.tensor([0, 2, 2], device=device), weights[0], sparse=True).square().sum()
        else:
            loss = ((x @ weights[0]).tanh() + sum(weights[1:])).square().sum()
        loss.backward()
        return loss

    for _ in range(steps):
        if name == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    return weights, optimizer


def test_the_optimizers_are_all() -> None:
    base = torch.optim.Optimizer
    named = {name: value for name, value in vars(torch.optim).items() if isinstance(value, type)}
    assert {
        name for name, value in named.items() if name[0] != "_" and issubclass(value, base) and value is not base
    } == set(OPTIMIZERS)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", [each for each in OPTIMIZERS if each != "SparseAdam"])
@pytest.mark.parametrize("form", [{}, {"foreach": True}, {"fused": True}, {"capturable": True}])
def test_optimizers_on_a_gpu(name: str, form: dict[str, Any]) -> None:
    options = {**OPTIMIZERS[name], **form}
    try:
        expected, _ = trained(name, "cpu", {**OPTIMIZERS[name], **({} if "capturable" in form else form)})
        found, optimizer = trained(name, "cuda", options)
    except TypeError as error:  # the optimizer has no such option
        assert "unexpected keyword argument" in str(error) and form
        return
    for one, other in zip(found, expected, strict=True):
        assert one.device == torch.device("cuda:0") and torch.allclose(one.detach().cpu(), other, rtol=1e-5, atol=1e-6)
    for state in optimizer.state.values():
        for key, value in state.items():
            assert not isinstance(value, torch.Tensor) or value.is_cuda or key == "step" or value.ndim == 0


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", [each for each in OPTIMIZERS if each not in ("SparseAdam", "LBFGS")])
def test_steps_of_optimizers_do_not_wait(name: str) -> None:
    _, optimizer = trained(name, "cuda", OPTIMIZERS[name])
    with counted() as counts:
        optimizer.step()
    # Adafactor computes the size of its steps on the CPU, in PyTorch, too: two norms for each parameter.
    assert sum(counts.syncs.values()) == (4 if name == "Adafactor" else 0)


@pytest.mark.usefixtures("gpu")
def test_schedules_and_loaded_states() -> None:
    losses = {}
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 1).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
        x = torch.randn(8, 3).to(device)
        for step in range(6):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            scheduler.step()
            if step == 2:
                optimizer.load_state_dict(optimizer.state_dict())
        losses[device] = loss.item(), scheduler.get_last_lr()[0]
    assert losses["cuda"] == pytest.approx(losses["cpu"], rel=1e-5)


# -- Mixed precision and clipping --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("gpu")
def test_autocast_on_a_gpu() -> None:
    x, c = torch.randn(4, 4).cuda(), torch.randn(4, 4)
    with torch.autocast("cuda"):
        assert (x @ x).dtype is torch.float16 and (c @ c).dtype is torch.float32 and x.exp().dtype is torch.float32
        assert torch.is_autocast_enabled("cuda") and not torch.is_autocast_enabled("cpu")
        assert F.cross_entropy(x @ x, torch.zeros(4, dtype=torch.int64, device="cuda")).dtype is torch.float32
    with torch.autocast("cuda", dtype=torch.bfloat16), torch.autocast("cuda", enabled=False):
        assert (x @ x).dtype is torch.float32
    with torch.amp.autocast("cuda", torch.bfloat16):
        assert torch.nn.Linear(4, 2).cuda()(x).dtype is torch.bfloat16


def scaled_steps(device: str, steps: int) -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(device, init_scale=256.0, growth_interval=2)
    x = torch.randn(8, 4).to(device)
    for step in range(steps):
        optimizer.zero_grad()
        scaler.scale(model(x).square().mean()).backward()
        if step == 1:
            model.bias.grad[0] = float("nan")
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
    return model, scaler, optimizer


@pytest.mark.usefixtures("gpu")
def test_grad_scaler_waits_once_a_step() -> None:
    expected, other, _ = scaled_steps("cpu", 5)
    with counted() as counts:
        model, scaler, _ = scaled_steps("cuda", 5)
    assert sum(counts.syncs.values()) == 5  # whether to step, as in PyTorch
    assert scaler.get_scale() == other.get_scale() and scaler.state_dict() == other.state_dict()
    assert torch.allclose(model.weight.detach().cpu(), expected.weight.detach(), rtol=1e-5)


@pytest.mark.usefixtures("gpu")
def test_grad_scaler_with_gradients_on_both_devices() -> None:
    for bad in range(3):
        weights = [torch.ones(2, requires_grad=True), torch.ones(2, device="cuda", requires_grad=True)]
        optimizer = torch.optim.SGD(weights, lr=1.0)
        scaler = torch.amp.GradScaler("cuda", init_scale=4.0)
        scaler.scale(torch.ones(1, device="cuda"))
        for index, each in enumerate(weights):
            each.grad = torch.full_like(each, float("inf") if index == bad else 4.0)
        scaler.step(optimizer)
        scaler.update()
        assert [each.tolist() for each in weights] == ([[0.0] * 2] * 2 if bad == 2 else [[1.0] * 2] * 2)
        assert scaler.get_scale() == (4.0 if bad == 2 else 2.0)


@pytest.mark.usefixtures("gpu")
def test_clipping_does_not_wait() -> None:
    model = torch.nn.Linear(3, 3).cuda()
    model(torch.ones(2, 3, device="cuda")).square().sum().backward()
    expected = torch.cat([each.grad.flatten() for each in model.parameters()]).norm().item()
    with counted() as counts:
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.01)
    assert not counts.syncs and norm.is_cuda and norm.item() == pytest.approx(expected)
    assert all(each.grad.abs().max().item() <= 0.01 for each in model.parameters())


# -- Programs and the command ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_agree_with_the_cpu(name: str) -> None:
    program = PROGRAMS[name]
    expected = program.run("cpu")
    assert expected and not _difference(program.run("cpu"), expected, 0.0)
    with installed():
        found = program.run("cuda")
    assert _difference(found, expected, program.tolerance) == ""


def test_differences_are_found() -> None:
    assert _difference([1.0, "a"], [1.0], 0.1) == "2 results, 1 on the CPU"
    assert _difference([1.0, "a"], [1.0, "b"], 0.1) == "result 1 is a, on the CPU b"
    assert _difference([1.0], [2.0], 0.1) == "result 0 is 1.0, on the CPU 2.0"
    assert _difference([float("nan"), 1.0], [float("nan"), 1.01], 0.1) == ""


def test_check_gpu_without_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert cli.main(["check-gpu"]) == check_gpu.CANNOT
    assert "check-gpu needs a GPU: Torch not compiled with CUDA enabled" in capsys.readouterr().err


def test_check_gpu_writes_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.md"
    with installed():
        assert (
            cli.main(["check-gpu", "--output", str(path), "--parts", "device", "programs", "--match", "clipping"]) == 0
        )
        assert "check-gpu: all agree" in capsys.readouterr().out
        text = path.read_text(encoding="utf-8")
        assert "| clipping | agrees |" in text and "| current GPU | Stand-in |" in text and "cuDNN" in text
        assert "print" not in text.split("## Not checked")[0].replace("footprint", "")
        arguments = ["--parts", "streams", "times", "memory", "--match", "MLP", "--steps", "2", "--output", str(path)]
        assert cli.main(["check-gpu", *arguments]) == 0
        text = path.read_text(encoding="utf-8")
        assert "| MLP |" in text and "DLPack shares memory: as expected" in text and "| 2 |" in text

        def row(match: str) -> list[str]:
            samples = ["--parts", "samples", "--match", match, "--processes", "1", "--output", str(path)]
            assert cli.main(["check-gpu", *samples]) == 0
            lines = path.read_text(encoding="utf-8").splitlines()
            return next(line for line in lines if line.startswith("| float32 |")).strip("| ").split(" | ")

        _, count, agree, waiting = row("torch.log1p(")
        assert count == agree != "0" and waiting == "0"
        _, count, agree, waiting = row("torch.nonzero(")  # the copies of results do not count
        assert count == agree == waiting != "0"
        assert "operations/indexing/search.py" in path.read_text(encoding="utf-8")


def test_check_gpu_collects_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(device: str) -> list[float | str]:
        if device == "cuda":
            raise ValueError("no such kernel")
        return [1.0]

    monkeypatch.setitem(PROGRAMS, "clipping", PROGRAMS["clipping"]._replace(run=broken))
    monkeypatch.setitem(STEPS, "MLP", lambda torch, device: broken("cuda"))  # type: ignore[arg-type, return-value]
    path = tmp_path / "report.md"
    with installed():
        arguments = ["--parts", "programs", "times", "samples", "--match", "MLP", "--output", str(path)]
        assert cli.main(["check-gpu", *arguments, "--checkout", str(tmp_path)]) == check_gpu.DIFFERENCES
        text = path.read_text(encoding="utf-8")
        assert "- MLP: `ValueError: no such kernel`" in text and "Not run: the samples are in the folder" in text
        arguments = ["--parts", "programs", "--match", "clip", "--output", str(path)]
        assert cli.main(["check-gpu", *arguments]) == check_gpu.DIFFERENCES
    assert "- clipping: `ValueError: no such kernel`" in path.read_text(encoding="utf-8")
    assert "1 differences and errors" in capsys.readouterr().out
