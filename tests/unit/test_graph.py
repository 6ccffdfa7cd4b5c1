"""The graph's public attributes: requires_grad, is_leaf, grad_fn, next_functions, saved tensors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import retrograd as torch


def test_requires_grad_is_false_by_default() -> None:
    assert not torch.tensor([1.0]).requires_grad
    assert torch.tensor([1.0], requires_grad=True).requires_grad


def test_a_result_requires_a_gradient_if_any_operand_does() -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    assert (x + y).requires_grad and (y * x).requires_grad and not (y + y).requires_grad


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8])
def test_integer_tensors_cannot_require_grad(dtype: torch.dtype) -> None:
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype can require gradients"):
        torch.ones(2).to(dtype).requires_grad_()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64])
def test_floating_and_complex_tensors_can_require_gradients(dtype: torch.dtype) -> None:
    assert torch.ones(2, dtype=dtype, requires_grad=True).requires_grad


def test_a_comparison_is_outside_the_graph() -> None:
    x = torch.ones(2, requires_grad=True)
    assert (x > 0).grad_fn is None and not (x > 0).requires_grad


def test_a_conversion_to_integers_is_outside_the_graph() -> None:
    x = torch.ones(2, requires_grad=True)
    for each in (x.long(), x.bool(), x.to(torch.int32).t(), x.type_as(x.long()), x.int().float()):
        assert each.grad_fn is None and not each.requires_grad


def test_is_leaf() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    y = x * 2
    assert x.is_leaf and x.grad_fn is None
    assert not y.is_leaf and type(y.grad_fn).__name__ == "MulBackward0"
    assert torch.ones(1).is_leaf and y.detach().is_leaf


def test_repr_of_nodes() -> None:
    y = torch.ones(2, requires_grad=True) * 2
    assert str(type(y.grad_fn)) == "<class 'MulBackward0'>"
    assert repr(y.grad_fn).startswith("<MulBackward0 object at 0x")
    assert y.grad_fn.name() == "MulBackward0"


def test_next_functions_lead_to_the_leaves() -> None:
    x, w = torch.ones(2, requires_grad=True), torch.ones(2)
    y = (x * w).exp()
    ((mul, number),) = y.grad_fn.next_functions
    assert mul.name() == "MulBackward0" and number == 0
    (leaf, _), nothing = mul.next_functions
    assert leaf.name() == "torch::autograd::AccumulateGrad" and leaf.variable is x
    assert nothing == (None, 0)
    assert leaf.next_functions == ()


def test_deleted_leaf_is_reachable_through_the_graph() -> None:
    y = torch.ones(2, requires_grad=True) * 2
    leaf = y.grad_fn.next_functions[0][0].variable
    assert leaf.tolist() == [1.0, 1.0] and leaf.requires_grad and leaf.is_leaf
    y.sum().backward()
    assert leaf.grad.tolist() == [2.0, 2.0]


def test_node_metadata_is_a_user_dictionary() -> None:
    y = torch.ones(2, requires_grad=True) * 2
    assert y.grad_fn.metadata == {}
    y.grad_fn.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1} and "note" not in vars(y.grad_fn)
    leaf = y.grad_fn.next_functions[0][0]
    assert leaf.metadata == {} and leaf.metadata is leaf.metadata
    assert leaf._sequence_nr() == 2**64 - 1


def test_saved_tensors_are_readable() -> None:
    x, w = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
    node = (x * w).grad_fn
    assert node._saved_self.tolist() == [2.0] and node._saved_other.tolist() == [3.0]
    assert x.exp().grad_fn._saved_result.tolist() == x.exp().tolist()
    assert (x**2).grad_fn._saved_exponent == 2


def test_output_nr_of_several_results() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    first, second = x.unbind()
    assert (first.output_nr, second.output_nr) == (0, 1)
    assert first.grad_fn is second.grad_fn


def test_detach_leaves_the_graph_and_keeps_the_memory() -> None:
    x = torch.zeros(3, requires_grad=True)
    y = x.detach()
    y[0] = 5
    assert x.tolist() == [5.0, 0.0, 0.0]
    assert not y.requires_grad and not y._is_view() and y._version == x._version == 1


def test_data_shares_memory_but_not_the_version() -> None:
    x = torch.zeros(3, requires_grad=True)
    x.data[0] = 1
    assert x.tolist() == [1.0, 0.0, 0.0] and x._version == 0


def test_setting_data() -> None:
    x = torch.zeros(3, requires_grad=True)
    x.data = torch.ones(2)
    assert x.shape == (2,) and x.requires_grad
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got int"):
        x.data = 3
    with pytest.raises(RuntimeError, match="must be floating point or complex dtype"):
        x.data = torch.ones(2, dtype=torch.int64)


def test_requires_grad_of_non_leaf_cannot_be_cleared() -> None:
    y = torch.ones(1, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        y.requires_grad = False


def test_requires_grad_of_a_leaf_can_be_switched() -> None:
    x = torch.ones(1)
    assert x.requires_grad_() is x and x.requires_grad
    x.requires_grad = False
    assert not x.requires_grad and not (x * 2).requires_grad


@pytest.mark.parametrize("name", ["grad_fn", "is_leaf", "output_nr"])
def test_read_only_attributes_of_the_graph(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(torch.ones(1), name, None)


def test_values_accepted_by_grad() -> None:
    x = torch.ones(3, requires_grad=True)
    x.grad = torch.zeros(3)
    x.grad = None
    with pytest.raises(
        RuntimeError, match="attempting to assign a gradient of size '\\[2\\]' to a tensor of size '\\[3\\]'"
    ):
        x.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="attempting to assign a gradient with dtype 'double'"):
        x.grad = torch.ones(3, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None but got grad of type int"):
        x.grad = 3  # type: ignore[assignment]
    assert x.grad is None


def test_reading_the_grad_of_a_computed_tensor_warns() -> None:
    y = torch.ones(1, requires_grad=True) * 2
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_legacy_variable_is_a_tensor() -> None:
    x = torch.autograd.Variable(torch.ones(2), requires_grad=True)
    assert isinstance(x, torch.Tensor) and isinstance(x, torch.autograd.Variable) and x.requires_grad
    assert isinstance(torch.ones(1), torch.autograd.Variable)


def test_user_attributes_stay_on_a_tensor() -> None:
    x = torch.ones(1)
    x.note = "mine"
    assert x.note == "mine"


def test_next_functions_omit_non_differentiable_inputs() -> None:
    x, mask = torch.ones(2, requires_grad=True), torch.tensor([True, False])
    assert [len(each.grad_fn.next_functions) for each in (x.masked_fill(mask, 0), x.index_select(0, mask.long()))] == [
        1,
        1,
    ]
    assert len(torch.where(mask, x, x).grad_fn.next_functions) == 2


def test_saved_attributes_match_pytorch() -> None:
    x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    node = (x * w).grad_fn
    assert node._saved_self is x and node._saved_other is w  # leaves are themselves
    node = (x * 3).grad_fn
    assert node._saved_self is None and node._saved_other.item() == 3 and node._saved_other.dtype is torch.int64
    assert x.sum().grad_fn._saved_self_sym_sizes == (2, 3) and x[0].grad_fn._saved_self_sym_sizes == (2, 3)
    assert not hasattr(x.sum().grad_fn, "_saved_self_shape")
    assert x.exp().grad_fn._saved_result.requires_grad


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda x, y: setattr(x, "requires_grad", 1), RuntimeError, "requires_grad must be a bool"),
        (
            lambda x, y: x.requires_grad_("a"),
            TypeError,
            r"argument 'requires_grad' \(position 1\) must be bool, not str",
        ),
        (
            lambda x, y: setattr(y, "requires_grad", True),
            RuntimeError,
            r"you can only change requires_grad flags of leaf variables\. It is computed by",
        ),
        (
            lambda x, y: setattr(y, "requires_grad", False),
            RuntimeError,
            r"leaf variables\. If you want to use a computed",
        ),
        (
            lambda x, y: setattr(x.long(), "requires_grad", True),
            RuntimeError,
            "only Tensors of floating point and complex dtype can require gradients",
        ),
        (
            lambda x, y: torch.tensor([1], requires_grad=True),
            RuntimeError,
            "Only Tensors of floating point and complex dtype can require gradients",
        ),
        (lambda x, y: delattr(x, "data"), RuntimeError, "Deleting tensor data is not allowed. Delete tensor instead!"),
    ],
)
def test_flags_that_can_not_be_set(change: Any, error: Any, text: str) -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(error, match=text):
        change(x, x * 2)
    assert x.requires_grad


def test_deep_copies_share_memory_as_their_originals_do() -> None:
    x = torch.arange(6.0).view(2, 3)
    whole, column, turned = copy.deepcopy((x, x[:, 1], x.t()))
    whole[0, 1] = 9.0
    assert column.tolist() == [9.0, 4.0] and turned[1, 0].item() == 9.0 and x[0, 1].item() == 1.0
    assert column.stride() == (3,) and column.storage_offset() == 1 and not column._is_view()


def test_a_pickled_result_comes_back_as_a_leaf() -> None:
    back = pickle.loads(pickle.dumps(torch.ones(2, requires_grad=True) * 2))
    assert back.is_leaf and back.requires_grad and back.tolist() == [2.0, 2.0]


def test_subclasses() -> None:
    class Named(torch.Tensor):
        title = "mine"

    made = torch.ones(2, requires_grad=True).as_subclass(Named)
    assert made.title == "mine" and type(made.grad_fn).__name__ == "AliasBackward0"
    assert repr(Named([1.0, 2.0])) == "Named([1., 2.])" and isinstance(made, torch.Tensor)
    (made * 2).sum().backward()


def test_results_are_contiguous_where_pytorchs_are() -> None:
    turned = torch.arange(6.0).view(2, 3).t()
    for each in (
        turned.cumsum(0), turned.softmax(0), torch.cat([turned, turned]), torch.stack([turned, turned]), turned.tril(),
        turned.masked_fill(turned > 2, 0.0), turned.mean(1, keepdim=True), turned.cumprod(0),
    ):  # fmt: skip
        assert each.is_contiguous() and each.view(-1).numel() == each.numel()
    assert turned.clone().stride() == turned.double().stride() == turned.exp().stride() == (1, 3)


def test_strides_of_inserted_dimensions() -> None:
    x = torch.ones(1, 5)
    strides = [x.expand(1, 1, 5), x.expand(3, 1, 5), x.expand(1, 3, 5), torch.tensor(3.0).expand(1, 1)]
    assert [each.stride() for each in strides] == [(5, 5, 1), (0, 5, 1), (0, 0, 1), (0, 0)]
