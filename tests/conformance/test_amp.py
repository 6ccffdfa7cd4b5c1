"""Mixed precision: dtypes within autocast, its weight cache, and gradient scaling."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest

import retrograd as torch
from retrograd.amp import autocast_mode
from retrograd.dispatch.intercept import HANDLERS
from tests.conformance.autocast_cases import affected_samples, result_dtypes
from tests.conformance.golden import load

RECORDED = load("amp")["dtypes"]
#: PyTorch does not cast the cells of projected LSTMs.
DIFFERENT = ("wr)",)


def test_dtypes_of_results_match_pytorch() -> None:
    names = {key.split()[2] for key in RECORDED}
    wrong, count = [], 0
    for key, sample in affected_samples(names):
        for kind, expected in RECORDED[key].items():
            if expected.startswith("!") or any(each in sample.expression for each in DIFFERENT):
                continue
            count += 1
            found = result_dtypes(torch, sample, kind, "bfloat16")
            if found != expected:
                wrong.append(f"{key} {sample.expression} of {kind}: {found}, PyTorch: {expected}")
    assert not wrong, "\n".join(wrong)
    print(f"{count} calls give PyTorch's dtypes")
    assert count > 1000


def w() -> Any:
    return torch.ones(2, 2, requires_grad=True)


def test_dtypes_of_composite_functions_match_pytorch() -> None:
    x, volume = torch.ones(4, 4), torch.ones(2, 3, 4, 4, 4, dtype=torch.bfloat16)
    short, F = x.bfloat16(), torch.nn.functional
    with torch.autocast("cpu"):
        assert torch.tensordot(x, x, 2).dtype is torch.inner(x[0], x[0]).dtype is torch.float32
        assert torch.tensordot(x, x, 1).dtype is torch.inner(x, x).dtype is torch.bfloat16
        assert F.local_response_norm(volume, 2).dtype is F.pad(volume, (1,) * 6, "replicate").dtype is torch.float32
        assert F.local_response_norm(short[None], 2).dtype is F.pad(volume, (1,) * 6, "reflect").dtype is torch.bfloat16
        for kind in ("RNN", "LSTM", "GRU"):  # after a layer with a bfloat16 result
            layer = getattr(torch.nn, kind)(4, 5, bidirectional=True)
            assert layer(short[None])[0].dtype is torch.bfloat16
            packed = torch.nn.utils.rnn.pack_sequence([short, short[:2]])
            assert layer(packed)[0].data.dtype is torch.bfloat16
            assert layer(x[None])[0].dtype is (torch.float32 if kind == "GRU" else torch.bfloat16)
    with pytest.raises(ValueError, match="does not match weight dtype"):
        layer(short[None])


def test_weights_are_cast_once_per_block() -> None:
    x = w()
    with torch.autocast("cpu"):
        a, b = x @ x, x @ x
    first, second = (y.grad_fn.next_functions for y in (a, b))
    assert type(first[0][0]).__name__ == "ToCopyBackward0" and first[0][0] is second[1][0]
    with torch.autocast("cpu", cache_enabled=False):
        a, b = x @ x, x @ x
    assert a.grad_fn.next_functions[0][0] is not b.grad_fn.next_functions[0][0]
    (a.sum() + b.sum()).backward()
    assert x.grad.dtype is torch.float32 and x.grad.tolist() == [[8, 8], [8, 8]]


def test_blocks_may_be_nested_and_end_with_an_error() -> None:
    x = w()
    with torch.autocast("cpu"):
        with torch.autocast("cpu", enabled=False):
            assert (x @ x).dtype is torch.float32
        with torch.autocast("cpu", torch.float16):
            assert (x @ x).dtype is torch.float16
        assert (x @ x).dtype is torch.bfloat16 and torch.einsum("ij,jk->ik", x, x).dtype is torch.bfloat16
        assert torch.mm(x.detach(), x.detach(), out=torch.empty(2, 2)).dtype is torch.float32
    with pytest.raises(ValueError, match="mine"), torch.autocast("cpu"):
        raise ValueError("mine")
    assert not torch.is_autocast_enabled("cpu") and (x @ x).dtype is torch.float32


def test_functions_are_unchanged_outside_of_blocks() -> None:
    with torch.autocast("cpu"):
        assert HANDLERS == [autocast_mode.CASTING]
        x = torch.ones(2, 2)
        for product in (
            x @ x,
            x.mm(x),
            torch.mm(x, x),
            x.matmul(x),
            torch.nn.functional.linear(x, x),
            torch.bmm(x[None], x[None]),
        ):
            assert product.dtype is torch.bfloat16
    assert len(autocast_mode.CASTING.rules) > 100 and HANDLERS == []


def test_another_thread_does_not_cast() -> None:
    found = []
    x = w()
    with torch.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append((torch.is_autocast_enabled("cpu"), (x @ x).dtype)))
        thread.start()
        thread.join()
        assert (x @ x).dtype is torch.bfloat16
    assert found == [(False, torch.float32)]


def test_custom_fwd_and_custom_bwd() -> None:
    seen: list[Any] = []

    class Square(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            seen.append((x.dtype, torch.is_autocast_enabled("cpu")))
            return x @ x

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Any) -> Any:
            seen.append((g.dtype, torch.is_autocast_enabled("cpu")))
            return g @ ctx.saved_tensors[0]

    class Kept(Square):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu")
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x @ x

    x = w()
    with torch.autocast("cpu"):
        y, z = Square.apply(x.bfloat16()), Kept.apply(x)
    assert seen == [(torch.float32, False)]
    y.sum().backward()
    z.sum().backward()
    assert seen[1:] == [(torch.float32, False), (torch.bfloat16, True)]


def test_the_scale_follows_the_gradients() -> None:
    p = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([p], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    scales, values = [], []
    for k in range(6):
        optimizer.zero_grad()
        scaler.scale((p * (k + 1)).sum() * (float("inf") if k == 3 else 1)).backward()
        if k % 2:
            scaler.unscale_(optimizer)
            with pytest.raises(
                RuntimeError, match=r"unscale_.. has already been called on this optimizer since the last"
            ):
                scaler.unscale_(optimizer)
        assert scaler.step(optimizer) is None
        with pytest.raises(RuntimeError, match=r"step.. has already been called since the last update"):
            scaler.step(optimizer)
        scaler.update()
        scales.append((scaler.get_scale(), scaler.state_dict()["_growth_tracker"]))
        values.append(round(p[0].item(), 4))
    # As PyTorch 2.13 does it.
    assert scales == [(4.0, 1), (8.0, 0), (8.0, 1), (4.0, 0), (4.0, 1), (8.0, 0)]
    assert values == [0.9, 0.7, 0.4, 0.4, -0.1, -0.7]
    assert pickle.loads(pickle.dumps(scaler)).state_dict() == scaler.state_dict()
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()


def test_errors_of_grad_scaler() -> None:
    p = torch.nn.Parameter(torch.ones(2, dtype=torch.float16))
    optimizer, scaler = torch.optim.SGD([p], lr=0.1), torch.amp.GradScaler("cpu")
    scaler.scale((p.float() * 1e-3).sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="Closure use is not currently supported"):
        scaler.step(optimizer, closure=lambda: 1)
    with pytest.raises(AssertionError, match="new_scale should be a float"):
        scaler.update(torch.tensor([3, 4]))
    optimizer.zero_grad()
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        torch.amp.GradScaler.step(scaler, optimizer)
