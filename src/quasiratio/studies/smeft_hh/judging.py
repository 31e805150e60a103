"""One task of the study: fits and their closure in all observables, or a description of the samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.metrics import ClosureResult, closure, uniform_edges, weighted_histogram
from quasiratio.sample import WeightedSample
from quasiratio.studies.engine.study import Row
from quasiratio.studies.output.published_tables import GG_HH_OBSERVABLES
from quasiratio.studies.output.stored_closure import finite_ratios, histogram_to_numbers
from quasiratio.studies.ratio_methods import fit_family
from quasiratio.studies.smeft_hh.hh_events import (
    ALL_OBSERVABLES,
    Columns,
    HHEvents,
    hard_process_ratio,
    hh_events,
    hh_samples,
)
from quasiratio.studies.smeft_hh.hh_methods import WITH_OBJECTS

__all__ = ["method_rows", "sample_row"]

_MOST_WEIGHTS = 1000


def method_rows(arguments: Mapping[str, Any]) -> Iterator[Row]:
    """Fit one family and yield a row for each method; the first seed keeps its histograms."""
    events, seed = hh_events(arguments), arguments["seed"]
    known = set(arguments.get("known", ()))
    for name, ratios, seconds, diverged in _fits(events, arguments):
        key = f"seed-{seed}/{name}"
        if key in known:
            continue
        ratio, infinite_fraction = finite_ratios(ratios)
        result = _closure(events, {"ratio": ratio}, ALL_OBSERVABLES)
        values: dict[str, Any] = {
            "seed": seed,
            "method": name,
            "seconds": seconds,
            "infinite_fraction": infinite_fraction,
            "diverged": diverged,
            "chi2": {one: result[one]["ratio"].chi_squared.value for one in GG_HH_OBSERVABLES},
            "entropy": {one: result[one]["ratio"].relative_entropy.value for one in GG_HH_OBSERVABLES},
        }
        if seed == 0:
            values["closure"] = {
                observable.name: histogram_to_numbers(observable["ratio"].histogram)
                for observable in result.observables
            }
        yield Row(key, values)


def _fits(
    events: HHEvents, arguments: Mapping[str, Any]
) -> Iterator[tuple[str, npt.NDArray[np.float64], float, bool]]:
    """Yield the name, the ratios of the test reference, the seconds and whether the fit diverged."""
    methods, parameters = arguments["methods"], arguments["parameters"]
    if "exact" in methods:
        yield "exact", hard_process_ratio(events.reference), 0.0, False
        return
    labels = {name: name for name in methods}
    if methods[0] in WITH_OBJECTS:
        labels = {WITH_OBJECTS[name]: name for name in methods}
        parameters = {kind: {**parameters[kind], **parameters["objects"]} for kind in ("direct", "rosmm")}
    fits = fit_family(
        list(labels), events.training, events.validation, seed=arguments["seed"], parameters=parameters
    )
    for name, estimator, seconds in fits:
        ratios = estimator.predict_ratio(events.reference_features)
        yield labels[name], ratios, seconds, bool(getattr(estimator, "diverged_", False))


def sample_row(arguments: Mapping[str, Any]) -> Row:
    """Describe the samples: their weights, m_hh of the hard scattering, and the test histograms of the first seed."""
    events = hh_events(arguments)
    result = _closure(events, {}, ALL_OBSERVABLES)
    samples = dict(zip(("sm", "linear"), hh_samples(arguments), strict=True))
    weights = {name: columns["weight"] for name, columns in samples.items()}
    values: dict[str, Any] = {
        "seed": 0,
        "method": "samples",
        "n_events": {name: len(w) for name, w in weights.items()},
        "c1": float(np.maximum(weights["linear"], 0.0).sum() / weights["linear"].sum()),
        "negative_fraction": float(np.mean(weights["linear"] < 0)),
        "weights": {name: _weight_numbers(w) for name, w in weights.items()},
        "closure": {
            observable.name: {
                "target": histogram_to_numbers(observable.target),
                "reference": histogram_to_numbers(observable.reference.histogram),
            }
            for observable in result.observables
        },
    }
    if all("truth_m_hh" in columns for columns in samples.values()):
        masses = [columns["truth_m_hh"] for columns in samples.values()]
        edges = uniform_edges(*masses, n_bins=80, lower_percentile=0.0, upper_percentile=99.5)
        values["hard_m_hh"] = {
            name: histogram_to_numbers(weighted_histogram(c["truth_m_hh"], c["weight"], edges=edges))
            for name, c in samples.items()
        }
    return Row("samples", values)


def _closure(events: HHEvents, ratios: Mapping[str, Any], observables: Sequence[str]) -> ClosureResult:
    def sample(columns: Columns) -> WeightedSample:
        return WeightedSample({name: columns[name] for name in observables}, columns["weight"])

    return closure(sample(events.reference), ratios, sample(events.target))


def _weight_numbers(weights: np.typing.NDArray[np.float64]) -> dict[str, list[float]]:
    """Return values and how often they occur; many different ones are represented by their quantiles."""
    values, counts = np.unique(weights, return_counts=True)
    if len(values) > _MOST_WEIGHTS:
        values = np.quantile(weights, (np.arange(_MOST_WEIGHTS) + 0.5) / _MOST_WEIGHTS)
        counts = np.full(_MOST_WEIGHTS, len(weights) // _MOST_WEIGHTS)
    return {"values": values.tolist(), "counts": counts.tolist()}
