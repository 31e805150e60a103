"""The page 'The paper, number by number' is what its script writes, and nothing of the paper is missing there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from benchmarks import paper_page
from benchmarks.paper_contents import CAUSES, FIGURES
from benchmarks.paper_page import LARGEST, NOT_RUN, PAGE, PICTURES, REFERENCE, STUDIES, Number, page_text
from PIL import Image

from quasiratio.studies.output.published_tables import GG_HH, SIGNED_GAUSSIANS


def test_the_page_is_what_the_script_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page_text(), "run python -m benchmarks.paper_page"


def test_every_printed_number_has_its_row() -> None:
    text = page_text()
    assert len(
        re.findall(
            r"^\| (?:chi2/ndof|D_S2) \| (?:nonnegative|signed) \| [^|]+ \| [\d.e+-]+ \|", text, re.MULTILINE
        )
    ) == len(SIGNED_GAUSSIANS)
    assert len(re.findall(r"^\| [^|]+ \| `\w+` \| [\d.e+-]+ \|", text, re.MULTILINE)) == len(GG_HH)


def test_figures_are_shown_or_said_to_be_missing_and_none_is_left_over() -> None:
    text = page_text()
    wanted = {f"{study}/{name}.png" for _, study, names, _ in FIGURES for name in names}
    there = {str(path.relative_to(PICTURES)) for path in PICTURES.rglob("*.png")}
    assert there <= wanted
    for name in wanted:
        shown = f"assets/paper/{name}" in text
        assert shown == (name in there)
        if not shown:
            assert re.search(rf"`{Path(name).stem}`.* {NOT_RUN}", text)
    for name in there:
        assert (PICTURES / name).stat().st_size < LARGEST


def test_what_was_not_run_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper_page, "REFERENCE", tmp_path)
    monkeypatch.setattr(paper_page, "PICTURES", tmp_path / "none")
    text = page_text()
    for study in STUDIES:
        assert f"| `{study}` | ours | {NOT_RUN} |" in text
    quick = REFERENCE / "weight-variance-quick.json"
    (tmp_path / quick.name).write_text(quick.read_text())
    assert f"{NOT_RUN} (quick: 0.966" in page_text()


def test_differences_are_said_where_they_are_beyond_the_spread() -> None:
    assert Number(2.0, 0.1, "full").difference(1.0) == "10 spreads above the printed value"
    assert Number(1.1, 0.1, "full").difference(1.0) == ""
    assert Number(0.5, 0.1, "full").difference(1.0, only_above=True) == ""
    assert Number(3.0, None, "full").difference(1.0) == "3 times the printed value, with one seed"
    assert Number(9.0, 0.1, "quick").difference(1.0) == ""


def test_a_finished_study_is_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REFERENCE", "PICTURES"):
        monkeypatch.setattr(paper_page, name, tmp_path / name)
        (tmp_path / name).mkdir()
    out = tmp_path / "out"
    out.mkdir()
    content = json.loads((REFERENCE / "loss-landscapes-quick.json").read_text())
    (out / "results.json").write_text(json.dumps(content | {"seconds": 75.0}))
    Image.new("RGB", (2400, 1200), "white").save(out / "landscapes-signed.png")
    paper_page.keep(out)
    text = page_text()
    assert "| `loss-landscapes` | ours | `quick` | 2 | 98e6f8ef | 1 min 15 s |" in text
    assert "assets/paper/loss-landscapes/landscapes-signed.png" in text
    with Image.open(tmp_path / "PICTURES" / "loss-landscapes" / "landscapes-signed.png") as picture:
        assert picture.size == (1200, 600)
    smoke = content | {"settings": {**content["settings"], "preset": "smoke"}}
    (out / "results.json").write_text(json.dumps(smoke))
    with pytest.raises(SystemExit, match="mean nothing"):
        paper_page.keep(out)
    (out / "results.json").write_text(json.dumps(content | {"complete": False}))
    with pytest.raises(SystemExit, match="not complete"):
        paper_page.keep(out)


def test_one_full_run_of_the_weights_fills_both_columns_and_says_its_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper_page, "REFERENCE", tmp_path)
    content = json.loads((REFERENCE / "weight-variance-quick.json").read_text())
    content |= {"commit": "0123456789, fedcba9876", "settings": {**content["settings"], "preset": "full"}}
    full = tmp_path / "weight-variance-full.json"
    full.write_text(json.dumps(content))
    text = page_text()
    assert re.search(r"\| `weight-variance` \| ours \| `full` \| 1 \| 01234567, fedcba98 \|", text)
    assert re.search(r"`weight-variance` \| the paper's \| `full` .* the same run", text)
    row = next(line for line in text.splitlines() if "VLRC AUC against sigma_w / R |" in line)
    assert row.count("0.966") == 2
    full.write_text(json.dumps(content | {"complete": False}))
    row = next(line for line in page_text().splitlines() if "VLRC AUC against sigma_w / R |" in line)
    assert row.count(f"{NOT_RUN} (part of full: 0.966") == 2


def test_a_difference_has_its_cause_or_is_not_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = json.loads((REFERENCE / "signed-gaussians-full.json").read_text())
    for one in content["results"]:
        one |= {"value": 100.0, "spread": 1.0}
    content["settings"]["published_settings"] = True
    (tmp_path / "signed-gaussians-published-full.json").write_text(json.dumps(content))
    monkeypatch.setattr(paper_page, "REFERENCE", tmp_path)
    lines = [line for line in page_text().splitlines() if line.startswith(("| chi2/ndof |", "| D_S2 |"))]
    far = [line for line in lines if "In its settings" in line]
    assert len(far) == len(SIGNED_GAUSSIANS) - 4  # not those of the exact ratio
    known = next(line for line in far if line.startswith("| chi2/ndof | nonnegative | RoSMM |"))
    assert "does not fit 1,400,000" in known
    assert "Not understood" not in known
    unknown = next(line for line in far if line.startswith("| D_S2 | nonnegative | RoSMM |"))
    assert "Not understood (tried" in unknown
    for of, _, begin in CAUSES:  # none is for a number that does not exist
        names = [one["name"] for one in json.loads((REFERENCE / f"{of}-full.json").read_text())["results"]]
        assert any(name.startswith(begin) for name in names), begin


def test_the_readme_leads_to_it() -> None:
    assert "docs/paper.md" in (PAGE.parents[1] / "README.md").read_text(encoding="utf-8")
