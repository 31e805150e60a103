"""How a model is applied to tables: what was asked for, in plain values, and the stream that comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.predictor import RatioPredictor
from quasiratio.io import Feature, Table, parse_expression, parse_features, parse_weights
from quasiratio.io.weight_names import require_named_weight
from quasiratio.workflows.fitted_model import LoadedModel
from quasiratio.workflows.ratio_stream import NewColumns, RatioStream
from quasiratio.workflows.running_counts import RangeCount
from quasiratio.workflows.sample_files import require_weight

__all__ = ["Application", "checked_stream"]


@dataclass(frozen=True)
class Application:
    """What decides the new columns of a table, in plain values; the arguments of `apply_files`.

    Example:
        >>> Application(weight="w", selection="pt > 30").ratio_name
        'ratio'
    """

    features: tuple[str, ...] | None = None
    weight: str | None = None
    weights: tuple[str, ...] | None = None
    selection: str | None = None
    ratio_name: str = "ratio"
    weight_name: str = "weight_reweighted"
    members: bool = False

    def stream(self, loaded: LoadedModel, table: Table) -> RatioStream:
        """Make the stream of a model for a table, or raise where they do not go together."""
        inputs = loaded.inputs if self.features is None else parse_features(self.features, [table])
        if self.features is None:
            loaded.require_features(table)
        variations = _variations(loaded, table, self.weight, self.weights)
        weight = next(iter(variations.values()), None) or self.weight or loaded.notes.reference.weight
        require_weight(table, weight)
        return checked_stream(
            loaded.estimator,
            table,
            features=inputs,
            weight=weight,
            variations=variations,
            names=NewColumns(self.ratio_name, self.weight_name),
            members=self.members,
            ranges=dict(zip([one.name for one in inputs], loaded.ranges.values(), strict=True)),
            fit_selection=loaded.notes.selection,
        )


def checked_stream(
    model: RatioPredictor,
    table: Table,
    *,
    features: Sequence[str | Feature],
    weight: str | None,
    variations: Mapping[str, str] | None,
    names: NewColumns | None,
    members: bool,
    ranges: Mapping[str, tuple[float, float]] | None,
    fit_selection: str | None,
) -> RatioStream:
    """Make the stream of an estimator for a table, with expressions parsed and columns checked."""
    stream = RatioStream(
        model,
        parse_features(features, [table]),
        parse_expression(weight) if weight else None,
        parse_expression(fit_selection) if fit_selection else None,
        names or NewColumns(),
        members,
        RangeCount(ranges or {}),
        {name: parse_expression(text) for name, text in (variations or {}).items()},
    )
    stream.require_usable(table)
    require_named_weight(table, weight)
    return stream


def _variations(
    model: LoadedModel, table: Table, weight: str | None, weights: Sequence[str] | None
) -> dict[str, str]:
    """Return the expression of each weight of a model of several; nothing for other models."""
    names, noted = model.estimator.variation_names, model.notes.reference
    if not names:
        if weights:
            msg = "Got several weights for a model of one; expected a model that was fitted with several."
            raise InvalidInputError(msg, advice="Name one with `weight`.")
        return {}
    if weights:
        found = parse_weights(weights, [table])
    elif weight is None and noted.weights:
        found = dict(noted.weights)
    else:
        found = dict.fromkeys(names, weight or noted.weight or "1")
    missing = [name for name in names if name not in found]
    if missing:
        msg = f"Got the weights {', '.join(found)} without {missing[0]!r}; expected one for each of {', '.join(names)}."
        raise InvalidInputError(msg, advice="Name them with `weights`, such as 'up=w_up'.")
    return {name: found[name] for name in names}
