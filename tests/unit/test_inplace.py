"""In-place operations: version counters, errors, and the lines that the errors name."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd as torch


def test_version_counter_is_shared_by_views() -> None:
    x = torch.zeros(4)
    view, bare = x[1:], x.detach()
    x.add_(1)
    view.mul_(2)
    assert x._version == view._version == bare._version == 2
    assert x.data._version == 0 and x.tolist() == [1.0, 2.0, 2.0, 2.0]


def test_modified_saved_tensor_raises_with_both_lines() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError) as caught:
        z.sum().backward()
    text = str(caught.value)
    assert (
        "modified by an inplace operation: [torch.FloatTensor [3]], which is output 0 of Exp, is at version 1" in text
    )
    assert "test_inplace.py" in text and "z = y * y" in text and "y.add_(1)" in text


def test_modifying_unsaved_tensor_is_allowed() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x + 1
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 3.0]


def test_inplace_on_leaf_or_its_view_raises() -> None:
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        x[0] = 1
    assert x.tolist() == [1.0, 1.0, 1.0] and x._version == 0
    with torch.no_grad():
        x.add_(1)
    assert x._version == 1


def test_inplace_on_view_rebases_history_of_the_base() -> None:
    base, w = torch.zeros(3), torch.tensor(2.0, requires_grad=True)
    base[1] = w * 3
    assert type(base.grad_fn).__name__ == "CopySlices" and not base.is_leaf
    base.sum().backward()
    assert w.grad.item() == 3.0


def test_view_regenerates_grad_fn_after_inplace_on_base() -> None:
    x = torch.ones(2, requires_grad=True)
    base = x * 1
    view = base[0]
    base.mul_(5)
    assert type(view.grad_fn).__name__ == "AsStridedBackward0"
    view.backward()
    assert x.grad.tolist() == [5.0, 0.0]


def test_inplace_on_multi_output_view_raises() -> None:
    first, _ = (torch.ones(2, requires_grad=True) * 1).unbind()
    with pytest.raises(RuntimeError, match="Output 0 of Unbind is a view and is being modified inplace"):
        first.mul_(2)


def test_inplace_on_no_grad_view_raises() -> None:
    x = torch.ones(2, requires_grad=True) * 1
    with torch.no_grad():
        view = x[0]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace"):
        view.mul_(2)


def test_inplace_on_expanded_tensor_raises() -> None:
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        torch.ones(1).expand(3).add_(1)


RESHAPED = {
    "x.squeeze_()": ((2, 3), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]), "x.unsqueeze_(0)": ((1, 2, 3), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]),
    "x.transpose_(0, 1)": ((3, 2), [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]), "x.t_()": ((3, 2), [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]),
    "x.swapdims_(0, 1)": ((3, 2), [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]),
    "x.swapaxes_(0, 1)": ((3, 2), [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]), "x.as_strided_((2,), (0,))": ((2,), [1.0, 1.0]),
    "torch.as_strided_(x, (2,), (1,))": ((2,), [1.0, 2.0]), "x.set_(torch.ones(2))": ((2,), [1.0, 1.0]),
}  # fmt: skip


@pytest.mark.parametrize("expression", RESHAPED)
def test_expanded_tensors_take_other_shapes_in_place(expression: str) -> None:
    x = torch.tensor([[1.0, 2.0, 3.0]]).expand(2, 3)
    found = eval(expression, {"torch": torch, "x": x})
    assert found is x and (tuple(x.shape), x.flatten().tolist()) == RESHAPED[expression] and x._version == 1


@pytest.mark.parametrize(
    ("expression", "gradient", "node"),
    [
        ("x.t_()", [2, 2, 2], "TBackward1"), ("x.squeeze_()", [2, 2, 2], "SqueezeBackward3"),
        ("x.unsqueeze_(0)", [2, 2, 2], "UnsqueezeBackward1"), ("x.transpose_(0, 1)", [2, 2, 2], "TransposeBackward1"),
        ("x.as_strided_((2,), (0,))", [2, 0, 0], "AsStridedBackward1"),
    ],
)  # fmt: skip
def test_expanded_tensors_of_a_graph_take_other_shapes_in_place(
    expression: str, gradient: list[float], node: str
) -> None:
    leaf = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    x = (leaf * 1).expand(2, 3)
    eval(expression, {"x": x})
    assert type(x.grad_fn).__name__ == node
    x.sum().backward()
    assert leaf.grad.tolist() == [gradient]


MASK = torch.tensor([[True, False, False], [False, False, True]])
#: What PyTorch 2.13 leaves in the memory of [[1, 2, 3]], expanded to (2, 3), and in that of [[1], [2]].
FILLED = {
    "x.fill_(5)": ([5, 5, 5], [5, 5]), "x.fill_(1)": ([1, 1, 1], [1, 1]), "x.zero_()": ([0, 0, 0], [0, 0]),
    "torch.nn.init.ones_(x)": ([1, 1, 1], [1, 1]), "x.masked_fill_(mask, 5)": ([5, 2, 5], [5, 5]),
    "x.masked_fill_(mask, torch.tensor(5.0))": ([5, 2, 5], [5, 5]), "x.masked_fill_(x > 9, 5)": ([1, 2, 3], [1, 2]),
    "x.__setitem__(mask, 5)": ([5, 2, 5], [5, 5]), "x.index_fill_(0, i, 5)": ([5, 5, 5], [5, 2]),
    "x.index_fill_(1, i, 5)": ([5, 2, 3], [5, 5]), "x.index_fill_(1, i, torch.tensor(5.0))": ([5, 2, 3], [5, 5]),
    "x.__setitem__(i, 5)": ([5, 5, 5], [5, 2]), "x.__setitem__((i, i), 5)": ([5, 2, 3], [5, 2]),
    "x.index_put_((i, i + 1), torch.tensor(5.0))": ([1, 5, 3], [5, 2]),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Use of .* on expanded tensors is deprecated")
@pytest.mark.parametrize("expression", FILLED)
def test_expanded_tensors_are_filled(expression: str) -> None:
    for base, expected in zip(([[1.0, 2.0, 3.0]], [[1.0], [2.0]]), FILLED[expression], strict=True):
        memory = torch.tensor(base)
        x = memory.expand(2, 3)
        eval(expression, {"torch": torch, "x": x, "mask": MASK, "i": torch.tensor([0])})
        assert memory.flatten().tolist() == expected and x._version == 1


def test_an_expanded_tensor_of_nan_is_filled_where_the_mask_is_true() -> None:
    memory = torch.tensor([[float("nan"), 1.0, 1.0]])
    with pytest.warns(UserWarning, match="Use of masked_fill_ on expanded tensors is deprecated"):
        memory.expand(2, 3).masked_fill_(MASK, 5)
    assert memory.tolist() == [[5, 1, 5]]


def test_an_expanded_tensor_of_a_graph_is_not_filled() -> None:
    x = (torch.ones(1, 3, requires_grad=True) * 1).expand(2, 3)
    for call in (lambda: x.fill_(1), lambda: x.masked_fill_(MASK, 1), lambda: x.index_fill_(0, torch.tensor([0]), 1)):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single"):
            call()


def test_results_must_fit_in_shape_and_kind() -> None:
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match=r"output with shape \[2\] doesn't match the broadcast shape \[3, 2\]"):
        x.add_(torch.ones(3, 2))
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        torch.ones(2, dtype=torch.int64).add_(1.5)
    assert x.tolist() == [1.0, 1.0] and x._version == 0


def test_out_is_resized_and_refuses_gradients() -> None:
    out = torch.empty(0)
    assert torch.add(torch.ones(2), 1, out=out) is out and out.tolist() == [2.0, 2.0]
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.add(torch.ones(3), 1, out=out)
    with pytest.raises(RuntimeError, match="functions with out="):
        torch.add(torch.ones(3, requires_grad=True), 1, out=out)


@pytest.mark.parametrize("order", range(1, 4))
def test_inplace_operations_have_higher_derivatives(order: int) -> None:
    x = torch.tensor([0.3, -0.7], dtype=torch.float64, requires_grad=True)

    def value(overwrite: bool) -> torch.Tensor:
        y = x * 1
        if overwrite:
            y[0].pow_(3)
            y.sin_()
        else:
            y = torch.stack([y[0] ** 3, y[1]])
            y = y.sin()
        return y.sum()

    found = []
    for overwrite in (True, False):
        y = value(overwrite)
        for _ in range(order):
            (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        found.append(y.tolist())
    assert found[0] == pytest.approx(found[1])


def test_as_strided_views_share_memory() -> None:
    x = torch.arange(6.0)
    strided = x.as_strided((2,), (1,), 1)
    assert strided.storage_offset() == 1 and strided[1:].storage_offset() == 2
    assert x[2:3].expand(4).storage_offset() == 2 and x.unfold(0, 2, 2)[1].storage_offset() == 2
    assert strided.as_strided((1,), (1,), 5).item() == 5.0  # offsets count from the start of the memory
    assert strided.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def test_inplace_on_strided_view_of_view() -> None:
    x = torch.arange(6.0, requires_grad=True)
    base = x * 1
    part = base.as_strided((2, 2), (2, 1), 2)[1]
    part.mul_(torch.tensor([10.0, 20.0]))
    base.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0, 1.0, 10.0, 20.0]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_no_grad_view_can_become_a_leaf(mode: Any) -> None:
    base = torch.ones(2, 2)
    with mode():
        row = base[0]
    row.requires_grad_()
    (row * 3).sum().backward()
    assert row.is_leaf and row.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_stale_no_grad_view_is_readable_under_no_grad(mode: Any) -> None:
    base = torch.ones(2, requires_grad=True) * 1
    with mode():
        view = base[0]
    base.add_(1)
    with mode():
        assert (view * 2).item() == 4.0
    assert view.requires_grad and view.grad is None and "grad_fn=<Invalid>" in repr(view)
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace"):
        view * 2
    with pytest.raises(RuntimeError, match="mode and is being modified inplace"):
        view.add_(1)


def test_no_grad_view_cuts_the_graph() -> None:
    base = torch.ones(2, requires_grad=True) * 1
    with torch.no_grad():
        view = base[0]
    out = view * 3
    assert view.requires_grad and view.is_leaf and out.grad_fn.next_functions[0] == (None, 0)
    out.backward()
    assert view.grad is None
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        view.backward()


def test_view_requires_grad_with_its_base() -> None:
    base = torch.ones(2)
    view = base[0]
    base.requires_grad_()
    assert view.requires_grad and (view * 2).requires_grad
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        view.add_(1)


def test_errors_of_inplace_on_multi_output_views() -> None:
    base, w = torch.ones(2, 1), torch.ones(1, requires_grad=True)
    with pytest.raises(
        RuntimeError, match=r"A view was created in no_grad mode and is being .* returns multiple views"
    ):
        base.unbind()[0].add_(w)
    with pytest.raises(RuntimeError, match=r"Output 1 of Unbind is a view and is being .* returns multiple views"):
        (base * w).unbind()[1].add_(1)


def test_retain_grad_follows_inplace_operation() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    v = y[0]
    y.retain_grad()
    v.retain_grad()
    v.mul_(3)  # y has a new node, by way of its view
    (y.sum() + v).backward()
    assert y.grad.tolist() == [2.0, 1.0] and v.grad.item() == 1.0
    y = x * 2
    v = y[0]
    v.retain_grad()
    y.mul_(3)  # v has a new node, by way of its base
    assert v.retains_grad
    (y.sum() + v * 5).backward()
    assert v.grad.item() == 5.0


def test_view_of_detached_base_is_cut_off_after_inplace() -> None:
    x = torch.ones(2, requires_grad=True)
    base = x * 2
    view = base[0]
    base.detach_()
    base.mul_(5)
    assert type(view.grad_fn).__name__ == "AsStridedBackward0"
    view.backward()
    assert x.grad is None


def test_partially_overlapping_operands_raise() -> None:
    x = torch.ones(2, 2)
    for other in (x.t(), x.data.t(), x.detach()[0]):
        with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer to"):
            x.add_(other)
    with torch.no_grad(), pytest.raises(RuntimeError, match="single memory location"):
        x.mul_(x.t())
    assert x._version == 0


def test_hooks_on_unrecorded_view_do_not_run() -> None:
    base = torch.ones(2, requires_grad=True) * 1
    with torch.no_grad():
        view = base[0]
    calls: list[Any] = []
    view.register_hook(calls.append).remove()
    view.register_hook(calls.append)
    (view * 2).backward()
    assert calls == []


def test_leaf_of_another_shape_keeps_its_edge_and_hooks() -> None:
    x = torch.ones(2, requires_grad=True)
    y = (x * 3).sum()
    seen: list[Any] = []
    x.register_hook(lambda grad: seen.append(tuple(grad.shape)))
    with torch.no_grad():
        x.unsqueeze_(0)
    assert torch.autograd.grad((x * 2).sum(), x)[0].shape == (2,) and seen == [(2,)]
    assert torch.autograd.grad(y + x.sum(), x, retain_graph=True)[0].tolist() == [4.0, 4.0]
    x.data = torch.ones(3)
    with pytest.raises(RuntimeError, match=r"invalid gradient at index 0 - got \[3\] but expected shape compatible"):
        (x * 2).sum().backward()
    y.backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_leaf_of_another_shape_without_graph_gets_gradients_of_the_new_shape() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    y = (x * 3).sum()
    with torch.no_grad():
        x.transpose_(0, 1)
    del y
    assert torch.autograd.grad((x * 2).sum(), x)[0].shape == (3, 2)
    x.register_hook(lambda grad: None)
    (x * x.exp()).sum().backward()
    assert x.grad.shape == (3, 2)


def test_out_must_not_overlap_inputs() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    for out in (x.t(), x[0], x[:1]):
        with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer to"):
            torch.mul(x, 2, out=out)
    row = torch.ones(2)
    with pytest.raises(RuntimeError, match=r"output with shape \[2\] doesn't match the broadcast shape \[2, 2\]"):
        torch.add(x, row, out=row)
    assert torch.mul(x, 2, out=x) is x and x.tolist() == [[2.0, 4.0], [6.0, 8.0]]


def test_resized_out_reuses_its_memory() -> None:
    x = torch.zeros(4)
    part = x[:0]
    torch.add(torch.ones(3), 1, out=part)
    assert x.tolist() == [2.0, 2.0, 2.0, 0.0] and part.shape == (3,)


def test_order_of_checks_in_copy() -> None:
    leaf = torch.ones(1, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf.copy_(leaf.t())
    plain = torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="single memory location"):
        plain[:1].copy_(plain[:1].t())
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(2\) must match the size of tensor b \(3\)"):
        plain.copy_(torch.ones(3))
    with pytest.raises(RuntimeError, match=r"output with shape \[2, 2\] doesn't match the broadcast shape \[3, 2, 2\]"):
        plain.copy_(torch.ones(3, 1, 1))
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(2\) must match the size of tensor b \(3\)"):
        plain.masked_fill_(torch.ones(3) > 0, 1.0)


def test_set_does_not_modify_source_and_is_not_recorded() -> None:
    x, source = torch.zeros(2), torch.ones(3)
    assert x.set_(source).tolist() == [1.0, 1.0, 1.0] and x._version == 1 and source._version == 0
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        torch.ones(2, requires_grad=True).set_(source)


def test_assigned_value_is_recorded_as_expanded() -> None:
    x = torch.ones(2, 2, requires_grad=True)
    base = x * 1
    base[:] = x[:, :1]
    assert base.grad_fn.next_functions[1][0].name() == "ExpandBackward0"
    base[0] = x[:1]
    assert base.grad_fn.next_functions[1][0].name() == "ViewBackward0"


def test_errors_name_nodes_with_their_numbers() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.max()
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"which is output 0 of Max1, is at version 1"):
        z.backward()


def test_overlapping_elements_share_the_gradient() -> None:
    x = torch.ones(2, 1, requires_grad=True)
    stretched = (x * 1).expand(2, 2)
    stretched.as_strided((2,), (1,)).sum().backward()
    assert x.grad.tolist() == [[1.0], [1.0]]


def test_inplace_on_view_of_no_grad_view_raises() -> None:
    base = torch.ones(2, 2, requires_grad=True) * 1
    with torch.no_grad():
        view = base.t()
    with pytest.raises(
        RuntimeError, match="Output 0 of Slice is a view of a view which was created in no_grad mode and"
    ):
        view[:1].mul_(2)


def test_masked_fill_of_0d_tensor_keeps_its_shape() -> None:
    assert torch.tensor(2.0).masked_fill(torch.tensor(True), 10).shape == ()
    assert torch.ones(2, 3).t().masked_fill(torch.ones(3, 2) > 0, 10).stride() == (2, 1)


def test_copy_from_number() -> None:
    x = torch.ones(2, 2, requires_grad=True)
    y = x * 1
    assert y.copy_(2.5) is y and y.tolist() == [[2.5, 2.5], [2.5, 2.5]] and y._version == 1
    y.sum().backward()
    assert type(y.grad_fn).__name__ == "CopyBackwards" and x.grad is not None and x.grad.tolist() == [[0.0, 0.0]] * 2
    assert torch.zeros(2, dtype=torch.int8).copy_(300).tolist() == [44, 44]
    with pytest.raises(TypeError, match=r"^copy_\(\): argument 'other' \(position 1\) must be Tensor, not str"):
        torch.zeros(2).copy_("a")


def test_filling_an_expanded_tensor_writes_the_sign_of_zero() -> None:
    assert torch.zeros(1).expand(3).fill_(-0.0).signbit().all()
    assert not torch.tensor([-0.0]).expand(3).zero_().signbit().any()


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("kind", ["complex view of real base", "real view of complex base"])
def test_views_of_another_kind_of_number_are_modified_in_place(kind: str, offset: int) -> None:
    def program(x: Any, w: Any, in_place: bool) -> Any:
        base = x * 1
        if kind == "complex view of real base":
            view = torch.view_as_complex(base)[offset:, 1:]
            if not in_place:
                whole = torch.view_as_complex(base).clone()
                whole = torch.slice_scatter(whole, torch.slice_scatter(whole[offset:], view * w, 1, 1), 0, offset)
                return torch.view_as_real(whole)
        else:
            view = torch.view_as_real(base)[offset:, 1:]
            if not in_place:
                whole = torch.view_as_real(base).clone()
                return torch.view_as_complex(
                    torch.slice_scatter(whole, torch.slice_scatter(whole[offset:], view * w, 1, 1), 0, offset)
                )
        view.mul_(w)
        assert view.grad_fn is view.grad_fn
        return base

    torch.manual_seed(0)
    real = kind == "complex view of real base"
    x = torch.randn(2, 3, 2, dtype=torch.float64) if real else torch.randn(2, 3, dtype=torch.complex128)
    found = []
    for in_place in (False, True):
        for hold in (False, True):
            leaf = x.clone().requires_grad_()
            w = torch.full((2,), 1.5, dtype=torch.complex128 if real else torch.float64, requires_grad=hold)
            out = program(leaf, w[0] if real else w, in_place)
            found.append(torch.autograd.grad((out * out).abs().sum(), [leaf, w] if hold else [leaf]))
    for one, other in zip(found[0] + found[1], found[2] + found[3], strict=True):
        assert torch.allclose(one, other)


def test_views_of_a_modified_base_of_another_kind_of_number() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64, requires_grad=True)
    base = x * 1
    view = torch.view_as_complex(base)[1:]
    base.mul_(2)
    (view * view.conj()).real.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[0.0, 0.0], [24.0, 32.0]]
    z = torch.tensor([1 + 2j, 3 + 4j], dtype=torch.complex128, requires_grad=True)
    other = z * 1
    parts = torch.view_as_real(other)[1:, 1]
    other.mul_(2)
    (parts * parts).sum().backward()
    assert z.grad is not None and z.grad.tolist() == [0, 32j]


def test_grad_fn_of_a_stale_view_is_made_once() -> None:
    base = torch.ones(3, requires_grad=True) * 1
    view = base[:2]
    base.mul_(2)
    assert view.grad_fn is view.grad_fn
    view.mul_(3)
    assert view.grad_fn is view.grad_fn
    base.mul_(2)
    assert view.grad_fn is view.grad_fn is not None


def test_a_view_that_is_a_leaf_stays_one_while_its_base_is_modified() -> None:
    base = torch.zeros(3)
    view = base[:2].requires_grad_()
    base.add_(1)
    assert view.is_leaf
    (view * 2).sum().backward()
    assert view.grad is not None and view.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("size", [2, 3])
def test_few_elements_at_one_address_are_not_modified(size: int) -> None:
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.zeros(1).expand(size).add_(1)
    assert torch.zeros(1).expand(1).add_(1).tolist() == [1.0]
    assert torch.zeros(size, 0).t().add_(1).shape == (0, size)


def test_operands_beside_each_other_do_not_overlap() -> None:
    x = torch.arange(8.0)
    first, second = x[:4], x[4:]
    torch.add(first, 1, out=second)
    torch.add(second, 1, out=first)
    assert x.tolist() == [2.0, 3.0, 4.0, 5.0, 1.0, 2.0, 3.0, 4.0]
    turned = torch.arange(12.0).view(3, 4).t()
    torch.add(turned[:, :2], 1, out=turned[:, 1:].clone())
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
        torch.add(turned[:, :2], 1, out=turned[:, 1:])
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
        torch.add(x[2:6], x[1:5], out=x[2:6])  # the first operand is the result itself
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
        torch.add(torch.ones(4), x[1:5], out=x[2:6])  # the first operand has its own memory
    torch.add(torch.ones(2), x[::2][:2], out=x[1::2][:2])  # not dense: not compared
    cube = torch.arange(24.0)
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
        torch.add(cube.view(2, 3, 4).permute(1, 0, 2), 1, out=cube.view(3, 2, 4))  # dense in another order


@pytest.mark.parametrize(
    ("mode", "name", "where"),
    [(torch.no_grad, "no_grad", "with grad mode enabled"), (torch.inference_mode, "inference", "in normal mode")],
)
def test_errors_of_views_made_while_recording_was_disabled(mode: Any, name: str, where: str) -> None:
    base = torch.ones(2, requires_grad=True) * 1
    with mode():
        view = base[:1]
    block = "inference_mode" if name == "inference" else name
    with pytest.raises(RuntimeError) as error:
        view.mul_(2 * torch.ones(1, requires_grad=True))
    text = str(error.value)
    assert text.startswith(f"A view was created in {name} mode and is being modified inplace {where}.")
    assert f"either both inside the {block} block (if you don't want the inplace to be tracked)" in text
    assert "The memory was modified last at" not in text
    with mode():
        view = base[:1]
    base.mul_(2)
    with pytest.raises(RuntimeError) as error:
        view.grad_fn
    text = str(error.value)
    assert "its base or another view of its base has been modified inplace" in text
    assert "The memory was modified last at" in text and "test_inplace.py" in text


def _write_first(x: Any) -> None:
    x[0] = 2.0


@pytest.mark.parametrize("write", [
    lambda x: x.add_(1), lambda x: x.exp_(), lambda x: x.mul_(x), lambda x: x[0].add_(1), lambda x: x.view(-1).exp_(),
    _write_first,
])  # fmt: skip
@pytest.mark.parametrize("kind", ["plain", "leaf", "result", "view"])
def test_arguments_of_gradient_transforms_are_not_modified(write: Any, kind: str) -> None:
    def function(x: Any) -> Any:
        write(x)
        return x.sum()

    x = torch.ones(3, requires_grad=kind in ("leaf", "result"))
    x = {"result": lambda: x * 1, "view": lambda: x.view(3)}.get(kind, lambda: x)()
    for transform in (torch.func.grad, torch.func.jacrev, lambda f: lambda x: torch.func.vjp(f, x)):
        with pytest.raises(
            RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"
        ):
            transform(function)(x)
        assert x.tolist() == [1.0, 1.0, 1.0] and x._version == 0


def test_a_slice_with_a_step_of_a_dimension_of_size_one_can_be_modified() -> None:
    for shape in ((1, 1), (3, 1), (1, 3)):
        x = torch.zeros(shape)
        x[::2, ::2] += 1
        assert x[::2, ::2].eq(1).all() and x.sum() == x[::2, ::2].numel()


def test_the_state_of_a_frozen_gru_cell_may_be_modified() -> None:
    cell = torch.nn.GRUCell(2, 3).requires_grad_(False)
    state, x = torch.zeros(1, 3), torch.ones(1, 2, requires_grad=True)
    after = cell(x, state)
    expected = torch.autograd.grad(after.sum(), x, retain_graph=True)
    state.copy_(after.detach())
    assert torch.equal(torch.autograd.grad(after.sum(), x)[0], expected[0])
