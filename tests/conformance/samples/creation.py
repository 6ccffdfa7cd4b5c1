"""Samples of creating, converting and copying."""

from __future__ import annotations

from . import Sample, integers, normal

MAKE = [
    "torch.zeros(2, 3)", "torch.ones((2, 2), dtype=torch.int64)", "torch.full((2,), 3)", "torch.full((2,), 2.5)",
    "torch.full((2,), True)", "torch.eye(3)", "torch.eye(2, 3)", "torch.arange(5)", "torch.arange(1, 2, 0.25)",
    "torch.arange(5, 0, -2)", "torch.arange(3.0)", "torch.arange(0, 5, 2, dtype=torch.float32)",
    "torch.linspace(0, 1, 5)", "torch.linspace(-3, 7, 4, dtype=torch.float64)", "torch.linspace(0, 10, 4, dtype=torch.int64)",
    "torch.linspace(2, 3, 1)", "torch.logspace(0, 2, 3)", "torch.logspace(0, 3, 4, base=2)", "torch.tensor([1, 2])",
    "torch.tensor([1, 2.5])", "torch.tensor([True, False])", "torch.tensor([1 + 2j])", "torch.tensor(3)", "torch.tensor([])",
    "torch.tensor([[1], [2]], dtype=torch.float16)", "torch.tensor([True, 2])", "torch.tensor([2, 1j])", "torch.Tensor([1, 2])",
    "torch.FloatTensor([1])", "torch.LongTensor([[1, 2]])", "torch.DoubleTensor([1.5])", "torch.HalfTensor([1.5])",
    "torch.BoolTensor([1, 0])", "torch.ByteTensor([300 % 256])", "torch.scalar_tensor(2)", "torch.zeros(0, 3)",
    "torch.as_tensor([1, 2])", "torch.asarray([1.5])", "torch.tensor([[1, 2], [3, 4]]).tolist()",
    "torch.empty_strided((2, 3), (1, 2)).stride()", "torch.result_type(torch.tensor([1]), 2.5)",
    "torch.empty_strided((2, 2), (1, 5), dtype=torch.complex64).stride()", "torch.empty_permuted((2, 3, 4), (2, 0, 1)).stride()",
    "torch.empty_permuted((), ()).shape", "torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride()",
    "torch.zeros_like(torch.zeros(2, 3, 4, 5), memory_format=torch.channels_last).stride()", "torch.zeros(size=(2,))",
    "torch.ones(size=(2, 1), dtype=torch.complex64)", "torch.full((2,), 1j)", "torch.full(size=(2,), fill_value=2 + 1j, dtype=torch.complex128)",
    "torch.eye(2, dtype=torch.complex64)", "torch.linspace(0, 1j, 3)", "torch.linspace(0, 1, 7, dtype=torch.float16)",
    "torch.linspace(torch.tensor(1.0), torch.tensor(2.0), 3)", "torch.logspace(0.7, 2.9, 3, 3, dtype=torch.int64)",
    "torch.arange(-0.9, 2.1, 2.0, dtype=torch.int64)", "torch.arange(-0.9, 2.1, 2.0, dtype=torch.int32)", "torch.scalar_tensor(1j, dtype=torch.complex64)",
    "torch.scalar_tensor(3.7, dtype=torch.int64)", "torch.tril_indices(3, 4, -1)", "torch.triu_indices(4, 3, 1, dtype=torch.int32)",
    "torch.vander(torch.tensor([1, 2, 3]))", "torch.vander(torch.tensor([1, 2]), 3, True)", "torch.vander(torch.tensor([1.5, 2]), N=1)",
    "torch.vander(torch.tensor([True, False]))", "torch.vander(torch.tensor([1j, 2]), 0)", "torch.frombuffer(bytearray(8), dtype=torch.int16, offset=2)",
    "torch.frombuffer(bytearray(8), dtype=torch.int64, count=1)", "torch.from_dlpack(torch.arange(3))", "torch.from_dlpack(torch.arange(3).numpy())",
    "torch.complex(torch.tensor([1.0, 2.0]), torch.tensor(3.0))",
    "torch.Tensor(2, 3).shape", "torch.tensor([torch.tensor(1), torch.tensor(2)])",
]  # fmt: skip
FROM = [
    "torch.zeros_like(x)", "torch.ones_like(x, dtype=torch.int32)", "torch.full_like(x, 2)", "torch.zeros_like(x.t()).stride()",
    "x.new_zeros(size=(2,))", "x.new_empty_strided((2, 3), (1, 2)).stride()", "torch.full_like(i, 3.7)",
    "x.new_zeros(2)", "x.new_ones((2, 2))", "x.new_full((2,), 3)", "x.new_tensor([1, 2])", "x.to(torch.int64)",
    "x.long()", "x.bool()", "x.int()", "x.half()", "x.type()", "i.float()", "i.double()", "i.type_as(x)",
    "x.type(torch.float32)", "x.type('torch.IntTensor')", "i.to(x)", "x.tolist()", "x[0, 0].item()", "len(x)", "x.numpy().tolist()",
    "[each.shape for each in x]", "bool(i[0] == i[0])", "int(i[0])", "float(i[0])", "x.is_floating_point()", "i.numel()",
    "x.element_size()", "x.stride()", "x.t().is_contiguous()", "x.dim()", "x.size(-1)", "x.storage_offset()", "x[1].storage_offset()",
    "i[0] in i", "x.dtype", "x.device", "x.layout", "list(reversed(i))", "f'{i[0]:03d}'", "x.nbytes", "i.is_complex()",
    "torch.is_tensor(x)", "torch.numel(x)", "torch.is_floating_point(x)",
]  # fmt: skip
SAMPLES = [Sample("make", each, smooth=False) for each in MAKE]
SAMPLES += [Sample("from", each, smooth=False, x=normal(2, 3), i=integers(0, 9, 3)) for each in FROM]
SAMPLES += [
    Sample("vander", "torch.vander(x)", beyond=True, x=normal(3)),
    Sample("vander", "torch.vander(x, 4, increasing=True)", beyond=True, x=normal(2)),
    *(
        Sample(name, f"(x * 1).{name}({arguments}).mul(0)", smooth=False, x=normal(3))
        for name, arguments in (
            ("uniform_", ""),
            ("normal_", "1, 2"),
            ("exponential_", ""),
            ("cauchy_", ""),
            ("log_normal_", ""),
        )
    ),
    Sample("to", "x.to(torch.complex128)", x=normal(2, 3)),
    Sample("to", "x.double() * x.to(torch.float64)", x=normal(2, 3)),
    Sample("clone", "x.clone(memory_format=torch.contiguous_format)", x=normal(2, 3)),
]
