"""The page of a large graph in a headless Chromium: ``python -m benchmarks.graph_page [--nodes 10000] [--file PAGE.html]``.

Opens a page of repeated steps, or the page in a file, such as one of ``retrograd run --page``. Prints the size of the
file, the time to the first paint and until the page answers, and for selecting, folding, zooming, stepping, searching and
the list the processor time of the page's main thread. Processor time is used for these because a loaded machine changes it
little; it includes layout and painting. Needs Chromium, chromedriver and selenium, as ``tests/browser`` does.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

#: What one round does, in order; ``{round}`` is its number. What has no name is not measured.
ACTIONS = (
    ("", "graphPage.toggle(1, true)"),
    ("open a group", "graphPage.toggle({round} + 2, true)"),
    ("fold a group", "graphPage.toggle({round} + 2, false)"),
    ("select a node", "graphPage.select(50 + {round})"),
    ("step of the replay", "graphPage.go(100 + {round})"),
    ("zoom", "document.getElementById('out').click()"),
    (
        "search",
        "const search = document.getElementById('search'); search.value = 'sin'; search.dispatchEvent(new Event('input'))",
    ),
    ("", "graphPage.toggle(1, false)"),
    ("open all groups", "document.getElementById('open-all').click()"),
    ("all open: fold a group", "graphPage.toggle({round} + 2, false)"),
    ("all open: open a group", "graphPage.toggle({round} + 2, true)"),
    ("all open: select a node", "graphPage.select(5000 + {round})"),
    ("all open: zoom", "document.getElementById('in').click()"),
    ("all open: whole graph", "document.getElementById('fit').click()"),
    ("fold all groups", "document.getElementById('open-all').click()"),
    ("show the list", "document.getElementById('as-list').click()"),
    ("hide the list", "document.getElementById('as-list').click()"),
)


def processor_time(driver: Any) -> float:
    """Return the processor time of the page's main thread in milliseconds."""
    metrics = {each["name"]: each["value"] for each in driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]}
    return 1000 * metrics["TaskDuration"]


def measure(driver: Any, file: Path, rounds: int) -> dict[str, float]:
    """Return milliseconds by name for the page in ``file``: the median of ``rounds``, with all groups folded and open."""
    from selenium.common.exceptions import JavascriptException

    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        start = time.perf_counter()
        driver.get(file.as_uri())
        while not driver.execute_script("return Boolean(window.graphPage)"):
            pass
        found.setdefault("until the page answers", []).append(1000 * (time.perf_counter() - start))
        paint = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
        while (first := driver.execute_script(paint)) is None:
            pass
        found.setdefault("first paint", []).append(first)
    driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    for each in range(rounds):
        for name, code in ACTIONS:
            before = processor_time(driver)
            try:
                driver.execute_script(code.format(round=each))
            except JavascriptException:  # a small page has no such group or node
                continue
            time.sleep(0.2)  # the next frame
            found.setdefault(name, []).append(processor_time(driver) - before)
    return {name: statistics.median(times) for name, times in found.items() if name}


def main() -> None:
    """Measure and print a table."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--nodes", type=int, default=10_000, help="number of operations, ten in each repeated step")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--file", type=Path, help="page to open in place of a made one")
    chosen = options.parse_args()
    from retrograd.inspection.page.html import page_html
    from tests.browser import conftest, documents

    if not conftest.AVAILABLE:
        sys.exit("Chromium, chromedriver and selenium are needed: python3 scripts/browser.py installs them on Debian.")
    with tempfile.TemporaryDirectory() as folder, conftest.browser() as driver:
        file = chosen.file or Path(folder) / "page.html"
        if chosen.file is None:
            file.write_text(page_html(documents.loop(chosen.nodes // 10)), encoding="utf-8")
        size = file.stat().st_size
        results = measure(driver, file, chosen.rounds)
    print(f"{chosen.file or f'{chosen.nodes} nodes'}, {size / 1000:.0f} kB")
    for name, milliseconds in results.items():
        print(f"{name:26}{milliseconds:8.0f} ms")


if __name__ == "__main__":
    main()
