"""The graph page in Chromium: selection, replay, groups, zoom, keys, themes, paper, hostile texts."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

import pytest

from retrograd.inspection.page.html import frame_html, page_html

from . import documents

Show = Callable[..., Any]

DOCUMENT = documents.line_fit()
X, Y, A, B, UNUSED, MUL, LINE, FIVE, RELU, SUB, SQUARE, MEAN, TOTAL, RESULT = range(14)
KEYS = {"left": "\ue012", "up": "\ue013", "right": "\ue014", "down": "\ue015", "home": "\ue011", "end": "\ue010",
        "enter": "\ue007", "escape": "\ue00c", "tab": "\ue004", "space": " "}  # fmt: skip


def chosen(page: Any) -> tuple[str, str, Any]:
    """Return what the three panes show as selected: number of the line, entry of the list, title of the node."""
    return (
        page.js("return document.querySelector('.code .chosen .number')?.textContent"),
        page.js("return document.querySelector('#tree [aria-selected=true] .entry span')?.textContent"),
        page.text("#node-title"),
    )


# --- Selection


def test_box_line_and_entry_select_in_all_panes(show: Show) -> None:
    page = show(DOCUMENT)
    page.js("document.getElementById('as-list').click(), document.getElementById('as-list').click()")  # fill the list
    page.click_box(MUL)
    assert page.selected == MUL
    assert chosen(page) == ("11", "mul", "mul")
    page.click("[data-key='0:9']")
    assert page.selected == UNUSED
    assert chosen(page)[0] == "9"
    assert chosen(page)[2] == "unused"
    page.click("#as-list")
    page.js("[...document.querySelectorAll('#tree .entry')].find(each => each.textContent.startsWith('mean')).click()")
    assert page.selected == MEAN
    assert chosen(page) == ("13", "mean", "mean")


def test_line_with_several_operations_selects_one_after_the_other(show: Show) -> None:
    page = show(DOCUMENT)
    selected = []
    for _ in range(6):
        page.click("[data-key='0:13']")
        selected.append(page.selected)
    assert selected == [RESULT, TOTAL, MEAN, SQUARE, SUB, RESULT]


def test_pane_of_a_node_shows_value_gradient_saved_values_and_rule(show: Show) -> None:
    page = show(DOCUMENT)
    page.click_box(MUL)
    text = page.text("#node")
    for part in ("MulBackward0", "[12] float32", "line 11", "48 bytes for the backward pass", "grad * other", "at [0]:",
                 "summed over the broadcast dimensions: [12] -> []", "operations/elementwise/arithmetic.py:33", "g * other"):  # fmt: skip
        assert part in text
    assert page.js("return document.querySelectorAll('#node canvas').length") == 2  # of the value and of the gradient


def test_links_in_the_pane_select_inputs_and_users(show: Show) -> None:
    page = show(DOCUMENT)
    page.click_box(MUL)
    page.js("[...document.querySelectorAll('#node .facts .link')].find(each => each.textContent === 'x').click()")
    assert page.selected == X
    page.click("#overview")
    assert page.selected is None
    assert page.text("#node-title") == "Overview"


def test_click_beside_the_boxes_and_escape_return_to_the_overview(show: Show) -> None:
    page = show(DOCUMENT)
    page.click_box(MUL)
    page.click_drawing(5, 5)
    assert page.selected is None
    page.click_box(MUL)
    page.press(KEYS["escape"])
    assert page.selected is None


def test_search_finds_names_labels_and_lines(show: Show) -> None:
    page = show(DOCUMENT)
    page.press("/")
    page.press("unus")
    assert page.text("#found").split("\n")[0] == "unused"
    page.press(KEYS["enter"])
    assert page.selected == UNUSED
    page.click("#search")
    page.js("document.getElementById('search').value = ''")
    page.press("12")
    assert page.js("return document.querySelectorAll('#found [role=option]').length") == 2
    page.press(KEYS["down"], KEYS["enter"])
    assert page.selected == RELU


def test_search_without_a_match_says_so(show: Show) -> None:
    page = show(DOCUMENT)
    page.press("/")
    page.press("nothing of this name")
    assert page.text("#found") == "No node found."
    page.press(KEYS["enter"])
    assert page.selected is None


# --- The two questions


def test_line_that_keeps_most_memory_is_one_click_away(show: Show) -> None:
    page = show(documents.special_values())
    assert page.text("#most") == "Most memory: line 3"
    assert page.text("#memory").startswith("line 3")
    page.click("#most")
    assert chosen(page)[0] == "3"


def test_cause_of_a_zero_gradient_is_two_clicks_away(show: Show) -> None:
    page = show(DOCUMENT)
    assert page.text("#wrong") == "Gradients: 2 zero"
    page.click("#wrong")
    assert page.selected == UNUSED
    assert "The gradient is zero." in page.text("#node .note")
    page.click("#node .cause")
    assert page.selected == RELU
    assert chosen(page)[0] == "12"


def test_none_and_nan_gradients_are_named(show: Show) -> None:
    page = show(documents.special_values())
    assert page.text("#wrong") == "Gradients: 1 None, 1 NaN"
    titles = []
    for _ in range(3):
        page.press("g")
        titles.append((page.text("#node-title"), page.text("#node .note strong")))
    assert titles[0] == titles[2] == ("x", "The gradient contains NaN.")
    assert titles[1] == ("w", "The gradient is None.")


def test_list_can_be_sorted_by_bytes_and_by_gradient(show: Show) -> None:
    page = show(DOCUMENT)
    page.press("l")
    names = "return [...document.querySelectorAll('#tree .entry > span:first-child')].map(each => each.title)"
    for order, first in (
        ("bytes", ["mul", "pow", "clipped = relu"]),
        ("gradient", ["unused", "sub", "x"]),
        ("order", ["x", "y", "a"]),
    ):
        page.js(
            f"const sort = document.getElementById('sort'); sort.value = '{order}'; sort.dispatchEvent(new Event('change'))"
        )
        assert page.js(names)[:3] == first


# --- Replay


def test_keys_step_through_recording_and_backward_pass(show: Show) -> None:
    page = show(DOCUMENT)
    page.press(KEYS["home"])
    assert page.step == 0
    assert page.selected == MUL
    assert page.text("#step").startswith("1 / 20 forward")
    page.press(KEYS["right"])
    assert (page.step, page.selected) == (1, LINE)
    page.press(KEYS["left"])
    assert (page.step, page.selected) == (0, MUL)
    page.press(KEYS["end"])
    assert page.step == 19
    assert "becomes unused.grad" in page.text("#step")


def test_backward_steps_follow_the_order_of_the_events(show: Show) -> None:
    page = show(DOCUMENT)
    order = []
    page.js("graphPage.go(8)")
    for _ in range(12):
        order.append(page.selected)
        page.press(KEYS["right"])
    assert order == [each["node"] for each in DOCUMENT["events"]]


def test_step_names_incoming_gradient_formula_with_numbers_and_freed_bytes(show: Show) -> None:
    page = show(DOCUMENT)
    page.js("graphPage.go(11)")  # pow
    assert page.selected == SQUARE
    assert "receives [12] float32 and sends to sub: grad * 2 * input; 48 bytes are freed" in page.text("#step")
    assert re.search(r"at \[0\]: 0\.08333 \* 2 \* -?[\d.]+ = -?[\d.]+", page.text("#node"))
    assert page.text("#node .now").startswith("Step 12:")


def test_slider_moves_the_replay(show: Show) -> None:
    page = show(DOCUMENT)
    page.js(
        "const slider = document.getElementById('slider'); slider.value = 5; slider.dispatchEvent(new Event('input'))"
    )
    assert page.step == 5
    page.js("document.getElementById('slider').focus()")
    page.press(KEYS["right"])
    assert page.step == 6  # once, not twice
    assert page.js("return document.getElementById('slider').getAttribute('aria-valuetext')") == "Step 7 of 20, forward"


def test_space_plays_to_the_end_and_pauses(show: Show) -> None:
    page = show(DOCUMENT)
    page.js("document.getElementById('speed').value = '20'")
    page.press(KEYS["space"])
    assert page.js("return document.getElementById('play').getAttribute('aria-label')") == "Pause"
    page.wait("graphPage.state.step > 2")
    page.press(KEYS["space"])
    paused = page.step
    assert page.js("return document.getElementById('play').getAttribute('aria-label')") == "Play"
    page.press(KEYS["space"])
    page.wait("graphPage.state.step === 19 && !graphPage.state.timer")
    assert 0 < paused < 19


def test_space_plays_after_a_click_on_another_button(show: Show) -> None:
    page = show(DOCUMENT)
    page.click("#in")
    scale = page.js("return graphPage.state.view.scale")
    page.press(KEYS["space"])
    assert page.js("return Boolean(graphPage.state.timer)")
    assert page.js("return graphPage.state.view.scale") == scale
    page.press(KEYS["space"])


def test_replay_announces_its_steps(show: Show) -> None:
    page = show(DOCUMENT)
    assert page.js("return document.getElementById('step').getAttribute('aria-live')") == "polite"
    page.press(KEYS["home"])
    assert "mul of b, x (line 11, [12] float32)" in page.text("#step")


# --- Groups


def test_groups_open_and_fold_by_click(show: Show) -> None:
    page = show(documents.loop(3))
    boxes = "return graphPage.boxOf(1) === undefined"
    assert page.js(boxes)
    page.click_box(~1)
    page.settle()
    page.click_box(~2)
    page.settle()
    assert not page.js(boxes)
    page.click_box(1)
    assert page.selected == 1
    page.click_box(~2)  # the title of the open group
    assert page.js(boxes)
    page.click("#open-all")  # "Fold all", because one is open
    assert page.js("return graphPage.boxOf(~2) === undefined")
    page.click("#open-all")
    assert not page.js(boxes)


def test_groups_open_and_fold_by_key(show: Show) -> None:
    page = show(documents.loop(3))
    page.js("graphPage.select(1); document.getElementById('canvas').focus()")
    page.press(KEYS["enter"], KEYS["enter"])
    assert page.js("return [...graphPage.state.open].sort().join()") == "0,1,2"
    page.press(KEYS["enter"])
    assert page.js("return [...graphPage.state.open].sort().join()") == "0,1"


def test_boxes_do_not_overlap_when_groups_open(show: Show) -> None:
    page = show(documents.loop(3))
    page.press("o")
    boxes = page.js(
        "return Array.from({length: 31}, (_, id) => graphPage.boxOf(id)).map(box => [box.x, box.y, box.width, box.height])"
    )
    for at, (x, y, width, height) in enumerate(boxes):
        for other in boxes[:at]:
            assert (
                x >= other[0] + other[2] or other[0] >= x + width or y >= other[1] + other[3] or other[1] >= y + height
            )
    assert (
        page.js("return graphPage.arrows()")
        == sum(len(node.get("inputs", [])) for node in documents.loop(3)["nodes"]) - 1
    )


def test_selected_node_in_a_folded_group_can_be_opened_from_its_pane(show: Show) -> None:
    page = show(documents.loop(3))
    page.js("graphPage.select(15)")
    assert "for step × 3 › step 1" in page.text("#node .facts")
    page.js(
        "[...document.querySelectorAll('#node .link')].find(each => each.textContent === 'open in the graph').click()"
    )
    assert page.js("return graphPage.boxOf(15) !== undefined")


# --- Zoom


def test_zoom_by_wheel_keys_and_buttons_and_fit(show: Show) -> None:
    page = show(DOCUMENT)
    scales = [page.js("return graphPage.state.view.scale")]
    for action in (
        lambda: page.js("document.getElementById('canvas').dispatchEvent(new WheelEvent('wheel', {deltaY: -100, clientX: 600, clientY: 300, cancelable: true}))"),
        lambda: page.press("+"),
        lambda: page.click("#in"),
    ):  # fmt: skip
        action()
        scales.append(page.js("return graphPage.state.view.scale"))
    assert scales == sorted(set(scales))
    page.press("0")
    assert page.js("return graphPage.state.view.scale") == pytest.approx(scales[0])


def test_wheel_keeps_the_point_under_the_pointer(show: Show) -> None:
    page = show(DOCUMENT)
    before = page.centre(MUL)
    page.js(
        """const area = document.getElementById('canvas').getBoundingClientRect();
        document.getElementById('canvas').dispatchEvent(new WheelEvent('wheel',
            {deltaY: -200, clientX: area.left + arguments[0], clientY: area.top + arguments[1], cancelable: true}))""",
        *before,
    )
    assert page.centre(MUL) == pytest.approx(before, abs=1)


def test_two_fingers_zoom_and_one_moves(show: Show) -> None:
    page = show(DOCUMENT)
    area = page.js(
        "const area = document.getElementById('canvas').getBoundingClientRect(); return [area.left, area.top]"
    )
    x, y = area[0] + 250, area[1] + 250

    def touch(kind: str, *points: tuple[float, float]) -> None:
        page.cdp(
            "Input.dispatchTouchEvent",
            type=kind,
            touchPoints=[{"x": px, "y": py, "id": at} for at, (px, py) in enumerate(points)],
        )

    before = page.js("return {...graphPage.state.view}")
    touch("touchStart", (x, y))
    touch("touchMove", (x + 40, y + 10))
    touch("touchEnd")
    moved = page.js("return {...graphPage.state.view}")
    assert moved["x"] - before["x"] == pytest.approx(40, abs=1)
    assert moved["y"] - before["y"] == pytest.approx(10, abs=1)
    touch("touchStart", (x, y), (x + 100, y))
    touch("touchMove", (x, y), (x + 150, y))
    touch("touchEnd")
    assert page.js("return graphPage.state.view.scale") == pytest.approx(before["scale"] * 1.5, rel=0.02)


def test_shift_and_arrows_move_the_graph(show: Show) -> None:
    from selenium.webdriver import ActionChains

    page = show(DOCUMENT)
    before = page.js("return graphPage.state.view.x")
    ActionChains(page.driver).key_down("\ue008").send_keys(KEYS["right"]).key_up("\ue008").perform()
    assert page.js("return graphPage.state.view.x") == before - 60
    assert page.step == 19


# --- Keyboard and screen reader


def test_graph_is_a_nested_list_for_the_keyboard(show: Show) -> None:
    page = show(documents.loop(3))
    page.press("l")
    page.js("document.querySelector('#tree [tabindex=\"0\"]').focus()")
    page.press(KEYS["down"])
    assert page.js("return document.activeElement.getAttribute('aria-expanded')") == "false"
    page.press(KEYS["right"])
    assert page.js("return document.activeElement.getAttribute('aria-expanded')") == "true"
    assert page.step == 61  # the arrow opened the group and did not step
    page.press(KEYS["right"], KEYS["right"], KEYS["right"])
    assert page.js("return document.activeElement.getAttribute('aria-level')") == "3"
    page.press(KEYS["enter"])
    assert page.selected == 1
    assert page.text("#node-title") == "mul"
    page.press(KEYS["left"], KEYS["left"])
    assert page.js("return document.activeElement.getAttribute('aria-expanded')") == "false"


def test_whole_page_works_without_a_pointer(show: Show) -> None:
    page = show(DOCUMENT)
    seen = []
    for _ in range(30):
        page.press(KEYS["tab"])
        seen.append(page.js("const at = document.activeElement; return at.id || at.dataset.key || at.className"))
        if seen[-1] == "canvas":
            break
    assert seen[0] == "search"
    assert {"most", "wrong", "theme", "help-button", "as-list", "fit", "canvas"} <= set(seen)
    page.press(KEYS["up"])
    assert page.selected == RESULT
    page.press(KEYS["up"], KEYS["up"], KEYS["down"])
    assert page.selected == TOTAL
    assert page.js("return getComputedStyle(document.getElementById('canvas')).outlineStyle") == "solid"


def test_every_control_has_a_name(show: Show) -> None:
    page = show(DOCUMENT)
    page.press("l")
    page.click("#as-list")
    tree = page.cdp("Accessibility.getFullAXTree")["nodes"]
    controls = [
        each
        for each in tree
        if each.get("role", {}).get("value") in ("button", "slider", "combobox", "application", "treeitem", "image")
        and not each["ignored"]
    ]
    assert len(controls) > 20
    assert [each for each in controls if not each.get("name", {}).get("value")] == []


def luminance(colour: str) -> float:
    parts = [int(each) / 255 for each in re.findall(r"\d+", colour)[:3]]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_of_text_is_at_least_4_5(show: Show, scheme: str) -> None:
    page = show(DOCUMENT, prefers_color_scheme=scheme)

    def colour(name: str) -> str:
        return page.js(
            """const probe = document.body.appendChild(document.createElement("i"));
            probe.style.color = `var(--${arguments[0]})`;
            const found = getComputedStyle(probe).color;
            probe.remove();
            return found""",
            name,
        )

    pairs = [
        (text, fill)
        for text in ("text", "muted")
        for fill in ("page", "pane", "chosen", "leaf", "constant", "operation", "result", "group", "hover")
    ]
    pairs += [
        ("problem", "problem-fill"),
        ("problem", "pane"),
        ("accent", "pane"),
        ("accent", "page"),
        ("on-accent", "accent"),
        ("accent", "chosen"),
        ("accent", "problem-fill"),
    ]
    pairs += [
        (text, fill) for text in ("forward", "backward") for fill in ("leaf", "constant", "operation", "result", "pane")
    ]
    pairs += [(text, "pane") for text in ("word", "string", "comment")] + [
        (text, "chosen") for text in ("word", "string", "comment")
    ]
    ratios = {}
    for text, fill in pairs:
        dark, light = sorted([luminance(colour(text)), luminance(colour(fill))])
        ratios[text, fill] = (light + 0.05) / (dark + 0.05)
    assert {pair: round(ratio, 2) for pair, ratio in ratios.items() if ratio < 4.5} == {}


# --- Themes, narrow screens, paper


def test_theme_follows_the_system_and_the_button(show: Show) -> None:
    page = show(DOCUMENT, prefers_color_scheme="dark")
    background = "return getComputedStyle(document.body).backgroundColor"
    dark = page.js(background)
    assert luminance(dark) < 0.05
    page.click("#theme")
    assert luminance(page.js(background)) > 0.8
    page.click("#theme")
    assert page.js(background) == dark


def test_narrow_screen_shows_one_pane_and_tabs(show: Show) -> None:
    page = show(DOCUMENT, width=420, height=800)
    visible = (
        "return [...document.querySelectorAll('main section')].filter(each => each.offsetWidth).map(each => each.id)"
    )
    assert page.js(visible) == ["graph-pane"]
    page.click_box(MUL)
    assert page.text("#tabs [data-pane=node]") == "Node: mul"
    page.click("#tabs [data-pane=node]")
    assert page.js(visible) == ["node-pane"]
    page.click("#tabs [data-pane=source]")
    assert page.js(visible) == ["source-pane"]
    assert page.js("return document.documentElement.scrollWidth") == 420


@pytest.mark.parametrize("width", [320, 600, 861, 1100, 2400])
def test_no_width_needs_horizontal_scrolling(show: Show, width: int) -> None:
    page = show(DOCUMENT, width=width, height=700)
    assert page.js("return document.documentElement.scrollWidth") == width
    assert page.js("return document.documentElement.scrollHeight") == 700


def test_print_shows_graph_node_and_table(show: Show) -> None:
    page = show(DOCUMENT, prefers_color_scheme="dark")
    page.click_box(MUL)
    page.js(
        """addEventListener("beforeprint", () => setTimeout(() => 0));
        window.printed = [];
        matchMedia("print").addEventListener("change", event => event.matches && printed.push(...["header h1", "#source-pane",
            "#canvas", "#node", "#print-graph", "#print-table", "footer"].filter(each => document.querySelector(each).offsetWidth)));"""
    )
    pdf = base64.b64decode(page.cdp("Page.printToPDF")["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 1
    rows = page.js(
        "return [...document.querySelectorAll('#print-table tr')].map(each => each.innerText || each.textContent)"
    )
    assert len(rows) == 15
    cells = page.js(
        "return [...document.querySelectorAll('#print-table tr')].map(row => [...row.cells].map(each => each.textContent))"
    )
    assert cells[1][:2] == ["x", "constant"] and cells[1][4] == "−1 … 1"
    assert [row[5] for row in cells if row[0] == "unused"] == ["zero"]
    assert page.js("return printed.join()") == "header h1,#node,#print-graph,#print-table"
    picture = page.js(
        """const canvas = document.getElementById("print-graph");
        return [...new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer))].length"""
    )
    assert picture > 50
    assert luminance(page.js("return getComputedStyle(document.body).backgroundColor")) < 0.05  # dark again


# --- Values


def test_heat_map_marks_nan_and_infinity_and_is_symmetric_around_zero(show: Show) -> None:
    page = show(documents.special_values())
    page.js("graphPage.select(0)")
    pixels = page.js(
        """const maps = [...document.querySelectorAll("#node .value canvas")];
        return maps.map(map => {
          const side = map.width / 10, all = map.getContext("2d").getImageData(0, 0, map.width, map.height).data;
          return Array.from({length: 80}, (_, cell) => {
            const at = 4 * ((Math.floor(cell / 10) * side + 1) * map.width + cell % 10 * side + 1);
            return [...all.slice(at, at + 3)].join();
          });
        })"""
    )
    value, gradient = pixels
    assert len({value[0], value[79]}) == 2
    nan = set(gradient[:10])
    assert len(nan) == 1
    assert nan.isdisjoint(value)
    assert gradient[40] == value[79]  # infinity: the colour of the largest element
    assert page.js("return [...document.querySelectorAll('#node .stats b')].map(each => each.textContent)") == [
        "",
        "40 NaN · 2 infinite",
    ]


def test_number_in_a_box_keeps_its_exponent(show: Show) -> None:
    """A number without room for four significant digits is shown with fewer; the drawing cuts none off."""
    numbers = [-2.275957e-17, 4.949e-17, 0.00001108, -1.7012e308, 123456789.0, 0.000001254, 1.0, -0.1761]
    builder = documents.Builder("numbers", "x = 1")
    for index, each in enumerate(numbers):
        name = "a name that is too long for the box"
        builder.node("operation", name, inputs=[index - 1] if index else [], value=each, grad=each)
    page = show(builder.finish())
    texts = page.js(
        """const found = [], { fillText } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.fillText = text => found.push(text);
        graphPage.paintNow();
        CanvasRenderingContext2D.prototype.fillText = fillText;
        return found"""
    )
    gradients = [each[2:] for each in texts if each.startswith("∂ ")]
    values = [each for each in texts if each and each.strip("−0123456789.e-") == ""]
    assert not [each for each in texts if "…" in each and not each.startswith("a ")]
    for shown in values, gradients:
        assert [float(each.replace("−", "-")) for each in shown] == pytest.approx(numbers, rel=0.05)
        assert all(len(each) - each.count("−") >= 2 for each in shown if "e" in each)
        assert shown[6:] == ["1", "−0.1761"]
    assert gradients[0] in ("−2.28e-17", "−2.3e-17")


def test_large_values_have_a_histogram(show: Show) -> None:
    page = show(documents.special_values())
    page.js("graphPage.select(3)")
    assert page.js("return document.querySelectorAll('#node [aria-label^=Histogram]').length") == 2


# --- Safety


def test_hostile_texts_appear_literally_and_do_nothing(show: Show) -> None:
    page = show(documents.hostile())
    page.press("o", "l", "l")
    for node in (0, 1):
        page.js(f"graphPage.select({node})")
        assert documents.HOSTILE[1] in page.text("#node")
    page.js("for (const step of graphPage.steps.keys()) graphPage.go(step)")
    page.press("/")
    page.press("script")
    page.js("document.getElementById('search').blur()")
    page.cdp("Page.printToPDF")
    assert page.text("#title") == documents.HOSTILE[0]
    assert page.text("#source").count("window.broken") == 4  # one is in the file's name
    assert page.js("return document.querySelectorAll('img, script[src], [onerror], a, iframe').length") == 0
    assert page.js("return window.broken === undefined")


def test_content_security_policy_stops_scripts_styles_and_requests(show: Show) -> None:
    page = show(DOCUMENT)
    page.js(
        """const script = document.createElement("script");
        script.textContent = "window.broken = 1";
        document.body.append(script);
        document.body.insertAdjacentHTML("beforeend", '<img src="http://192.0.2.1/x.png" onerror="window.broken = 2">');
        window.refused = null;
        fetch("http://192.0.2.1/").catch(error => { window.refused = String(error); });"""
    )
    page.wait("window.refused")
    assert page.js("return window.broken === undefined")
    messages = page.console()
    assert len(messages) >= 3
    assert all("Content Security Policy" in each or "violates" in each for each in messages)


def test_page_works_in_a_sandboxed_frame(show: Show) -> None:
    page = show(
        f"<!DOCTYPE html><title>notebook</title><link rel='icon' href='data:,'>{frame_html(page_html(DOCUMENT), 600)}"
    )
    page.driver.switch_to.frame(page.driver.find_element("css selector", "iframe"))
    page.wait("Boolean(window.graphPage)")
    assert page.js("return window.origin") == "null"
    page.click("#wrong")
    assert page.selected == UNUSED
    page.press(KEYS["home"])
    assert page.step == 0


@pytest.mark.parametrize(
    "make", [documents.line_fit, documents.special_values, lambda: documents.loop(20)], ids=["fit", "values", "loop"]
)
def test_every_node_and_step_can_be_shown(show: Show, make: Callable[[], Any]) -> None:
    page = show(make())
    page.press("o")
    page.js("for (const id of window.graphDocument.nodes.keys()) graphPage.select(id)")
    page.js("for (const step of graphPage.steps.keys()) { graphPage.go(step); graphPage.paintNow(); }")
    assert page.step == page.js("return graphPage.steps.length") - 1


def test_empty_document_opens(show: Show) -> None:
    page = show(
        {
            "title": "nothing",
            "summary": "",
            "sources": [],
            "nodes": [],
            "groups": [],
            "events": [],
            "notes": ["There is no graph."],
        }
    )
    assert "There is no graph." in page.text("#node")
    page.press(KEYS["home"], KEYS["right"], "0", "+", "o", "g", "m", "l")
    page.press(KEYS["space"], KEYS["space"])


def test_help_opens_and_closes_by_key(show: Show) -> None:
    page = show(DOCUMENT)
    page.press("?")
    assert "play or pause" in page.text("#help")
    page.press(KEYS["escape"])
    assert not page.js("return document.getElementById('help').open")
