"""Private and deprecated names of PyTorch that programs use, and small rules of its interface."""

import sys

import pytest

import retrograd as torch
from retrograd.autograd import Function, Variable, forward_ad
from retrograd.autograd.function import once_differentiable
from retrograd.core import engine
from retrograd.nn import functional as F

# -- The engine ------------------------------------------------------------------------------------------------------


class Queue(Function):
    """Identity function whose backward calls ``inside()`` and queues ``then`` for the end of the pass."""

    @staticmethod
    def forward(ctx, x, then, inside):
        ctx.then, ctx.inside = then, inside
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        ctx.inside()
        Variable._execution_engine.queue_callback(ctx.then)
        return grad, None, None


def test_callbacks_run_at_the_end_of_their_own_pass():
    order, leaf = [], torch.ones(1, requires_grad=True)
    other = torch.ones(1, requires_grad=True)

    def nested():
        Queue.apply(other, lambda: order.append("inner end"), lambda: order.append("inner")).sum().backward()
        order.append("outer")

    def again():
        order.append(f"outer end {leaf.grad is not None}")
        Variable._execution_engine.queue_callback(lambda: order.append("last"))

    with torch.enable_grad():
        Queue.apply(leaf, again, lambda: None).sum().backward()
        assert order == ["outer end True", "last"]
        order.clear()
        Queue.apply(leaf * 2, lambda: order.append("end"), torch.enable_grad()(nested)).sum().backward()
    assert order == ["inner", "inner end", "outer", "end"]


def test_callbacks_of_the_outermost_pass_run_after_nested_passes():
    order, leaf, other = [], torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)

    def inside():
        engine.queue_callback(lambda: order.append("outermost"), outermost=True)

    def nested():
        with torch.enable_grad():
            Queue.apply(other, lambda: order.append("inner"), inside).sum().backward()

    Queue.apply(leaf * 2, lambda: order.append("outer"), nested).sum().backward()
    assert order == ["inner", "outermost", "outer"]
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        engine.queue_callback(print, outermost=True)


def test_callbacks_need_a_backward_pass_that_succeeds():
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        Variable._execution_engine.queue_callback(print)
    called, leaf = [], torch.ones(1, requires_grad=True)
    leaf.register_hook(lambda grad: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Queue.apply(leaf, lambda: called.append(1), lambda: None).sum().backward()
    assert called == []


def test_a_requested_tensor_runs_its_node_hooks():
    log, a = [], torch.ones(1, requires_grad=True)
    b = a.clone()
    b.grad_fn.register_prehook(lambda grads: log.append("node"))
    b.register_hook(lambda grad: log.append("tensor"))
    b.sum().backward(inputs=(b,))
    assert log == ["tensor", "node"]


def test_nodes_check_the_number_of_gradients():
    node = (torch.ones(1, requires_grad=True) ** 2).grad_fn
    for grads in ((), (torch.ones(1), torch.ones(1))):
        with pytest.raises(TypeError, match=f"expected 1 arguments, got {len(grads)} instead"):
            node(*grads)


def test_allowed_mutations_are_counted():
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a = torch.ones(2, requires_grad=True).clone()
        out = (a**2).sum()
        assert (len(context.tid_to_weakhandle), len(context.cloned)) == (1, 0)
        a.mul_(2)
        assert (len(context.tid_to_weakhandle), len(context.cloned)) == (0, 1)
        del out
        assert len(context.cloned) == 0


def test_more_exits_than_entries_of_saved_tensor_hooks():
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)
    hooks.__enter__()
    hooks.__exit__()
    hooks.__exit__()
    x = torch.ones(1, requires_grad=True)
    assert x.exp().grad_fn._raw_saved_result.unpack_hook is None


def test_attributes_that_cannot_be_deleted():
    x = torch.ones(1, requires_grad=True)
    for name, text in (
        ("requires_grad", "requires_grad must be a bool"),
        ("_grad_fn", "Deletion of _grad_fn not allowed. Detach tensor instead!"),
        ("_backward_hooks", "Deletion of _backwards_hooks not allowed!"),
    ):
        with pytest.raises(RuntimeError, match=text):
            delattr(x, name)
    assert x._backward_hooks is None
    handle = x.register_hook(print)
    assert list(x._backward_hooks.values()) == [print]
    handle.remove()


def test_gradients_of_a_function_that_is_differentiable_once():
    class Pair(Function):
        @staticmethod
        def forward(ctx, x, n, y):
            return x + n * y

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return grad, None, grad * 2

    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    seed = torch.ones(2, requires_grad=True)
    grads = torch.autograd.grad(Pair.apply(x, 3, y), (x, y), seed, create_graph=True)
    assert {each.grad_fn.name() for each in grads} == {"Error"}
    assert [type(node).__name__ for node, _ in grads[0].grad_fn.next_functions] == [
        "AccumulateGrad", "NoneType", "AccumulateGrad",
    ]  # fmt: skip
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        grads[1].sum().backward()


def test_saved_variables_warn():
    class Save(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated; use 'saved_tensors'"):
                (x,) = ctx.saved_variables
            return grad * x

    x = torch.ones(1, requires_grad=True)
    Save.apply(x).backward()
    assert x.grad.item() == 1


def test_gradients_of_constant_results_may_be_none():
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            kept = x.clone()
            ctx.mark_non_differentiable(kept)
            ctx._materialize_non_diff_grads = False
            return x * 2, kept

        @staticmethod
        def backward(ctx, grad, of_kept):
            assert of_kept is None
            return grad * 2

    x = torch.ones(1, requires_grad=True)
    Two.apply(x)[0].backward()
    assert x.grad.item() == 2


def test_views_made_in_functions_are_not_written():
    class View(Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return grad

    view, weight = View.apply(torch.ones(2)), torch.ones(2, requires_grad=True)
    assert view.add_(1).tolist() == [2.0, 2.0]
    with pytest.raises(
        RuntimeError, match=r"being modified inplace with grad mode enabled. This view was created inside"
    ):
        view += weight


def test_a_checkpoint_unpacks_a_tensor_once_in_a_pass():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            assert len(ctx.saved_tensors) == 1
            with pytest.raises(RuntimeError, match="a tensor that was already unpacked once"):
                ctx.saved_tensors
            return grad * 2

    x = torch.ones(1, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(Twice.apply, x * 1, use_reentrant=False)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 4


# -- torch.func and functorch ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vjp", "jacrev", "jacfwd"])
def test_transforms_need_a_result(name):
    x = torch.ones(2)
    for empty in (None, (), []):
        with pytest.raises(RuntimeError, match="Expected f to be a function that has non-empty output"):
            transform = getattr(torch.func, name)
            transform(lambda x: empty, x) if name == "vjp" else transform(lambda x: empty)(x)  # noqa: B023


def test_requires_grad_is_not_set_in_a_transform():
    for transform in (torch.vmap, torch.func.grad):
        with pytest.raises(RuntimeError, match=r"attempting to call Tensor.requires_grad_\(\)"):
            transform(lambda x: x.requires_grad_().sum())(torch.ones(2))
    with pytest.raises(RuntimeError, match=r"torch\.autograd\.functional"):
        torch.func.grad(lambda x: torch.autograd.functional.jacobian(torch.sin, x).sum())(torch.ones(2))
    assert torch.func.grad(lambda x: (torch.ones(2, requires_grad=True) * x).sum())(torch.ones(2)).tolist() == [1, 1]


def test_functions_with_keyword_tensors_are_refused_by_vmap():
    class Sum(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, *, y):
            return x + y

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        torch.vmap(lambda x: Sum.apply(x, y=torch.ones(2)))(torch.ones(3, 2))


def test_nodes_in_transforms_have_generated_names():
    class Copy(Function):
        @staticmethod
        def forward(x):
            return x.clone()

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, grad):
            return grad

    names = []
    torch.func.grad(lambda x: names.append(Copy.apply(x).grad_fn.name()) or x.sum())(torch.ones(2))
    assert names == ["CopyGeneratedBackward"]
    assert Copy.apply(torch.ones(1, requires_grad=True)).grad_fn.name() == "CopyBackward"


def test_functorch_names():
    from retrograd import import_hook

    with import_hook.installed():
        import functorch

        assert functorch.grad is torch.func.grad and functorch.vmap is torch.func.vmap
        module = torch.nn.Linear(2, 1)
        with pytest.warns(FutureWarning, match="`functorch.make_functional` is deprecated"):
            call, params = functorch.make_functional(module)
        assert torch.equal(call(params, torch.ones(1, 2)), module(torch.ones(1, 2)))
        assert not list(call.buffers()) and params[0] is not module.weight
        with pytest.warns(FutureWarning):
            call, params, buffers = functorch.combine_state_for_ensemble([torch.nn.BatchNorm1d(2)] * 3)
        assert [tuple(each.shape) for each in (*params, *buffers)] == [(3, 2)] * 4 + [(3,)]
        with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="`model` has buffers"):
            functorch.make_functional(torch.nn.BatchNorm1d(2))
    assert "functorch" not in sys.modules


# -- Layers and functions --------------------------------------------------------------------------------------------


def test_large_rows_are_normalised_accurately():
    torch.manual_seed(0)
    x = torch.rand(2, 3_000_000)
    wide = (x.double() - x.double().mean(1, keepdim=True)) / (
        x.double().var(1, unbiased=False, keepdim=True) + 1e-5
    ).sqrt()
    for found in (F.layer_norm(x, x.shape[1:]), F.group_norm(x.view(2, 4, -1), 1).view(2, -1)):
        assert (found - wide).abs().max() < 1e-6


def test_normalisation_of_mixed_dtypes():
    torch.manual_seed(0)
    x = torch.randn(2, 4, 50).bfloat16()
    half, full = torch.nn.GroupNorm(2, 4), torch.nn.GroupNorm(2, 4)
    half(x).float().pow(2).sum().backward()
    full(x.float()).bfloat16().float().pow(2).sum().backward()
    assert torch.allclose(half.weight.grad, full.weight.grad, atol=1e-3)
    layer = torch.nn.InstanceNorm2d(4, track_running_stats=True, dtype=torch.bfloat16)
    assert layer(torch.randn(2, 4, 3, 3)).dtype is torch.float32 and layer.running_mean.dtype is torch.bfloat16
    assert torch.nn.BatchNorm1d(3)(torch.zeros(0, 3, dtype=torch.float64)).dtype is torch.float64


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: F.cosine_similarity(torch.ones(2), torch.ones(2), dim=0, eps=-1), "eps must be non-negative"),
        (
            lambda: F.fold(torch.ones(1, 12, 12), (4, 5), 2, dilation=8),
            r"sliding blocks as \(-4, -3\), which is too small",
        ),
        (lambda: F.multilabel_margin_loss(torch.ones(0), torch.ones(10).long()), r"batch size, but got: \[0\]"),
        (lambda: F.multi_margin_loss(torch.ones(3, 0), torch.ones(3).long()), r"batch size, but got: \[3, 0\]"),
        (lambda: torch.ones(0, 3).index_select(0, torch.tensor([0])), "self indexing axis dim should be positive"),
        (lambda: torch.ones(2, 3).index_select(1, torch.tensor([5])), "DATA bounds, id=5 axis_dim=3"),
        (lambda: torch.ones(()).index_put([], torch.ones(1), True), r"value tensor of shape \[1\] cannot be broadcast"),
        (lambda: torch.multinomial(torch.ones(3, 0), 2, True), "sum of probabilities <= 0"),
        (lambda: torch.device(-1), "Device index must not be negative"),
        (lambda: torch._masked_softmax(torch.ones(2), torch.ones(2)), "Mask should be a boolean tensor"),
    ],
)
def test_error_texts(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


@pytest.mark.parametrize(
    "call", [lambda a: F.leaky_relu_(a, -2), lambda a: F.rrelu_(a, -5.0, 1.0), lambda a: F.elu_(a, -2)]
)
def test_in_place_activations_with_negative_slopes(call):
    out = call(torch.tensor([-1.0, 1.0], requires_grad=True).clone())
    with pytest.raises(RuntimeError, match="please call out-of-place version instead"):
        out.sum().backward()


def test_distances_of_infinite_points_are_nan():
    x = torch.full((2, 2), float("inf"))
    assert torch.pdist(x, 0.0).isnan().all() and torch.cdist(x[:1], x[1:], p=0.0).isnan().all()


def test_masked_softmax():
    mask = torch.tensor([[True, False], [True, True]])
    out = torch._masked_softmax(torch.zeros(2, 2), mask)
    assert out[0].tolist() == [0.0, 1.0] and out[1].isnan().all()
    assert torch._masked_softmax(torch.zeros(2, 3, 2, 2), torch.eye(2).bool(), 3, 0)[1, 2].tolist() == [[0, 1], [1, 0]]
    by_key = torch._masked_softmax(torch.zeros(2, 3, 2, 2), torch.tensor([[True, False], [False, False]]), 3, 1)
    assert by_key[:, 0, 0].tolist() == [[0.0, 1.0], [0.5, 0.5]]
    assert torch._softmax(torch.zeros(2).half(), 0, True).dtype is torch.float32


# -- Tensors ---------------------------------------------------------------------------------------------------------


def test_sizes_and_other_objects():
    class Anything:
        def __add__(self, other):
            return 42

        __radd__ = __add__

    size = torch.Size([1, 2])
    assert size + Anything() == Anything() + size == 42
    for other in (range(2), [1], 5):
        with pytest.raises(TypeError):
            size + other
        with pytest.raises(TypeError):
            other + size


def test_typed_storages():
    x = torch.arange(4.0)[1:]
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        storage = x.storage()
    assert (len(storage), storage.size(), storage.nbytes(), storage.dtype) == (4, 4, 16, torch.float32)
    assert storage.tolist() == list(storage) == [0.0, 1.0, 2.0, 3.0]
    storage[1] = 5
    assert x[0].item() == 5
    assert torch.ones(1).new(storage).data_ptr() == storage.data_ptr() == x.untyped_storage().data_ptr()
    with pytest.raises(RuntimeError, match="Expected a Storage of type Int"):
        torch.ones(1, dtype=torch.int32).new(storage)


def test_constructors_and_conversions():
    assert torch.ones(1).new(size=(3, 4)).shape == (3, 4)
    assert torch.ones(1).int().type(torch.Tensor).dtype is torch.get_default_dtype()
    assert torch.multinomial(torch.rand(0, 3), 2, True).shape == (0, 2)
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert torch.cov(torch.tensor([1.0, 2.0]), correction=3).item() == float("inf")
    x = torch.ones(1)
    x.resize_((1,))
    assert x._version == 0
    with torch.inference_mode():
        out = torch.zeros(1, 2, 3).permute(2, 0, 1)
        assert torch.bmm(torch.ones(3, 1, 4), torch.ones(3, 4, 2), out=out).sum().item() == 24


@pytest.mark.parametrize(("step", "words"), [(0, "slice step cannot be zero"), (-1, "step must be greater than zero")])
def test_the_step_of_a_slice_may_be_an_object_with_index(step, words):
    class Step:
        def __index__(self):
            return step

    for given in (step, Step()):
        with pytest.raises(ValueError, match=f"^{words}$"):
            torch.arange(4)[::given]


def test_an_index_may_not_be_the_filled_tensor():
    index = torch.tensor([2, 1, 0])
    with pytest.raises(RuntimeError, match="unsupported operation"):
        index.index_fill_(0, index, 0)


def test_warnings_that_are_always_repeated():
    torch.set_warn_always(True)
    try:
        for _ in range(2):
            with pytest.warns(UserWarning, match="This overload of addcmul is deprecated"):
                torch.addcmul(torch.ones(1), 2, torch.ones(1), torch.ones(1))
        assert torch.is_warn_always_enabled()
    finally:
        torch.set_warn_always(False)


def test_the_product_of_nadam_is_differentiated():
    p, start = torch.ones(1, dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64, requires_grad=True)

    def step(start):
        param = p.clone().requires_grad_().clone()
        param.grad = torch.ones(1, dtype=torch.float64)
        optimizer = torch.optim.NAdam([param], lr=0.1, differentiable=True)
        zeros = torch.zeros(1, dtype=torch.float64)
        optimizer.state[param].update(
            step=torch.tensor(3.0), mu_product=start.clone(), exp_avg=zeros.clone(), exp_avg_sq=zeros.clone()
        )
        optimizer.step()
        return param

    assert torch.autograd.gradcheck(step, (start,))
    assert forward_ad._current_level == -1
