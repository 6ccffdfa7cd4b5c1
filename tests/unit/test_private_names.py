"""Private names that packages import; results and messages are PyTorch 2.13's."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import retrograd as torch
from retrograd import import_hook
from retrograd.utils import _pytree

Pair = namedtuple("Pair", "x y")


def fails(kind: type[Exception], words: str, call: Callable[[], object]) -> None:
    with pytest.raises(kind, match="^" + re.escape(words)):
        call()


# -- torch._pytree -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tree", "paths", "text"),
    [
        (
            {"a": [1, (2,)]},
            ["['a'][0]", "['a'][1][0]"],
            '[1, {"type": "builtins.dict", "context": "[\\"a\\"]", "children_spec": [{"type": "builtins.list", "context": '
            '"null", "children_spec": [{"type": null, "context": null, "children_spec": []}, {"type": "builtins.tuple", '
            '"context": "null", "children_spec": [{"type": null, "context": null, "children_spec": []}]}]}]}]',
        ),
        (
            OrderedDict(a=1),
            ["['a']"],
            '[1, {"type": "collections.OrderedDict", "context": "[\\"a\\"]", "children_spec": [{"type": null, "context": '
            'null, "children_spec": []}]}]',
        ),
        (
            defaultdict(int, a=1),
            ["['a']"],
            '[1, {"type": "collections.defaultdict", "context": {"default_factory_module": "builtins", '
            '"default_factory_name": "int", "dict_context": ["a"]}, "children_spec": [{"type": null, "context": null, '
            '"children_spec": []}]}]',
        ),
        (
            deque([1], 3),
            ["[0]"],
            '[1, {"type": "collections.deque", "context": "3", "children_spec": [{"type": null, "context": null, '
            '"children_spec": []}]}]',
        ),
        (5, [""], '[1, {"type": null, "context": null, "children_spec": []}]'),
    ],
)
def test_paths_and_text_of_trees(tree: Any, paths: list[str], text: str) -> None:
    leaves, spec = _pytree.tree_flatten_with_path(tree)
    assert [_pytree.keystr(path) for path, _ in leaves] == paths
    assert [_pytree.key_get(tree, path) for path, _ in leaves] == [leaf for _, leaf in leaves]
    assert _pytree.treespec_dumps(spec) == text and _pytree.treespec_loads(text) == spec
    assert _pytree.tree_map_with_path(lambda path, leaf, other: leaf, tree, tree) == tree


def test_named_tuples_have_names_in_paths_and_text() -> None:
    tree = Pair(1, 2)
    assert [_pytree.keystr(path) for path, _ in _pytree.tree_leaves_with_path(tree)] == [".x", ".y"]
    spec = _pytree.tree_structure(tree)
    fails(NotImplementedError, "Can't serialize TreeSpec of namedtuple class", lambda: _pytree.treespec_dumps(spec))
    _pytree._register_namedtuple(Pair, serialized_type_name="tests.Pair")
    assert _pytree.treespec_loads(_pytree.treespec_dumps(spec)) == spec


def test_functions_of_container_types() -> None:
    assert (_pytree._dict_flatten({"a": 1}), _pytree._dict_unflatten([1], ["a"])) == (([1], ["a"]), {"a": 1})
    assert _pytree._dict_flatten_with_keys({"a": 1}) == ([(_pytree.MappingKey("a"), 1)], ["a"])
    assert _pytree.SUPPORTED_NODES[_pytree._get_node_type([1])].flatten_fn([1]) == ([1], None)
    assert repr(_pytree.SequenceKey(0)) == "SequenceKey(idx=0)" and _pytree._get_node_type(5) is int
    assert _pytree.arg_tree_leaves(1, [2], k=3) == [1, 2, 3]


def test_registered_types() -> None:
    @dataclass
    class Point:
        x: Any
        y: Any = None

    class Constant: ...

    class Other(dict[str, int]): ...

    try:
        _pytree.register_dataclass(Point, serialized_type_name="tests.Point")
        leaves, spec = _pytree.tree_flatten_with_path(Point(torch.ones(1)))
        assert [_pytree.keystr(path) for path, _ in leaves] == [".x"]
        assert (
            _pytree.tree_unflatten([3], spec) == Point(3)
            and _pytree.treespec_loads(_pytree.treespec_dumps(spec)) == spec
        )
        _pytree.register_constant(Constant)
        value = Constant()
        assert _pytree.tree_leaves([value, 1]) == [1] and _pytree.tree_map(lambda x: x, [value])[0] is value
        with pytest.warns(FutureWarning, match="`torch.utils._pytree._register_pytree_node` is deprecated"):
            _pytree._register_pytree_node(
                Other, _pytree._dict_flatten, lambda values, keys: Other(zip(keys, values, strict=True))
            )
        fails(ValueError, "Did not find a flatten_with_keys_fn", lambda: _pytree.tree_leaves_with_path(Other(a=1)))
    finally:
        for each in (Point, Constant, Other):
            _pytree._deregister_pytree_node(each)
    assert _pytree.tree_is_leaf(Other(a=1))


# -- Checks and numbers ------------------------------------------------------------------------------------------------


def test_checks() -> None:
    bad = "Expected cond to be True, but got False. (Could this error message be improved?"
    for kind, words, call in (
        (RuntimeError, bad, lambda: torch._check(False)),
        (RuntimeError, "w", lambda: torch._check(False, lambda: "w")),
        (TypeError, "cond must be a bool, but got <class 'int'>", lambda: torch._check(3)),
        (TypeError, "cond must be a bool, but got a Tensor.", lambda: torch._check(torch.tensor(True))),
        (TypeError, "message must be a callable", lambda: torch._check(False, "w")),
        (ValueError, "w", lambda: torch._check_value(False, lambda: "w")),
        (IndexError, bad, lambda: torch._check_index(False)),
        (NotImplementedError, bad, lambda: torch._check_not_implemented(False)),
        (RuntimeError, bad, lambda: torch._check_is_size(-1)),
        (RuntimeError, "w", lambda: torch._check_tensor_all(torch.tensor([True, False]), lambda: "w")),
        (TypeError, "cond tensor must have dtype torch.bool, but got torch.float32", lambda: torch._check_tensor_all(torch.ones(2))),
        (AssertionError, "msg", lambda: torch._assert(False, "msg")),
        (RuntimeError, "Expected Tensor with single nonzero value, but got zero", lambda: torch._assert_async(torch.tensor(0))),
    ):  # fmt: skip
        fails(kind, words, call)
    torch._check(True), torch._check_is_size(1), torch._check_tensor_all(torch.tensor([True])), torch._assert(True, "")


def test_symbolic_functions_compute_with_numbers() -> None:
    found = (torch.sym_int(-3.7), torch.sym_float(2), torch.sym_max(1, 2.0), torch.sym_min(1, 2), torch.sym_not(True))
    assert repr(found) == "(-3, 2.0, 2.0, 1, False)"
    assert (torch.sym_ite(True, 1, 2), torch.sym_sum([1, 2])) == (1, 3)
    assert not isinstance(1, (torch.SymInt, torch.SymFloat, torch.SymBool))


def test_functions_of_c() -> None:
    from retrograd import _C

    assert _C._get_tracing_state() is None and _C._log_api_usage_once("x") is None
    assert (_C._get_default_device(), type(torch.ones(1).__class__)) == ("cpu", _C._TensorMeta)
    assert not _C._are_functorch_transforms_active()
    seen = []
    torch.vmap(lambda x: (seen.append(_C._are_functorch_transforms_active()), x)[1])(torch.ones(2))
    assert seen == [True]
    parsed = [_C._nn._parse_to("cpu", torch.float16, non_blocking=True), _C._nn._parse_to(torch.ones(2))]
    assert parsed == [
        (torch.device("cpu"), torch.float16, True, None),
        (torch.device("cpu"), torch.float32, False, None),
    ]
    assert _C._nn._parse_to(torch.float64, memory_format=torch.channels_last)[3] is torch.channels_last
    assert torch._shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3]
    gradient = torch._softmax_backward_data(torch.tensor([1.0, 2.0]), torch.tensor([0.3, 0.7]), 0, torch.float32)
    torch.testing.assert_close(gradient, torch.tensor([-0.21, 0.21]))


def test_helpers_of_modules() -> None:
    from retrograd.distributions.multivariate_normal import _batch_mahalanobis, _precision_to_scale_tril
    from retrograd.distributions.utils import _standard_normal, _sum_rightmost
    from retrograd.nn.modules.module import _IncompatibleKeys
    from retrograd.utils.data._utils import collate, worker

    torch.manual_seed(0)
    assert torch.equal(
        _standard_normal((2, 3), torch.float32, torch.device("cpu")), (torch.manual_seed(0), torch.randn(2, 3))[1]
    )
    assert _sum_rightmost(torch.ones(2, 3), 1).tolist() == [3.0, 3.0]
    assert torch.allclose(_precision_to_scale_tril(4 * torch.eye(2)), 0.5 * torch.eye(2))
    assert _batch_mahalanobis(torch.eye(2), torch.tensor([3.0, 4.0])).item() == 25.0
    assert repr(_IncompatibleKeys(["a"], [])) == "_IncompatibleKeys(missing_keys=['a'], unexpected_keys=[])"
    assert collate.default_collate_fn_map[str] is collate.collate_str_fn and worker._worker_info is None
    x = torch.ones(3)
    assert torch.nn.init._no_grad_fill_(x, 2.0).tolist() == [2.0] * 3
    assert torch.torch is torch and torch.onnx.is_in_onnx_export() is False


# -- Names of operations, the import hook ------------------------------------------------------------------------------


def test_operations_by_name() -> None:
    aten, x = torch.ops.aten, torch.tensor([1.0, -2.0])
    assert repr(aten.add.Tensor) == "<OpOverload(op='aten.add', overload='Tensor')>"
    assert (aten.add.Tensor.name(), aten.relu.default.name(), aten.add.__name__) == (
        "aten::add.Tensor",
        "aten::relu",
        "add",
    )
    assert aten.add.Tensor(x, 1).tolist() == [2.0, -1.0] and aten.relu(x).tolist() == [1.0, 0.0]
    assert aten.view.default(x, (2, 1)).shape == (2, 1) and aten.mul_.Tensor(x, 2) is x
    assert aten.add.Tensor is aten.add.Tensor and aten.add.Tensor.overloadpacket is aten.add
    fails(AttributeError, "'_OpNamespace' 'aten' object has no attribute 'foo'", lambda: aten.foo)
    fails(AttributeError, "'_OpNamespace' 'library' object has no attribute 'foo'", lambda: torch.ops.library.foo)
    fails(OSError, "Could not load this library: x.so", lambda: torch.ops.load_library("x.so"))


def test_basic_operations_without_a_public_function() -> None:
    aten, x = torch.ops.aten, torch.arange(6.0).reshape(2, 3)
    assert aten.slice.Tensor(x, -1, 0, 2**63 - 1, 2).tolist() == [[0.0, 2.0], [3.0, 5.0]]
    assert aten.index.Tensor(x, [None, torch.tensor([1])]).tolist() == [[1.0], [4.0]]
    assert aten.index.Tensor(x, [torch.tensor([1])]).tolist() == [[3.0, 4.0, 5.0]]
    assert (aten.sym_size(x), aten.sym_size.int(x, 1), aten.sym_stride(x), aten.sym_numel(x)) == ([2, 3], 3, [3, 1], 6)
    assert aten.copy(x, torch.zeros(3, dtype=torch.int64)).dtype == torch.float32
    assert not aten._is_all_true(x > 0).item() and aten._local_scalar_dense(x[0, 1]) == 1.0
    assert torch.equal(aten._softmax(x, 1, False), x.softmax(1)) and aten.lift_fresh(x) is x
    assert torch.equal(aten._log_softmax(x, 1, False), x.log_softmax(1))
    image, window = torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)
    settings = [1, 1], [0, 0], [1, 1], False, [0, 0], 1, False, False, False, False
    assert aten._convolution(image, window, None, *settings).tolist() == [[[[4.0, 4.0], [4.0, 4.0]]]]
    assert aten._index_put_impl_(x, [torch.tensor([0]), torch.tensor([1])], torch.tensor([9.0]))[0, 1] == 9
    assert aten.mm(torch.eye(2).to_sparse(), torch.ones(2, 2)).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert aten._pin_memory.default.name() == "aten::_pin_memory"


def test_text_of_tensors_by_parts() -> None:
    from retrograd._tensor_str import _add_suffixes, _str, _str_intern, _tensor_str

    assert _tensor_str(torch.tensor([1, 2]), 7) == "[1, 2]" and _tensor_str(torch.ones(0), 4) == "[]"
    assert _tensor_str(torch.eye(2), 7) == "[[1., 0.],\n        [0., 1.]]"
    assert _add_suffixes("A([1]", ["a=1", "b=2"], 2, force_newline=False) == "A([1], a=1, b=2)"
    assert _add_suffixes("A([1]", ["a=1", "b=2"], 2, force_newline=True) == "A([1],\n  a=1, b=2)"
    assert _str_intern(torch.ones(2, dtype=torch.float64), tensor_contents="[x]") == "tensor([x], dtype=torch.float64)"
    assert _str(torch.ones(2)) == "tensor([1., 1.])"


def test_stubs_of_quantization_return_their_input() -> None:
    from retrograd.ao import quantization
    from retrograd.ao.nn.quantized import FloatFunctional

    assert torch.quantization is quantization and torch.nn.quantized.FloatFunctional is FloatFunctional
    wrapped = quantization.QuantWrapper(torch.nn.Linear(2, 1))
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    assert repr(wrapped) == (
        "QuantWrapper(\n  (quant): QuantStub()\n  (dequant): DeQuantStub()\n"
        "  (module): Linear(in_features=2, out_features=1, bias=True)\n)"
    )
    x = torch.tensor([-1.0, 2.0])
    functional = FloatFunctional()
    assert functional.add(x, x).tolist() == [-2.0, 4.0] and functional.cat([x, x]).shape == (4,)
    assert functional.mul(x, x).tolist() == [1.0, 4.0] and functional.matmul(x, x).item() == 5.0
    assert functional.add_scalar(x, 1).tolist() == [0.0, 3.0] and functional.mul_scalar(x, 2).tolist() == [-2.0, 4.0]
    fails(RuntimeError, "FloatFunctional is not intended to use the 'forward'", lambda: functional(x))
    fails(TypeError, "Can't instantiate abstract class ObserverBase", lambda: quantization.ObserverBase(torch.float32))

    class Rounding(quantization.FakeQuantizeBase):
        def forward(self, x: Any) -> Any:
            return x.round()

        def calculate_qparams(self, **kwargs: Any) -> Any:
            return None

    rounding = Rounding.with_args()()
    rounding.disable_observer()
    assert [each.item() for each in rounding.state_dict().values()] == [1, 0]
    rounding.disable_fake_quant()
    rounding.enable_observer()
    assert [each.item() for each in rounding.state_dict().values()] == [0, 1]
    assert rounding.fake_quant_enabled.dtype == torch.uint8


def test_graphs_of_torchscript_are_refused_when_one_is_asked_for() -> None:
    from retrograd.jit import _get_trace_graph

    fails(
        RuntimeError, "torch.jit._get_trace_graph: retrograd does not record programs", lambda: _get_trace_graph(print)
    )
    assert not torch.distributed.rpc.is_available() and not hasattr(torch.distributed.rpc, "api")


def test_small_names_that_packages_import(monkeypatch: pytest.MonkeyPatch) -> None:
    from retrograd.onnx import operators, symbolic_helper, symbolic_opset11

    from retrograd import _C, hub, types
    from retrograd.jit.annotations import BroadcastingList2
    from retrograd.nn.modules.transformer import _get_activation_fn
    from retrograd.optim.optimizer import ParamsT
    from retrograd.utils.checkpoint import get_device_states, set_device_states

    monkeypatch.setenv("TORCH_HOME", "/folder")
    assert (hub._get_torch_home(), types._device, types._dtype) == ("/folder", torch.device, torch.dtype)
    assert isinstance(torch.Size([1]), types._size) and BroadcastingList2[int] is None  # type: ignore[arg-type]
    assert get_device_states(torch.ones(1)) == ([], []) and set_device_states([], []) is None  # type: ignore[func-returns-value]
    assert _get_activation_fn("gelu") is torch.nn.functional.gelu and torch.cuda._initialized is False
    assert "Iterable" in str(ParamsT) and _C._get_privateuse1_backend_name() == "privateuseone"
    keys = _C.DispatchKeySet(_C.DispatchKey.AutocastCPU) | _C.DispatchKeySet(_C.DispatchKey.AutocastCUDA)
    assert keys.has(_C.DispatchKey.AutocastCUDA) and not keys.remove(_C.DispatchKey.CUDA).has(_C.DispatchKey.CUDA)
    with _C._ExcludeDispatchKeyGuard(keys):
        torch.manual_seed(0)
    expected = torch.distributions.Dirichlet(torch.ones(2, 3)).sample()
    torch.manual_seed(0)
    assert torch.equal(torch._sample_dirichlet(torch.ones(2, 3)), expected)
    torch.testing.assert_close(torch._standard_gamma(torch.ones(2)), torch.tensor([0.1833, 2.0296]), atol=1e-4, rtol=0)
    assert operators.shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3] and symbolic_opset11.__name__
    assert symbolic_helper.parse_args("v")(len) is len
    torch.onnx.register_custom_op_symbolic("tests::cube", len, 11)
    assert torch._dynamo.utils.is_compile_supported("cpu")


def test_metadata_of_torch_exists_while_the_hook_is_installed() -> None:
    with import_hook.installed():
        assert importlib.metadata.version("torch") == str(torch.__version__)
        assert importlib.metadata.metadata("torch")["Name"] == "torch"
    assert not any(each.metadata["Summary"] == "Provided by retrograd" for each in importlib.metadata.distributions())


def test_private_names_are_loaded_on_demand() -> None:
    program = (
        "import sys, retrograd as torch; print('retrograd.private_names' in sys.modules, hasattr(torch._C, 'Graph'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


# -- torch.hub ---------------------------------------------------------------------------------------------------------


def test_hub_reads_local_files(tmp_path: Any) -> None:
    (tmp_path / "hubconf.py").write_text('def tiny(n=1):\n    """Return n."""\n    return n\n', encoding="utf-8")
    assert torch.hub.list(str(tmp_path), source="local") == ["tiny"]
    assert torch.hub.load(str(tmp_path), "tiny", 3, source="local") == 3
    assert torch.hub.help(str(tmp_path), "tiny") == "Return n."
    before = torch.hub.get_dir()
    try:
        torch.hub.set_dir(tmp_path)
        (tmp_path / "checkpoints").mkdir()
        torch.save({"a": 1}, tmp_path / "checkpoints" / "model-abc.pt")
        assert torch.hub.load_state_dict_from_url("https://example.org/model-abc.pt") == {"a": 1}
        fails(RuntimeError, "the repository 'a/b' is not on this machine", lambda: torch.hub.load("a/b", "tiny"))
        with pytest.raises(RuntimeError, match="retrograd downloads nothing"):
            torch.hub.load_state_dict_from_url("https://example.org/other.pt")
    finally:
        torch.hub.set_dir(before)


# -- Names of dtypes, classes that other packages derive ---------------------------------------------------------------


def test_optimizer_that_does_not_call_the_constructor() -> None:
    class Wrapped(torch.optim.Optimizer):
        def __init__(self, inner: torch.optim.Optimizer) -> None:
            self.inner = inner

        def step(self, closure: Any = None) -> Any:
            return self.inner.step(closure)

    x = torch.ones(1, requires_grad=True)
    x.sum().backward()
    Wrapped(torch.optim.SGD([x], 0.5)).step()
    assert x.tolist() == [0.5]


def test_register_kl_accepts_every_class() -> None:
    class Own: ...

    torch.distributions.register_kl(Own, Own)(lambda p, q: 3)
    assert torch.distributions.kl_divergence(Own(), Own()) == 3  # type: ignore[arg-type]
    fails(TypeError, "issubclass() arg 1 must be a class", lambda: torch.distributions.register_kl(Own, 3)(print))


def test_name_of_the_package_while_the_hook_is_installed() -> None:
    with import_hook.installed():
        import torch as theirs  # type: ignore[import-not-found]

        assert theirs is torch and torch.__name__ == "torch"
    assert torch.__name__ == "retrograd"


def test_base_classes_of_losses_take_a_reduction() -> None:
    from retrograd.nn.modules.loss import _Loss, _WeightedLoss

    class Own(_Loss):
        def __init__(self) -> None:
            super().__init__(reduction="sum")

    assert Own().reduction == "sum" and _WeightedLoss(torch.ones(2)).weight.tolist() == [1.0, 1.0]
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
        assert _Loss(size_average=False).reduction == "sum"


def test_flop_counter() -> None:
    from retrograd.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        torch.nn.Linear(4, 3)(torch.ones(2, 4))
    assert counter.get_total_flops() == 48 and sorted(counter.get_flop_counts()) == ["Global", "Linear"]


def test_classes_of_devices_raise_when_they_are_used() -> None:
    fails(RuntimeError, "the work of GPUs is not captured", torch.cuda.CUDAGraph)
    fails(RuntimeError, "the work of GPUs is not captured", lambda: torch.cuda.graph(None))
    fails(RuntimeError, "NVIDIA's profiler is not supported", torch.autograd.profiler.emit_nvtx().__enter__)
    assert not torch.autograd._profiler_enabled() and not torch.cuda.is_current_stream_capturing()
    with torch.autograd.profiler.profile():
        assert torch.autograd._profiler_enabled()


def test_custom_operations() -> None:
    @torch.library.custom_op("tests::cube", mutates_args=())
    def cube(x: Any) -> Any:
        return x**3

    torch.library.register_fake("tests::cube")(lambda x: x)
    x = torch.tensor([2.0], requires_grad=True)
    assert torch.ops.tests.cube(x).tolist() == [8.0] and repr(cube) == "<CustomOpDef(tests::cube)>"

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])

    torch.library.register_autograd(
        "tests::cube", lambda ctx, g: 10 * g * ctx.saved_tensors[0], setup_context=setup_context
    )
    cube(x).backward()
    assert x.grad is not None and x.grad.tolist() == [20.0]
    torch.library.register_kernel("tests::cube", "cpu", lambda x: x + 1)
    assert cube(x).tolist() == [3.0]
    fails(
        ValueError, "Expected `name` to be of the form", lambda: torch.library.custom_op("cube", print, mutates_args=())
    )
    fails(RuntimeError, "Could not find the operator tests::none", lambda: torch.library.register_fake("tests::none"))


def test_namespaces_of_functions_in_c() -> None:
    x = torch.rand(2, 3)
    assert (
        torch._C._nn.linear is torch.nn.functional.linear and torch._C._nn.log_sigmoid is torch.nn.functional.logsigmoid
    )
    assert torch._C._linalg.linalg_norm(x) == x.norm() and torch._C._fft.fft_fft(x).shape == (2, 3)
    fails(AttributeError, "module 'torch._C._linalg' has no attribute 'norm'", lambda: torch._C._linalg.norm)
    fails(AttributeError, "module 'torch._C._nn' has no attribute 'nothing'", lambda: torch._C._nn.nothing)


def test_checks_and_numbers_can_be_overridden() -> None:
    class Own:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func.__name__, len(args)

    assert torch._assert(Own(), "text") == ("_assert", 2)  # type: ignore[func-returns-value]
    assert torch.sym_max(1, Own()) == ("sym_max", 2) and torch.sym_int(Own()) == ("sym_int", 1)
    fails(AssertionError, "text", lambda: torch._assert(False, "text"))


def test_flex_attention_is_attention_with_functions_of_positions() -> None:
    from retrograd.nn.attention import flex_attention as flex

    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 5, 8, requires_grad=True) for _ in range(3))
    causal = flex.create_block_mask(lambda b, h, i, j: i >= j, None, None, 5, 5)
    out, lse = flex.flex_attention(q, k, v, block_mask=causal, return_lse=True)
    torch.testing.assert_close(out, torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
    assert lse.shape == (2, 4, 5) and causal.to_dense().sum().item() == 15
    out.sum().backward()
    assert all(each.grad is not None for each in (q, k, v))
    bias = torch.randn(4)
    biased = flex.flex_attention(q, k, v, lambda s, b, h, i, j: s + bias[h] * (i - j), scale=0.3)
    distance = torch.arange(5)[:, None] - torch.arange(5)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, bias[:, None, None] * distance, scale=0.3)
    torch.testing.assert_close(biased, expected)
    none = flex.create_block_mask(lambda b, h, i, j: j < 0, 1, 1, 5, 5)
    assert flex.flex_attention(q, k, v, block_mask=none).abs().sum().item() == 0
    shared = flex.flex_attention(q, k[:, :2], v[:, :2], enable_gqa=True)
    torch.testing.assert_close(
        shared, flex.flex_attention(q, k[:, :2].repeat_interleave(2, 1), v[:, :2].repeat_interleave(2, 1))
    )
    with pytest.raises(ValueError, match="Expect query and key/value to have the same number of heads"):
        flex.flex_attention(q, k[:, :2], v[:, :2])


def test_type_hints_of_a_subclass_of_module_can_be_resolved() -> None:
    import typing

    class Own(torch.nn.Module):
        size: int

    assert typing.get_type_hints(Own)["size"] is int and typing.get_type_hints(Own)["training"] is bool


# -- torch._utils, torch._C._functorch and others ----------------------------------------------------------------------


def test_lists_of_gradients() -> None:
    from retrograd import _utils

    some = [torch.ones(2, 3), torch.arange(4.0), torch.tensor(5.0)]
    flat = _utils._flatten_dense_tensors(some)
    assert flat.tolist() == [1, 1, 1, 1, 1, 1, 0, 1, 2, 3, 5]
    parts = _utils._unflatten_dense_tensors(flat, some)
    assert [part.shape for part in parts] == [each.shape for each in some] and parts[1].tolist() == [0, 1, 2, 3]
    mixed = [torch.ones(3), torch.ones(2).double(), torch.ones(4), torch.ones(9)]
    groups = list(_utils._take_tensors(mixed, 28))
    assert [[each.numel() for each in group] for group in groups] == [[3, 4], [9], [2]]
    again = _utils._reorder_tensors_as([each for group in groups for each in group], mixed)
    assert all(a is b for a, b in zip(again, mixed, strict=True))
    assert [_utils._element_size(each) for each in (torch.bool, torch.complex64, torch.float8_e5m2)] == [1, 8, 1]
    fails(RuntimeError, "expected torch.dtype, but got <class 'int'>", lambda: _utils._element_size(3))


def test_names_of_objects_and_parts_of_complex_numbers() -> None:
    from retrograd import _utils

    assert _utils._import_dotted_name("retrograd.nn.Linear") is torch.nn.Linear
    x = torch.ones(2)
    assert _utils._handle_complex(x) is x
    assert _utils._handle_complex(torch.tensor([1 + 2j])).tolist() == [[1, 2]]


def test_index_of_a_device() -> None:
    from retrograd._utils import _get_device_index

    assert [_get_device_index("cuda:1"), _get_device_index(2), _get_device_index("cpu", allow_cpu=True)] == [1, 2, -1]
    assert _get_device_index(device=torch.device("cpu", 0), allow_cpu=True) == 0
    assert _get_device_index(None, optional=True) is None and _get_device_index("cuda", optional=True) is None
    fails(ValueError, "Expected a non cpu device, but got: cpu", lambda: _get_device_index("cpu"))
    fails(ValueError, "Expected a torch.device with a specified index or an integer, but got:None",
          lambda: _get_device_index(None))  # fmt: skip


def kept(error: BaseException) -> Any:
    from retrograd._utils import ExceptionWrapper

    try:
        raise error
    except type(error):
        return ExceptionWrapper(where="in worker 0")


class TwoArguments(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__(a)


def test_kept_exception() -> None:
    wrapped = kept(ValueError("bad"))
    assert (wrapped.exc_type, wrapped.where) == (ValueError, "in worker 0")
    fails(ValueError, "Caught ValueError in worker 0.\nOriginal Traceback", wrapped.reraise)
    fails(KeyError, "Caught KeyError in worker 0.\nOriginal Traceback", kept(KeyError("k")).reraise)
    fails(RuntimeError, "Caught TwoArguments in worker 0.\nOriginal", kept(TwoArguments(1, 2)).reraise)


def test_tensors_rebuilt_from_a_storage() -> None:
    from retrograd import _utils

    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        storage = torch.arange(6.0).storage()
    assert _utils._rebuild_tensor(storage, 1, (2,), (2,)).tolist() == [1, 3]
    made = _utils._rebuild_tensor_v2(storage, 0, (2, 3), (1, 2), True, {})
    assert made.tolist() == [[0, 2, 4], [1, 3, 5]] and made.requires_grad and made.is_leaf


def described(x: torch.Tensor) -> tuple[Any, ...]:
    from retrograd._C import _functorch as f

    return (
        f.is_batchedtensor(x), f.is_gradtrackingtensor(x), f.is_functorch_wrapped_tensor(x), f.maybe_get_bdim(x),
        f.maybe_get_level(x), f.maybe_current_level(), f.get_dynamic_layer_stack_depth(),
    )  # fmt: skip


def test_questions_about_transforms() -> None:
    from retrograd._C import _functorch as f

    found: list[Any] = []

    def note(x: torch.Tensor) -> torch.Tensor:
        found.append((*described(x), f.peek_interpreter_stack().key().name, tuple(f.get_unwrapped(x).shape)))
        return x.sum()

    x, rows = torch.ones(3), torch.ones(2, 3)
    assert described(x) == (False, False, False, -1, -1, None, 0) and f.get_interpreter_stack() is None
    fails(RuntimeError, "No wrappers present!", lambda: f.get_unwrapped(x))
    fails(RuntimeError, "no transform is active", f.current_level)
    torch.vmap(note)(rows)
    torch.vmap(note, in_dims=1)(rows)
    torch.func.grad(note)(x)
    torch.func.jvp(note, (x,), (x,))
    torch.vmap(torch.vmap(note))(torch.ones(4, 2, 3))
    assert found == [
        (True, False, True, 0, 1, 1, 1, "Vmap", (2, 3)),
        (True, False, True, 1, 1, 1, 1, "Vmap", (2, 3)),
        (False, True, True, -1, 1, 1, 1, "Grad", (3,)),
        (False, True, True, -1, 1, 1, 1, "Jvp", (3,)),
        (True, False, True, 0, 2, 2, 2, "Vmap", (2, 3)),
    ]


def test_warnings_of_vmap_can_be_switched_off() -> None:
    from retrograd._C import _functorch as f

    def renormalize() -> torch.Tensor:
        return torch.vmap(lambda x: x.renorm(2, 0, 1.0))(torch.ones(2, 3, 4))

    with pytest.warns(UserWarning, match="runs slice by slice"):
        expected = renormalize()
    f._set_vmap_fallback_warning_enabled(False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert torch.equal(renormalize(), expected)
    finally:
        f._set_vmap_fallback_warning_enabled(True)
    assert f._is_vmap_fallback_enabled()


def test_level_of_vmap_by_hand() -> None:
    from retrograd._C import _functorch as f

    level = f._vmap_increment_nesting(2, "error")
    try:
        batch = f._add_batch_dim(torch.arange(6).reshape(2, 3), 0, level)
        doubled = batch * 2
        assert doubled.shape == (3,) and f._remove_batch_dim(doubled, level, 2, 0).tolist() == [[0, 2, 4], [6, 8, 10]]
        assert f._remove_batch_dim(doubled, level, 2, 1).tolist() == [[0, 6], [2, 8], [4, 10]]
        assert f._remove_batch_dim(torch.ones(1), level, 2, 0).tolist() == [[1], [1]]
        fails(RuntimeError, "no level of vmap has the depth 5", lambda: f._add_batch_dim(batch, 0, 5))
    finally:
        assert f._vmap_decrement_nesting() == level == 1
    assert f.is_dead_tensor_wrapper(doubled) and f.unwrap_if_dead(doubled).shape == (2, 3)
    fails(RuntimeError, "the innermost transform is not vmap", f._vmap_decrement_nesting)


def test_former_names_of_vmap_and_of_reductions() -> None:
    from retrograd._vmap_internals import _vmap

    from retrograd.nn import _reduction

    assert _vmap(torch.sum)(torch.ones(2, 3)).tolist() == [3, 3]
    found = _vmap(lambda x: (x, None), allow_none_pass_through=True)(torch.ones(2))
    assert found[0].tolist() == [1, 1] and found[1] is None
    assert [_reduction.get_enum(each) for each in ("none", "mean", "sum")] == [0, 1, 2]
    fails(ValueError, "x is not a valid value for reduction", lambda: _reduction.get_enum("x"))
    with pytest.warns(UserWarning, match="please use reduction='none' instead"):
        assert _reduction.legacy_get_string(True, False) == "none"


def test_base_class_of_context_managers_that_decorate() -> None:
    from retrograd.utils._contextlib import _DecoratorContextManager

    entered: list[str] = []

    class Noted(_DecoratorContextManager):
        def __enter__(self) -> None:
            entered.append("in")

        def __exit__(self, *error: object) -> None:
            entered.append("out")

    @Noted()
    def five() -> int:
        entered.append("five")
        return 5

    @Noted()
    def numbers() -> Any:
        yield 1
        yield 2

    assert five() == 5 and entered == ["in", "five", "out"]
    assert list(numbers()) == [1, 2] and entered[3:] == ["in", "out"] * 3


# -- Products and indices ----------------------------------------------------------------------------------------------


def test_scaled_products() -> None:
    a = torch.arange(8.0).reshape(2, 4).to(torch.float8_e4m3fn)
    b = torch.arange(12.0).reshape(3, 4).to(torch.float8_e4m3fn).t()
    two, half = torch.tensor(2.0), torch.tensor(0.5)
    wanted = a.float() @ b.float()
    assert torch.equal(torch._scaled_mm(a, b, two, half, out_dtype=torch.float32), wanted)
    rows, columns = torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0, 2.0, 3.0]])
    assert torch.equal(torch._scaled_mm(a, b, rows, columns, out_dtype=torch.float32), wanted * rows * columns)
    assert torch._scaled_mm(a, b, two, half).dtype is torch.float8_e4m3fn
    fails(RuntimeError, "mat1 must be a matrix", lambda: torch._scaled_mm(a[0], b, two, half))
    numbers = torch.ones(2, 3, dtype=torch.int8)
    assert torch.equal(torch._int_mm(numbers, numbers.t()), torch.full((2, 2), 3, dtype=torch.int32))
    x, w = torch.arange(12.0).reshape(6, 2), torch.arange(8.0).reshape(2, 2, 2)
    product = torch._grouped_mm(x, w, offs=torch.tensor([2, 6]))
    assert torch.equal(product, torch.cat([x[:2] @ w[0], x[2:] @ w[1]]))


def test_converted_indices() -> None:
    rows, columns = torch.tensor([0, 0, 1, 3]), torch.tensor([1, 0, 1])
    assert torch._convert_indices_from_coo_to_csr(rows, 5).tolist() == [0, 2, 3, 3, 4, 4]
    assert torch._convert_indices_from_coo_to_csr(rows, 5, out_int32=True).dtype is torch.int32
    starts = torch.tensor([0, 2, 3])
    assert torch._convert_indices_from_csr_to_coo(starts, columns).tolist() == [[0, 0, 1], [1, 0, 1]]
    assert torch._convert_indices_from_csr_to_coo(starts, columns, transpose=True).tolist() == [[1, 0, 1], [0, 0, 1]]


def test_names_of_optimizers() -> None:
    from retrograd.optim import optimizer

    tensors = [[torch.ones(1), torch.ones(2, dtype=torch.float64)], [torch.zeros(1), torch.zeros(2)]]
    groups = optimizer.Optimizer._group_tensors_by_device_and_dtype(tensors, with_indices=True)
    assert {key[1]: indices for key, (_, indices) in groups.items()} == {torch.float32: [0], torch.float64: [1]}
    assert optimizer._default_to_fused_or_foreach([torch.ones(1)], False) == (False, False)

    class Recording(torch.optim.Optimizer):
        @optimizer._use_grad_for_differentiable
        def step(self, closure: Any = None) -> Any:
            return torch.is_grad_enabled()

    x = torch.ones(1, requires_grad=True)
    assert [Recording([x], {"differentiable": each}).step() for each in (False, True)] == [False, True]


def test_named_member_accessor() -> None:
    from retrograd.nn.utils._named_member_accessor import NamedMemberAccessor

    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    access = NamedMemberAccessor(model)
    before, value = access.get_tensor("0.weight"), torch.zeros(2, 2)
    assert access.swap_tensor("0.weight", value) is before and access.get_tensor("0.weight") is value
    access.set_tensors_dict({"0.weight": before, "1.running_mean": torch.ones(2)})
    assert model[0].weight is before and access.get_tensor("1.running_mean").sum() == 2
    assert access.check_keys(["0.weight", "x"])[1] == ["x"]
