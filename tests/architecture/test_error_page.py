"""docs/errors.md contains the messages that retrograd gives today."""

import importlib.util
import sys

from tests import ROOT


def test_error_page_is_current() -> None:
    spec = importlib.util.spec_from_file_location("error_messages", ROOT / "scripts" / "error_messages.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    text = script.PAGE.read_text(encoding="utf-8")
    pytorch, retrograd = script.recorded(text), script.messages(sys.executable, "retrograd")
    assert len(pytorch) == len(script.PROGRAMS) and all(pytorch) and all(retrograd)
    assert script.page(pytorch, retrograd) == text
