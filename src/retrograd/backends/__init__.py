"""What is asked and set of the libraries below, as ``torch.backends``.

The libraries below are NumPy and its BLAS, and CuPy; PyTorch's are not here. Each module says so truthfully, and keeps
what is set in it without effect.
"""

from __future__ import annotations

from ..compat.config_module import Precision, flagged
from ..compat.missing_names import absent, listed

_LATER = {
    name: name
    for name in (
        "cpu", "cuda", "cudnn", "cusparselt", "kleidiai", "mha", "miopen", "mkl", "mkldnn", "mps", "nnpack", "openmp",
        "opt_einsum", "quantized",
    )
}  # fmt: skip
__all__ = list(_LATER)
__getattr__, __dir__ = absent(__name__, _LATER), listed(globals())
flagged(__name__, fp32_precision=Precision())
