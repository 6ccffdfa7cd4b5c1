"""Levels of ``torch.autograd.forward_ad``: dual tensors inside and outside, layouts of tangents, custom functions."""

import pytest

import retrograd as torch
from retrograd.autograd import Function
from retrograd.autograd import forward_ad as fwAD


def test_the_current_level_is_a_name_of_the_module():
    assert fwAD._current_level == -1
    with fwAD.dual_level():
        assert fwAD._current_level == 0
    with pytest.raises(AttributeError, match="_no_such_level"):
        fwAD._no_such_level


def test_unpacking_gives_new_primals_and_the_same_tangent():
    primal, tangent = torch.ones(2), torch.zeros(2)
    with fwAD.dual_level():
        dual = fwAD.make_dual(primal, tangent)
        assert fwAD.unpack_dual(dual).tangent is tangent
        assert fwAD.unpack_dual(dual).primal is not fwAD.unpack_dual(dual).primal
        assert fwAD.unpack_dual(primal).primal is not primal
    assert fwAD.unpack_dual(dual).tangent is None
    assert fwAD.unpack_dual(dual).primal is dual
    assert (dual * 2).tolist() == [2.0, 2.0]


def test_a_tangent_gets_the_layout_of_its_primal():
    primal = torch.ones(5)[:4]
    with fwAD.dual_level():
        dual = fwAD.make_dual(primal, torch.arange(4.0))
        assert fwAD.unpack_dual(dual.as_strided((5,), (1,), 0)).tangent.tolist() == [0.0, 1.0, 2.0, 3.0, 0.0]


def test_detaching_in_place_removes_the_tangent():
    with fwAD.dual_level():
        dual = fwAD.make_dual(torch.ones(2, requires_grad=True).clone(), torch.ones(2)).clone()
        dual.detach_()
        assert fwAD.unpack_dual(dual * 2).tangent is None
        assert not dual.requires_grad


def test_a_dual_tensor_is_no_tangent():
    with fwAD.dual_level():
        dual = fwAD.make_dual(torch.ones(2), torch.ones(2))
        with pytest.raises(RuntimeError, match="Setting a forward grad that itself has a forward gradient"):
            fwAD.make_dual(torch.ones(2), dual)


class Head(Function):
    """First two elements; ``jvp`` breaks the relation to its argument as ``how`` says."""

    @staticmethod
    def forward(ctx, x, how):
        ctx.how = how
        return x.narrow(0, 0, 2)

    @staticmethod
    def jvp(ctx, t, _):
        out = t.narrow(0, 0, 2)
        return out if ctx.how == "view" else out.clone() if ctx.how == "copy" else out.clone().view(2)


@pytest.mark.parametrize(
    "how, of_view, text",
    [
        ("copy", False, "the jvp is not returning a view."),
        ("view of a copy", False, "the jvp is not returning a view of the given grad input."),
        ("view of a copy", True, "the jvp is not returning a view of the same base as the given grad input."),
    ],
)
def test_the_tangent_of_a_view_is_a_view(how, of_view, text):
    with fwAD.dual_level():
        x = fwAD.make_dual(torch.ones(4), torch.ones(4))
        x = x.view_as(x) if of_view else x
        assert fwAD.unpack_dual(Head.apply(x, "view")).tangent.tolist() == [1.0, 1.0]
        with pytest.raises(RuntimeError, match=text):
            Head.apply(x, how)


class Constants(Function):
    @staticmethod
    def forward(ctx, x, y):
        kept = y.clone()
        ctx.mark_non_differentiable(kept)
        return x.clone(), kept, x.long()

    @staticmethod
    def jvp(ctx, tx, ty):
        return tx, Constants.second, Constants.third


def test_results_without_derivative_have_no_tangent():
    with fwAD.dual_level():
        x = fwAD.make_dual(torch.ones(2), torch.ones(2))
        Constants.second = Constants.third = None
        out = Constants.apply(x, torch.ones(2))
        assert [fwAD.unpack_dual(each).tangent is None for each in out] == [False, True, True]
        for Constants.second, Constants.third in ((torch.ones(2), None), (None, torch.ones(2))):
            with pytest.raises(RuntimeError, match="You should return None at that position instead"):
                Constants.apply(x, torch.ones(2))


def test_a_function_without_any_derivative_names_jvp():
    class Bare(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

    with fwAD.dual_level(), pytest.raises(NotImplementedError, match="must implement the jvp function"):
        Bare.apply(fwAD.make_dual(torch.ones(1), torch.ones(1)))


def test_batch_norm_refuses_tangents_of_running_statistics():
    with fwAD.dual_level():
        x, mean = (fwAD.make_dual(torch.ones(s), torch.ones(s)) for s in ((3, 2, 5), (2,)))
        with pytest.raises(RuntimeError, match="not differentiable wrt running_mean and running_var"):
            torch.nn.functional.batch_norm(x, mean, torch.ones(2))
        torch.nn.functional.batch_norm(torch.ones(3, 2, 5), mean, torch.ones(2))
