"""Layers of ``nn``: created from a seed, called in training and evaluation, differentiated.

Every case runs under retrograd and, to record ``golden/layers.json``, under PyTorch; everything observable is compared.
"""

from __future__ import annotations

import warnings
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy

from tests.conformance.sample_derivatives import weighted_sum
from tests.conformance.samples import Recipe, distinct, integers, normal, positive, unit


@dataclass
class Layer:
    """``expression`` creates the module from ``nn``; ``inputs`` are its arguments (recipes or values).

    ``call``: an expression for another call (``m`` is the module, ``x`` the list of inputs).
    """

    expression: str
    inputs: list[Any] = field(default_factory=list)
    call: str = "m(*x)"

    def tensors(self, torch: Any) -> list[Any]:
        """The inputs in float32, requiring grad if floating."""
        rng = numpy.random.default_rng(zlib.crc32(self.expression.encode()))
        made = []
        for recipe in self.inputs:
            array = numpy.asarray(recipe(rng))
            floating = array.dtype.kind == "f"
            each = torch.tensor(array.astype(numpy.float32) if floating else array)
            made.append(each.requires_grad_(floating))
        return made


def flat(value: Any) -> list[Any]:
    """Return the tensors in a module's result, in order."""
    if isinstance(value, (tuple, list)):
        return [each for item in value for each in flat(item)]
    return [value] if hasattr(value, "grad_fn") else []


def digest(tensor: Any) -> Any:
    """Summarise a tensor: its shape and all elements, or of many the first ones and two weighted sums."""
    if tensor is None:
        return None
    values = numpy.asarray(tensor.detach().tolist(), dtype=numpy.float64).reshape(-1)
    if values.size > 8:
        places = numpy.arange(values.size)
        sums = [values @ numpy.cos(places), values @ numpy.sin(0.7 * places)]
        values = numpy.concatenate([values[:3], sums])
    return [list(tensor.shape), [float(f"{each:.5g}") for each in values]]


def observe_layer(torch: Any, layer: Layer) -> dict[str, Any]:
    """Return all observations of a layer: repr, first state, results, nodes, gradients, and changes by training."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(1)
        space = {"torch": torch, "nn": torch.nn}
        module = eval(layer.expression, space)
        plain = torch.nn.Module().__getstate__()
        found: dict[str, Any] = {
            "text": repr(module),
            "place": f"{type(module).__module__}.{type(module).__qualname__}",
            "kept": sorted(name for name in module.__getstate__() if name not in plain),  # its pickled state
        }
        x = layer.tensors(torch)
        torch.manual_seed(2)
        outs = flat(eval(layer.call, {**space, "m": module, "x": x}))
        found["class"] = type(module).__name__  # lazy modules have changed their class
        state = module.state_dict()
        found["names"] = [f"{name}: {str(each.dtype).removeprefix('torch.')}" for name, each in state.items()]
        found["nodes"] = [None if each.grad_fn is None else type(each.grad_fn).__name__ for each in outs]
        found["training"] = [digest(each) for each in outs]
        total = weighted_sum(torch, outs)
        if hasattr(total, "backward"):
            total.backward()
        found["gradients"] = [digest(each.grad) for each in (*x, *module.parameters()) if each.requires_grad]
        found["state"] = [digest(each) for each in state.values()]
        module.eval()
        found["evaluation"] = [digest(each) for each in flat(eval(layer.call, {**space, "m": module, "x": x}))]
        return found


def image(*shape: int) -> Recipe:
    """Distinct numbers, for pooling."""
    return distinct(*shape)


X = normal(3, 4)


def activations() -> list[Layer]:
    """Return activations, which have one input."""
    plain = """ReLU() ReLU6() LeakyReLU(0.2) ELU() CELU(0.5) SELU() GELU() GELU('tanh') SiLU() Mish() Hardswish() Hardsigmoid()
        Hardtanh(-0.3,0.4) Threshold(0.1,-2) Softplus(2.0) Softshrink() Hardshrink() Softsign() Tanh() Tanhshrink() Sigmoid()
        LogSigmoid() GLU() Softmax(1) Softmin(0) LogSoftmax(-1) PReLU() PReLU(4) RReLU() Dropout() Dropout(0.2) AlphaDropout()
        Identity() Flatten() Unflatten(1,(2,2)) LayerNorm(4) LayerNorm((3,4)) LayerNorm(4,bias=False) RMSNorm(4)
        RMSNorm(4,elementwise_affine=False) BatchNorm1d(4,eps=0.001) BatchNorm1d(4,momentum=None) BatchNorm1d(4,affine=False)
        BatchNorm1d(4,track_running_stats=False) BatchNorm1d(4,bias=False) LazyBatchNorm1d(eps=0.001) Linear(4,2) Linear(4,2,bias=False)
        LazyLinear(3) GroupNorm(2,4) Softmax2d()"""
    shapes = {"Softmax2d()": normal(2, 3, 2, 2)}
    return [Layer(f"nn.{each}", [shapes.get(each, X)]) for each in plain.split()]


SHAPES = {1: (2, 4, 7), 2: (2, 4, 5, 6), 3: (1, 4, 4, 3, 5)}


def spatial() -> list[Layer]:
    """Return layers of signals, images and volumes."""
    plain = {
        "Conv": ["4,6,3", "4,2,3,2,1", "4,4,2,groups=2,bias=False", "4,4,3,padding='same'", "4,2,3,padding=1,dilation=2",
                 "4,2,3,padding=1,padding_mode='circular'", "4,2,3,padding=1,padding_mode='reflect'",
                 "4,2,3,padding='same',padding_mode='replicate'"],
        "ConvTranspose": ["4,6,3", "4,2,3,2,1,1", "4,4,2,groups=2,bias=False", "4,2,3,dilation=2"],
        "LazyConv": ["3,2"], "LazyConvTranspose": ["3,2,stride=2"],
        "MaxPool": ["2", "3,2,1", "2,1,return_indices=True", "2,ceil_mode=True"],
        "AvgPool": ["2", "3,2,1", "3,2,1,True,False"], "LPPool": ["2,2"],
        "AdaptiveAvgPool": ["2", "1"], "AdaptiveMaxPool": ["2", "2,return_indices=True"],
        "ZeroPad": ["1"], "ConstantPad": ["1,3.5"], "ReflectionPad": ["1"], "ReplicationPad": ["2"], "CircularPad": ["1"],
        "BatchNorm": ["4"], "InstanceNorm": ["4", "4,affine=True", "4,track_running_stats=True"], "Dropout": ["0.4"],
        "LazyBatchNorm": [""], "LazyInstanceNorm": [""],
    }  # fmt: skip
    layers = [
        Layer(f"nn.{name}{dims}d({arguments})", [image(*shape)])
        for name, several in plain.items()
        for arguments in several
        for dims, shape in SHAPES.items()
    ]
    unpools = [
        Layer(
            f"nn.MaxUnpool{dims}d(2)",
            [image(1, 2, *(4,) * dims)],
            f"m(*nn.MaxPool{dims}d(2, return_indices=True)(x[0]))",
        )
        for dims in SHAPES
    ]
    return layers + unpools


def others() -> list[Layer]:
    """Return layers of other inputs."""
    picture, index = normal(1, 4, 4, 6), integers(0, 5, 2, 3)
    return [
        Layer("nn.AvgPool2d(2,divisor_override=3)", [picture]),
        Layer("nn.FractionalMaxPool2d(2,3)", [image(1, 2, 6, 6)]),
        Layer("nn.FractionalMaxPool3d(2,output_ratio=(0.5,0.5,0.5))", [image(1, 2, 5, 6, 6)]),
        Layer("nn.FeatureAlphaDropout(0.3)", [picture]),
        Layer("nn.LocalResponseNorm(2)", [picture]),
        Layer("nn.CrossMapLRN2d(3)", [picture], "m(x[0]) * 1"),
        Layer("nn.PixelShuffle(2)", [picture]),
        Layer("nn.PixelUnshuffle(2)", [picture]),
        Layer("nn.ChannelShuffle(2)", [picture]),
        Layer("nn.Fold((4,4),2)", [normal(1, 8, 9)]),
        Layer("nn.Unfold(2,padding=1,stride=2)", [picture]),
        Layer("nn.Upsample(scale_factor=2)", [picture]),
        Layer("nn.Upsample((7,5),mode='bilinear')", [picture]),
        Layer("nn.Upsample(scale_factor=1.5,mode='bicubic',align_corners=True)", [picture]),
        Layer("nn.UpsamplingNearest2d(scale_factor=2)", [picture]),
        Layer("nn.UpsamplingBilinear2d(size=5)", [picture]),
        Layer("nn.Bilinear(2,3,4)", [normal(5, 2), normal(5, 3)]),
        Layer("nn.Bilinear(2,3,4,bias=False)", [normal(5, 2), normal(5, 3)]),
        Layer("nn.CosineSimilarity()", [X, X]),
        Layer("nn.PairwiseDistance(3.0,keepdim=True)", [X, X]),
        Layer("nn.Embedding(5,3)", [index]),
        Layer("nn.Embedding(5,3,padding_idx=1)", [index]),
        Layer("nn.Embedding(5,3,max_norm=1.0)", [index]),
        Layer("nn.Embedding.from_pretrained(torch.ones(5,3),freeze=False)", [index]),
        Layer("nn.EmbeddingBag(5,3)", [index]),
        Layer("nn.EmbeddingBag(5,3,mode='sum',padding_idx=2)", [index]),
        Layer("nn.EmbeddingBag(5,3,mode='max')", [integers(0, 5, 6)], "m(x[0], torch.tensor([0, 2, 3]))"),
        Layer("nn.AdaptiveLogSoftmaxWithLoss(8,7,[2,4],div_value=2.0)", [normal(5, 8), integers(0, 7, 5)]),
        Layer("nn.AdaptiveLogSoftmaxWithLoss(8,7,[2,4],2.0,True)", [normal(5, 8)], "m.log_prob(x[0])"),
        Layer("nn.AdaptiveLogSoftmaxWithLoss(8,7,[2,4],3.0)", [normal(5, 8)], "m.predict(x[0])"),
        Layer("nn.ConvTranspose2d(4,2,3,stride=2)", [picture], "m(x[0], output_size=(10, 13))"),
        Layer("nn.InstanceNorm2d(4,eps=0.001)", [normal(4, 3, 3)]),
        Layer("nn.Sequential(nn.Conv2d(4,3,3),nn.BatchNorm2d(3),nn.ReLU(),nn.Flatten(),nn.Linear(24,2))", [picture]),
    ]


def losses() -> list[Layer]:
    """Return losses."""
    y, label, sign = normal(3, 4), integers(0, 4, 3), (lambda rng: rng.choice([-1, 1], 3))
    weight = "torch.tensor([0.5,1.0,2.0,0.7])"
    table: dict[str, list[Any]] = {
        "L1Loss()": [X, y], "L1Loss(reduction='sum')": [X, y], "MSELoss()": [X, y], "MSELoss(reduction='none')": [X, y],
        "MSELoss(size_average=False)": [X, y], "SmoothL1Loss(beta=0.5)": [X, y], "HuberLoss(delta=0.5)": [X, y],
        "NLLLoss()": [X, label], f"NLLLoss({weight})": [X, label], "NLLLoss(ignore_index=1,reduction='sum')": [X, label],
        "CrossEntropyLoss()": [X, label], f"CrossEntropyLoss({weight},label_smoothing=0.1)": [X, label],
        "CrossEntropyLoss(reduction='none')": [X, label], "PoissonNLLLoss()": [X, positive(3, 4)],
        "PoissonNLLLoss(False,True)": [positive(3, 4), positive(3, 4)], "GaussianNLLLoss(full=True)": [X, y, positive(3, 4)],
        "KLDivLoss(reduction='batchmean')": [X, positive(3, 4)], "KLDivLoss(log_target=True)": [X, y],
        "BCELoss()": [unit(3, 4), positive(3, 4)], f"BCELoss({weight})": [unit(3, 4), positive(3, 4)],
        "BCEWithLogitsLoss()": [X, positive(3, 4)], f"BCEWithLogitsLoss(pos_weight={weight})": [X, positive(3, 4)],
        "HingeEmbeddingLoss()": [normal(3), sign], "SoftMarginLoss()": [normal(3), sign],
        "MultiLabelMarginLoss()": [X, lambda rng: numpy.array([[0, 2, -1, 1], [1, -1, 0, 0], [3, 0, 1, -1]])],
        f"MultiLabelSoftMarginLoss({weight})": [X, lambda rng: rng.integers(0, 2, (3, 4)).astype(float)],
        "MultiMarginLoss(p=2)": [X, label], f"MultiMarginLoss(weight={weight})": [X, label],
        "CosineEmbeddingLoss(0.1)": [X, y, sign], "MarginRankingLoss(0.2)": [normal(3), normal(3), sign],
        "TripletMarginLoss(swap=True)": [X, y, normal(3, 4)], "TripletMarginWithDistanceLoss()": [X, y, normal(3, 4)],
    }  # fmt: skip
    calls = {"BCELoss": "m(x[0].sigmoid(), x[1] / 2)", "NLLLoss": "m(x[0].log_softmax(1), x[1])"}
    layers = [
        Layer(f"nn.{expression}", inputs, calls.get(expression.partition("(")[0], "m(*x)"))
        for expression, inputs in table.items()
    ]
    lengths = "torch.tensor([6, 5]), torch.tensor([3, 2])"
    ctc = Layer("nn.CTCLoss()", [normal(6, 2, 4), integers(1, 4, 2, 3)], f"m(x[0].log_softmax(2), x[1], {lengths})")
    linear = [
        Layer("nn.LinearCrossEntropyLoss(4,3)", [X, integers(0, 3, 3)]),
        Layer(f"nn.LinearCrossEntropyLoss(4,4,out_features=(2,),bias=True,weight={weight},label_smoothing=0.1)",
              [X, integers(0, 4, 3, 2)]),
        Layer("nn.LinearCrossEntropyLoss(4,3,reduction='sum',ignore_index=1,bias=True)", [X, integers(0, 3, 3)]),
    ]  # fmt: skip
    return [*layers, ctc, *linear, Layer("nn.DataParallel(nn.Linear(4,2))", [X])]


def recurrent() -> list[Layer]:
    """Return recurrent layers and cells."""
    x, states = normal(4, 3, 2), [normal(2, 3, 3), normal(2, 3, 3)]
    table = """RNN(2,3) RNN(2,3,nonlinearity='relu') RNN(2,3,2,bidirectional=True) LSTM(2,3) LSTM(2,3,2) LSTM(2,3,bias=False)
        LSTM(2,3,bidirectional=True) LSTM(2,3,2,dropout=0.4) LSTM(2,4,proj_size=2) GRU(2,3) GRU(2,3,2,bidirectional=True)
        GRU(2,3,bias=False) GRU(2,3,2,dropout=0.3) LSTM(2,4,2,bidirectional=True,proj_size=3,bias=False)"""
    layers = [Layer(f"nn.{each}", [x]) for each in table.split()]
    for kind in ("RNN", "LSTM", "GRU"):
        first = "(x[1], x[2])" if kind == "LSTM" else "x[1]"
        given = states if kind == "LSTM" else states[:1]
        layers.append(Layer(f"nn.{kind}(2,3,2)", [x, *given], f"m(x[0], {first})"))
        layers.append(Layer(f"nn.{kind}(2,3,batch_first=True)", [x]))
        layers.append(Layer(f"nn.{kind}(2,3,2,bidirectional=True,batch_first=True)", [normal(4, 2)]))
        for lengths in ("[4, 2, 1]", "[2, 4, 3], enforce_sorted=False"):
            packed = f"m(nn.utils.rnn.pack_padded_sequence(x[0], {lengths}))"
            layers.append(Layer(f"nn.{kind}(2,3)", [x], packed))
            layers.append(Layer(f"nn.{kind}(2,3,2,bidirectional=True)", [x], packed))
        layers.append(Layer(f"nn.{kind}Cell(2,3)", [normal(4, 2)]))
        layers.append(Layer(f"nn.{kind}Cell(2,3,bias=False)", [normal(2)]))
        given = [normal(4, 3), normal(4, 3)] if kind == "LSTM" else [normal(4, 3)]
        layers.append(Layer(f"nn.{kind}Cell(2,3)", [normal(4, 2), *given], f"m(x[0], {first})"))
    return layers


def transformers() -> list[Layer]:
    """Return attention and transformer layers."""
    x, y = normal(5, 3, 4), normal(6, 3, 4)
    causal = "nn.Transformer.generate_square_subsequent_mask(5)"
    padding = "torch.tensor([[False] * 5, [False] * 4 + [True], [False] * 3 + [True] * 2])"
    same = "m(x[0], x[0], x[0]{})"
    attention = "nn.MultiheadAttention(4,2)"
    layer, decoder = "nn.TransformerEncoderLayer(4,2,6)", "nn.TransformerDecoderLayer(4,2,6"
    return [
        Layer(attention, [x], same.format("")),
        Layer(attention, [x], same.format(", need_weights=False")),
        Layer(attention, [x], same.format(", average_attn_weights=False")),
        Layer(attention, [x], same.format(f", attn_mask={causal}")),
        Layer(attention, [x], same.format(f", need_weights=False, attn_mask={causal}, is_causal=True")),
        Layer(attention, [x], same.format(f", key_padding_mask={padding}")),
        Layer("nn.MultiheadAttention(4,2,bias=False)", [normal(5, 4)], same.format("")),
        Layer("nn.MultiheadAttention(4,2,0.3,False,True,True)", [x], same.format("")),
        Layer("nn.MultiheadAttention(4,2,kdim=3,vdim=2,batch_first=True)", [x, normal(5, 6, 3), normal(5, 6, 2)]),
        Layer(layer, [x]),
        Layer(layer, [x], f"m(x[0], {causal}, {padding} * -9.0)"),
        Layer("nn.TransformerEncoderLayer(4,2,6,0.0,'gelu',batch_first=True,norm_first=True,bias=False)", [x]),
        Layer(f"{decoder})", [x, y]),
        Layer(f"{decoder},0.2,norm_first=True)", [x, y], f"m(x[0], x[1], tgt_mask={causal}, tgt_is_causal=True)"),
        Layer(f"nn.TransformerEncoder({layer},2)", [x], f"m(x[0], {causal})"),
        Layer(f"nn.TransformerEncoder({layer},2,nn.LayerNorm(4))", [x]),
        Layer(f"nn.TransformerDecoder({decoder}),2)", [x, y]),
        Layer("nn.Transformer(4,2,1,1,6)", [x, y]),
        Layer("nn.Transformer(4,2,1,2,6,0.0,batch_first=True)", [x, normal(5, 2, 4)]),
    ]


def containers() -> list[Layer]:
    """Return containers and base classes."""
    return [
        Layer("nn.ModuleList([nn.Linear(4,2),nn.Tanh()])", [X], "m[1](m[0](x[0]))"),
        Layer("nn.ModuleDict({'a':nn.Linear(4,2),'b':nn.Tanh()})", [X], "m['b'](m['a'](x[0]))"),
        Layer("nn.ParameterList([torch.ones(4),nn.Parameter(torch.ones(3,1))])", [X], "x[0] * m[0] * m[1]"),
        Layer("nn.ParameterDict({'a':torch.ones(4),'b':nn.Parameter(torch.ones(3,1))})", [X], "x[0] * m['a'] * m.b"),
        Layer("nn.Container(a=nn.Linear(4,2))", [X], "m.a(x[0])"),
        Layer("nn.Module()", [X], "x[0] * m.training"),
        Layer("nn.NLLLoss2d()", [normal(2, 3, 2, 2), integers(0, 3, 2, 2, 2)], "m(x[0].log_softmax(1), x[1])"),
        Layer("nn.RNNBase('GRU',2,3)", [normal(4, 3, 2)], "x[0] @ m.weight_ih_l0.t()"),
        Layer("nn.RNNCellBase(2,3,True,4)", [normal(4, 2)], "x[0] @ m.weight_ih.t() + m.bias_hh"),
    ]


LAYERS = [*activations(), *spatial(), *others(), *losses(), *recurrent(), *transformers(), *containers()]
assert len({(layer.expression, layer.call) for layer in LAYERS}) == len(LAYERS)
