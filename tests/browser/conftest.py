"""A headless Chromium for the tests of the graph page, driven by Selenium.

Without Chromium, its driver or the package selenium the tests of this folder are not collected. ``scripts/browser.py``
installs all three where it can, and runs the tests.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
AVAILABLE = bool(CHROMIUM and DRIVER and importlib.util.find_spec("selenium"))

collect_ignore_glob = [] if AVAILABLE else ["test_*.py"]


class Page:
    """A page in the browser: what a test does with it, and what it asks."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def js(self, code: str, *arguments: Any) -> Any:
        return self.driver.execute_script(code, *arguments)

    def wait(self, code: str, seconds: float = 10) -> Any:
        """Return the value of a JavaScript expression once it is true; fail after ``seconds``."""
        end = time.monotonic() + seconds
        while not (answer := self.js(f"return {code}")):
            assert time.monotonic() < end, f"still false after {seconds} s: {code}"
            time.sleep(0.02)
        return answer

    def cdp(self, command: str, **parameters: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, parameters)

    def size(self, width: int, height: int) -> None:
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, **features: str) -> None:
        """Emulate features such as ``prefers_color_scheme="dark"``."""
        pairs = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.cdp("Emulation.setEmulatedMedia", features=pairs)

    def press(self, *keys: str) -> None:
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def click(self, selector: str) -> None:
        self.driver.find_element("css selector", selector).click()

    def click_box(self, item: int) -> None:
        """Click the box of a node, or of the group ``~item``, in the drawing."""
        self.click_drawing(*self.centre(item))

    def click_drawing(self, x: float, y: float) -> None:
        """Click a point of the drawing, in pixels from its upper left corner."""
        from selenium.webdriver import ActionChains

        canvas = self.driver.find_element("id", "canvas")
        width, height = self.js("return [arguments[0].clientWidth, arguments[0].clientHeight]", canvas)
        offset = round(x - width / 2), round(y - height / 2)
        ActionChains(self.driver, duration=0).move_to_element_with_offset(canvas, *offset).click().perform()

    def centre(self, item: int) -> tuple[float, float]:
        """Return the centre of a box, or of the title of an open group, in pixels from the canvas' upper left corner."""
        return self.js(
            """const box = graphPage.boxOf(arguments[0]), view = graphPage.state.view;
            const down = Math.min(13, box.height / 2);
            return [(box.x + box.width / 2) * view.scale + view.x, (box.y + down) * view.scale + view.y]""",
            item,
        )

    def text(self, selector: str) -> str:
        return self.js("return document.querySelector(arguments[0]).innerText.toWellFormed()", selector).strip()

    @property
    def selected(self) -> int | None:
        return self.js("return graphPage.state.selected")

    @property
    def step(self) -> int:
        return self.js("return graphPage.state.step")

    def settle(self) -> None:
        """Wait until the drawing stands still."""
        last = None
        while last != (last := self.js("return JSON.stringify(graphPage.state.view)")):
            time.sleep(0.25)

    def console(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses requested since the last call that the policy of the page did not stop, but for its own."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = {}
        for each in messages:
            if each["method"] == "Network.requestWillBeSent":
                sent[each["params"]["requestId"]] = each["params"]["request"]["url"]
            elif each["method"] == "Network.loadingFailed" and each["params"].get("blockedReason") == "csp":
                sent.pop(each["params"]["requestId"], None)
        return [url for url in sent.values() if not (url.startswith("file:") and url.endswith(".html"))]


@contextmanager
def browser() -> Iterator[Any]:
    """Start a headless Chromium that records its console and its requests, and quit it at the end."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for each in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1600,900",
    ):
        options.add_argument(each)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def driver() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.fixture
def show(driver: Any, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Open a document, or the text of an HTML file; afterwards the console must be empty and nothing requested."""
    from retrograd.inspection.page.html import page_html

    page = Page(driver)

    def opened(document: Any, width: int = 1400, height: int = 900, **features: str) -> Page:
        page.console(), page.requests()
        page.size(width, height)
        page.media(**({"prefers_reduced_motion": "reduce", "prefers_color_scheme": "light"} | features))
        file = tmp_path / "page.html"
        file.write_text(document if isinstance(document, str) else page_html(document), encoding="utf-8")
        driver.get(file.as_uri())
        if not isinstance(document, str):
            page.wait("Boolean(window.graphPage)")
        return page

    yield opened
    driver.switch_to.default_content()
    assert page.console() == []
    assert page.requests() == []
