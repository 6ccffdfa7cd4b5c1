"""``torch.cuda`` and tensors on GPUs, on the stand-in for CuPy with two devices (``tests/cupy_stand_in``)."""

from __future__ import annotations

import gc
import io
import warnings
from collections import namedtuple
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.cuda import memory, synchronization
from retrograd.utils.data import DataLoader, TensorDataset
from retrograd.utils.data._utils.pin_memory import pin_memory
from tests.cupy_stand_in import counted, installed
from tests.cupy_stand_in.cuda import Stream, is_memory_pinned

F = torch.nn.functional
pytestmark = pytest.mark.usefixtures("gpu")


# -- Devices ---------------------------------------------------------------------------------------------------------


def test_properties_of_devices() -> None:
    cuda = torch.cuda
    assert cuda.is_available() and cuda.device_count() == 2 and torch.backends.cuda.is_built()
    assert cuda.get_device_name() == "Stand-in" and cuda.get_device_capability(0) == (9, 0) and cuda.is_bf16_supported()
    assert repr(cuda.get_device_properties("cuda:1")) == (
        "_CudaDeviceProperties(name='Stand-in', major=9, minor=0, total_memory=16384MB, multi_processor_count=4)"
    )
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert not cuda.can_device_access_peer(0, 1)
    with pytest.raises(AssertionError, match="Invalid peer device id"):
        cuda.can_device_access_peer(0, 5)


def test_current_device() -> None:
    cuda = torch.cuda
    assert cuda.current_device() == 0
    with cuda.device(1):
        assert cuda.current_device() == 1
        assert torch.ones(2, device="cuda").device == torch.device("cuda:1")
        with cuda.device("cuda:0"):
            assert torch.ones(2).cuda().get_device() == 0
        assert cuda.current_device() == 1
    with cuda.device(-1), cuda.device_of(torch.ones(1)):
        assert cuda.current_device() == 0
    with cuda.device_of(torch.ones(1, device="cuda:1")):
        assert cuda.current_device() == 1
    cuda.set_device("cuda:1")
    assert cuda.current_device() == 1
    cuda.set_device(0)
    with pytest.raises(ValueError, match="specified index or an integer, but got:cuda"):
        cuda.set_device("cuda")
    with pytest.raises(torch.AcceleratorError, match="invalid device ordinal"):
        torch.zeros(1, device="cuda:2")
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        cuda.device("cpu")


@pytest.mark.parametrize(
    "make",
    [
        lambda place: torch.zeros(3, device=place), lambda place: torch.full((3,), 2.0, device=place),
        lambda place: torch.tensor([1.0, 2.0], device=place), lambda place: torch.rand(3, device=place),
        lambda place: torch.arange(3, device=place), lambda place: torch.eye(3, device=place),
        lambda place: torch.empty(3, device=place), lambda place: torch.ones(3).to(place),
        lambda place: torch.randint(0, 5, (3,), device=place), lambda place: torch.ones(3, device="cuda:0").to(place),
        lambda place: torch.ones_like(torch.ones(3), device=place),
        lambda place: torch.nn.Linear(3, 2, device=place).weight,
    ],
)  # fmt: skip
def test_tensors_are_created_on_the_second_device(make: Any) -> None:
    made = make("cuda:1")
    assert made.device == torch.device("cuda", 1) and made.get_device() == 1
    assert (made + 1).device == made.device  # computed there, although it is not the current device
    assert torch.cuda.current_device() == 0


def test_default_device() -> None:
    torch.set_default_device("cuda")
    try:
        assert torch.ones(2).device == torch.device("cuda:0") and torch.rand(2).is_cuda
        assert torch.tensor([1]).is_cuda and torch.nn.Linear(2, 2).weight.is_cuda
    finally:
        torch.set_default_device(None)
    with torch.device("cuda:1"):
        assert torch.zeros(2).device == torch.device("cuda:1")


def test_copies_keep_the_order_of_elements_in_memory() -> None:
    x = torch.arange(120.0).reshape(2, 3, 4, 5)
    for given in (x, x.to(memory_format=torch.channels_last), x.permute(1, 3, 0, 2), x.transpose(0, 3)):
        on_device = given.cuda()
        assert on_device.stride() == on_device.cpu().stride() == given.stride()
        assert torch.equal(on_device.cpu(), given)
    assert torch.equal(x.cuda()[:, 1:, ::2].cpu(), x[:, 1:, ::2])


def test_moves_between_devices() -> None:
    x = torch.arange(6.0).reshape(2, 3).t()
    y = x.to("cuda:1")
    assert y.device == torch.device("cuda:1") and torch.equal(y.cpu(), x)
    z = y.to("cuda")  # the current device, as in PyTorch
    assert z.device == torch.device("cuda:0") and torch.equal(z.cpu(), x) and y.to("cuda:1") is y
    assert y.cuda().device == torch.device("cuda:0") and z.cuda() is z and x.cpu() is x
    assert z.copy_(y).tolist() == x.tolist() and y.copy_(x).tolist() == x.tolist() and x.copy_(y).tolist() == y.tolist()
    assert torch.tensor(3.0).to("cuda:1").to("cuda:0").item() == 3.0
    with pytest.raises(RuntimeError, match="Invalid device, must be cuda device but got cpu"):
        x.cuda("cpu")


def test_printing() -> None:
    assert repr(torch.tensor([1.0, 2.5]).cuda()) == "tensor([1.0000, 2.5000], device='cuda:0')"
    assert repr(torch.tensor(3).to("cuda:1")) == "tensor(3, device='cuda:1')"
    shown = repr(torch.ones(2, dtype=torch.float64).cuda().requires_grad_())
    assert shown == "tensor([1., 1.], device='cuda:0', dtype=torch.float64, requires_grad=True)"


def test_conversions_of_a_tensor_on_a_gpu() -> None:
    x = torch.tensor([1.0, 2.0]).cuda()
    with pytest.raises(
        TypeError, match=r"can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu\(\) to copy the"
    ):
        x.numpy()
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        numpy.asarray(x)
    assert x.numpy(force=True).tolist() == x.tolist() == [1.0, 2.0] and x[1].item() == 2.0
    assert x.type() == "torch.cuda.FloatTensor" and x.is_cuda and not x.is_cpu


def test_modules_move() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).cuda()
    assert all(each.is_cuda for each in [*model.parameters(), *model.buffers()])
    assert all(each.device == torch.device("cuda:1") for each in model.to("cuda:1").parameters())
    assert all(each.is_cpu for each in model.cpu().parameters())


def test_backward_passes_on_two_devices() -> None:
    w = torch.ones(3, 3, device="cuda:1", requires_grad=True)
    x = torch.ones(2, 3, device="cuda:0", requires_grad=True)
    (((x * 2).to("cuda:1") @ w).to("cuda:0") + x).relu().sum().backward()
    assert w.grad.device == w.device and w.grad.tolist() == [[4.0] * 3] * 3
    assert x.grad.device == x.device and x.grad.tolist() == [[7.0] * 3] * 2 and torch.cuda.current_device() == 0
    (gradient,) = torch.autograd.grad((w * w * w).sum(), w, create_graph=True)
    w.grad = None
    gradient.sum().backward()
    assert w.grad.device == w.device and w.grad.tolist() == [[6.0] * 3] * 3
    optimizer = torch.optim.Adam([w, x])
    optimizer.step()
    assert optimizer.state[w]["exp_avg"].device == w.device


# -- Devices that do not fit -----------------------------------------------------------------------------------------

BOTH = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
ARGUMENT = (
    "Expected all tensors to be on the same device, but got {} is on {}, different from other tensors on {} (when checking "
    "argument in method wrapper_CUDA_{})"
)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("x + c", BOTH), ("c + x", BOTH), ("x.add_(c)", BOTH), ("c.add_(x)", BOTH), ("x == c", BOTH),
        ("torch.maximum(x, c)", BOTH), ("torch.where(x > 0, x, c)", BOTH), ("F.mse_loss(x, c)", BOTH),
        ("torch.lerp(x, c, 0.5)", BOTH), ("c + x[0, 0]", BOTH),
        ("x + x.to('cuda:1')", BOTH.replace("cpu", "cuda:1")),
        ("x @ c.t()", ARGUMENT.format("mat2", "cpu", "cuda:0", "mm")),
        ("c @ x.t()", ARGUMENT.format("mat2", "cuda:0", "cpu", "mm")),
        ("torch.bmm(x[None], c.t()[None])", ARGUMENT.format("mat2", "cpu", "cuda:0", "bmm")),
        ("torch.dot(x[0], c[0])", ARGUMENT.format("tensor", "cpu", "cuda:0", "_dot")),
        ("F.linear(c, x, x[:, 0])", ARGUMENT.format("mat1", "cpu", "cuda:0", "addmm")),
        ("F.embedding(torch.tensor([0]), x)", ARGUMENT.format("index", "cpu", "cuda:0", "_index_select")),
        ("F.layer_norm(x, (3,), c[0])", ARGUMENT.format("weight", "cpu", "cuda:0", "_native_layer_norm")),
        ("x.gather(1, torch.tensor([[0], [1]]))", ARGUMENT.format("index", "cpu", "cuda:0", "gather")),
        ("torch.cat([x, c])", ARGUMENT.format("tensors", "cpu", "cuda:0", "cat")),
        ("torch.equal(x, c)", ARGUMENT.format("other", "cpu", "cuda:0", "_equal")),
        ("x.masked_fill(c > 0, 1)", "expected self and mask to be on the same device, but got mask on cpu and self on cuda:0"),
        ("F.conv2d(x[None, None], c[None, None])",
         "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same"),
        ("F.conv2d(c[None, None], x[None, None])",
         "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same or input should be a "
         "MKLDNN tensor and weight is a dense tensor"),
        ("c[torch.tensor([0]).cuda()]", "indices should be either on cpu or on the same device as the indexed tensor (cpu)"),
    ],
)  # fmt: skip
def test_tensors_on_two_devices(call: str, text: str) -> None:
    x, c = torch.ones(2, 3).cuda(), torch.ones(2, 3)
    with pytest.raises(RuntimeError) as caught:
        eval(call, {"torch": torch, "F": F, "x": x, "c": c})
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(
    "call", ["x + s", "s + x", "x.mul_(s)", "torch.where(x > 0, x, s)", "x * s.requires_grad_()", "x ** s", "s - x"]
)
def test_numbers_on_the_cpu_mix(call: str) -> None:
    x, s = torch.tensor([1.0, 3.0]).cuda(), torch.tensor(2.0)
    expected = eval(call, {"torch": torch, "x": x.cpu(), "s": s})
    found = eval(call, {"torch": torch, "x": x, "s": s})
    assert found.device == torch.device("cuda:0") and found.tolist() == expected.tolist()


def test_indices_on_the_cpu_mix() -> None:
    x = torch.arange(6.0).reshape(2, 3).cuda()
    assert x[torch.tensor([1, 0])].tolist() == [[3, 4, 5], [0, 1, 2]]
    assert x[:, torch.tensor([True, False, True])].tolist() == [[0, 2], [3, 5]]
    x[torch.tensor([0])] = 7.0
    assert x[0].tolist() == [7, 7, 7]


# -- Streams and events ----------------------------------------------------------------------------------------------


def test_streams() -> None:
    cuda = torch.cuda
    first = cuda.current_stream()
    assert first == cuda.default_stream() and first.device == torch.device("cuda:0") and first.cuda_stream == 0
    side = cuda.Stream()
    with cuda.stream(side):
        assert cuda.current_stream() == side != first
        x = torch.ones(4, device="cuda")
        assert not side.query()
    assert cuda.current_stream() == first
    side.synchronize()
    assert side.query() and x.sum().item() == 4
    other = cuda.Stream(device="cuda:1", priority=-1)
    assert (other.device, other.priority, other.device_index) == (torch.device("cuda:1"), -1, 1)
    with cuda.stream(other):  # its device becomes current, too
        assert cuda.current_device() == 1 and cuda.current_stream() == other
    assert cuda.current_device() == 0 and cuda.current_stream("cuda:1") == cuda.default_stream("cuda:1")
    first.wait_stream(side)
    assert first._stream.waited[-1].stream is side._stream
    cuda.set_stream(side)
    assert cuda.current_stream() == side
    cuda.set_stream(first)
    with cuda.stream(None):
        pass
    assert torch.Stream("cuda:0").device == torch.device("cuda:0") and side.__cuda_stream__() == (0, side.cuda_stream)


def test_events() -> None:
    cuda = torch.cuda
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    assert repr(start) == "<torch.cuda.Event uninitialized>" and start.query() and start.device is None
    with pytest.raises(ValueError, match=r"Both events must be recorded before"):
        start.elapsed_time(end)
    start.record()
    torch.ones(8, device="cuda")
    end.record()
    with pytest.raises(ValueError, match=r"Both events must be completed before"):
        start.elapsed_time(end)
    assert not end.query()
    end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0 and start.device == torch.device("cuda:0")
    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(cuda.Event())
    with pytest.raises(RuntimeError, match=r"Event device 0 does not match recording stream's device 1"):
        start.record(cuda.Stream("cuda:1"))
    stream = cuda.Stream()
    cuda.Event().wait(stream)  # not recorded: no effect
    end.wait(stream)
    assert stream._stream.waited == [end._event]
    with pytest.raises(ValueError, match="Timing must be disabled for interprocess"):
        cuda.Event(enable_timing=True, interprocess=True)


def test_memory_is_kept_for_a_recorded_stream() -> None:
    side = torch.cuda.Stream()
    x = torch.ones(1000, device="cuda")
    before = torch.cuda.memory_allocated()
    side._stream.submitted += 1  # work that reads x
    x.record_stream(side)
    del x
    assert torch.cuda.memory_allocated() == before  # not yet free
    torch.ones(1, device="cuda")
    assert torch.cuda.memory_allocated() >= before
    side.synchronize()
    torch.ones(1, device="cuda")  # the next allocation looks after it
    assert torch.cuda.memory_allocated() < before
    with pytest.raises(NotImplementedError, match="aten::record_stream"):
        torch.ones(1).record_stream(side)


def test_synchronisations_are_reported() -> None:
    cuda = torch.cuda
    x = torch.ones(3, device="cuda")
    cuda.set_sync_debug_mode("error")
    assert cuda.get_sync_debug_mode() == 2
    y = (x * 2).sum()
    with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
        y.item()
    cuda.set_sync_debug_mode(1)
    with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
        x.tolist()
    cuda.set_sync_debug_mode("default")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.item() == 6
    with pytest.raises(RuntimeError, match="expected one of `default`, `warn`, `error`"):
        cuda.set_sync_debug_mode("loud")
    with pytest.raises(RuntimeError, match="expected one of 0,1,2"):
        cuda.set_sync_debug_mode(3)
    with synchronization.counted() as found:
        y.item()
        bool(y > 0)
        x + 1
    assert sum(found.values()) == 2 and all("test_cuda.py" in place for place in found)


# -- Memory ----------------------------------------------------------------------------------------------------------


def test_peak_beside_arrays_that_are_older_than_the_statistics() -> None:
    with installed() as cupy:
        older = cupy.zeros(100_000)
        base = torch.cuda.memory_allocated()
        x = torch.empty(1000, device="cuda")
        del x
        assert base >= older.nbytes and torch.cuda.max_memory_allocated() == base + 4096


def test_memory_statistics() -> None:
    cuda = torch.cuda
    gc.collect()  # tensors of other tests would be freed meanwhile
    cuda.empty_cache()
    cuda.reset_peak_memory_stats()
    base = cuda.memory_allocated()
    x = torch.empty(1000, device="cuda")
    assert cuda.memory_allocated() == base + 4096 and cuda.max_memory_allocated() == base + 4096
    y = torch.empty(2000, device="cuda")
    del y
    assert cuda.memory_allocated() == base + 4096
    assert cuda.max_memory_allocated() == base + 4096 + 8192  # also without a look in between
    assert cuda.max_memory_reserved() >= cuda.memory_reserved() >= cuda.max_memory_allocated()
    stats = cuda.memory_stats()
    assert stats["allocated_bytes.all.current"] == base + 4096 and stats["allocation.all.allocated"] >= 2
    nested = cuda.memory_stats_as_nested_dict()["allocated_bytes"]["all"]
    assert nested["peak"] == base + 12288 and nested["allocated"] - nested["freed"] == nested["current"]
    assert "Allocated memory" in cuda.memory_summary()
    cuda.empty_cache()
    assert cuda.memory_reserved() == cuda.memory_allocated() == torch.accelerator.memory_reserved()
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() == cuda.memory_allocated()
    cuda.reset_accumulated_memory_stats()
    assert cuda.memory_stats()["allocation.all.allocated"] == 0
    there = cuda.memory_allocated(1)
    z = torch.empty(100, device="cuda:1")
    assert cuda.memory_allocated("cuda:1") == there + 512 and cuda.memory_allocated(0) == base + 4096
    assert cuda.mem_get_info(1)[1] == 2**34 and x.is_cuda and z.is_cuda
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        cuda.memory_allocated("cpu")


def test_out_of_memory() -> None:
    cuda = torch.cuda
    assert cuda.get_per_process_memory_fraction() == 1.0
    cuda.set_per_process_memory_fraction(0.5)
    assert cuda.get_per_process_memory_fraction() == 0.5
    cuda.set_per_process_memory_fraction(2**20 / 2**34)
    with pytest.raises(
        torch.OutOfMemoryError, match=r"CUDA out of memory. Tried to allocate 4.00 MiB. GPU 0 has a total"
    ):
        torch.zeros(2**20, device="cuda")
    assert cuda.memory_stats()["num_ooms"] == 1
    with pytest.raises(ValueError, match="Allowed range: 0~1"):
        cuda.set_per_process_memory_fraction(2.0)
    with pytest.raises(TypeError, match="Invalid type for fraction argument"):
        cuda.set_per_process_memory_fraction(1)


def test_an_allocator_of_the_program_is_kept(gpu: Any) -> None:
    given: list[int] = []

    def allocate(size: int) -> Any:
        given.append(size)
        return gpu.get_default_memory_pool().malloc(size)

    with installed() as cupy:
        cupy.cuda.set_allocator(allocate)
        torch.ones(4).cuda()
        assert given
    with installed() as cupy, cupy.cuda.using_allocator(allocate):
        torch.ones(4).cuda()
    assert memory._usage[0].allocation_count == 0


# -- Pinned memory ---------------------------------------------------------------------------------------------------


def test_pinned_memory() -> None:
    x = torch.arange(5.0)
    pinned = x.pin_memory()
    assert not x.is_pinned() and pinned.is_pinned() and pinned[2:].is_pinned() and pinned.pin_memory() is pinned
    assert torch.equal(pinned, x) and pinned.data_ptr() != x.data_ptr() and torch.zeros(0).pin_memory().numel() == 0
    assert is_memory_pinned(pinned.data_ptr())
    with counted() as counts:
        moved = pinned.to("cuda", non_blocking=True)
    assert not counts.syncs and moved.tolist() == x.tolist()
    with counted() as counts:
        pinned.to("cuda")
    assert sum(counts.syncs.values()) == 1  # waits, because the elements may change afterwards
    with counted() as counts:
        x.to("cuda")
    assert not counts.syncs  # CuPy copies them to a buffer first
    with counted() as counts:
        back = moved.to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    assert not counts.syncs and back.is_pinned() and torch.equal(back, x)
    with pytest.raises(RuntimeError, match=r"cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned"):
        moved.pin_memory()


@pytest.mark.parametrize(
    "call",
    [
        "zeros(2)", "ones(2)", "full((2,), 3.0)", "empty(2)", "tensor([1.0])", "rand(2)", "randn(2)", "randint(5, (2,))",
        "randperm(3)", "arange(3)", "linspace(0, 1, 3)", "eye(2)", "zeros_like(x)", "full_like(x, 2)", "rand_like(x)",
        "empty_like(x)",
    ],
)  # fmt: skip
def test_tensors_are_created_in_pinned_memory(call: str) -> None:
    names = {**vars(torch), "x": torch.ones(2)}
    pinned = eval(call[:-1] + ", pin_memory=True)", names)
    assert pinned.is_pinned() and not eval(call, names).is_pinned()
    torch.manual_seed(0)
    values = eval(call, names).tolist()
    torch.manual_seed(0)
    assert call.startswith("empty") or eval(call[:-1] + ", pin_memory=True)", names).tolist() == values


def test_pinned_memory_needs_a_gpu() -> None:
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        torch.zeros(2, device="cuda", pin_memory=True)
    with (
        installed(devices=0),
        pytest.raises(RuntimeError, match="pin_memory=True requires a CUDA or other accelerator"),
    ):
        torch.zeros(2, pin_memory=True)


def test_batches_in_pinned_memory() -> None:
    data = TensorDataset(torch.arange(6.0).reshape(3, 2), torch.arange(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x, y in DataLoader(data, batch_size=2, pin_memory=True):
            assert x.is_pinned() and y.is_pinned()
    for x, _ in DataLoader(data, batch_size=2):
        assert not x.is_pinned()
    Pair = namedtuple("Pair", "a b")
    found = pin_memory(
        {"x": torch.ones(1), "y": [torch.ones(1), "text", 3], "z": Pair(torch.ones(1), (torch.ones(1),))}
    )
    assert found["x"].is_pinned() and found["y"][0].is_pinned() and found["y"][1:] == ["text", 3]
    assert isinstance(found["z"], Pair) and found["z"].b[0].is_pinned() and isinstance(found["z"].b, tuple)


# -- Exchange and files ----------------------------------------------------------------------------------------------


def test_dlpack_shares_memory(gpu: Any) -> None:
    x = torch.arange(3.0).cuda()
    array = gpu.from_dlpack(x)
    array[0] = 5.0
    assert x[0].item() == 5.0 and x.__dlpack_device__() == (2, 0)
    mine = torch.from_dlpack(array)
    mine[1] = 7.0
    assert mine.is_cuda and x.tolist() == [5.0, 7.0, 2.0]
    assert torch.from_dlpack(x).data_ptr() == x.data_ptr()
    other = torch.ones(2, device="cuda:1")
    assert other.__dlpack_device__() == (2, 1)
    assert torch.from_dlpack(gpu.from_dlpack(other)).device == torch.device("cuda:1")
    assert torch.from_dlpack(array, device="cpu").tolist() == [5.0, 7.0, 2.0]
    assert torch.from_dlpack(array, copy=True).data_ptr() != x.data_ptr()
    with pytest.raises(BufferError, match="require gradient"):
        gpu.from_dlpack(torch.ones(2, device="cuda", requires_grad=True))
    assert torch.as_tensor(array).data_ptr() == x.data_ptr()
    assert torch.tensor(array).data_ptr() != x.data_ptr() and torch.tensor(array).is_cuda


def test_cuda_array_interface() -> None:
    x = torch.ones(2, 3).cuda()
    assert x.__cuda_array_interface__["shape"] == (2, 3) and x.__cuda_array_interface__["data"][0] == x.data_ptr()
    assert not hasattr(torch.ones(1), "__cuda_array_interface__")
    with pytest.raises(
        AttributeError, match=r"on non-CUDA tensor type: torch.FloatTensor If CUDA data is required use"
    ):
        torch.ones(1).__cuda_array_interface__
    with pytest.raises(RuntimeError, match=r"on Variable that requires grad. If gradients aren't required, use"):
        x.requires_grad_().__cuda_array_interface__


def saved(value: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def test_checkpoints_keep_the_device() -> None:
    x, y = torch.arange(3.0).cuda(), torch.ones(2, device="cuda:1")
    file = saved({"x": x, "y": y, "z": torch.ones(1), "view": x[1:]})
    found = torch.load(file)
    assert [found[key].device for key in "xyz"] == [torch.device(each) for each in ("cuda:0", "cuda:1", "cpu")]
    assert found["x"].tolist() == [0, 1, 2] and found["view"].data_ptr() == found["x"].data_ptr() + 4
    for location in ("cpu", torch.device("cpu"), lambda storage, place: storage, {"cuda:0": "cpu", "cuda:1": "cpu"}):
        file.seek(0)
        assert all(each.is_cpu for each in torch.load(file, map_location=location).values())
    file.seek(0)
    assert all(each.device.index == 1 for each in torch.load(file, map_location="cuda:1").values())
    file.seek(0)
    swapped = torch.load(file, map_location={"cuda:0": "cuda:1"})
    assert swapped["x"].device.index == 1 and swapped["z"].is_cpu
    file.seek(0)
    moved = torch.load(file, map_location=lambda storage, place: storage.cuda(1))
    assert all(each.device.index == 1 for each in moved.values())
    file.seek(0)
    assert torch.load(file, map_location="cuda")["z"].device == torch.device("cuda:0")
    file.seek(0)
    with pytest.raises(RuntimeError, match=r"deserialize object on CUDA device 7 but torch.cuda.device_count\(\) is 2"):
        torch.load(file, map_location="cuda:7")


def test_modules_and_optimizers_are_saved() -> None:
    model = torch.nn.Linear(2, 2).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    file = saved({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    fresh = torch.nn.Linear(2, 2)
    found = torch.load(file, map_location="cpu")
    fresh.load_state_dict(found["model"])
    assert fresh.weight.is_cpu and torch.equal(fresh.weight, model.weight.cpu())
    model.load_state_dict(fresh.state_dict())
    assert model.weight.is_cuda


# -- Random numbers --------------------------------------------------------------------------------------------------


def test_a_seed_gives_the_numbers_of_the_cpu() -> None:
    torch.manual_seed(3)
    expected = torch.rand(4).tolist(), torch.randn(3).tolist()
    torch.manual_seed(3)
    assert (torch.rand(4, device="cuda").tolist(), torch.randn(3, device="cuda:1").tolist()) == expected
    torch.cuda.manual_seed(3)  # of the generator that all devices share
    assert torch.cuda.initial_seed() == 3 and torch.rand(4, device="cuda").tolist() == expected[0]
    state = torch.cuda.get_rng_state()
    first = torch.rand(2, device="cuda").tolist()
    torch.cuda.set_rng_state(state, "cuda:1")
    assert torch.rand(2, device="cuda").tolist() == first and len(torch.cuda.get_rng_state_all()) == 2
    generator = torch.Generator(device="cuda").manual_seed(3)
    assert torch.rand(4, device="cuda", generator=generator).tolist() == expected[0]
    assert Stream.null.ptr == 0
