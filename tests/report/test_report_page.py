"""The page of a report: whole, escaped, closed to the network, and usable when little is in it."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from quasiratio.errors import InvalidInputError
from quasiratio.report import Facts, Picture, Report, Section, Table, Text, write_report

from .conftest import Page

Writer = Callable[[Report], Page]
EVIL = """<script>alert(1)</script>"'&amp;</style>-->"""


def report(*sections: Section, **options: Any) -> Report:
    options = {"title": "A title", "verdict": "Closes.", "command": "quasiratio demo"} | options
    return Report(sections=sections, **options)


def test_everything_of_a_report_is_there(written: Writer, small_figure: Callable[[], Figure]) -> None:
    page = written(
        report(
            Section(
                "Closure",
                [
                    Text("First.\n\nSecond."),
                    Facts({"seed": 42, "ratio": 1.23456}),
                    Table(["observable", "chi2"], [["pt", 12.3456], ["eta", None]], "All observables"),
                    Picture(small_figure(), "What there is to see.", "pt"),
                ],
            ),
            subtitle="Below the title",
            status="poor",
        )
    )
    assert page.texts("title") == ["A title"]
    assert page.texts("h1") == ["A title"]
    assert page.texts("h2")[:3] == ["Verdict: poor", "Closure", "Repeat this"]
    assert "verdict poor" in [element["class"] for element in page.all("section", id="verdict")]
    assert {"Below the title", "Closes.", "First.", "Second."} <= set(page.texts("p"))
    assert page.texts("caption") == ["All observables"]
    assert page.texts("figcaption") == ["What there is to see."]
    assert page.texts("code") == ["quasiratio demo"]
    foot = dict(zip(page.texts("dt"), page.texts("dd"), strict=True))
    assert foot["seed"] == "42"
    assert foot["ratio"] == "1.23"
    assert {"quasiratio", "torch", "numpy", "Python", "made"} <= set(foot)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", foot["made"])


def test_the_index_points_at_sections_and_pictures(
    written: Writer, small_figure: Callable[[], Figure]
) -> None:
    pictures = [Picture(small_figure(), "", title) for title in ("pt", "PT", "日本", "")]
    page = written(report(Section("Same", pictures), Section("Same", []), Section("main", [])))
    links = [element for element in page.all("a") if element["within"].endswith("li")]
    assert [link["text"] for link in links] == ["Same", "pt", "PT", "日本", "Same", "main", "Repeat this"]
    names = [element["id"] for element in page.elements if "id" in element]
    assert len(names) == len(set(names))
    assert all(link["href"][1:] in names for link in links)
    assert len({link["href"] for link in links}) == len(links)


def test_users_strings_stay_text_everywhere(written: Writer, small_figure: Callable[[], Figure]) -> None:
    page = written(
        Report(
            EVIL,
            EVIL,
            [
                Section(
                    EVIL,
                    [
                        Text(EVIL),
                        Facts({EVIL: EVIL}),
                        Table([EVIL, "n"], [[EVIL, EVIL], [EVIL, 1.0]], EVIL),
                        Picture(small_figure(), EVIL, EVIL),
                    ],
                )
            ],
            EVIL,
            subtitle=EVIL,
        )
    )
    assert len(page.all("script")) == 1
    assert len(page.all("style")) == 1
    assert "alert" not in page.texts("script")[0]
    for tag in ("title", "h1", "h3", "caption", "figcaption", "code"):
        assert page.texts(tag) == [EVIL], tag
    assert page.texts("h2")[1] == EVIL
    assert page.texts("dt")[0] == page.texts("dd")[0] == EVIL
    assert page.texts("td") == [EVIL, "1"]
    assert [element["text"] for element in page.all("a") if element["within"].endswith("li")][:2] == [
        EVIL,
        EVIL,
    ]
    (image,) = [element for element in page.all("img") if element["src" if "src" in element else "alt"]]
    assert image["alt"] == f"{EVIL}. {EVIL}"
    assert page.all("button", **{"class": "enlarge"})[0]["aria-label"] == f"Enlarge: {EVIL}"
    assert page.all("div", role="region")[0]["aria-label"] == f"Table: {EVIL}"


def test_the_policy_allows_this_style_and_this_script_and_nothing_else(written: Writer) -> None:
    page = written(report())
    (policy,) = [e["content"] for e in page.all("meta") if e.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    for tag in ("style", "script"):
        content = re.search(f"<{tag}>(.*?)</{tag}>", page.source, re.DOTALL)
        assert content is not None
        digest = base64.b64encode(hashlib.sha256(content[1].encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"


def test_nothing_is_asked_of_another_place(written: Writer, small_figure: Callable[[], Figure]) -> None:
    page = written(report(Section("Figures", [Picture(small_figure(), "A line.", "a")])))
    for element in page.elements:
        assert not {"style", "onclick", "onload", "srcset", "action"} & set(element)
        for attribute in ("src", "href"):
            assert element.get(attribute, "#").startswith(("#", "data:")), element
    for tag in ("style", "script"):
        assert "http" not in page.texts(tag)[0]
        assert "url(" not in page.texts(tag)[0]


@pytest.mark.parametrize(
    ("value", "shown", "key"),
    [
        (1.23456, "1.23", "1.23456"),
        (123456.0, "123000", "123456.0"),
        (-0.00001234, "−1.23e−5", "-1.234e-05"),
        (200000, "200000", "200000.0"),
        (np.float32(0.5), "0.5", "0.5"),
        (np.int64(7), "7", "7.0"),
        (0.0, "0", "0.0"),
        (float("inf"), "∞", "inf"),
        (float("-inf"), "−∞", "-inf"),
        (float("nan"), "NaN", ""),
        (None, "–", ""),
        ("1.0", "1.0", None),
    ],
)
def test_numbers_are_short_and_sorted_by_their_value(
    value: Any, shown: str, key: str | None, written: Writer
) -> None:
    (cell,) = written(report(Section("T", [Table(["a", "b"], [["x", value]])]))).all("td")
    assert cell["text"] == shown
    assert cell.get("data-sort") == key


def test_headings_of_tables_can_be_sorted_by(written: Writer) -> None:
    page = written(report(Section("T", [Table(["name", "value"], [["x", 1.0]])])))
    headings = page.all("th", scope="col")
    assert [heading["aria-sort"] for heading in headings] == ["none", "none"]
    assert [heading.get("class") for heading in headings] == [None, "number"]
    assert page.texts("button", **{"class": "sort"}) == ["name", "value"]
    assert page.texts("th", scope="row") == ["x"]


def test_landmarks_and_names_for_readers_of_the_screen(
    written: Writer, small_figure: Callable[[], Figure]
) -> None:
    page = written(report(Section("Figures", [Picture(small_figure(), "A line.", "a")])))
    assert page.all("html")[0]["lang"] == "en"
    for tag in ("header", "nav", "main", "footer"):
        assert len(page.all(tag)) == 1
    assert page.all("a")[0]["href"] == "#main"
    assert page.all("label")[0]["for"] == page.all("input")[0]["id"]
    assert all("alt" in image for image in page.all("img"))
    picture = next(image for image in page.all("img") if image.get("src"))
    assert (picture["loading"], picture["width"], picture["height"]) == ("lazy", "384", "288")
    assert all(button["text"].strip() or button.get("aria-label") for button in page.all("button"))
    assert all(button["type"] == "button" for button in page.all("button"))


@pytest.mark.parametrize(
    "empty",
    [
        report(),
        report(title="", verdict="", command="", subtitle=""),
        report(Section("", [])),
        report(Section("S", [Text(""), Facts({}), Table([], []), Table(["a"], [], "None yet")])),
    ],
    ids=["no sections", "no words", "no blocks", "empty blocks"],
)
def test_little_content_still_makes_a_page(empty: Report, written: Writer) -> None:
    page = written(empty)
    assert page.all("table") == []
    assert len(page.all("main")) == 1
    assert ("None yet This table has no rows." in page.texts("p")) == any(
        s.title == "S" for s in empty.sections
    )


def test_names_of_files_that_are_no_text_and_control_characters(written: Writer) -> None:
    page = written(report(Section("a\x00b\x1b[31m", [Facts({"file": os.fsdecode(b"\xff.root")})])))
    assert page.texts("h2")[1] == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}[31m"
    assert page.texts("dd")[0] == "?.root"


def test_a_report_is_written_whole_or_not_at_all(
    tmp_path: Path, small_figure: Callable[[], Figure], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    write_report(report(), path)
    before = path.read_bytes()
    broken = small_figure()

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(broken, "savefig", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_report(report(Section("F", [Picture(broken, "", "")])), path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]
    assert path.read_bytes() == before


def test_refuses_what_it_cannot_show(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInputError, match=r"Got 1 values in row 2 of the table 'T'; expected one for each of its 2"
    ):
        Table(["a", "b"], [[1, 2], [1]], "T")
    with pytest.raises(InvalidInputError, match="Got the status 'great'; expected one of"):
        report(status="great")
    with pytest.raises(
        InvalidInputError, match="Got str in the section 'S'; expected Text, Facts, Table, Picture or Link"
    ):
        Section("S", ["text"])  # type: ignore[list-item]
    with pytest.raises(InvalidInputError, match="expected one that exists"):
        write_report(report(), tmp_path / "missing" / "report.html")
