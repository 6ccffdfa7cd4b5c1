"""Record the signatures of PyTorch's functions and methods, as its argument errors print them.

``python -m tests.conformance.golden.record_signatures`` needs PyTorch and PyYAML and writes
``src/retrograd/dispatch/signatures.txt``. Only functions whose arguments PyTorch parses itself are included; functions written
in Python raise Python's own TypeError.
"""

from __future__ import annotations

import inspect
import pathlib
import re
from typing import Any

from tests import ROOT

TARGET = ROOT / "src/retrograd/dispatch/signatures.txt"
TYPES = {
    "int64_t": "int", "SymInt": "int", "double": "float", "Scalar": "Number", "TensorList": "Tensor[]",
    "IntArrayRef": "int[]", "SymIntArrayRef": "int[]", "ArrayRef<double>": "float[]", "ScalarList": "Number[]",
    "c10::string_view": "str", "ScalarType": "dtype", "Layout": "layout", "Device": "device",
    "MemoryFormat": "memory_format", "PyObject*": "object", "c10::List<::std::optional<Tensor>>": "Tensor[]",
}  # fmt: skip
# Not in PyTorch's tables of operations: its bindings for these are written by hand.
BY_HAND = """
[Tensor]
contiguous(*, memory_format memory_format=contiguous_format)
copy_(Tensor other, bool non_blocking=False)
copy_(Tensor other, bool async=False)|deprecated
cpu(*, memory_format? memory_format=None)
cuda(device? device=None, bool non_blocking=False, *, memory_format? memory_format=None)
cuda(device? device=None, bool async=False, *, memory_format? memory_format=None)|deprecated
dim()
element_size()
data_ptr()
get_device()
is_contiguous(*, memory_format memory_format=contiguous_format)
item()
ndimension()
nelement()
new_tensor(object data, *, dtype dtype=None, device? device=None, bool pin_memory=False, bool requires_grad=False)
nonzero()
nonzero(*, bool as_tuple)
numel()
numpy(*, bool force=False)
requires_grad_(bool requires_grad=True)
size(int? dim=None)
storage_offset()
stride(int? dim=None)
to(device device=None, dtype dtype=None, bool non_blocking=False, bool copy=False, *, memory_format? memory_format=None)
to(dtype dtype, bool non_blocking=False, bool copy=False, *, memory_format? memory_format=None)
to(Tensor tensor, bool non_blocking=False, bool copy=False, *, memory_format? memory_format=None)
tolist()
type(object dtype=None, bool non_blocking=False, *, memory_format? memory_format=None)
[torch]
as_tensor(object data, *, dtype dtype=None, device? device=None)
asarray(object obj, *, dtype? dtype=None, device? device=None, bool? copy=None, bool requires_grad=False)
frombuffer(object buffer, *, dtype dtype, int count=-1, int offset=0, bool requires_grad=False)
nonzero(Tensor input, *, Tensor out=None)
nonzero(Tensor input, *, bool as_tuple)
numel(Tensor input)
range(Number start, Number end, Number step=1, *, Tensor out=None, dtype dtype=None, layout layout=None, device? device=None, bool requires_grad=False)
tensor(object data, *, dtype dtype=None, device? device=None, bool pin_memory=False, bool requires_grad=False)
"""
CASTS = "bfloat16 bool byte cdouble cfloat char double float half int long short"


def simpler(signature: str) -> str:
    """Return a signature with type names that a Python programmer knows."""

    def renamed(parameter: str) -> str:
        kind, _, rest = parameter.rpartition(" ")
        bare, size, optional = re.fullmatch(r"(.*?)(\[\d\])?(\??)", kind).groups()  # type: ignore[union-attr]
        named = TYPES.get(bare, bare)
        if size:
            named = named.replace("[]", size)
        return f"{named}{optional} {rest}" if kind else parameter

    name, _, rest = signature.partition("(")
    body, _, deprecated = rest.rpartition(")")
    return f"{name}({', '.join(map(renamed, re.split(', ', body)))}){deprecated}" if body else signature


def as_method(signature: str) -> str | None:
    """Return the signature of the method that belongs to a function."""
    if "(Tensor input" not in signature:
        return None
    found = re.sub(r"\(Tensor input(, )?", "(", signature)
    return re.sub(r"(, \*)?, (Tensor|Tensor\[\d\]) out=None\)|\*, (Tensor|Tensor\[\d\]) out=None\)", ")", found)


def recorded() -> dict[str, dict[str, list[str]]]:
    """Return the signatures of every function by namespace and name."""
    import torch
    from torchgen.gen import parse_native_yaml
    from torchgen.packaged.autograd import gen_python_functions as bindings

    packaged = pathlib.Path(bindings.__file__).parents[1]
    native = packaged / "ATen/native"
    functions = parse_native_yaml(f"{native}/native_functions.yaml", f"{native}/tags.yaml").native_functions
    functions = [each for each in functions if bindings.should_generate_py_binding(each)]
    spaces: list[tuple[str, Any, Any, str]] = [
        ("torch", torch, bindings.is_py_torch_function, ""),
        ("Tensor", torch.Tensor, bindings.is_py_variable_method, ""),
        ("linalg", torch.linalg, bindings.is_py_linalg_function, "linalg_"),
        ("fft", torch.fft, bindings.is_py_fft_function, "fft_"),
        ("special", torch.special, bindings.is_py_special_function, "special_"),
        ("nn", torch.nn.functional, bindings.is_py_nn_function, ""),
    ]
    found: dict[str, dict[str, list[str]]] = {}
    for space, holder, belongs, prefix in spaces:
        pairs = bindings.load_signatures(
            functions, str(packaged / "autograd/deprecated.yaml"), method=space == "Tensor"
        )
        found[space] = {}
        for name, overloads in bindings.group_filter_overloads(pairs, belongs).items():
            shown = str(name).removeprefix(prefix)
            public = getattr(holder, shown, None)
            dunder = shown.startswith("__")
            if public is None or (shown.startswith("_") and not dunder):
                continue
            if re.search(
                "sparse|quantize|mkldnn|cudnn|miopen|fbgemm|dense|_per_(tensor|channel)|q_|batch_norm_", shown
            ):
                continue
            if inspect.isfunction(public):
                found[space][shown] = [f"{shown}()|python"]
                continue
            groups = bindings.group_overloads(overloads)
            found[space][shown] = [simpler(each.signature.signature_str()) for each in groups]
    for name, public in vars(torch.nn.functional).items():
        if inspect.isbuiltin(public) and name in found["torch"]:
            found["nn"][name] = found["torch"][name]
    for line in BY_HAND.split("\n"):
        if line.startswith("["):
            space = line.strip("[]")
        elif line:
            found[space].setdefault(line.partition("(")[0], []).append(line)
    for name in CASTS.split():
        found["Tensor"][name] = [f"{name}(*, memory_format? memory_format=None)"]
    return found


def main() -> None:
    """Write the file; methods whose signatures follow from the function's are left out of [Tensor]."""
    found = recorded()
    lines = [
        "# What PyTorch's functions accept, one way to call them a line; written by tests/conformance/golden/record_signatures.py.",
        "# A method that is not in [Tensor] accepts what the function does, without input and out. See refusals.py.",
    ]
    for space, functions in found.items():
        lines.append(f"[{space}]")
        for name, signatures in sorted(functions.items()):
            derived = [as_method(each) for each in found["torch"].get(name, [])]
            if space != "Tensor" or sorted(filter(None, derived)) != sorted(signatures):
                lines += signatures
    TARGET.write_text("\n".join(lines) + "\n")
    print(len(lines), "lines,", TARGET.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
