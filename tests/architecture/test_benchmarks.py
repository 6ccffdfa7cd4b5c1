"""The benchmark command: comparison of two source trees, and the pages that it writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import page, trees
from benchmarks.groups import GROUPS
from benchmarks.measure import Result
from benchmarks.row import Row

ROW = Row("a row", lambda torch: lambda: None, 1.0)


@pytest.mark.parametrize("folder", ["src", "."])
def test_the_package_of_a_tree_is_found_in_src_or_at_the_top(tmp_path: Path, folder: str) -> None:
    package = tmp_path / folder / "retrograd"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    assert trees.package_parent(tmp_path) == (tmp_path / folder).resolve()


def test_a_folder_without_the_package_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="holds neither src/retrograd nor retrograd"):
        trees.package_parent(tmp_path)


def test_a_groups_mean_is_computed_in_each_round() -> None:
    results = [
        Result(ROW, ours=[1.0, 1.0, 1.0], other=[2.0, 4.0, 8.0]),
        Result(ROW, ours=[1.0, 2.0, 2.0], other=[2.0, 8.0, 1.0]),
    ]  # the geometric means of the rounds are 2, 4 and 2
    assert page.comparison_mean(results).split()[-2:] == ["2.000", "2.00–4.00"]
    assert page.comparison(results[0]).split()[-2:] == ["4.000", "2.00–8.00"]


def test_every_group_has_a_page_and_the_overview_lists_it() -> None:
    pages = {path.stem for path in page.RESULTS.glob("*.md")} - {"README"}
    alone = ["footprint", "loader", "memory", "peers"]
    assert pages == {*GROUPS, *alone}
    texts = {name: (page.RESULTS / f"{name}.md").read_text(encoding="utf-8") for name in [*GROUPS, *alone]}
    assert page.overview(texts) == (page.RESULTS / "README.md").read_text(encoding="utf-8")


def test_a_written_table_is_listed_with_its_mean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(page, "RESULTS", tmp_path / "results")
    group = GROUPS["overhead"]
    table = page.table(group, [Result(ROW, ours=[1.0, 1.0], theirs=[3.0, 3.0])])
    page.write(group.name, group.title, "command", f"2 threads each. {table}")
    assert f"| [{group.title}](overhead.md) | 1, 2.5 | 1 of 1 | 3.00 |" in (page.RESULTS / "README.md").read_text()


def test_a_tree_is_compared_with_itself(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--against", str(trees.ROOT), "--group", "overhead", "--rounds", "1"]
    command += ["--only", "x * y, not recorded", "--json", str(tmp_path / "rounds.json")]
    run = subprocess.run(command, capture_output=True, text=True, cwd=trees.ROOT)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "geometric mean, by round" in run.stdout
    times = json.loads((tmp_path / "rounds.json").read_text())["overhead"]["x * y, not recorded"]
    assert len(times["ours"]) == len(times["other"]) == 1
    assert all(0 < seconds < 1e-3 for seconds in times["ours"] + times["other"])
