"""parameters_to_vector, which concatenates parameters into one vector, and the inverse vector_to_parameters."""

from __future__ import annotations

from collections.abc import Iterable

from ...core.tensor import Tensor
from ...operations.creation.conversion import typename
from ...operations.shape.join import cat


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return a 1-d tensor with the elements of all ``parameters``, concatenated in order.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.utils.parameters_to_vector([torch.ones(2, 2), torch.zeros(1)])
    tensor([1., 1., 1., 1., 0.])
    """
    return cat([each.view(-1) for each in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set ``parameters`` in order to consecutive parts of the vector ``vec``, each in the shape of the parameter.

    >>> import retrograd as torch
    >>> layer = torch.nn.Linear(2, 1)
    >>> torch.nn.utils.vector_to_parameters(torch.arange(3.0), layer.parameters())
    >>> layer.bias.item()
    2.0
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    start = 0
    for each in parameters:
        count = each.numel()
        each.data = vec[start : start + count].view_as(each).data
        start += count


__all__ = ["parameters_to_vector", "vector_to_parameters"]
