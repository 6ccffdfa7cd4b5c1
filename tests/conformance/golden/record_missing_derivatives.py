"""Record what PyTorch says to the derivatives of tests/conformance/missing_derivative_cases.py, and write their table into the page of differences.

    python -m tests.conformance.golden.record_missing_derivatives

Needs PyTorch. Fails if it refuses one of them no longer: then it is no gap.
"""

from __future__ import annotations

import json
import pathlib
import warnings

import torch

from tests.conformance.missing_derivative_cases import GAPS, refusal


def main() -> None:
    warnings.simplefilter("ignore")
    said = {}
    for gap in GAPS:
        for kind in gap.kinds.split():
            torch.manual_seed(0)
            said[f"{kind}: {gap.expression}"] = refusal(torch, gap, kind)
    given = [key for key, text in said.items() if not text]
    path = pathlib.Path(__file__).with_name("missing_derivatives.json")
    path.write_text(json.dumps({"torch": torch.__version__, "said": said}, indent=0) + "\n", encoding="utf-8")
    print(f"{len(said)} refusals" + "".join(f"\nPyTorch gives {each}" for each in given))


if __name__ == "__main__":
    main()
