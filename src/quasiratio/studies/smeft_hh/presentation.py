"""Tables and figures of the SMEFT application, from stored rows alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from quasiratio.report import Table
from quasiratio.report.content import Cell
from quasiratio.studies.engine.study import Presentation, Result, Row, Settings, over_seeds
from quasiratio.studies.output.published_tables import GG_HH, GG_HH_OBSERVABLES, Metric
from quasiratio.studies.ratio_methods import PUBLISHED_METHODS
from quasiratio.studies.smeft_hh.figures import hh_figures
from quasiratio.studies.smeft_hh.hh_methods import HH_LABELS

__all__ = ["hh_results", "present"]

_METRICS: dict[Metric, str] = {"chi2": "chi2/ndof", "entropy": "D_S2"}
_PUBLISHED_C1 = 1.267
Values = Mapping[str, Any]


def present(settings: Settings, rows: Sequence[Row]) -> Presentation:
    """Return both tables beside the published ones, the figures, and how the samples differ."""
    by_method = _by_method(rows)
    samples = next((row.values for row in rows if row.values["method"] == "samples"), None)
    order = _order(by_method)
    tables = {
        "chi2": _metric_table("chi2", order, by_method),
        "entropy": _metric_table("entropy", order, by_method),
        "fits": _fit_table(order, by_method),
    }
    notes = _notes(settings, samples)
    return Presentation(_verdict(by_method), tables, hh_figures(rows), notes, hh_results(rows))


def hh_results(rows: Sequence[Row]) -> list[Result]:
    """Return every chi2 and D_S2 as a number with its spread over seeds."""
    by_method = _by_method(rows)
    return [
        result
        for metric in _METRICS
        for name in _order(by_method)
        for observable in GG_HH_OBSERVABLES
        if (result := _result(name, observable, metric, by_method.get(name, []))) is not None
    ]


def _by_method(rows: Sequence[Row]) -> dict[str, list[Values]]:
    by_method: dict[str, list[Values]] = {}
    for row in rows:
        if row.values["method"] in HH_LABELS:
            by_method.setdefault(row.values["method"], []).append(row.values)
    return by_method


def _order(by_method: Mapping[str, object]) -> list[str]:
    return [name for name in HH_LABELS if name in by_method or name in PUBLISHED_METHODS]


def _result(method: str, observable: str, metric: Metric, rows: Sequence[Values]) -> Result | None:
    name = f"{observable} / {HH_LABELS[method]} / {_METRICS[metric]}"
    return over_seeds(
        name, [row[metric][observable] for row in rows], GG_HH.get((observable, method, metric))
    )


def _metric_table(metric: Metric, order: Sequence[str], by_method: Mapping[str, Sequence[Values]]) -> Table:
    body: list[list[Cell]] = []
    for method in order:
        found = [_result(method, one, metric, by_method.get(method, [])) for one in GG_HH_OBSERVABLES]
        label = HH_LABELS[method]
        if method in PUBLISHED_METHODS:
            body.append([label, "published", *(GG_HH[one, method, metric] for one in GG_HH_OBSERVABLES)])
        if any(found):
            body.append([label, "ours", *(None if one is None else one.value for one in found)])
            body.append([label, "spread", *(None if one is None else one.spread for one in found)])
            if method in PUBLISHED_METHODS:
                pulls = [None if one is None else one.pull_of_published for one in found]
                body.append([label, "difference / spread", *pulls])
        if metric == "chi2" and (distances := _above_exact(method, by_method)):
            body.append([label, "above the hard process", *distances])
    what = "chi2 per degree of freedom" if metric == "chi2" else "Tsallis relative entropy D_S2"
    caption = (
        f"{what} on test events, 99 bins; ours: median over seeds, spread: standard deviation over seeds, "
        "difference: ours less published. The samples differ; see the notes."
    )
    return Table(["method", "", *GG_HH_OBSERVABLES], body, caption)


def _above_exact(method: str, by_method: Mapping[str, Sequence[Values]]) -> list[Cell]:
    """Return medians of the distance to the hard process's own chi2/ndof on the same events."""
    exact = {row["seed"]: row["chi2"] for row in by_method.get("exact", [])}
    rows = [row for row in by_method.get(method, []) if row["seed"] in exact]
    if method == "exact" or not rows:
        return []
    return [median(row["chi2"][one] - exact[row["seed"]][one] for row in rows) for one in GG_HH_OBSERVABLES]


def _fit_table(order: Sequence[str], by_method: Mapping[str, Sequence[Values]]) -> Table:
    body: list[list[Cell]] = [
        [
            HH_LABELS[method],
            len(rows),
            median(row["infinite_fraction"] for row in rows),
            sum(bool(row["diverged"]) for row in rows),
            median(row["seconds"] for row in rows),
        ]
        for method in order
        if (rows := by_method.get(method))
    ]
    return Table(
        ["method", "seeds", "infinite ratios", "seeds diverged", "seconds"],
        body,
        "The fits. Events whose ratio is not finite are left out of the chi2 and counted here. Seconds are those "
        "that a method adds: RoSMM_c and RoSMM_r begin from RoSMM, AutoRatio's are those of all its candidates.",
    )


def _verdict(by_method: Mapping[str, Sequence[Values]]) -> str:
    masses = {
        name: median(row["chi2"]["m_hh"] for row in rows)
        for name, rows in by_method.items()
        if name != "exact"
    }
    if not masses:
        return "Nothing is computed yet."
    best = min(masses, key=lambda name: masses[name])
    worst = max(median(row["chi2"][one] for row in by_method[best]) for one in GG_HH_OBSERVABLES)
    sentence = (
        f"Best in m_hh is {HH_LABELS[best]}, with chi2/ndof {masses[best]:.3g} there and at most {worst:.3g} "
        "in the eight observables; the paper's best in m_hh is 3.35, on another sample."
    )
    if "mlp" in by_method:
        infinite = median(row["infinite_fraction"] for row in by_method["mlp"])
        sentence += f" The MLP has chi2/ndof {masses['mlp']:.3g}, and infinite ratios for {infinite:.1%} of the events."
    return sentence


def _notes(settings: Settings, samples: Values | None) -> list[str]:
    if samples is None:
        which = f"{settings['events']:,} events of each class are asked for"
    else:
        counts = " and ".join(f"{n:,}" for n in samples["n_events"].values())
        which = (
            f"{counts} events (Standard Model, linear), {samples['negative_fraction']:.1%} of the latter with negative "
            f"weight, c1 = {samples['c1']:.3f} (published: {_PUBLISHED_C1})"
        )
    notes = [
        f"{which}; split 65/15/20. The paper has 776,369 / 179,162 / 238,883 of each class.",
        "With fewer test events a chi2 sees less, and is smaller.",
    ]
    if settings.get("samples"):
        notes.append(f"The samples were given: {', '.join(settings['samples'])}.")
    else:
        notes += _DIFFERENCES
    if settings.get("published_settings"):
        notes.append(
            "Networks and schedules are the paper's, those of the tuning included, except that both sub-ratios have "
            "batches of 128 (there 128 and 64), since they train side by side, and that the MLP ends after 150 epochs."
        )
    else:
        notes.append(
            "Networks and schedules are this package's defaults; the published settings are the paper's."
        )
    notes.append(
        "The hard process is the ratio behind each event, which no detector sees: what is left there are the "
        "fluctuations of the test events. With objects, azimuths are measured from the hardest muon."
    )
    notes.append("Figures show the first seed.")
    return notes


_DIFFERENCES = [
    (
        "Differences to the paper's sample: ours is leading order with the full top mass and a Pythia 8 shower, "
        "theirs next-to-leading order from PowhegBox."
    ),
    "Parton densities: NNPDF3.1 (the grid that comes with Pythia), theirs NNPDF3.0.",
    (
        "Jets: anti-kT, R = 0.4, pT > 20 GeV, |eta| < 5, from visible particles without the four muons; the paper does "
        "not state its own."
    ),
    (
        "The strong coupling in the contact couplings runs with m_hh/2; the paper does not state its choice. It moves c1 "
        "from 1.273 to 1.210 where it is fixed."
    ),
    "Multiparton interactions are off: only the jet mass would change visibly.",
    "Upper bounds on the transverse momenta are the 99.8 percentiles of our own reference, up to 5% from theirs.",
]
