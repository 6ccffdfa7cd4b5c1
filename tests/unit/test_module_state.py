"""Global module hooks as attributes of their module, hooks of state dictionaries, and ``torch.__future__``."""

import weakref
from collections import OrderedDict, namedtuple

import pytest

import retrograd as torch
from retrograd import nn
from retrograd.core import engine
from retrograd.nn.modules import module as module_file

Pair = namedtuple("Pair", "first second")


@pytest.fixture
def conversion():
    yield torch.__future__
    torch.__future__.set_swap_module_params_on_conversion(False)
    torch.__future__.set_overwrite_module_params_on_conversion(False)


def test_assigning_an_empty_dictionary_removes_global_hooks():
    seen = []
    module_file.register_module_forward_hook(lambda *given: seen.append("after"))
    module_file.register_module_forward_pre_hook(lambda *given: seen.append("before"))
    nn.Identity()(torch.ones(1))
    module_file._global_forward_hooks = OrderedDict()
    module_file._global_forward_pre_hooks = OrderedDict()
    nn.Identity()(torch.ones(1))
    assert seen == ["before", "after"]
    with module_file.register_module_forward_hook(lambda *given: seen.append("new"), always_call=True):
        assert len(module_file._global_forward_hooks_always_called) == 1
        nn.Identity()(torch.ones(1))
    assert seen[2:] == ["new"]
    assert not module_file._global_forward_hooks_always_called


def test_a_module_with_backward_hooks_returns_its_named_tuple():
    class Two(nn.Module):
        def forward(self, x):
            return Pair(x * 2, x * 3)

    module, grads = Two(), []
    module.register_full_backward_hook(lambda module, grad_in, grad_out: grads.append(grad_out))
    out = module(torch.ones(2, requires_grad=True))
    assert type(out) is Pair
    out.second.sum().backward()
    assert [None if each is None else each.tolist() for each in grads[0]] == [None, [1.0, 1.0]]


def test_a_public_state_dict_hook_is_no_private_one():
    module = nn.Linear(1, 1)

    def hook(module, state, prefix, metadata):
        return None

    module.register_state_dict_post_hook(hook)
    with pytest.raises(RuntimeError, match="previously registered via register_state_dict_post_hook"):
        module._register_state_dict_hook(hook)


def test_a_buffer_is_assigned_through_an_overridden_method():
    class Plain(nn.Module):
        def register_buffer(self, name, tensor):
            super().register_buffer(name, tensor, True)

    module = Plain()
    module.a = nn.Buffer(torch.ones(1))
    assert list(module.state_dict()) == ["a"]
    with pytest.raises(RuntimeError, match="non-persistent buffer"):
        module.b = nn.Buffer(torch.ones(1), persistent=False)


def test_swapped_tensors_exchange_everything():
    class Kind(torch.Tensor):
        pass

    a, b = torch.ones(2).as_subclass(Kind), torch.zeros(1)
    a.note = 3
    torch.utils.swap_tensors(a, b)
    assert (type(a), type(b), b.note, a.tolist(), b.tolist()) == (torch.Tensor, Kind, 3, [0.0], [1.0, 1.0])


def test_swapping_refuses_weak_references_and_poisons_old_graphs():
    p, q = nn.Parameter(torch.ones(2)), nn.Parameter(torch.zeros(3))
    y = p.sum()
    torch.utils.swap_tensors(p, q)
    assert (p.shape, q.shape) == ((3,), (2,))
    with pytest.raises(RuntimeError, match="AccumulateGrad node that was poisoned by swap_tensors"):
        y.backward()
    p.sum().backward()
    assert p.grad.tolist() == [1.0] * 3
    reference = weakref.ref(p)
    with pytest.raises(RuntimeError, match="Cannot swap t1 because it has weakref"):
        torch.utils.swap_tensors(p, q)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref"):
        torch.utils.swap_tensors(q, p)
    assert reference() is p


def test_parameters_are_swapped_or_replaced_on_conversion(conversion):
    module = nn.Linear(2, 2)
    weight = module.weight
    module(torch.ones(1, 2)).sum().backward()
    grad = weight.grad
    conversion.set_swap_module_params_on_conversion(True)
    module.double()
    assert module.weight is weight and weight.grad is grad and weight.dtype == grad.dtype == torch.float64
    assert module.load_state_dict(nn.Linear(2, 2).double().state_dict()).missing_keys == []
    reference = weakref.ref(weight)
    with pytest.raises(RuntimeError, match=r"Couldn't swap Linear.weight"):
        module.float()
    with pytest.raises(RuntimeError, match='While swapping the parameter named "weight"'):
        module.load_state_dict(module.state_dict())
    assert reference() is weight
    conversion.set_swap_module_params_on_conversion(False)
    conversion.set_overwrite_module_params_on_conversion(True)
    assert conversion.get_overwrite_module_params_on_conversion()
    module.float()
    assert module.weight is not weight and module.weight.dtype == torch.float32


def test_a_replica_shares_submodules_but_has_no_parameters():
    module = nn.ParameterList([nn.Parameter(torch.ones(2)), nn.Parameter(torch.zeros(2))])
    replica = module._replicate_for_data_parallel()
    for name, parameter in module.named_parameters():
        setattr(replica, name, parameter.view_as(parameter))
    assert [each._base is old for each, old in zip(replica, module, strict=True)] == [True, True]


@pytest.mark.parametrize("args", [("cpu", True), (None, True), ([],), ("cpu", torch.tensor(3))])
def test_arguments_of_to_are_checked_in_order(args):
    for target in (nn.Linear(1, 1), torch.ones(2)):
        with pytest.raises(TypeError, match="received an invalid combination of arguments"):
            target.to(*args)


def test_old_states_of_spectral_norm_are_converted():
    torch.manual_seed(0)
    layer = nn.utils.spectral_norm(nn.Linear(3, 5))
    layer(torch.ones(1, 3))
    layer.eval()
    expected = layer(torch.ones(1, 3))
    state = layer.state_dict()
    state["weight"] = layer.weight.detach().clone()
    del state["weight_v"], state._metadata[""]["spectral_norm"]
    fresh = nn.utils.spectral_norm(nn.Linear(3, 5))
    fresh.load_state_dict(state)
    assert torch.allclose(fresh.eval()(torch.ones(1, 3)), expected)


def test_a_second_parametrization_is_checked_with_its_own_results():
    class Unit(nn.Module):
        def forward(self, x):
            return x / x.norm()

        def right_inverse(self, x):
            assert abs(x.norm().item() - 1) < 1e-6
            return x

    layer = nn.Linear(3, 3)
    nn.utils.parametrize.register_parametrization(layer, "weight", nn.Identity())
    nn.utils.parametrize.register_parametrization(layer, "weight", Unit())
    assert abs(layer.weight.norm().item() - 1) < 1e-6


def test_the_kind_of_global_backward_hooks_can_be_reset():
    name = "_global_is_full_backward_hook"
    before = getattr(module_file, name)
    try:
        setattr(module_file, name, None)
        module_file.register_module_full_backward_hook(lambda *args: None).remove()
        assert getattr(module_file, name) is True
        setattr(module_file, name, None)
        module_file.register_module_backward_hook(lambda *args: None).remove()
        assert getattr(module_file, name) is False
    finally:
        setattr(module_file, name, before)


def test_notes_of_errors_run_no_code_that_can_fail():
    class Failing(nn.Module):
        @property
        def in_features(self):
            raise RuntimeError("the attribute")

        def named_modules(self, *args, **kwargs):
            raise TypeError("the method")

        def forward(self, x):
            return x.view(7)

    for each in (Failing(), nn.Sequential(Failing())):
        with pytest.raises(RuntimeError, match="is invalid for input of size 3"):
            each(torch.ones(3))


def test_removing_the_hooks_of_a_tensor_by_assignment():
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda grad: grad * 2)
    x._backward_hooks = None
    (x * 1).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_an_interrupted_backward_pass_keeps_no_callbacks():
    def hook(grad):
        torch.autograd.Variable._execution_engine.queue_callback(lambda: None)
        raise KeyboardInterrupt

    x = torch.ones(2, requires_grad=True)
    x.register_hook(hook)
    with pytest.raises(KeyboardInterrupt):
        (x * 2).sum().backward()
    assert not engine._final_callbacks
