"""Samples of Fourier transforms, windows and short-time transforms."""

from __future__ import annotations

from . import Sample, booleans, complexes, integers, normal, positive

SAMPLES: list[Sample] = []


def both(name: str, arguments: str, *, real: bool = True, complex_: bool = True, shape: tuple[int, ...]) -> None:
    """Add a call with real and with complex numbers."""
    if real:
        SAMPLES.append(Sample(name, f"torch.fft.{name}(x{arguments})", x=normal(*shape)))
    if complex_:
        SAMPLES.append(Sample(name, f"torch.fft.{name}(z{arguments})", z=complexes(*shape)))


LINE = ["", ", 3", ", n=6", ", dim=0", ", 5, 0, 'ortho'", ", norm='forward'", ", norm='backward'"]
for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    from_real = name in ("rfft", "ihfft")
    for arguments in LINE:
        both(name, arguments, complex_=not from_real, shape=(3, 4))
    both(name, " ", complex_=not from_real, shape=(5,))
    SAMPLES += [
        Sample(name, f"torch.fft.{name}(i)", smooth=False, i=integers(-3, 4, 5)),
        Sample(name, f"torch.fft.{name}(b, dim=0)", smooth=False, b=booleans(3, 2)),
        Sample(name, f"torch.fft.{name}(x.float())", smooth=False, x=normal(4)),
        Sample(name, f"torch.fft.{name}(x.t(), dim=0)", x=normal(3, 4)),
        Sample(name, f"torch.fft.{name}(x.permute(2, 0, 1), dim=1)", x=normal(2, 3, 4)),
    ]
for name in ("rfft", "ihfft"):
    SAMPLES.append(Sample(name, f"torch.fft.{name}(z)", smooth=False, z=complexes(3)))
PLANE = ["", ", (3, 4)", ", s=(-1, 2)", ", dim=(0, 1)", ", (2, 4), (2, 0), 'ortho'", ", norm='forward'"]
SPACE = ["", ", (3,)", ", s=(3, -1), dim=(-1, 0)", ", dim=(1,)", ", norm='ortho'"]
for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    for arguments in PLANE:
        both(name + "2", arguments, real=name in ("rfft", "ihfft"), complex_=name not in ("rfft", "ihfft"),
             shape=(2, 3, 3))  # fmt: skip
    for arguments in SPACE:
        both(name + "n", arguments, real=name in ("rfft", "ihfft"), complex_=name not in ("rfft", "ihfft"),
             shape=(2, 3, 3))  # fmt: skip
    SAMPLES += [
        Sample(name + "n", f"torch.fft.{name}n(x )", x=normal(2, 4)),
        Sample(name + "2", f"torch.fft.{name}2(i)", smooth=False, i=integers(-3, 4, 2, 4)),
    ]
for name in ("fftshift", "ifftshift"):
    for arguments in ("", ", 0", ", dim=(1,)", ", (0, -1)"):
        SAMPLES.append(Sample(name, f"torch.fft.{name}(x{arguments})", x=normal(2, 3)))
for name in ("fftfreq", "rfftfreq"):
    for arguments in ("4", "5, 0.5", "n=3, d=2, dtype=torch.float64", "0", "7, dtype=torch.float16"):
        SAMPLES.append(Sample(name, f"torch.fft.{name}({arguments})", smooth=False))
OUTS = {"fft": "complex128", "ifft": "complex128", "rfft": "complex128", "irfft": "float64", "hfft": "float64",
        "ihfft": "complex128", "fftn": "complex128", "rfftn": "complex128", "irfftn": "float64", "hfft2": "float64",
        "ihfft2": "complex128"}  # fmt: skip
for name, kind in OUTS.items():
    SAMPLES.append(Sample(name, f"torch.fft.{name}(x.detach(), out=torch.empty(0, dtype=torch.{kind}))",
                          smooth=False, x=normal(2, 4)))  # fmt: skip
for name, options in {
    "hann": (), "hamming": (", True, alpha=0.5", ", True, 0.6, 0.3"), "blackman": (), "bartlett": (),
    "kaiser": (", True, 3.5",),
}.items():  # fmt: skip
    for size in ("0", "1", "2", "5", "6"):
        for option in ("", ", periodic=False", ", dtype=torch.float64", *options):
            SAMPLES.append(Sample(f"{name}_window", f"torch.{name}_window({size}{option})", smooth=False))
    SAMPLES.append(Sample(f"{name}_window", f"torch.{name}_window(5, dtype=torch.int64)", smooth=False))
WINDOWS = {
    "bartlett": "", "blackman": "", "cosine": "", "exponential": ", tau=2.0", "gaussian": ", std=1.5",
    "general_cosine": ", a=[0.5, 0.3, 0.2]", "general_hamming": ", alpha=0.6", "hamming": "", "hann": "",
    "kaiser": ", beta=3.0", "nuttall": "",
}  # fmt: skip
for name, option in WINDOWS.items():
    for rest in ("0", "1", "4", "5", "5, sym=False", "4, dtype=torch.float64", "3, dtype=torch.float16"):
        SAMPLES.append(Sample(f"windows.{name}", f"torch.signal.windows.{name}({rest}{option})", smooth=False))
SHORT = ["4", "4, 2", "5, 2", "4, 1, 3", "4, center=False", "4, normalized=True", "4, onesided=False",
         "4, pad_mode='constant'", "4, pad_mode='replicate'", "4, pad_mode='circular'",
         "4, 1, 2, center=False, align_to_window=True"]  # fmt: skip
for arguments in SHORT:
    size = 3 if ", 1, 3" in arguments else 2 if ", 1, 2" in arguments else int(arguments[0])
    complete = f"{arguments}, return_complex=True"
    SAMPLES += [
        Sample("stft", f"torch.stft(x, {complete}, window=w)", x=normal(2, 7), w=normal(size)),
        Sample("stft", f"x.stft({complete}, window=w)", x=normal(6), w=normal(size)),
    ]
SAMPLES += [
    Sample("stft", "torch.stft(z, 4, window=w)", z=complexes(7), w=normal(4)),
    Sample("stft", "torch.stft(x, 4, window=w)", x=normal(2, 6), w=complexes(4)),
]
LONG = ["", ", center=False", ", normalized=True", ", length=5", ", length=4, center=False", ", onesided=True"]
for arguments in LONG:
    SAMPLES.append(Sample("istft", f"torch.istft(z, 4, 1, window=w{arguments})", z=complexes(2, 3, 6), w=positive(4)))
SAMPLES += [
    Sample("istft", "z.istft(4, 1, window=w)", z=complexes(3, 6), w=positive(4)),
    Sample("istft", "torch.istft(z, 4, 1, 3, window=w)", z=complexes(3, 6), w=positive(3)),
    Sample("istft", "torch.istft(z, 4, 2, window=w)", z=complexes(4, 5), w=positive(4)),
    Sample("istft", "torch.istft(z, 4, 2, window=w, return_complex=True)", z=complexes(1, 4, 5), w=positive(4)),
]
