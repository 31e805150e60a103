"""Tables and figures of the toys, from stored rows alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from quasiratio.report import Table
from quasiratio.report.content import Cell
from quasiratio.studies.engine.study import Presentation, Result, Row, Settings, over_seeds
from quasiratio.studies.output.published_tables import SIGNED_GAUSSIANS, Metric
from quasiratio.studies.ratio_methods import METHOD_LABELS
from quasiratio.studies.signed_gaussians.figures import toy_figures

__all__ = ["present", "toy_results"]

_METRICS: dict[Metric, str] = {"chi2": "chi2/ndof", "entropy": "D_S2"}
Values = Mapping[str, Any]


def present(settings: Settings, rows: Sequence[Row]) -> Presentation:
    """Return the tables beside the published ones, every figure of the toys, and what to know about them."""
    by_method = _by_method(rows)
    return Presentation(
        verdict=_verdict(by_method),
        tables={
            "radial-chi2": _metric_table("chi2", by_method),
            "radial-entropy": _metric_table("entropy", by_method),
            "fits": _fit_table(by_method),
        },
        pictures=toy_figures(rows),
        notes=_notes(settings),
        results=toy_results(rows),
    )


def toy_results(rows: Sequence[Row]) -> list[Result]:
    """Return every chi2 and D_S2 as a number with its spread over seeds."""
    by_method = _by_method(rows)
    return [
        result
        for metric in _METRICS
        for case, method in _order(by_method)
        if (result := _result(case, method, metric, by_method.get((case, method), ()))) is not None
    ]


def _by_method(rows: Sequence[Row]) -> dict[tuple[str, str], list[Values]]:
    by_method: dict[tuple[str, str], list[Values]] = {}
    for row in rows:
        if row.values["method"] in METHOD_LABELS:
            by_method.setdefault((row.values["case"], row.values["method"]), []).append(row.values)
    return by_method


def _order(by_method: Mapping[tuple[str, str], object]) -> list[tuple[str, str]]:
    """Return (case, method) in the order of the tables; what the paper has is there even if not computed."""
    wanted = {*by_method, *((case, method) for case, method, _ in SIGNED_GAUSSIANS)}
    methods = list(METHOD_LABELS)
    return sorted(wanted, key=lambda key: (key[0], methods.index(key[1])))


def _result(case: str, method: str, metric: Metric, rows: Iterable[Values]) -> Result | None:
    name = f"{case} / {METHOD_LABELS[method]} / {_METRICS[metric]}"
    return over_seeds(name, [row[metric] for row in rows], SIGNED_GAUSSIANS.get((case, method, metric)))


def _metric_table(metric: Metric, by_method: Mapping[tuple[str, str], Sequence[Values]]) -> Table:
    columns = ["case", "method", "seeds", "published", "ours", "spread", "(ours - published) / spread"]
    if metric == "chi2":
        columns.append("ours / exact")
    body: list[list[Cell]] = []
    for case, method in _order(by_method):
        rows = by_method.get((case, method), [])
        found = _result(case, method, metric, rows)
        line: list[Cell] = [case, METHOD_LABELS[method], len(rows)]
        line.append(SIGNED_GAUSSIANS.get((case, method, metric)))
        line += [None] * 3 if found is None else [found.value, found.spread, found.pull_of_published]
        if metric == "chi2":
            line.append(median(row["chi2_to_exact"] for row in rows) if rows else None)
        body.append(line)
    what = "chi2 per degree of freedom" if metric == "chi2" else "Tsallis relative entropy D_S2"
    caption = f"Radial {what}: median over seeds, spread = standard deviation over seeds."
    if metric == "chi2":
        caption += " The last column divides by the exact ratio's chi2 on the same events."
    return Table(columns, body, caption)


def _fit_table(by_method: Mapping[tuple[str, str], Sequence[Values]]) -> Table:
    body: list[list[Cell]] = [
        [
            case,
            METHOD_LABELS[method],
            median(row["rms"] for row in rows),
            median(row["infinite_fraction"] for row in rows),
            sum(bool(row.get("diverged")) for row in rows),
            median(row["seconds"] for row in rows),
        ]
        for case, method in _order(by_method)
        if (rows := by_method.get((case, method)))
    ]
    return Table(
        ["case", "method", "rms(r - r*)", "infinite ratios", "seeds diverged", "seconds"],
        body,
        "The fits, medians over seeds. Seconds are those that a method adds: RoSMM_c and RoSMM_r begin from "
        "RoSMM, and AutoRatio's are those of all its candidates.",
    )


def _verdict(by_method: Mapping[tuple[str, str], Sequence[Values]]) -> str:
    sentences = []
    for case in sorted({case for case, _ in by_method}):
        ours = {
            method: median(row["chi2_to_exact"] for row in rows)
            for (of, method), rows in by_method.items()
            if of == case and method != "exact"
        }
        if ours:
            best = min(ours, key=lambda method: ours[method])
            sentences.append(
                f"{case.capitalize()}: best is {METHOD_LABELS[best]}, with {ours[best]:.3g} times the exact "
                "ratio's radial chi2."
            )
    return " ".join(sentences) or "Nothing is computed yet."


def _notes(settings: Settings) -> list[str]:
    sizes = " / ".join(f"{n:,}" for n in settings["sizes"])
    published = bool(settings.get("published_settings"))
    return [
        (
            f"{sizes} events of each class for training, validation and test; the paper has 2,000,000 / 600,000 / "
            "1,400,000. With fewer test events a chi2 sees less, and is smaller."
        ),
        "Networks and schedules are those of the paper: Adam at 1e-4 for the fits and for the tuning, and a training that "
        "runs away ends, as every other, when its validation loss has not improved for 20 epochs, or after 300."
        if published
        else "Networks and schedules are this package's defaults, the sub-ratios use all events, and tuning uses PARE "
        "with the published parameters; the published settings are the paper's networks and schedules.",
        (
            "The running text of the paper gives sigma_1 = 2.5 for the targets and its table 2; only 2 makes the "
            "Nonnegative target nonnegative, and is used."
        ),
        (
            "The discrete D_S2 printed in the paper does not vanish for equal histograms; the values of its tables "
            "are those of sum b^2/t - 1, which is used. On the Signed case the exact ratio's own D_S2 scatters by "
            "about 1e-3 between seeds at the published size."
        ),
        (
            "Cross-entropy has no minimum where a density is negative: the MLP on the Signed case is the best "
            "validated state of a training that runs away. Ratios that are not finite are counted and left out."
        ),
        "Figures show the first seed.",
    ]
