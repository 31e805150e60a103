"""Evaluations without a fit, small figures, and pages taken apart again."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.figure import Figure

from quasiratio import WeightedSample
from quasiratio.metrics import closure, ratio_risk_difference, weight_diagnostics
from quasiratio.report import Report, write_report
from quasiratio.report.evaluation import Evaluation

Array = npt.NDArray[np.float64]
VOID = {"meta", "link", "img", "input", "br"}


class Page(HTMLParser):
    """A page as elements in order, each with its attributes, its parents' tags and its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = text
        self.elements: list[dict[str, str]] = []
        self._open: list[dict[str, str]] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {[element['tag'] for element in self._open]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = {name: value or "" for name, value in attrs} | {"tag": tag, "text": ""}
        element["within"] = " ".join(parent["tag"] for parent in self._open)
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1]["tag"] == tag, f"</{tag}> closes <{self._open[-1]['tag']}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element["text"] += data

    def all(self, tag: str, **attributes: str) -> list[dict[str, str]]:
        wanted = {name.replace("_", "-").strip("-"): value for name, value in attributes.items()}
        return [
            element
            for element in self.elements
            if element["tag"] == tag and all(element.get(name) == value for name, value in wanted.items())
        ]

    def texts(self, tag: str, **attributes: str) -> list[str]:
        return [element["text"].strip() for element in self.all(tag, **attributes)]


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Report], Page]:
    """Return a function that writes a report and reads the file again."""

    def write(report: Report) -> Page:
        path = tmp_path / "report.html"
        write_report(report, path)
        return Page(path.read_text(encoding="utf-8"))

    return write


@pytest.fixture(scope="session")
def small_figure() -> Callable[[], Figure]:
    """Return a function that makes a figure which is quick to draw."""

    def draw() -> Figure:
        figure = Figure(figsize=(4, 3))
        figure.add_axes((0.0, 0.0, 1.0, 1.0), frameon=False, xticks=[], yticks=[]).plot([0, 1, 3], [1, 0, 2])
        return figure

    return draw


def evaluated(
    reference: WeightedSample, target: WeightedSample, at_reference: Array, at_target: Array, n_bins: int = 20
) -> Evaluation:
    """Judge ratios that were not fitted."""
    return Evaluation(
        closure(reference, {"model": at_reference}, target, n_bins=n_bins),
        ratio_risk_difference(
            (at_reference, at_target),
            (np.ones(len(reference)), np.ones(len(target))),
            weights_reference=reference.weights,
            weights_target=target.weights,
        ),
        weight_diagnostics(reference),
        weight_diagnostics(reference.weights * at_reference),
        weight_diagnostics(target),
        at_reference,
        at_target,
    )


def shifted(
    n_events: int, seed: int = 0, names: tuple[str, str] = ("x", "y")
) -> tuple[WeightedSample, WeightedSample]:
    """Draw two samples that differ by a shift in their first feature."""
    rng = np.random.default_rng(seed)
    reference, target = (
        WeightedSample(rng.normal((mean, 0.0), 1.0, (n_events, 2)), names=list(names)) for mean in (0.0, 0.5)
    )
    return reference, target


def exact(sample: WeightedSample) -> Array:
    """Return the ratio of the densities of `shifted`."""
    return np.asarray(np.exp(0.5 * sample.features[:, 0].astype(np.float64) - 0.125))
