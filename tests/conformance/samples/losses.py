"""Samples of losses."""

from __future__ import annotations

from tests.conformance.samples import Recipe, Sample, integers, normal, positive, unique_expressions, unit

F = "torch.nn.functional."
# Weights of 3 and of 4: they have no gradient.
THREE = "torch.tensor([0.6, 1.5, 0.9], dtype=x.dtype)"
FOUR = "torch.tensor([0.6, 1.5, 0.9, 1.2], dtype=x.dtype)"


def share(*shape: int) -> Recipe:
    """Numbers between 0.05 and 0.95."""
    return lambda rng: rng.uniform(0.05, 0.95, shape)


def signs(*shape: int) -> Recipe:
    """1 and -1 (integers, which have no gradient)."""
    return lambda rng: rng.integers(0, 2, shape) * 2 - 1


def probabilities(*shape: int) -> Recipe:
    """Positive numbers that add up to 1 along dimension 1."""

    def make(rng):  # type: ignore[no-untyped-def]
        found = rng.uniform(0.1, 1, shape)
        return found / found.sum(min(1, len(shape) - 1), keepdims=True)

    return make


PAIR = {"x": normal(3, 4), "y": normal(3, 4)}
SAMPLES = []
for how in ("mean", "sum", "none"):
    SAMPLES += [
        Sample(name, f"{F}{name}(x, y, reduction='{how}'{more})", **PAIR)
        for name, more in (
            ("mse_loss", ""), ("l1_loss", ""), ("huber_loss", ""), ("huber_loss", ", delta=0.7"), ("smooth_l1_loss", ""),
            ("smooth_l1_loss", ", beta=0.6"), ("smooth_l1_loss", ", beta=0"), ("gaussian_nll_loss", ", var=2.0"),
            ("mse_loss", ", weight=torch.full((3, 4), 0.7, dtype=x.dtype)"),
            ("l1_loss", ", weight=torch.full((3, 4), 0.7, dtype=x.dtype)"),
            ("huber_loss", ", weight=torch.full((3, 4), 0.7, dtype=x.dtype)"),
        )
    ]  # fmt: skip
    SAMPLES += [
        Sample("binary_cross_entropy", f"{F}binary_cross_entropy(x, y, reduction='{how}')", x=share(2, 3), y=share(2, 3)),
        Sample(
            "binary_cross_entropy", f"{F}binary_cross_entropy(x, y, {THREE}, reduction='{how}')", x=share(2, 3),
            y=share(2, 3),
        ),
        Sample(
            "binary_cross_entropy_with_logits", f"{F}binary_cross_entropy_with_logits(x, y, reduction='{how}')",
            x=normal(2, 3), y=share(2, 3),
        ),
        Sample(
            "binary_cross_entropy_with_logits",
            f"{F}binary_cross_entropy_with_logits(x, y, {THREE}[:2, None], pos_weight={THREE}, reduction='{how}')",
            x=normal(2, 3), y=share(2, 3),
        ),
        Sample("soft_margin_loss", f"{F}soft_margin_loss(x, s, reduction='{how}')", x=normal(3, 4), s=signs(3, 4)),
        Sample(
            "cosine_embedding_loss", f"{F}cosine_embedding_loss(x, y, s, 0.1, reduction='{how}')", s=signs(3), **PAIR
        ),
        Sample("hinge_embedding_loss", f"{F}hinge_embedding_loss(x, s, reduction='{how}')", x=normal(3, 4), s=signs(3, 4)),
        Sample("margin_ranking_loss", f"{F}margin_ranking_loss(x, y, s, 0.3, reduction='{how}')", s=signs(3, 1), **PAIR),
        Sample("poisson_nll_loss", f"{F}poisson_nll_loss(x, y, reduction='{how}')", x=normal(3, 4), y=positive(3, 4)),
        Sample("triplet_margin_loss", f"{F}triplet_margin_loss(x, y, z, reduction='{how}')", z=normal(3, 4), **PAIR),
        Sample(
            "triplet_margin_with_distance_loss",
            f"{F}triplet_margin_with_distance_loss(x, y, z, swap=True, reduction='{how}')", z=normal(3, 4), **PAIR,
        ),
        Sample(
            "multilabel_soft_margin_loss", f"{F}multilabel_soft_margin_loss(x, y, reduction='{how}')", x=normal(3, 4),
            y=share(3, 4),
        ),
        Sample(
            "gaussian_nll_loss", f"{F}gaussian_nll_loss(x, y, v, True, reduction='{how}')", v=positive(3, 4), **PAIR
        ),
    ]  # fmt: skip
    # by class
    for call, inputs in (
        ("nll_loss(x, i{})", {"x": normal(3, 4), "i": integers(0, 4, 3)}),
        ("nll_loss(x, i{})", {"x": normal(4), "i": integers(0, 4)}),
        ("nll_loss(x, i{}, weight=FOUR)", {"x": normal(3, 4), "i": integers(0, 4, 3)}),
        ("nll_loss(x, i{}, ignore_index=1)", {"x": normal(5, 3), "i": integers(0, 3, 5)}),
        ("nll_loss(x, i{})", {"x": normal(2, 3, 2, 2), "i": integers(0, 3, 2, 2, 2)}),
        ("nll_loss(x, i{})", {"x": normal(2, 3, 4), "i": integers(0, 3, 2, 4)}),
        ("nll_loss(x, i{})", {"x": normal(2, 3, 1, 2, 2), "i": integers(0, 3, 2, 1, 2, 2)}),
        (
            "nll_loss(x, i{}, weight=THREE, ignore_index=2)",
            {"x": normal(2, 3, 2, 2), "i": integers(0, 3, 2, 2, 2)},
        ),
        ("cross_entropy(x, i{})", {"x": normal(3, 4), "i": integers(0, 4, 3)}),
        ("cross_entropy(x, i{})", {"x": normal(4), "i": integers(0, 4)}),
        ("cross_entropy(x, i{})", {"x": normal(2, 3, 4), "i": integers(0, 3, 2, 4)}),
        ("cross_entropy(x, i{})", {"x": normal(2, 3, 2, 2), "i": integers(0, 3, 2, 2, 2)}),
        ("cross_entropy(x.t(), i{})", {"x": normal(4, 3), "i": integers(0, 4, 3)}),
        ("cross_entropy(x, i{}, label_smoothing=0.2)", {"x": normal(3, 4), "i": integers(0, 4, 3)}),
        (
            "cross_entropy(x, i{}, weight=THREE, ignore_index=1, label_smoothing=0.3)",
            {"x": normal(2, 3, 3), "i": integers(0, 3, 2, 3)},
        ),
        ("cross_entropy(x, i{}, ignore_index=-1)", {"x": normal(5, 3), "i": integers(-1, 3, 5)}),
        ("cross_entropy(x, y{})", {"x": normal(3, 4), "y": probabilities(3, 4)}),
        ("cross_entropy(x, y{})", {"x": normal(4), "y": probabilities(4)}),
        (
            "cross_entropy(x, y{}, weight=THREE, label_smoothing=0.1)",
            {"x": normal(2, 3, 2), "y": probabilities(2, 3, 2)},
        ),
        ("multi_margin_loss(x, i{})", {"x": normal(3, 4), "i": integers(0, 4, 3)}),
        ("multi_margin_loss(x, i{}, p=2, margin=0.7)", {"x": normal(3, 4), "i": integers(0, 4, 3)}),
        ("multi_margin_loss(x, i{}, weight=FOUR)", {"x": normal(3, 4), "i": integers(0, 4, 3)}),
        ("multi_margin_loss(x, i{})", {"x": normal(4), "i": integers(0, 4)}),
        ("multilabel_margin_loss(x, torch.tensor([[3, 0, -1, 1], [-1, 1, 2, 0]]){})", {"x": normal(2, 4)}),
        ("multilabel_margin_loss(x, torch.tensor([3, 0, -1, 1]){})", {"x": normal(4)}),
        (
            "ctc_loss(x.log_softmax(2), torch.tensor([[1, 2], [3, 3]]), (5, 4), (2, 2){})",
            {"x": normal(5, 2, 4)},
        ),
        (
            "ctc_loss(x.log_softmax(2), torch.tensor([1, 2, 2, 3]), torch.tensor([5, 4]), torch.tensor([1, 3]), 0{})",
            {"x": normal(5, 2, 4)},
        ),
        ("ctc_loss(x.log_softmax(1), torch.tensor([1, 2]), torch.tensor(5), torch.tensor(2){})", {"x": normal(5, 4)}),
        (
            "ctc_loss(x.log_softmax(2), torch.tensor([[1, 1, 1], [2, 0, 2]]), (3, 4), (3, 2){}, blank=3, "
            "zero_infinity=True)",
            {"x": normal(4, 2, 4)},
        ),
        ("ctc_loss(x, torch.tensor([[1, 2], [2, 3]]), (5, 5), (2, 0){})", {"x": normal(5, 2, 4)}),
    ):
        # ctc_loss has no second derivative: test_functional.py tests the first.
        smooth = not call.startswith("ctc")
        SAMPLES.append(
            Sample(
                call.split("(")[0],
                F + call.format(f", reduction='{how}'").replace("THREE", THREE).replace("FOUR", FOUR),
                smooth=smooth,
                **inputs,
            )
        )
SAMPLES += [
    # reduction="mean" of kl_div, different sizes and legacy arguments warn: see test_functional.py.
    Sample("kl_div", F + "kl_div(x, y, reduction='batchmean')", x=normal(3, 4), y=share(3, 4)),
    Sample("kl_div", F + "kl_div(x, y, reduction='batchmean', log_target=True)", **PAIR),
    Sample("kl_div", F + "kl_div(x, y, reduction='sum')", x=normal(3, 4), y=share(3, 4)),
    Sample("kl_div", F + "kl_div(x, y, reduction='none')", x=normal(3, 4), y=share(3, 4)),
    Sample("kl_div", F + "kl_div(x, y, reduction='none', log_target=True)", **PAIR),
    Sample("kl_div", "torch.kl_div(x, y, 1)", x=normal(3, 4), y=share(3, 4)),
    Sample("kl_div", "torch.kl_div(x, y, 2)", x=normal(3, 4), y=share(3, 4)),
    Sample("mse_loss", F + "mse_loss(x.t(), y.t(), reduction='none')", **PAIR),
    Sample("mse_loss", F + "mse_loss(x[:0], y[:0])", smooth=False, x=normal(2), y=normal(2)),
    Sample("cross_entropy", F + "cross_entropy(x, i)", x=normal(3, 4), i=integers(0, 1, 3)),
    Sample("cross_entropy", F + "cross_entropy(x[:0], i[:0], reduction='sum')", x=normal(3, 4), i=integers(0, 1, 3)),
    Sample("cross_entropy", F + "cross_entropy(x, i.to(torch.uint8))", x=normal(3, 4), i=integers(0, 4, 3)),
    Sample(
        "binary_cross_entropy_with_logits", "torch.binary_cross_entropy_with_logits(x, y)", x=normal(2, 3), y=share(2, 3)
    ),
    Sample("cosine_embedding_loss", "torch.cosine_embedding_loss(x, y, s)", s=signs(3), **PAIR),
    Sample("cosine_embedding_loss", F + "cosine_embedding_loss(x, y, s)", s=signs(), x=normal(4), y=normal(4)),
    Sample("hinge_embedding_loss", "torch.hinge_embedding_loss(x, s, 0.5)", x=normal(3, 4), s=signs(3, 4)),
    Sample("margin_ranking_loss", "torch.margin_ranking_loss(x, y, s, 0.5, 2)", s=signs(3, 4), **PAIR),
    Sample("triplet_margin_loss", "torch.triplet_margin_loss(x, y, z, 1.0, 2.0, 1e-6, True)", z=normal(3, 4), **PAIR),
    Sample("triplet_margin_loss", F + "triplet_margin_loss(x, y, z, p=3, margin=2)", z=normal(3, 4), **PAIR),
    Sample("poisson_nll_loss", F + "poisson_nll_loss(x, y, False, True)", x=positive(3, 4), y=positive(3, 4)),
    Sample("poisson_nll_loss", "torch.poisson_nll_loss(x, y, True, False, 1e-8, 1)", x=unit(3), y=positive(3)),
    Sample(
        "multilabel_soft_margin_loss", F + "multilabel_soft_margin_loss(x, y, w)", x=normal(3, 4), y=share(3, 4),
        w=positive(4),
    ),
    Sample("gaussian_nll_loss", F + "gaussian_nll_loss(x, y, v)", v=positive(3), **PAIR),
    Sample("gaussian_nll_loss", F + "gaussian_nll_loss(x, y, v)", v=positive(3, 1), **PAIR),
    Sample("ctc_loss", "torch.ctc_loss(x.log_softmax(2), torch.tensor([[1, 2]]), (4,), (2,), 0, 2)", smooth=False, x=normal(4, 1, 3)),
]  # fmt: skip
# Squared results make the incoming gradient depend on the inputs, which tests the second derivative by the gradient.
_seen: set[str] = set()
for _each in list(SAMPLES):
    if _each.smooth and _each.op not in _seen and "[:0]" not in _each.expression:
        _seen.add(_each.op)
        SAMPLES.append(Sample(_each.op, f"({_each.expression}).square()", **_each.inputs))
unique_expressions(SAMPLES)
