"""The documentation runs: every Python block, page by page, what it says it prints, and what it draws."""

import importlib
import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from docs_extensions.page_code import Block, Picture, parts, run, same_output
from matplotlib.figure import Figure
from PIL import Image
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

import quasiratio
from quasiratio.plots import save_figure

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
PACKAGES = [
    "quasiratio",
    "quasiratio.distributions",
    "quasiratio.estimators",
    "quasiratio.generators.gg_hh",
    "quasiratio.io",
    "quasiratio.losses",
    "quasiratio.metrics",
    "quasiratio.plots",
    "quasiratio.report",
    "quasiratio.studies",
    "quasiratio.workflows",
]
LARGEST_PICTURE = 150_000
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
ARGUMENTS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-sync", "--disable-component-update", "--disable-dev-shm-usage",
]  # fmt: skip


def test_blocks_are_found_with_their_output_and_pictures() -> None:
    text = (
        "a\n```python\nprint(1)\n```\n\n```text\n1\n```\nb\n```python\nx = 2\n```\nc\n```text\nno\n```\n"
        "```python\ny = 3\n```\n\n``` {.text .approximate}\n3\n```\n\n![a b](../assets/figures/f.png)\n"
    )
    assert parts(Path("/docs/tutorials/page.md"), text) == [
        Block("print(1)\n", 3, "1\n"),
        Block("x = 2\n", 11, None),
        Block("y = 3\n", 18, "3\n", approximate=True),
        Picture(Path("/docs/assets/figures/f.png")),
    ]


def test_approximate_output_allows_other_digits_and_nothing_else() -> None:
    assert same_output("a [ 1.02 -0.  ]\n", "a [1.00 0.01]\n", approximate=True)
    assert not same_output("a 1.02\n", "a 1.00\n", approximate=False)
    assert not same_output("a 1.2\n", "a 1.0\n", approximate=True)
    assert not same_output("b 1.0\n", "a 1.0\n", approximate=True)
    assert not same_output("a 1.0 True\n", "a 1.0 False\n", approximate=True)


def test_a_page_that_prints_something_else_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n")
    with pytest.raises(AssertionError, match=r"page.md, line 2: the page says\s2"):
        list(run(page))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_code_of_a_page_runs_and_draws_its_pictures(page: Path, tmp_path: Path) -> None:
    for picture, figure in run(page):
        assert isinstance(figure, Figure), f"{picture.name} is not drawn by the code before it"
        assert picture.stat().st_size < LARGEST_PICTURE
        (drawn,) = save_figure(figure, tmp_path / picture.stem, formats=("png",))
        with Image.open(drawn) as new, Image.open(picture) as shown:
            assert new.size == shown.size, f"{picture.name} is not the figure of the page: `make figures`"


def test_every_figure_is_shown_by_a_page() -> None:
    shown = {
        part.path
        for page in PAGES
        for part in parts(page, page.read_text(encoding="utf-8"))
        if isinstance(part, Picture)
    }
    assert shown == set((DOCS / "assets" / "figures").iterdir())


def test_every_public_name_is_in_the_reference() -> None:
    reference = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    documented = set(re.findall(r"^::: [\w.]+\.(\w+)$", reference, re.MULTILINE))
    packages = {name.rpartition(".")[2] for name in PACKAGES}
    public = {name for package in PACKAGES for name in importlib.import_module(package).__all__}
    assert public - documented - packages == {"__version__"}


def documented_names() -> list[str]:
    reference = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    return [name for name in re.findall(r"^::: ([\w.]+)$", reference, re.MULTILINE) if name.count(".") > 1]


@pytest.mark.parametrize("documented", documented_names())
def test_what_is_documented_can_be_imported_from_its_package(documented: str) -> None:
    """Nobody has to know in which file of a package a name lives; those of single modules are names of the top."""
    module, _, name = documented.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    parts_of_it = module.split(".")
    packages = [importlib.import_module(".".join(parts_of_it[: n + 1])) for n in range(len(parts_of_it))]
    offering = [one for one in packages if hasattr(one, "__path__") and name in getattr(one, "__all__", ())]
    assert offering, f"{name} is in the __all__ of none of {[one.__name__ for one in packages]}"
    assert all(getattr(one, name) is value for one in offering)


def test_every_loss_is_in_the_table() -> None:
    page = (DOCS / "losses.md").read_text(encoding="utf-8")
    for name in quasiratio.losses.LOSSES:
        assert f"| `{name}` |" in page


def table_rows(page: str) -> list[list[str]]:
    text = (DOCS / page).read_text(encoding="utf-8")
    lines = re.findall(r"^\| (.+) \|$", text, re.MULTILINE)
    return [[cell.strip(" `") for cell in line.split("|")] for line in lines]


def test_numbers_of_the_methods_are_those_of_the_benchmarks() -> None:
    measured = {
        (row[0], row[1]): (row[5], row[6])
        for row in table_rows("benchmarks.md")
        if row[0] in ("nonnegative", "signed") and len(row) == 9
    }
    quoted = [row for row in table_rows("which-method.md") if len(row) == 5 and row[0] != "method"]
    assert len(quoted) >= 4
    for method, *numbers in quoted:
        (nonnegative, rms_nonnegative), (signed, rms_signed) = (
            measured[case, method] for case in ("nonnegative", "signed")
        )
        assert numbers == [nonnegative, signed, rms_nonnegative, rms_signed], method


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; a warning, such as a link that leads nowhere, fails."""
    pytest.importorskip("mkdocs")
    directory = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(directory)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return directory


def test_the_site_fetches_nothing(site: Path) -> None:
    for page in site.rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        fetched = re.findall(r"<(?:script|img|link|iframe)[^>]*?(?:src|href)=[\"']?(https?:[^\"' >]+)", html)
        assert not fetched, page
        assert "katex.min.js" in html


def test_links_of_the_site_lead_somewhere(site: Path) -> None:
    anchors: dict[Path, set[str]] = {}
    for page in site.rglob("*.html"):
        anchors[page] = set(re.findall(r"\bid=\"?([^\"\s>]+)", page.read_text(encoding="utf-8")))
    n_checked = 0
    for page in anchors:
        if page.name == "404.html":  # its links are from the root of the place where the site is put
            continue
        for link in re.findall(r"<a [^>]*?href=\"?([^\"\s>]+)", page.read_text(encoding="utf-8")):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            place = (page.parent / path).resolve() if path else page
            place = place / "index.html" if place.is_dir() else place
            assert place.exists(), f"{page.relative_to(site)}: {link}"
            if anchor and place.suffix == ".html" and not anchor.startswith("__"):
                assert anchor in anchors[place], f"{page.relative_to(site)}: {link}"
            n_checked += 1
    assert n_checked > 200


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Leave the terminal to pytest."""


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def browser() -> Iterator[Chrome]:
    options = ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(str(DRIVER)))
    yield driver
    driver.quit()


@pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver")
@pytest.mark.parametrize(("theme", "scheme"), [("light", "default"), ("dark", "slate")])
def test_pages_in_a_browser_draw_formulas_and_ask_nobody_else(
    browser: Chrome, address: str, theme: str, scheme: str
) -> None:
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    for page, has_formulas in (("", True), ("theory/", True), ("tutorials/wigner/", True), ("api/", False)):
        browser.get(address + page)
        body = browser.find_element("tag name", "body")
        assert body.get_attribute("data-md-color-scheme") == scheme
        count = "return document.querySelectorAll(arguments[0]).length"
        assert browser.execute_script(count, ".katex-error, .arithmatex:not(:has(.katex))") == 0
        assert bool(browser.execute_script(count, ".arithmatex .katex")) is has_formulas
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requested = {
        m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"
    }
    assert len(requested) > 10
    assert {url for url in requested if not url.startswith((address, "data:", "blob:"))} == set()
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
