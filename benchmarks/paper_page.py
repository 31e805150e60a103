"""Write `docs/paper.md`, 'The paper, number by number', from what studies left in the repository.

`python -m benchmarks.paper_page` writes the page from the committed numbers (`tests/studies/reference/*.json`) and figures
(`docs/assets/paper`); a test compares. `python -m benchmarks.paper_page --keep DIRECTORY...` takes over the numbers and the
figures of finished studies first, each with its preset, seeds, commit and seconds.
"""

from __future__ import annotations

import argparse
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.paper_contents import (
    CAUSES,
    CLOSED_FORM,
    FIGURES,
    OLDER_DEFAULTS,
    TEXT_NUMBERS,
    TRIED,
)
from benchmarks.results import EPOCH_SIZE, read_rows
from benchmarks.validation_size import same_points
from quasiratio.metrics import linear_fit
from quasiratio.progress import duration_text
from quasiratio.studies.output.published_tables import (
    GG_HH,
    GG_HH_OBSERVABLES,
    GG_HH_SIZES,
    SIGNED_GAUSSIAN_SIZES,
    SIGNED_GAUSSIANS,
    Metric,
)
from quasiratio.studies.ratio_methods import METHOD_LABELS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "paper.md"
PICTURES = ROOT / "docs" / "assets" / "paper"
REFERENCE = ROOT / "tests" / "studies" / "reference"
NOT_RUN = "not yet run at full size"
STUDIES = ("signed-gaussians", "loss-landscapes", "weight-variance", "smeft-hh")
_HAS_PUBLISHED_SETTINGS = ("signed-gaussians", "weight-variance", "smeft-hh")
_FULL_IS_PUBLISHED = ("weight-variance",)
"""Studies whose `full` has the published networks and schedules: one run is both."""
_METRICS: dict[Metric, str] = {"chi2": "chi2/ndof", "entropy": "D_S2"}
_WIDEST, LARGEST = 1200, 150_000
_NOTABLE, _NOTABLE_FACTOR = 2.0, 1.5


@dataclass(frozen=True)
class Run:
    """The numbers of a study as it was run once."""

    study: str
    preset: str
    is_published: bool
    content: dict[str, Any]

    @property
    def numbers(self) -> dict[str, dict[str, Any]]:
        return {one["name"]: one for one in self.content["results"]}

    @property
    def size(self) -> str:
        """The preset, or how much of it there is."""
        return self.preset if self.content["complete"] else f"part of {self.preset}"

    @property
    def has_published_size(self) -> bool:
        return self.size == "full"

    @property
    def commits(self) -> list[str]:
        """First digits of the commits that computed its rows."""
        return [commit[:8] for commit in self.content["commit"].split(", ")]


@dataclass(frozen=True)
class Number:
    """A number with its spread, and the preset it is of."""

    value: float | None
    spread: float | None
    preset: str

    def __str__(self) -> str:
        if self.value is None:
            return "not finite"
        text = _short(self.value)
        text += " (one seed)" if self.spread is None else f" ± {_short(self.spread)}"
        return text if self.preset == "full" else f"{NOT_RUN} ({self.preset}: {text})"

    def difference(self, printed: float, *, only_above: bool = False) -> str:
        """Say how far it is from a printed number, if it is far; sizes other than the paper's are not compared."""
        if self.value is None or self.preset != "full" or not printed:
            return ""
        if self.spread is None:
            factor = self.value / printed
            is_far = factor > _NOTABLE_FACTOR or factor < 1 / _NOTABLE_FACTOR
            return f"{factor:.2g} times the printed value, with one seed" if is_far else ""
        pull = (self.value - printed) / self.spread if self.spread else 0.0
        if abs(pull) <= _NOTABLE or (only_above and pull < 0):
            return ""
        return f"{abs(pull):.2g} spreads {'above' if pull > 0 else 'below'} the printed value"


def reference_name(study: str, preset: str, *, is_published: bool) -> str:
    return f"{study}-{'published-' if is_published else ''}{preset}.json"


def best_run(study: str, *, is_published: bool) -> Run | None:
    """Return `full` where it is there, else `quick`."""
    for preset in ("full", "quick"):
        names = [reference_name(study, preset, is_published=is_published)]
        if is_published and preset == "full" and study in _FULL_IS_PUBLISHED:
            names.append(reference_name(study, preset, is_published=False))
        for name in names:
            if (REFERENCE / name).exists():
                return Run(study, preset, is_published, json.loads((REFERENCE / name).read_text()))
    return None


def cause(study: str, name: str, *, is_published: bool) -> str:
    """Return why a number differs from the printed one, as far as that is known."""
    whose = _whose(is_published=is_published)
    found = [
        begin for of, settings, begin in CAUSES if (of, settings) == (study, whose) and name.startswith(begin)
    ]
    return CAUSES[study, whose, max(found, key=len)] if found else ""


def _whose(*, is_published: bool) -> str:
    return "the paper's" if is_published else "ours"


def _not_understood(study: str, *, is_published: bool) -> str:
    tried = TRIED.get((study, _whose(is_published=is_published)))
    return "Not understood" + (f" ({tried})." if tried else ".")


def page_text() -> str:
    """Return the page."""
    parts = [
        "# The paper, number by number",
        (
            "Every table and every figure of [arXiv:2410.10216](https://arxiv.org/abs/2410.10216): what is printed, ours in its "
            "settings (`--published-settings`: its networks, schedules and draws), and ours in our settings. Numbers are medians "
            "over seeds ± the standard deviation over seeds. This page is written by `python -m benchmarks.paper_page` from the "
            "numbers in `tests/studies/reference` and the figures that the studies drew; a test keeps it up to date. One command "
            "repeats everything: `quasiratio study all --preset full -o paper`."
        ),
        "## The runs behind it",
        _runs(),
        "## Tables",
        _toy_settings(),
        _toy_results(),
        _printed_values(),
        _gg_hh_settings(),
        _gg_hh_results(),
        "## Numbers of the text",
        _text_numbers(),
        _validation_size(),
        "## Figures",
        "In the order of the paper. The line under a figure says which run drew it.",
        *_figures(),
    ]
    return "\n\n".join(parts) + "\n"


def _runs() -> str:
    rows = []
    for study in STUDIES:
        for is_published in (False, True):
            if is_published and study not in _HAS_PUBLISHED_SETTINGS:
                continue
            whose = _whose(is_published=is_published)
            run = best_run(study, is_published=is_published)
            if run is None:
                rows.append([f"`{study}`", whose, NOT_RUN, "", "", "", ""])
                continue
            seconds = run.content.get("seconds")
            notes = [] if run.has_published_size else [NOT_RUN]
            notes += list(dict.fromkeys(OLDER_DEFAULTS[one] for one in run.commits if one in OLDER_DEFAULTS))
            if is_published and not run.content["settings"].get("published_settings"):
                notes.append(
                    "the same run: its settings are the paper's, but for [the validation events](#what-the-number-of-validation-events-does)"
                )
            rows.append(
                [
                    f"`{study}`", whose, f"`{run.size}`", str(run.content["settings"].get("seeds", 1)),
                    ", ".join(run.commits),
                    "" if seconds is None else duration_text(seconds), "; ".join(notes),
                ]
            )  # fmt: skip
    return _table(["study", "settings", "preset", "seeds", "commit", "time of one core", "remark"], rows)


def _toy_settings() -> str:
    rows = [
        ["reference of both cases", "4/3, 2.5, 2.3", "4/3, 2.5, 2.3", ""],
        ["Nonnegative target", "2, 2, 1.42", "2, 2, 1.42", "The text has 2.5 for the second; only 2 makes it nonnegative."],
        ["Signed target", "2, 2, 1.2", "2, 2, 1.2", "As above."],
        [
            "events per class (training, validation, test)", _sizes(SIGNED_GAUSSIAN_SIZES), _sizes(SIGNED_GAUSSIAN_SIZES),
            "With `full`.",
        ],
        [
            "training in its settings", "batches of 256, Adam at 1e-4, an epoch of 1e5 events, patience 20",
            "the same; 300 epochs at most",
            (
                "We take the 1e5 events for those of both classes together; the other reading is "
                "`python -m benchmarks.published --epoch-size 200000`. The bound is for the MLP on the Signed case, whose risk has "
                "no minimum: in the first 45 epochs of seed 0 its validation loss fell in each, while chi2 rose from 75 (after 21) to 93."
            ),
        ],
    ]  # fmt: skip
    heading = "### Settings of the signed Gaussian mixtures\n\n`signed-gaussians`. Densities are $(c, \\sigma_1, \\sigma_2)$."
    return heading + "\n\n" + _table(["", "published", "ours", "remark"], rows)


def _toy_results() -> str:
    rows = []
    for metric, label in _METRICS.items():
        for case, method in dict.fromkeys((case, method) for case, method, _ in SIGNED_GAUSSIANS):
            name = f"{case} / {METHOD_LABELS[method]} / {label}"
            printed = SIGNED_GAUSSIANS[case, method, metric]
            theirs: Number | str | None = "the same" if method == "exact" else None
            theirs = theirs or _number("signed-gaussians", name, is_published=True)
            theirs = theirs or _one_seed(case, method, metric)
            rows.append(
                [label, case, METHOD_LABELS[method], *_line("signed-gaussians", name, printed, theirs)]
            )
        for method in ("sign-resolved", "sign-resolved-x8", "auto"):
            for case in ("nonnegative", "signed"):
                name = f"{case} / {METHOD_LABELS[method]} / {label}"
                rows.append(
                    [label, case, METHOD_LABELS[method], *_line("signed-gaussians", name, None, "not in it")]
                )
    heading = (
        "### Results on the signed Gaussian mixtures\n\n`signed-gaussians`, radial distribution. A D_S2 of the Signed case "
        "scatters by about 1e-3 between seeds even for the exact ratio."
    )
    columns = ["metric", "case", "method", "published", "ours, its settings", "ours, our settings", "remark"]
    return heading + "\n\n" + _table(columns, rows)


def _printed_values() -> str:
    """Return what closed form and samples of the exact ratio say of the printed numbers (`benchmarks/printed_values.py`)."""
    rows = read_rows("printed_values")

    def of(what: str, **wanted: object) -> list[dict[str, Any]]:
        return [
            row for row in rows if row["what"] == what and all(row.get(k) == v for k, v in wanted.items())
        ]

    printed = [
        f"{METHOD_LABELS[row['method']]} {_short(row['value'])}" for row in of("98 chi2 / D_S2 as printed")
    ]
    deformed = [row["value"] for row in of("98 chi2 / D_S2 of a deformed exact ratio")]
    bounds = {row["n_test"]: row for row in of("bounds of 98 chi2 / D_S2")}
    stated = bounds[SIGNED_GAUSSIAN_SIZES[2]]
    table = []
    for row in of("nonnegative ratios on the Signed case"):
        n_test = row["n_test"]
        entropy = of("D_S2 of the exact ratio", n_test=n_test)[0]["value"]
        table.append(
            [
                f"{n_test:,}", f"{_short(bounds[n_test]['lower'])} to {_short(bounds[n_test]['upper'])}",
                _short(row["least"]), _short(row["clipped"]), _short(row["clipped_unnormalised"]), _short(entropy),
            ]
        )  # fmt: skip
    columns = [
        "test events per class", "98 chi2 / D_S2, Nonnegative", "least chi2 of nonnegative ratios, Signed",
        "exact ratio clipped at zero, Signed", "the same without dividing by totals", "D_S2 of the exact ratio, Nonnegative",
    ]  # fmt: skip
    text = (
        "### Do the printed values fit each other?\n\nWithout any training (`benchmarks/printed_values.py`; its docstring has "
        "the formulas). *What follows from the metric and the stated number of test events:* on the Nonnegative case the quotient "
        f"of 98 chi2 and D_S2, less what the exact ratio has, lies between {_short(stated['lower'])} and "
        f"{_short(stated['upper'])} for any small deviation, wherever it is ({_short(min(deformed))} to {_short(max(deformed))} "
        f"for smooth deformations with the MLP's chi2). Printed are {', '.join(printed)}: for the same D_S2 the printed chi2 are "
        "too small by a factor of 1.3 at least for the MLP and of 2.5 for the others. On the Signed case a nonnegative ratio "
        "that varies little within a bin misses the bins in which the target is negative, which alone gives a chi2 of "
        f"{_short(of('nonnegative ratios on the Signed case', n_test=SIGNED_GAUSSIAN_SIZES[2])[0]['least'])}; printed for the "
        "MLP is 11.7.\n\n"
    )
    return (
        text
        + _table(columns, table)
        + (
            "\n\n*What is conjecture:* that the rows of the trained models were computed with fewer test events than the row of "
            "the exact ratio, whose printed D_S2 of 1.4e-4 fits 1,400,000. About 440,000 would just be allowed by all of the "
            "others; we know of nothing in the text that says so. D_S2 does not depend on the number of test events, but for what "
            "the exact ratio has, and is the number to compare."
        )
    )


def _gg_hh_settings() -> str:
    rows = [
        ["Standard Model (reference)", "0, 0, 0, 0; Λ = 0", "0, 0, 0, 0", "Λ = 0 stands for no EFT contribution."],
        ["linear SMEFT (target)", "13.5, 2.64, 12.6, 0.0387; Λ = 1 TeV", "the same", ""],
        [
            "events per class (training, validation, test)", _sizes(GG_HH_SIZES), _sizes(GG_HH_SIZES),
            "Ours are generated by [`quasiratio generate gg-hh`](gg-hh.md), leading order; that page lists the differences.",
        ],
        [
            "training in its settings", "batches of 64 (MLP), 128 and 64 (sub-ratios), 512 (tuning); patience 20, 15, 10",
            "64, 128 and 128, 512; 20, 15, 10", "The sub-ratios train side by side, and so with one size of batch. The MLP has 150 epochs at most.",
        ],
    ]  # fmt: skip
    heading = "### Samples of gg → hh\n\n`smeft-hh`, 13 TeV. Coefficients are $C_{H,kin}$, $C_H$, $C_{uH}$, $C_{HG}$."
    return heading + "\n\n" + _table(["", "published", "ours", "remark"], rows)


def _gg_hh_results() -> str:
    parts = []
    for metric, label in _METRICS.items():
        rows = []
        for method in dict.fromkeys(method for _, method, _ in GG_HH):
            for observable in GG_HH_OBSERVABLES:
                name = f"{observable} / {METHOD_LABELS[method]} / {label}"
                theirs = _number("smeft-hh", name, is_published=True)
                printed = GG_HH[observable, method, metric]
                rows.append(
                    [METHOD_LABELS[method], f"`{observable}`", *_line("smeft-hh", name, printed, theirs)]
                )
        for method in ("sign-resolved", "auto"):
            for observable in GG_HH_OBSERVABLES:
                name = f"{observable} / {METHOD_LABELS[method]} / {label}"
                rows.append(
                    [METHOD_LABELS[method], f"`{observable}`", *_line("smeft-hh", name, None, "not in it")]
                )
        columns = ["method", "observable", "published", "ours, its settings", "ours, our settings", "remark"]
        parts.append(f"### SMEFT results: {label}\n\n`smeft-hh`.\n\n{_table(columns, rows)}")
    return "\n\n".join(parts)


def _text_numbers() -> str:
    rows = []
    for study, name, printed, note in TEXT_NUMBERS:
        has = study in _HAS_PUBLISHED_SETTINGS
        theirs = _number(study, name, is_published=True) if has else "has one setting"
        number = None if isinstance(printed, str) else printed
        published, *rest, said = _line(study, name, number, theirs)
        shown = printed if isinstance(printed, str) else published
        rows.append([f"`{study}`", name, shown, *rest, " ".join(filter(None, (note, said)))])
    return _table(
        ["study", "number", "published", "ours, its settings", "ours, our settings", "remark"], rows
    )


def _validation_size() -> str:
    """Return what becomes of `weight-variance` with the paper's number of validation events (`benchmarks/validation_size.py`)."""
    lines = {
        (model, value): [
            linear_fit(*([row[name] for row in rows if row["model"] == model] for name in ("sigma_w", value)))
            for rows in same_points()
        ]
        for model, value in (
            ("mlp", "area"), ("mlp", "area_to_last_epoch"), ("mlp", "entropy"), ("rosmm_r", "entropy"),
        )
    }  # fmt: skip
    n_points = {model: fits[0].n_points for (model, _), fits in lines.items()}
    rows = [
        [
            f"VLRC AUC{reading} / R",
            *(
                f"{_short(line.correlation)} ± {_short(line.correlation_error)}"
                for line in lines["mlp", value]
            ),
        ]
        for reading, value in (("", "area"), (" to the last epoch", "area_to_last_epoch"))
    ]
    for model in n_points:
        slopes = (f"{_short(line.slope)} ± {_short(line.slope_error)}" for line in lines[model, "entropy"])
        rows.append([f"D_S2 / {METHOD_LABELS[model]} / slope", *slopes])
    quotients = (
        f"{_short(mlp.ratio_to(mixture)[0])} ({_short(low)} to {_short(high)})"
        for mlp, mixture in zip(*(lines[model, "entropy"] for model in n_points), strict=True)
        for low, high in [mlp.ratio_interval(mixture)]
    )
    rows.append(["slope ratio MLP / RoSMM_r (Fieller, 68%)", *quotients])
    return (
        "### What the number of validation events does\n\n`weight-variance` validates with 131,072 events per class "
        "(65,536 for RoSMM_r), the paper with 1,200,000. With weights as wide as these the validation loss is noisy, so is the area under its curve, and the state "
        f"with the lowest loss is then not the best one. Some of the points ({n_points['mlp']} of the MLP, {n_points['rosmm_r']} of "
        "RoSMM_r) were trained again on the same events from the same start, with the paper's validation "
        "(`benchmarks/validation_size.py`). Lines are through points here, not through medians of twenty, and all points have fractions in the lower half. The whole grid would "
        "take about twenty hours of a core.\n\n"
        + _table(["at the same points, against sigma_w", "131,072 (65,536)", "1,200,000"], rows)
    )


def _line(study: str, name: str, printed: float | None, theirs: Number | str | None) -> list[str]:
    """Return the printed number, ours in its settings, ours in our settings, and a remark."""
    ours = _number(study, name, is_published=False)
    differences: list[str] = []
    causes: list[str] = []
    for number, is_published in ((theirs, True), (ours, False)):
        if printed is None or not isinstance(number, Number):
            continue
        known = cause(study, name, is_published=is_published)
        # Ours may be better; of a finding of the study there is no better.
        only_above = not is_published and study in ("signed-gaussians", "smeft-hh")
        if difference := number.difference(printed, only_above=only_above):
            differences.append(f"in {'its' if is_published else 'our'} settings {difference}")
            causes.append(known or _not_understood(study, is_published=is_published))
        elif not is_published:
            causes.append(known)
    said = [_capital("; ".join(differences)) + "."] if differences else []
    said += [one for one in dict.fromkeys(causes) if one]
    shown = theirs if isinstance(theirs, str) else _shown(theirs)
    return ["" if printed is None else _short(printed), shown, _shown(ours), " ".join(filter(None, said))]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _shown(number: Number | None) -> str:
    return NOT_RUN if number is None else str(number)


def _number(study: str, name: str, *, is_published: bool) -> Number | None:
    run = best_run(study, is_published=is_published)
    if run is None or name not in run.numbers:
        return None
    found = run.numbers[name]
    return Number(found["value"], found["spread"], run.size)


def _one_seed(case: str, method: str, metric: Metric) -> Number | None:
    """Return what `benchmarks/published.py` measured at the published size with one seed."""
    wanted = {"mlp": "mlp-bce"}.get(method, method)
    found = [
        row
        for row in read_rows("published")
        if (row["case"], row["method"]) == (case, wanted) and row.get("epoch_size", EPOCH_SIZE) == EPOCH_SIZE
    ]
    return Number(found[0][metric], None, "full") if len(found) == 1 else None


def _figures() -> Iterable[str]:
    made_by = read_figure_runs()
    for title, study, names, note in FIGURES:
        lines = [f"### {title}"]
        if note:
            lines.append(note)
        there = [name for name in names if (PICTURES / study / f"{name}.png").exists()]
        lines += [f"![{title}: {name}](assets/paper/{study}/{name}.png)" for name in there]
        if there and set(names) <= CLOSED_FORM:
            lines.append("*Closed form: no run, no events.*")
        elif there:
            run = made_by[study]
            size = "" if run["preset"] == "full" else f"; {NOT_RUN}"
            commits = ", ".join(commit[:8] for commit in run["commit"].split(", "))
            lines.append(f"*`{study}`, preset `{run['preset']}`, seed 0, commit {commits}{size}.*")
        missing = [f"`{name}`" for name in names if name not in there]
        if missing:
            lines.append(f"*`{study}`: {', '.join(missing)} {NOT_RUN}, and no smaller run is kept.*")
        yield "\n\n".join(lines)


def read_figure_runs() -> dict[str, dict[str, Any]]:
    path = PICTURES / "runs.json"
    return json.loads(path.read_text()) if path.exists() else {}


def keep(directory: Path, *, partial: bool = False) -> None:
    """Take over the numbers and figures of a finished study, or of the part of it that there is."""
    content = json.loads((directory / "results.json").read_text())
    study, preset = content["study"], content["settings"]["preset"]
    is_published = bool(content["settings"].get("published_settings"))
    if not content["complete"] and not partial:
        msg = f"{directory} is not complete; run it with --resume first, or add --partial"
        raise SystemExit(msg)
    if preset == "smoke":
        msg = f"{directory} is of the preset smoke, whose numbers mean nothing; keep quick or full"
        raise SystemExit(msg)
    name = reference_name(study, preset, is_published=is_published)
    (REFERENCE / name).write_text(json.dumps(content, indent=1) + "\n")
    print(f"kept {name}")
    if is_published:  # figures show our settings
        return
    (PICTURES / study).mkdir(parents=True, exist_ok=True)
    for wanted in [name for _, of, names, _ in FIGURES if of == study for name in names]:
        if (directory / f"{wanted}.png").exists():
            (PICTURES / study / f"{wanted}.png").write_bytes(small_picture(directory / f"{wanted}.png"))
    size = preset if content["complete"] else f"part of {preset}"
    runs = read_figure_runs() | {study: {"preset": size, "commit": content["commit"]}}
    (PICTURES / "runs.json").write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n")


def keep_closed_forms(directory: Path) -> None:
    """Take over the figures that are drawn without events, from a run of `signed-gaussians` of any size."""
    (PICTURES / "signed-gaussians").mkdir(parents=True, exist_ok=True)
    for name in sorted(CLOSED_FORM):
        path = PICTURES / "signed-gaussians" / f"{name}.png"
        path.write_bytes(small_picture(directory / f"{name}.png"))


def small_picture(path: Path) -> bytes:
    """Return a PNG of at most 1200 pixels in width, and of fewer colours, then pixels, where the file would be too large."""
    with Image.open(path) as image:
        original = image.convert("RGB")
    for widest, n_colours in ((_WIDEST, None), (_WIDEST, 256), (_WIDEST, 32), (900, 32), (700, 32)):
        width = min(widest, original.width)
        size = (width, round(original.height * width / original.width))
        picture = original.resize(size, Image.Resampling.LANCZOS) if width < original.width else original
        content = _png(
            picture if n_colours is None else picture.quantize(n_colours, dither=Image.Dither.NONE)
        )
        if len(content) < LARGEST:
            break
    return content


def _png(picture: Image.Image) -> bytes:
    written = io.BytesIO()
    picture.save(written, "PNG", optimize=True)
    return written.getvalue()


def _short(value: float) -> str:
    """Three significant digits."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    return f"{value:.3g}" if 1e-4 <= abs(value) < 1e4 else f"{value:.2e}"


def _sizes(sizes: Sequence[int]) -> str:
    return ", ".join(f"{size:,}" for size in sizes)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in (columns, *rows)]
    lines.insert(1, "|" + "---|" * len(columns))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--keep", nargs="*", type=Path, default=[], help="Output directories of finished studies."
    )
    parser.add_argument("--partial", action="store_true", help="Also what is not complete, named as such.")
    parser.add_argument(
        "--closed-forms", type=Path, help="Output directory of signed-gaussians, of any preset."
    )
    arguments = parser.parse_args()
    for directory in arguments.keep:
        keep(directory, partial=arguments.partial)
    if arguments.closed_forms is not None:
        keep_closed_forms(arguments.closed_forms)
    PAGE.write_text(page_text())
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
