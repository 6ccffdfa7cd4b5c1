"""``torch.nested``: results, texts, components, gradients and errors as recorded from PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import retrograd as torch
from tests.conformance import nested_cases
from tests.conformance.golden import load

RECORDED = load("nested")["calls"]
#: Two sequences of 3 and 1 vectors, and the padding mask of the same batch as an ordinary tensor.
PADDING = torch.tensor([[False, False, False, True], [False, True, True, True]])
WEIGHT = torch.arange(8.0, dtype=torch.float64).reshape(2, 4) / 3


def close(answered: Any, recorded: Any) -> bool:
    """Return whether two answers are equal, numbers up to the rounding of float32."""
    if isinstance(recorded, (list, dict)):
        keys = recorded if isinstance(recorded, dict) else range(len(recorded))
        return len(answered) == len(recorded) and all(close(answered[key], recorded[key]) for key in keys)
    return bool(abs(answered - recorded) <= 3e-4 * max(1.0, abs(recorded)) or answered == recorded)


@pytest.mark.parametrize("call", nested_cases.CALLS_LIST)
def test_calls_match_pytorch(call: str) -> None:
    text, components, gradients = RECORDED[call]
    answered = nested_cases.answer(torch, call)
    assert answered[0] == text
    assert components is None or close(answered[1], components)
    assert gradients is None or close(answered[2], gradients)


def sequences(dtype: Any = torch.float64) -> list[Any]:
    generator = torch.Generator().manual_seed(5)
    return [torch.randn(count, 4, dtype=dtype, generator=generator).requires_grad_() for count in (3, 1, 2)]


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x + x.sin(), lambda x: torch.nn.functional.linear(x, WEIGHT), lambda x: x.softmax(-1),
        lambda x: x.transpose(1, 2), lambda x: torch.cat([x, x], -1), lambda x: x.unsqueeze(1),
        lambda x: torch.nn.functional.layer_norm(x, (4,), WEIGHT[0], WEIGHT[1]), lambda x: x.sum(-1, keepdim=True),
    ],
)  # fmt: skip
def test_gradients_are_those_of_finite_differences(layout: Any, function: Any) -> None:
    def run(*parts: Any) -> Any:
        return function(torch.nested.as_nested_tensor(list(parts), layout=layout)).to_padded_tensor(0.0)

    assert torch.autograd.gradcheck(run, sequences())


@pytest.mark.parametrize("dim", [1, 2])
def test_softmax_along_the_ragged_dimension_has_the_gradients_of_the_components(dim: int) -> None:
    def run(*parts: Any) -> Any:
        return torch.nested.as_nested_tensor(list(parts), layout=torch.jagged).softmax(dim).values()

    assert torch.autograd.gradcheck(run, sequences())


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_that_of_each_component(layout: Any, causal: bool) -> None:
    parts = sequences()
    x = torch.nested.as_nested_tensor(parts, layout=layout)
    heads = x.view(3, -1, 2, 2).transpose(1, 2) if layout is torch.strided else x.unflatten(-1, (2, 2)).transpose(1, 2)
    result = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads, is_causal=causal)
    for part, got in zip(parts, result.transpose(1, 2).unbind(), strict=True):
        one = part.view(-1, 2, 2).transpose(0, 1)[None]
        expected = torch.nn.functional.scaled_dot_product_attention(one, one, one, is_causal=causal)
        assert torch.allclose(got, expected[0].transpose(0, 1))
    result.to_padded_tensor(0.0).sum().backward()
    assert all(part.grad is not None for part in parts)


def encoder(**options: Any) -> Any:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 2, **options)


def test_encoder_leaves_zeros_at_padded_positions_as_pytorch_does() -> None:
    model, x = encoder().eval(), torch.randn(2, 4, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        result = model(x, src_key_padding_mask=PADDING)
        assert (result[PADDING] == 0).all()
        nested = torch.nested.nested_tensor([x[0, :3], x[1, :1]])
        for layer in model.layers:
            nested = layer(nested)
        assert torch.allclose(nested.to_padded_tensor(0.0, (2, 4, 8)), result, atol=1e-5)
        gapped = model(x, src_key_padding_mask=PADDING.flip(1))
        plain = encoder(enable_nested_tensor=False).eval()(x, src_key_padding_mask=PADDING)
    assert (gapped != 0).all()  # the padding is not at the end
    assert torch.allclose(plain[~PADDING], result[~PADDING], atol=1e-5)
    assert (plain[PADDING] != 0).all()
    assert (model(x, src_key_padding_mask=PADDING) != 0).all()  # recorded


def test_encoder_warns_if_its_layers_exclude_nested_tensors() -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 1, 16, batch_first=True)
    with pytest.warns(UserWarning, match="use_nested_tensor is False because encoder_layer.self_attn.num_heads is odd"):
        assert not torch.nn.TransformerEncoder(layer, 1).use_nested_tensor


def test_modules_take_nested_tensors() -> None:
    x = torch.nested.nested_tensor(sequences(torch.float32), layout=torch.jagged)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Dropout(0.1))
    model(x).sum(1).sum().backward()
    assert all(each.grad is not None for each in model.parameters())
    attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    parts = x.unbind()
    result = attention(x, x, x, need_weights=False)[0]
    for part, got in zip(parts, result.unbind(), strict=True):
        assert torch.allclose(attention(part[None], part[None], part[None])[0][0], got, atol=1e-6)


def test_gradients_of_leaves_are_nested() -> None:
    for layout in (torch.strided, torch.jagged):
        x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout, requires_grad=True)
        (x * 3).to_padded_tensor(0.0).sum().backward()
        assert x.grad.is_nested
        assert [each.tolist() for each in x.grad.unbind()] == [[3.0, 3.0], [3.0, 3.0, 3.0]]
        (gradient,) = torch.autograd.grad((x * x).to_padded_tensor(0.0).sum(), x)
        assert [each.tolist() for each in gradient.unbind()] == [[2.0, 2.0], [2.0, 2.0, 2.0]]


def test_unsupported_functions_name_what_exists() -> None:
    x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    with pytest.raises(NotImplementedError, match=r"Could not run 'aten::cumsum'.*to_padded_tensor\(\)"):
        x.cumsum(1)
    with pytest.raises(NotImplementedError, match="not implemented for nested tensors"):
        torch.nn.functional.conv1d(x, torch.ones(1, 1, 1))


def test_no_function_treats_a_nested_tensor_as_an_ordinary_one() -> None:
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(3, 3)], layout=torch.jagged)
    for name in ("sort", "cumsum", "flip", "roll", "tril", "nonzero", "unique", "svd", "diff", "histc", "quantile"):
        with warnings.catch_warnings(), pytest.raises((NotImplementedError, RuntimeError, TypeError)):
            warnings.simplefilter("ignore")
            function = getattr(torch, name)
            function(x, 0.5) if name == "quantile" else function(x, [0]) if name == "flip" else function(x)
