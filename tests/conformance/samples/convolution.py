"""Samples of convolutions."""

from __future__ import annotations

from . import Sample, complexes, integers, normal

SAMPLES: list[Sample] = []
_SPACE = {1: (5,), 2: (4, 3), 3: (3, 2, 3)}
for rank, space in _SPACE.items():
    x, b = normal(2, 2, *space), normal(3)
    kernel = (2,) * rank
    for how in (
        "", ", stride=2", ", padding=1", ", stride=2, padding=1, dilation=2", ", padding='valid'",
        f", padding={(1,) * rank}, stride={tuple(range(1, rank + 1))}", ", padding='same', dilation=2",
    ):  # fmt: skip
        SAMPLES.append(Sample(f"conv{rank}d", f"torch.conv{rank}d(x, w{how})", x=x, w=normal(3, 2, *kernel)))
    SAMPLES += [
        Sample(f"conv{rank}d", f"torch.conv{rank}d(x, w, b)", x=x, w=normal(3, 2, *kernel), b=b),
        Sample(f"conv{rank}d", f"torch.nn.functional.conv{rank}d(x[0], w, b, padding=1)", x=x,
               w=normal(3, 2, *kernel), b=b),
        Sample(f"conv{rank}d", f"torch.conv{rank}d(x, w, b, groups=2)", x=x, w=normal(4, 1, *kernel), b=normal(4)),
        Sample(f"conv{rank}d", f"torch.conv{rank}d(x, w, groups=2)", x=x, w=normal(2, 1, *kernel)),
        Sample(f"conv{rank}d", f"torch.conv{rank}d(x, w, groups=2, padding=1, stride=2)", x=normal(2, 4, *space),
               w=normal(2, 2, *kernel)),
        Sample(f"conv{rank}d", f"torch.conv{rank}d(x, w, b )", x=x, w=normal(3, 2, *(1,) * rank), b=b),
        Sample(f"conv{rank}d", f"torch.conv{rank}d(x, w, stride=2 )", x=x, w=normal(3, 2, *(1,) * rank)),
        Sample(f"conv{rank}d", f"torch.conv{rank}d(z, w, c, padding=1)", z=complexes(1, 2, *space),
               w=complexes(2, 2, *kernel), c=complexes(2)),
        Sample(f"conv{rank}d", f"torch.conv{rank}d(i, j)", smooth=False, i=integers(-3, 4, 1, 2, *space),
               j=integers(-2, 3, 2, 2, *kernel)),
    ]  # fmt: skip
    odd = f"torch.conv{rank}d(x, w, padding='same')"
    SAMPLES.append(Sample(f"conv{rank}d", odd, x=x, w=normal(2, 2, *(3, 1, 3)[:rank])))
    y = normal(2, 3, *(2,) * rank)
    for how in (
        "", ", stride=2", ", padding=1", ", stride=2, output_padding=1", ", dilation=2, output_padding=1, padding=1",
        ", stride=3, padding=1, dilation=2",
    ):  # fmt: skip
        name = f"conv_transpose{rank}d"
        SAMPLES.append(Sample(name, f"torch.{name}(y, w{how})", y=y, w=normal(3, 2, *kernel)))
    SAMPLES += [
        Sample(name, f"torch.{name}(y, w, b, groups=3)", y=y, w=normal(3, 2, *kernel), b=normal(6)),
        Sample(name, f"torch.{name}(y, w, b, 2, 1, 1, 1, 2)", y=y, w=normal(3, 2, *kernel), b=normal(2)),
        Sample(name, f"torch.nn.functional.{name}(y[0], w)", y=y, w=normal(3, 2, *kernel)),
        Sample(name, f"torch.{name}(y, w )", y=y, w=normal(3, 2, *(1,) * rank)),
    ]
SAMPLES += [
    Sample("conv2d", "torch.conv2d(x.transpose(2, 3), w.transpose(2, 3))", x=normal(1, 2, 3, 4), w=normal(2, 2, 1, 2)),
    Sample("conv2d", "torch.conv2d(x.to(memory_format=torch.channels_last), w)", x=normal(2, 2, 3, 4), w=normal(2, 2, 2, 2)),
    Sample("conv2d", "torch.conv2d(x, w, stride=(2, 1), padding=(0, 2), dilation=(1, 2))", x=normal(1, 1, 4, 4),
           w=normal(2, 1, 2, 2)),
    Sample("convolution", "torch.convolution(x, w, b, [2], [1], [1], False, [0], 1)", x=normal(1, 2, 4, 4),
           w=normal(2, 2, 3, 3), b=normal(2)),
    Sample("convolution", "torch.convolution(x, w, None, [2, 1], [1, 0], [1, 1], True, [1, 0], 2)", x=normal(1, 2, 3, 2),
           w=normal(2, 2, 3, 2)),
    Sample("conv_tbc", "torch.conv_tbc(x, w, b, 1)", x=normal(4, 2, 3), w=normal(2, 3, 2), b=normal(2)),
    Sample("conv_tbc", "torch.nn.functional.conv_tbc(x, w, b)", x=normal(4, 2, 3), w=normal(3, 3, 2), b=normal(2)),
]  # fmt: skip
