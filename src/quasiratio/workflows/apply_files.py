"""A model applied to files of any length: events pass through in chunks, and all columns are kept."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quasiratio.errors import (
    InvalidInputError,
    NegativeDensityWarning,
    QuasiratioWarning,
    SupportWarning,
    UntrustworthyFitWarning,
)
from quasiratio.estimators.fit_check import FitCheck
from quasiratio.estimators.predictor import RatioPredictor
from quasiratio.io import Feature, Table, create_table, parse_expression, parse_features, parse_weights
from quasiratio.io.weight_names import require_named_weight
from quasiratio.outputs import output_file
from quasiratio.progress import ShowEvents
from quasiratio.wording import feature_line, percent, shortened
from quasiratio.workflows.fitted_model import FitNotes, LoadedModel, load_ratio_model
from quasiratio.workflows.ratio_stream import NewColumns, RatioStream
from quasiratio.workflows.running_counts import OutsideRange, RangeCount, WeightSums
from quasiratio.workflows.sample_files import Files, SampleFiles, require_weight

__all__ = ["AppliedFiles", "apply_files", "apply_to_table"]


@dataclass(frozen=True)
class AppliedFiles:
    """What was written.

    Attributes:
        path: The new file.
        source: The events that were read, for people.
        weight: Expression of the weight before; one where there is none.
        n_events: Events written.
        columns: The columns that were added.
        before: Sums of the weights as they were.
        after: Sums of the new weights.
        ratio_range: Smallest and largest ratio.
        n_nonpositive: Events where the estimated reference density is zero or negative.
        n_infinite: Events whose ratio is infinite or undefined, as that density is zero; the sums of the new
            weights and the range of ratios leave them out.
        outside: Events outside the training range, feature by feature; empty where it is not known.
        n_unselected: Events that the selection of the fit would have left out.
        share_seen: Estimated share of the events that the model was trained on, and predicts nevertheless (see
            `DataFingerprint.share_seen`); zero for a `Reweighter` with folds.
        fit_check: What the fit thought of itself.
    """

    path: Path
    source: str
    weight: str | None
    n_events: int
    columns: tuple[str, ...]
    before: WeightSums
    after: WeightSums
    ratio_range: tuple[float, float]
    n_nonpositive: int
    n_infinite: int
    outside: tuple[OutsideRange, ...]
    n_unselected: int
    share_seen: float
    fit_check: FitCheck

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by name."""
        return {
            "output": str(self.path),
            "n_events": self.n_events,
            "columns": self.columns,
            "weight": self.weight,
            "before": self.before.as_dict(),
            "after": self.after.as_dict(),
            "ratio_range": self.ratio_range,
            "n_nonpositive_reference": self.n_nonpositive,
            "n_infinite_ratios": self.n_infinite,
            "n_outside_selection_of_fit": self.n_unselected,
            "share_seen_in_training": self.share_seen,
            "outside_training_range": {feature.name: feature.outside for feature in self.outside},
            "fit_check": self.fit_check.status,
        }

    def warnings(self) -> list[QuasiratioWarning]:
        """Return what a user should know before using the new weights; a fit that failed its check stands first."""
        found: list[QuasiratioWarning] = []
        if self.fit_check.status == "failed":
            found.append(UntrustworthyFitWarning(str(self.fit_check)))
        notable = [str(feature) for feature in self.outside if feature.is_notable]
        if notable:
            msg = (
                f"Values lie outside the range of the training data: {', '.join(notable)}. The ratio is "
                "extrapolated there; check units and selection."
            )
            found.append(SupportWarning(msg))
        if self.n_unselected:
            msg = (
                f"{percent(self.n_unselected / self.n_events)} of the events do not pass the selection of the fit. The "
                "ratio is extrapolated there; apply the same selection."
            )
            found.append(SupportWarning(msg))
        if self.n_infinite:
            msg = (
                f"The ratio of {self.n_infinite} of {self.n_events} events ({percent(self.n_infinite / self.n_events)}) is "
                "infinite or undefined, as the estimated reference density is zero there. It is written as it comes "
                "out; leave these events out."
            )
            found.append(NegativeDensityWarning(msg))
        if self.n_nonpositive:
            msg = (
                f"The estimated reference density is zero or negative for {self.n_nonpositive} of {self.n_events} "
                f"events ({percent(self.n_nonpositive / self.n_events)}); their ratio is written as it comes out, and may "
                "be large."
            )
            found.append(NegativeDensityWarning(msg))
        return found


def apply_files(
    model: RatioPredictor | str | os.PathLike[str],
    files: Files,
    output: str | os.PathLike[str],
    *,
    features: Sequence[str] | None = None,
    weight: str | None = None,
    weights: Sequence[str] | None = None,
    selection: str | None = None,
    tree: str | None = None,
    allow_large: bool = False,
    ratio_name: str = "ratio",
    weight_name: str = "weight_reweighted",
    members: bool = False,
    compression: Any = "auto",  # noqa: ANN401 - what `create_table` takes
    overwrite: bool = False,
    say: Callable[[str], None] | None = None,
    progress: ShowEvents | None = None,
) -> AppliedFiles:
    """Copy events to a new file with two more columns, the ratio and weight times ratio, as `quasiratio apply` does.

    Memory does not grow with the file. Nothing is left behind if anything fails.

    Args:
        model: Directory of a model, or a fitted ratio estimator or reweighter.
        files: Events to reweight.
        output: The new file; its suffix says the format, and `out.root:tree` the tree.
        features: The features of the model, in the order of the fit, where columns have other names, or formulas of them.
        weight: Expression of the weight before; that of the fit's reference when left out.
        weights: The weights of a model of several, where they have other names than in the fit's reference, such as
            `up=w_up`; each adds the columns `ratio_NAME` and `weight_NAME`.
        selection: Events to write; all when left out.
        tree: Tree of ROOT files, where the path names none.
        allow_large: Read small files that unpack to gigabytes.
        ratio_name: Name of the ratio's column.
        weight_name: Name of the new weight's column.
        members: Add the spread of the members and the ratio of each; needs an ensemble.
        compression: As for `quasiratio.io.create_table`.
        overwrite: Replace a file that is there.
        say: Called with lines for people: the features in use.
        progress: Called after each chunk with the events done and the events at most.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import quasiratio as qr
        >>> from quasiratio.io import open_table
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(np.repeat([0.0, 0.5], 2000), 1.0), np.repeat([0, 1], 2000)
        >>> model = qr.DirectRatio(max_steps=100, random_state=0).fit({"x": X}, y)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     np.savez(f"{directory}/in.npz", x=X[:2000], w=np.ones(2000))
        ...     done = qr.workflows.apply_files(model, f"{directory}/in.npz", f"{directory}/out.npz", weight="w")
        ...     list(open_table(f"{directory}/out.npz").columns)
        ['x', 'w', 'ratio', 'weight_reweighted']
        >>> done.n_events, bool(abs(done.after.total / done.before.total - 1) < 0.01)
        (2000, True)
    """
    out = output_file(os.fspath(output), overwrite=overwrite)
    if isinstance(model, RatioPredictor):
        loaded = LoadedModel(Path(), model, FitNotes())
    else:
        loaded = load_ratio_model(model)
    table = SampleFiles(files, tree=tree, allow_large=allow_large).open()
    inputs = loaded.inputs if features is None else parse_features(features, [table])
    if features is None:
        loaded.require_features(table)
    variations = _variations(loaded, table, weight, weights)
    weight = next(iter(variations.values()), None) or weight or loaded.notes.reference.weight
    require_weight(table, weight)
    if say is not None:
        say(feature_line(inputs))
    about = {"model": str(loaded.path)} if loaded.path.name else {}
    return apply_to_table(
        loaded.estimator,
        table,
        out.path,
        features=inputs,
        weight=weight,
        variations=variations,
        selection=selection,
        names=NewColumns(ratio_name, weight_name),
        members=members,
        ranges=dict(zip([one.name for one in inputs], loaded.ranges.values(), strict=True)),
        fit_selection=loaded.notes.selection,
        tree=out.tree_like(table.sources[0], table.files[0].path),
        compression=compression,
        metadata={"quasiratio": {**about, "weight": weight, "selection": selection}},
        progress=progress,
    )


def apply_to_table(
    model: RatioPredictor,
    table: Table,
    output: str | os.PathLike[str],
    *,
    features: Sequence[str | Feature],
    weight: str | None = None,
    variations: Mapping[str, str] | None = None,
    selection: str | None = None,
    names: NewColumns | None = None,
    members: bool = False,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    fit_selection: str | None = None,
    tree: str = "events",
    compression: Any = "auto",  # noqa: ANN401 - what `create_table` takes
    metadata: Mapping[str, Any] | None = None,
    progress: ShowEvents | None = None,
) -> AppliedFiles:
    """Write a copy of an open table, as `apply_files` does, with everything said that it finds out.

    Args:
        model: A fitted ratio estimator or reweighter.
        table: Events to reweight.
        output: The new file; its suffix says the format. A file that is there is replaced.
        features: The features of the model, in the order of the fit: columns, elements or formulas.
        weight: Expression of the weight before; one when left out, if no column is named like a weight.
        variations: Expressions of several weights by name, for a model of several.
        selection: Events to write; all when left out.
        names: Names of the new columns; none may be in the table.
        members: Add the spread of the members and the ratio of each; needs an ensemble.
        ranges: Smallest and largest value of each feature in the training data, to count who is outside.
        fit_selection: The selection of the fit, to count the events that it would have left out.
        tree: Name of the tree, for ROOT files.
        compression: As for `create_table`.
        metadata: Stored beside the events.
        progress: Called after each chunk with the events done and the events at most.
    """
    names = names or NewColumns()
    stream = RatioStream(
        model,
        parse_features(features, [table]),
        parse_expression(weight) if weight else None,
        parse_expression(fit_selection) if fit_selection else None,
        names,
        members,
        RangeCount(ranges or {}),
        {name: parse_expression(text) for name, text in (variations or {}).items()},
    )
    stream.require_usable(table)
    require_named_weight(table, weight)
    condition = parse_expression(selection) if selection else None
    n_read = 0
    with create_table(
        output, tree=tree, compression=compression, metadata=metadata, inputs=[table]
    ) as writer:
        for chunk in table.chunks(stream.read_columns(table), selection=condition, may_miss=stream.may_miss):
            writer.append(stream.extended(chunk, table))
            n_read += len(next(iter(chunk.values())))
            if progress is not None:
                progress(n_read, table.n_events)
        if n_read == 0:
            raise _nothing_left(table, selection)
    done = AppliedFiles(
        path=Path(output),
        source=table.label,
        weight=weight,
        n_events=stream.before.n_events,
        columns=tuple(stream.new_columns),
        before=stream.before,
        after=stream.after,
        ratio_range=(float(stream.lowest), float(stream.highest)),
        n_nonpositive=stream.n_nonpositive,
        n_infinite=stream.n_infinite,
        outside=stream.ranges.result(),
        n_unselected=stream.n_unselected,
        share_seen=stream.seen.share,
        fit_check=model.fit_check_,
    )
    for warning in done.warnings():
        warnings.warn(warning, stacklevel=3)
    return done


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


def _nothing_left(table: Table, selection: str | None) -> InvalidInputError:
    why = (
        f"of which the selection {shortened(selection)!r} keeps none" if selection else "which has no events"
    )
    return InvalidInputError(f"Got {table.label!r}, {why}; expected at least one. Check the file.")
