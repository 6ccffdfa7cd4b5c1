"""Run the code blocks of the pages under PyTorch: ``python tests/conformance/golden/check_docs.py`` (needs PyTorch).

``retrograd`` is an alias of torch here, so that the guide is checked for both. Blocks marked ``retrograd-only`` are
skipped.
"""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
sys.modules["retrograd"] = torch

from tests.architecture.markdown_pages import PAGES, run_page  # noqa: E402 - found on the path that was just completed

if __name__ == "__main__":
    print(f"PyTorch {torch.__version__}")
    failed = False
    for page in PAGES:
        try:
            print(f"{page.name}: {run_page(page, only_common=True)} blocks")
        except Exception as error:
            failed = True
            print(f"{page.name}: {type(error).__name__}: {error}")
    sys.exit(failed)
