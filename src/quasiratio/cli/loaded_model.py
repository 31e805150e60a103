"""A model from its directory, with what `fit` noted in it, and whether the columns of a file agree with it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from quasiratio.cli.fit_notes import FitNotes, fit_notes
from quasiratio.errors import InvalidInputError
from quasiratio.estimators import RatioEstimator, Reweighter
from quasiratio.estimators.model_files import load_described
from quasiratio.io import Feature, Table, parse_expression
from quasiratio.io.column import element_column

__all__ = ["LoadedModel", "load_ratio_model"]


@dataclass(frozen=True)
class LoadedModel:
    """A model that predicts ratios.

    Attributes:
        path: Its directory.
        estimator: The estimator.
        notes: What `fit` noted.
        versions: Versions of the libraries that fitted it.
    """

    path: Path
    estimator: RatioEstimator | Reweighter
    notes: FitNotes
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Smallest and largest value of each feature in the training data."""
        return dict(self.estimator.fingerprint_.ranges)

    @property
    def features(self) -> list[str]:
        """Names of the features, in the order of the fit."""
        return list(self.ranges)

    @property
    def is_exact(self) -> bool:
        """Whether the features need more than float32."""
        fitted = self.estimator.ratios_[0] if isinstance(self.estimator, Reweighter) else self.estimator
        return bool(fitted.is_exact_)

    @property
    def inputs(self) -> list[Feature]:
        """How the features are made of columns, in the order of the fit."""
        formulas = self.notes.formulas
        return [
            Feature(name, formulas[name], parse_expression(formulas[name]))
            if name in formulas
            else Feature(name, name)
            for name in self.features
        ]

    def require_features(self, table: Table) -> None:
        """Raise unless the file has every feature, and each of the type that it had in the fit."""
        for feature in self.inputs:
            if feature.expression is not None:
                table.require_numbers(feature.columns)
                continue
            name = feature.text
            column = table.columns.get(name) or table.columns.get(element_column(name))
            if column is None:
                raise self._missing(name, table)
            kind = self.notes.kinds.get(name)
            if kind is not None and column.is_numeric and column.kind != kind:
                msg = (
                    f"Got the feature {name!r} as {column.kind} ({column.dtype}) in {table.label!r}; expected {kind}, "
                    "as in the files of the fit. Convert the column, or check that it is the same quantity."
                )
                raise InvalidInputError(msg)
            table.require_numbers([name])

    def _missing(self, name: str, table: Table) -> InvalidInputError:
        nearest = difflib.get_close_matches(name, list(table.columns), n=3, cutoff=0.5)
        listed = ", ".join(repr(column) for column in nearest or list(table.columns)[:10])
        return InvalidInputError(
            f"Got {table.label!r} without the feature {name!r}; expected every feature of the model "
            f"({', '.join(self.features)}). {'The nearest of its columns' if nearest else 'Its columns'}: {listed}. "
            "Rename the column, or fit without it."
        )


def load_ratio_model(path: Path) -> LoadedModel:
    """Load a model that `fit` wrote, or that was saved from Python.

    A model of positive weights has no ratio, and is refused.
    """
    estimator, content = load_described(path)
    if not isinstance(estimator, RatioEstimator | Reweighter):
        msg = (
            f"Got the model {str(path)!r} of the class {type(estimator).__name__}, which has no ratio; expected one "
            "that 'quasiratio fit' wrote."
        )
        raise InvalidInputError(msg)
    return LoadedModel(path, estimator, fit_notes(content.notes, str(path)), content.versions)
