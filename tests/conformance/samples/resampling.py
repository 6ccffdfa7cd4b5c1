"""Samples of padding, interpolation, grid_sample, pixel shuffles, unfold and fold."""

from __future__ import annotations

from . import Sample, booleans, integers, normal, unit

F = "torch.nn.functional"
SAMPLES: list[Sample] = []
_SPACE = {1: (4,), 2: (3, 4), 3: (3, 2, 3)}
for rank, space in _SPACE.items():
    x, made = f"x{rank}", {f"x{rank}": normal(1, 2, *space)}
    pads = ((1, 2, 0, 1, 1, 1)[: 2 * rank], (1, -1, 1, 0, -1, 1)[: 2 * rank])
    for mode in ("constant", "reflect", "replicate", "circular"):
        for index, pad in enumerate(pads):
            SAMPLES.append(Sample("pad", f"{F}.pad({x}, {pad}, mode='{mode}')", **made))
            if index == 0:
                SAMPLES.append(Sample("pad", f"{F}.pad({x}[0], {pad}, mode='{mode}')", **made))
    modes = {1: ("linear",), 2: ("bilinear", "bicubic"), 3: ("trilinear",)}[rank]
    sizes = ["size=5", "size=2", "scale_factor=2", "scale_factor=1.7", f"scale_factor={(0.5, 1.5, 2.5)[:rank]}"]
    sizes += ["scale_factor=1.7, recompute_scale_factor=True"]
    for mode in ("nearest", "nearest-exact", "area", *modes):
        for how in sizes if mode in modes else sizes[1:]:
            SAMPLES.append(Sample("interpolate", f"{F}.interpolate({x}, {how}, mode='{mode}')", **made))
    for mode in modes:
        for how in ("size=5", "scale_factor=1.7", "size=1"):
            SAMPLES.append(
                Sample("interpolate", f"{F}.interpolate({x}, {how}, mode='{mode}', align_corners=True)", **made)
            )
for mode in ("bilinear", "bicubic", "lanczos"):
    for how in ("size=5", "size=(2, 3)", "scale_factor=0.6", "size=2, align_corners=True"):
        expression = f"{F}.interpolate(x, {how}, mode='{mode}', antialias=True)"
        SAMPLES.append(Sample("interpolate", expression, x=normal(1, 2, 5, 4)))
for mode in ("bilinear", "nearest", "bicubic"):
    for padding in ("zeros", "border", "reflection"):
        for align in (True, False):
            how = f"'{mode}', '{padding}', {align}"
            # PyTorch has no second derivative of these.
            SAMPLES.append(
                Sample("grid_sample", f"{F}.grid_sample(x, y * 1.2, {how})", x=normal(1, 2, 3, 4), y=unit(1, 2, 3, 2))
            )
            if mode != "bicubic":
                SAMPLES.append(
                    Sample(
                        "grid_sample", f"{F}.grid_sample(x, y, {how})", x=normal(1, 2, 2, 3, 2), y=unit(1, 2, 1, 3, 3)
                    )
                )
for align in (True, False):
    SAMPLES += [
        Sample("affine_grid", f"{F}.affine_grid(x, (2, 1, 3, 2), {align})", x=normal(2, 2, 3)),
        Sample("affine_grid", f"{F}.affine_grid(x, (1, 1, 2, 3, 1), {align})", x=normal(1, 3, 4)),
    ]
SAMPLES += [
    Sample("constant_pad_nd", "torch.constant_pad_nd(x, (1, 2), 3.5)", x=normal(2, 3)),
    Sample("pad", f"{F}.pad(x, (1, 0, 2, 1), value=2.5)", x=normal(2, 2, 2)),
    Sample("pad", f"{F}.pad(x, (0, 0, -1, -1))", x=normal(3, 2)),
    Sample("pad", f"{F}.pad(i, (1, 1), value=7)", smooth=False, i=integers(0, 9, 2, 3)),
    Sample("pad", f"{F}.pad(b, (1, 1), value=True)", smooth=False, b=booleans(2, 3)),
    Sample("pad", f"{F}.pad(x.t(), (1, 1), mode='reflect')", x=normal(3, 2)),
    Sample("pad", f"{F}.pad(x.to(memory_format=torch.channels_last), (1, 1, 1, 1))", x=normal(2, 2, 3, 4)),
    Sample("interpolate", f"{F}.interpolate(x.to(memory_format=torch.channels_last), 2)", x=normal(2, 2, 3, 4)),
    Sample("interpolate", f"{F}.interpolate(i.to(torch.uint8), 5)", smooth=False, i=integers(0, 255, 1, 1, 3, 4)),
    Sample("grid_sampler", "torch.grid_sampler(x, y, 0, 1, True)", x=normal(1, 2, 3, 4), y=unit(1, 2, 3, 2)),
    Sample("grid_sampler_2d", "torch.grid_sampler_2d(x, y, 2, 0, False)", x=normal(1, 2, 3, 4), y=unit(1, 2, 3, 2)),
    Sample("affine_grid_generator", "torch.affine_grid_generator(x, (2, 1, 3, 2), False)", x=normal(2, 2, 3)),
    Sample("pixel_shuffle", "torch.pixel_shuffle(x, 2)", x=normal(1, 4, 2, 3)),
    Sample("pixel_shuffle", f"{F}.pixel_shuffle(x, 2)", x=normal(2, 1, 8, 1, 2)),
    Sample("pixel_unshuffle", "torch.pixel_unshuffle(x, 2)", x=normal(1, 2, 4, 2)),
    Sample("pixel_unshuffle", f"{F}.pixel_unshuffle(x, 3)", x=normal(1, 3, 3)),
    Sample("channel_shuffle", "torch.channel_shuffle(x, 2)", x=normal(1, 6, 2)),
    Sample("channel_shuffle", f"{F}.channel_shuffle(x, 3)", x=normal(2, 6, 2, 1)),
    Sample("native_channel_shuffle", "torch.native_channel_shuffle(i, 2)", smooth=False, i=integers(0, 9, 1, 6, 2)),
    Sample("unfold", f"{F}.unfold(x, 2)", x=normal(2, 2, 3, 4)),
    Sample("unfold", f"{F}.unfold(x, (2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2))", x=normal(1, 2, 4, 5)),
    Sample("unfold", f"{F}.unfold(x, 2, stride=2)", x=normal(2, 4, 4)),
    Sample("fold", f"{F}.fold(x, (3, 4), 2)", x=normal(2, 4, 6)),
    Sample("fold", f"{F}.fold(x, (4, 5), (2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2))", x=normal(1, 6, 8)),
    Sample("fold", f"{F}.fold(x, 4, 2, stride=2)", x=normal(8, 4)),
]
