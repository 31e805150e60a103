"""The report in a real browser: nothing fails to load, and everything that a reader can do works.

Screenshots of both themes are kept in `test-artefacts/report`, to be looked at.
"""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from selenium.webdriver import Chrome, ChromeOptions, Keys
from selenium.webdriver.chrome.service import Service

from quasiratio.plots import weight_figure
from quasiratio.report import Facts, Picture, Report, Section, Table, Text, write_report

ARTEFACTS = Path(__file__).parents[2] / "test-artefacts" / "report"
EVIL = "<script>window.hacked = 1</script>"
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
ARGUMENTS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-sync", "--disable-component-update", "--disable-dev-shm-usage", "--window-size=1300,900",
]  # fmt: skip

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="needs chromium and chromedriver: apt-get install chromium chromium-driver",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    options = ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, small_figure: Callable[[], Figure]) -> str:
    """Write a report with a hostile feature, numbers to sort, a wide table and sixty pictures."""
    rows: list[list[Any]] = [["pt", 10.5, 3], ["eta", 2.25, None], [EVIL, None, 1], ["m_hh", 9.0, 20]]
    wide = Table([f"column {i}" for i in range(20)], [[f"row {j}", *range(19)] for j in range(40)], "Wide")
    line = small_figure()
    pictures = [Picture(line, "A line.", f"observable {i}") for i in range(57)]
    report = Report(
        f"Report of {EVIL}",
        "Closes in every observable.\n\nBut look at the pulls.",
        [
            Section(
                "Closure", [Table(["observable", "chi2", "pull"], rows, "Distances"), Text("All is well.")]
            ),
            Section(
                "Observables",
                [
                    Picture(weight_figure({EVIL: [1.0, 1.0, -0.5]}), "Weights.", EVIL),
                    Picture(small_figure(), "Momentum.", "pt"),
                    *pictures,
                ],
            ),
            Section("Wide table", [wide]),
            Section("Model", [Facts({"seed": 7, "directory": "a/very/long/" + 40 * "directory/"})]),
        ],
        f"quasiratio evaluate model a.npz b.npz -o report --selection 'x > 1' --observables '{EVIL}'",
        subtitle="Sixty pictures",
        status="good",
    )
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_report(report, path)
    return path.as_uri()


@pytest.fixture
def page(browser: Chrome, address: str) -> Iterator[Chrome]:
    """Open the report anew; afterwards, the console must be empty and nothing may have been fetched."""
    browser.get(address)
    browser.execute_script("localStorage.clear()")
    browser.get_log("browser")
    browser.get(address)
    yield browser
    assert browser.get_log("browser") == []
    assert (
        browser.execute_script(
            "return performance.getEntriesByType('resource').filter(e => !e.name.startsWith('data:')).length"
        )
        == 0
    )
    assert browser.execute_script("return window.hacked") is None


def texts(page: Chrome, selector: str) -> list[str]:
    found: list[str] = page.execute_script(
        "return [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility()).map(e => e.textContent.trim())",
        selector,
    )
    return found


def press(page: Chrome, *keys: str) -> None:
    for key in keys:
        page.switch_to.active_element.send_keys(key)


def focus(page: Chrome, selector: str) -> None:
    page.execute_script("document.querySelector(arguments[0]).focus()", selector)


def first_column(page: Chrome) -> list[str]:
    return texts(page, "#closure tbody th")


def screenshot(page: Chrome, name: str) -> bytes:
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    picture = base64.b64decode(page.get_screenshot_as_base64())
    (ARTEFACTS / f"{name}.png").write_bytes(picture)
    return picture


def test_every_image_loads_when_it_is_scrolled_to(page: Chrome) -> None:
    page.execute_script("document.querySelectorAll('img[loading]').forEach(i => { i.loading = 'eager'; })")
    broken = page.execute_async_script(
        "const done = arguments[0];"
        "const images = [...document.querySelectorAll('figure img')];"
        "Promise.allSettled(images.map(i => i.decode()))"
        ".then(r => done([images.length, r.filter(s => s.status !== 'fulfilled').length,"
        " Math.min(...images.map(i => i.naturalWidth))]))"
    )
    assert broken[:2] == [59, 0]
    assert broken[2] > 100


def test_a_feature_named_script_stays_text(page: Chrome) -> None:
    assert page.title == f"Report of {EVIL}"
    assert texts(page, "h1") == [f"Report of {EVIL}"]
    assert EVIL in texts(page, "h3")
    assert EVIL in texts(page, ".index a")
    assert EVIL in first_column(page)
    assert len(page.find_elements("css selector", "script")) == 1


def test_tables_are_sorted_by_the_keyboard_with_missing_values_last(page: Chrome) -> None:
    heading = "#closure thead th:nth-child(2)"
    original = ["pt", "eta", EVIL, "m_hh"]
    assert first_column(page) == original
    focus(page, f"{heading} button")
    states = []
    for _ in range(3):
        press(page, Keys.ENTER)
        aria = page.execute_script(f"return document.querySelector('{heading}').ariaSort")
        states.append((aria, first_column(page)))
    assert states == [
        ("ascending", ["eta", "m_hh", "pt", EVIL]),
        ("descending", ["pt", "m_hh", "eta", EVIL]),
        ("none", original),
    ]
    focus(page, "#closure thead th:nth-child(3) button")
    press(page, Keys.SPACE)
    assert first_column(page) == [EVIL, "pt", "m_hh", "eta"]
    focus(page, "#closure thead th:nth-child(1) button")
    press(page, Keys.ENTER)
    assert first_column(page) == [EVIL, "eta", "m_hh", "pt"]
    assert page.execute_script("return document.querySelectorAll('#closure [aria-sort=none]').length") == 2


def test_search_filters_sections_figures_rows_and_index(page: Chrome) -> None:
    press_slash = "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '/', bubbles: true}))"
    page.execute_script(press_slash)
    assert page.execute_script("return document.activeElement.id") == "search"
    press(page, "M_HH")
    assert first_column(page) == ["m_hh"]
    assert texts(page, "section.part h2") == ["Closure"]
    assert texts(page, "h3") == []
    press(page, Keys.ESCAPE, "observable 5", " ", "line")
    assert texts(page, "h3") == [f"observable {i}" for i in range(57) if "5" in str(i)]
    assert first_column(page) == []
    assert texts(page, "#found") == ["1 section, 12 figures, 0 table rows"]
    assert texts(page, ".index li > a") == ["Observables", *texts(page, "h3")]
    press(page, Keys.ESCAPE, "wide table")
    assert texts(page, "section.part h2") == ["Wide table"]
    assert len(texts(page, "#wide-table tbody tr")) == 40
    press(page, Keys.ESCAPE, "nowhere to be found")
    assert texts(page, "section.part h2") == []
    assert texts(page, "#nothing") == ["Nothing here matches the search."]
    press(page, Keys.ESCAPE)
    assert len(texts(page, "h3")) == 59
    assert len(first_column(page)) == 4


def test_the_lightbox_opens_moves_and_closes_by_the_keyboard(page: Chrome) -> None:
    def state() -> list[Any]:
        found: list[Any] = page.execute_script(
            "const b = document.querySelector('#lightbox');"
            "return [b.open, b.querySelector('h2').textContent, b.contains(document.activeElement)]"
        )
        return found

    assert state()[0] is False
    focus(page, "#figure-pt .enlarge")
    press(page, Keys.ENTER)
    assert state() == [True, "pt", True]
    assert page.execute_script("return document.querySelector('#lightbox img').naturalWidth") > 100
    press(page, Keys.ARROW_RIGHT)
    assert state() == [True, "observable 0", True]
    press(page, Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert state() == [True, EVIL, True]
    focus(page, "[data-do=zoom]")
    width = "return document.querySelector('#lightbox img').getBoundingClientRect().width"
    before = page.execute_script(width)
    press(page, Keys.ENTER)
    assert page.execute_script(width) > 1.5 * before
    assert screenshot(page, "lightbox").startswith(b"\x89PNG")
    press(page, Keys.ESCAPE)
    assert state()[0] is False
    assert (
        page.execute_script("return document.activeElement.closest('figure').querySelector('h3').textContent")
        == EVIL
    )


def test_both_themes_render(page: Chrome) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    card = "return getComputedStyle(document.querySelector('.enlarge')).backgroundColor"
    shots, grounds = [], []
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        grounds.append(page.execute_script(ground))
        assert page.execute_script(card) == "rgb(255, 255, 255)"
        assert texts(page, "#theme-name") == [scheme.capitalize()]
        shots.append(screenshot(page, scheme))
    assert grounds[0] != grounds[1]
    assert shots[0] != shots[1]
    focus(page, "#theme")
    press(page, Keys.ENTER)
    assert page.execute_script(ground) == grounds[0]
    page.refresh()
    assert page.execute_script(ground) == grounds[0], "the choice is remembered"
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize("width", [320, 390, 800])
def test_a_narrow_window_does_not_scroll_sideways(page: Chrome, width: int) -> None:
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    page.refresh()
    try:
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
        inner = (
            "const b = document.querySelector('#wide-table .table-box'); return b.scrollWidth > b.clientWidth"
        )
        assert page.execute_script(inner), "the wide table scrolls in its own box"
        screenshot(page, f"width-{width}")
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_command_is_copied_as_it_stands(page: Chrome) -> None:
    page.execute_cdp_cmd(
        "Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    )
    focus(page, "#copy")
    press(page, Keys.ENTER)
    waited = page.execute_async_script(
        "const done = arguments[0], said = document.querySelector('#copied');"
        "const look = () => said.textContent ? done(said.textContent) : setTimeout(look, 20); look()"
    )
    assert waited == "Copied."
    assert f"'{EVIL}'" in texts(page, "#command")[0]


def test_paper_has_every_picture_and_no_buttons(page: Chrome) -> None:
    focus(page, "#theme")
    press(page, Keys.ENTER)
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert (
            page.execute_script("return getComputedStyle(document.body).backgroundColor")
            == "rgb(255, 255, 255)"
        )
        assert texts(page, ".plain, .index, .arrow") == []
        box = (
            "const b = document.querySelector('#wide-table .table-box'); return getComputedStyle(b).maxHeight"
        )
        assert page.execute_script(box) == "none"
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    printed = page.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})
    content = base64.b64decode(printed["data"])
    assert content.startswith(b"%PDF")
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    (ARTEFACTS / "printed.pdf").write_bytes(content)


def test_every_control_is_reached_by_the_tab_key(page: Chrome) -> None:
    page.execute_script("document.body.focus()")
    reached = []
    for _ in range(14):
        press(page, Keys.TAB)
        reached.append(
            page.execute_script("const e = document.activeElement; return e.id || e.className || e.tagName")
        )
    assert reached[0] == "skip"
    assert {"theme", "search", "SUMMARY"} <= set(reached)
