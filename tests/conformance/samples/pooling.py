"""Samples of pooling."""

from __future__ import annotations

from . import Sample, distinct, integers, normal, positive

F = "torch.nn.functional"
SAMPLES: list[Sample] = []
_SPACE = {1: (6,), 2: (5, 4), 3: (4, 3, 4)}
for rank, space in _SPACE.items():
    x, y = distinct(1, 2, *space), normal(1, 2, *space)
    name = f"max_pool{rank}d"
    for how in (
        "2", "2, return_indices=True", "2, stride=1", "3, stride=2, padding=1, return_indices=True",
        "2, ceil_mode=True", "2, 1, 0, 2, return_indices=True", "3, 2, 1, ceil_mode=True",
    ):  # fmt: skip
        SAMPLES.append(Sample(name, f"{F}.{name}(x, {how})", x=x))
    SAMPLES += [
        Sample(name, f"{F}.{name}(x[0], {(2,) * rank})", x=x),
        Sample(name, f"torch.{name}(x, 2)", x=x),
        Sample(name, f"{F}.{name}(x.transpose(1, -1), 2)", x=x),
        Sample(name, f"{F}.{name}_with_indices(x, 2)", x=x),
        Sample(name, f"{F}.{name}(i, 2, 1)", smooth=False, i=integers(0, 4, 1, 2, *space)),
    ]
    name = f"avg_pool{rank}d"
    for how in (
        "2", "2, stride=1", "3, stride=2, padding=1", "2, ceil_mode=True", "3, 2, 1, True, False",
        "3, 2, 1, count_include_pad=False",
    ):  # fmt: skip
        SAMPLES.append(Sample(name, f"{F}.{name}(x, {how})", x=y))
    SAMPLES.append(Sample(name, f"{F}.{name}(x[0], 2)", x=y))
    if rank > 1:
        SAMPLES.append(Sample(name, f"{F}.{name}(x, 3, 1, 1, divisor_override=5)", x=y))
        SAMPLES.append(Sample(name, f"{F}.{name}(i, 3, 2, 1)", smooth=False, i=integers(-9, 9, 1, 2, *space)))
    for kind, given in (("avg", y), ("max", x)):
        name = f"adaptive_{kind}_pool{rank}d"
        for out in (1, 2, 3, 5) if rank == 1 else (1, 2, (*(3, None)[: rank - 1], 2), (None,) * rank):
            SAMPLES.append(Sample(name, f"{F}.{name}(x, {out})", x=given))
        SAMPLES.append(Sample(name, f"{F}.{name}(x[0], 2)", x=given))
        if kind == "max":
            SAMPLES.append(Sample(name, f"{F}.{name}(x, 3, return_indices=True)", x=given))
    name = f"lp_pool{rank}d"
    SAMPLES += [
        Sample(name, f"{F}.{name}(x, 2, 2)", x=positive(1, 2, *space)),
        Sample(name, f"{F}.{name}(x, 3., 2, stride=1, ceil_mode=True)", x=positive(1, 2, *space)),
    ]
    name = f"max_unpool{rank}d"
    pooled = f"{F}.max_pool{rank}d(x, 2, return_indices=True)"
    SAMPLES += [
        Sample(name, f"{F}.{name}(*{pooled}, 2)", x=distinct(1, 2, *(4,) * rank)),
        Sample(name, f"{F}.{name}(y, {pooled}[1], 2, output_size=x.shape)", x=distinct(1, 1, *(5,) * rank),
               y=normal(1, 1, *(2,) * rank)),
        Sample(name, f"{F}.{name}(y[0], {pooled}[1][0], 2)", x=distinct(1, 1, *(4,) * rank),
               y=normal(1, 1, *(2,) * rank)),
    ]  # fmt: skip
    if rank > 1:
        name, out = f"fractional_max_pool{rank}d", (3, 2, 2)[:rank]
        SAMPLES += [
            Sample(name, f"{F}.{name}(x, 2, output_size={out}, return_indices=True, _random_samples=r.detach())",
                   x=distinct(2, 2, *(5,) * rank), r=lambda rng, n=rank: rng.uniform(size=(2, 2, n))),
            Sample(name, f"{F}.{name}(x, 2, output_ratio={(0.5,) * rank}, _random_samples=r.detach())",
                   x=distinct(1, 2, *(5,) * rank), r=lambda rng, n=rank: rng.uniform(size=(1, 2, n))),
            Sample(name, f"{F}.{name}(x[0], {(3, 2, 1)[:rank]}, output_size=2, _random_samples=r.detach())",
                   x=distinct(1, 2, *(5,) * rank), r=lambda rng, n=rank: rng.uniform(size=(1, 2, n))),
        ]  # fmt: skip
SAMPLES += [
    Sample(
        "max_pool2d", f"{F}.max_pool2d(x, (2, 3), (1, 2), (0, 1), (2, 1), return_indices=True)", x=distinct(1, 1, 4, 5)
    ),
    Sample("max_pool2d", f"{F}.max_pool2d(x.to(memory_format=torch.channels_last), 2)", x=distinct(2, 2, 4, 4)),
    Sample("avg_pool2d", f"{F}.avg_pool2d(x, (2, 3), (1, 2), (0, 1))", x=normal(1, 1, 4, 5)),
    Sample("avg_pool2d", f"{F}.avg_pool2d(x.to(memory_format=torch.channels_last), 2)", x=normal(2, 2, 4, 4)),
    Sample("max_pool1d", "torch.max_pool1d_with_indices(x, 3, 2, 1)", x=distinct(1, 2, 5)),
    Sample("adaptive_max_pool1d", "torch.adaptive_max_pool1d(x, 3)", x=distinct(1, 2, 5)),
    Sample("adaptive_avg_pool1d", "torch.adaptive_avg_pool1d(x, 3)", x=normal(1, 2, 5)),
    Sample("avg_pool1d", "torch.avg_pool1d(x, (2,), (1,), (1,))", x=normal(1, 2, 5)),
]
