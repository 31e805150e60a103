"""A sample with negative weights, copied with positive ones beside them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.fitting import usable_device
from quasiratio.estimators.positive import PositiveReweighter
from quasiratio.estimators.positive_report import PositiveReport
from quasiratio.io import Feature, Table, TableWriter, create_table, parse_expression
from quasiratio.metrics import ClosureResult, closure, natural_edges
from quasiratio.outputs import output_file
from quasiratio.progress import ShowEvents
from quasiratio.report.evaluation import distinct_features
from quasiratio.sample import WeightedSample
from quasiratio.wording import feature_line
from quasiratio.workflows.sample_files import Files, SampleFiles, chosen_features

__all__ = ["NewWeights", "PositiveFiles", "PositiveRequest", "positive_files", "write_with_columns"]

_N_BINS = 50


@dataclass(frozen=True)
class PositiveFiles:
    """What was written.

    Attributes:
        path: The new file.
        source: The events that were read, for people.
        features: Columns and formulas whose expectations are kept.
        weight: Expression of the signed weight.
        report: What happened to the weights.
        closure: The sample with the new weights (as `reference`) against the signed one (as `target`); they
            are the same events, so that a chi-squared well below one per bin is what to expect.
        n_written: Events in the new file.
    """

    path: Path
    source: str
    features: tuple[str, ...]
    weight: str
    report: PositiveReport
    closure: ClosureResult
    n_written: int

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by name."""
        rows = self.closure.table(include_reference=True)
        return {
            "output": str(self.path),
            "features": list(self.features),
            "weight": self.weight,
            **asdict(self.report),
            "gain": self.report.gain,
            "gain_with_training": self.report.gain_with_training,
            "n_written": self.n_written,
            "closure": [{key: row[key] for key in ("observable", "chi2_per_dof", "n_dof")} for row in rows],
        }


def positive_files(
    files: Files,
    output: str | os.PathLike[str],
    *,
    weight: str,
    features: Sequence[str] | None = None,
    selection: str | None = None,
    tree: str | None = None,
    allow_large: bool = False,
    weight_name: str = "weight_positive",
    members: bool = False,
    resample: bool = False,
    reweighter: PositiveReweighter | None = None,
    random_state: int = 0,
    overwrite: bool = False,
    say: Callable[[str], None] | None = None,
    progress: ShowEvents | None = None,
) -> PositiveFiles:
    """Copy events to a new file with a weight that is positive, as `quasiratio positive` does.

    Features and weights must fit into memory, the rest need not. Only expectations of the features are protected:
    give all that matter.

    Args:
        files: Events with signed weights.
        output: The new file; its suffix says the format, and `out.root:tree` the tree.
        weight: Expression of the signed weight.
        features: Columns, or formulas, whose expectations are kept; every numeric column but weights and identifiers.
        selection: Events to use and to write; all when left out.
        tree: Tree of ROOT files, where the path names none.
        allow_large: Read small files that unpack to gigabytes.
        weight_name: Name of the new column.
        members: Add `<weight_name>_std`, the spread of the members at each event, and the weight of each,
            `<weight_name>_member_0`, `_1`, ... Errors of sums come from the latter: fill every histogram once per
            member, and take the spread of its bins.
        resample: Write the events that `PositiveReweighter.resample` keeps, instead of all.
        reweighter: An unfitted reweighter; that of the defaults with this `random_state` when left out.
        random_state: Seed of the resampling.
        overwrite: Replace a file that is there.
        say: Called with lines for people: the features in use.
        progress: Called after each chunk with the events done and the events at most.

    Example:
        >>> import tempfile
        >>> import quasiratio as qr
        >>> from quasiratio.io import open_table
        >>> rng = np.random.default_rng(0)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     np.savez(f"{directory}/in.npz", x=rng.normal(size=4000), w=rng.choice([1.0, 1.0, 1.0, -1.0], 4000))
        ...     done = qr.workflows.positive_files(
        ...         f"{directory}/in.npz", f"{directory}/out.npz", weight="w", features=["x"],
        ...         reweighter=qr.PositiveReweighter(max_steps=100, random_state=0),
        ...     )
        ...     bool(next(open_table(f"{directory}/out.npz").chunks())["weight_positive"].min() >= 0)
        True
    """
    out = output_file(os.fspath(output), overwrite=overwrite)
    asked = PositiveRequest(weight, features, selection, weight_name, members, resample, random_state)
    files_of_sample = SampleFiles(files, weight, selection, tree, allow_large)
    reweighter = reweighter if reweighter is not None else PositiveReweighter(random_state=random_state)
    table, chosen = asked.opened(files_of_sample, reweighter, say)
    if say is not None:
        say(feature_line(chosen))
    new_file = create_table(
        out.path,
        tree=out.tree_like(table.sources[0], table.files[0].path),
        inputs=[table],
        metadata={"quasiratio": {"weight": weight}},
    )  # checks names, writes nothing
    new = asked.fitted(reweighter, files_of_sample.read(table, chosen))
    write_with_columns(new_file, table, selection, new.columns, new.kept, progress=progress)
    return asked.summary(out.path, table, chosen, reweighter, new)


class NewWeights(NamedTuple):
    """The new columns at all selected events, which of them are kept, and how well they close."""

    columns: dict[str, npt.NDArray[np.float64]]
    kept: npt.NDArray[np.bool_]
    closure: ClosureResult


@dataclass(frozen=True)
class PositiveRequest:
    """What decides the new columns; the arguments of `positive_files`."""

    weight: str
    features: Sequence[str] | None = None
    selection: str | None = None
    weight_name: str = "weight_positive"
    members: bool = False
    resample: bool = False
    random_state: int = 0

    def opened(
        self, files: SampleFiles, reweighter: PositiveReweighter, say: Callable[[str], None] | None = None
    ) -> tuple[Table, list[Feature]]:
        """Open the files, choose the features and tell them; raise what can be known before the training."""
        usable_device(reweighter.device)  # names are looked at before files are read
        table = files.open()
        chosen = chosen_features(self.features, [files], [table], say)
        if self.members and (self.resample or reweighter.n_members < 2):
            msg = (
                "Got a request for the weights of the members of "
                + ("resampled events, which have none" if self.resample else "a single network")
                + "; expected an ensemble and all events. Leave out the members, or "
                + ("the resampling." if self.resample else "fit more of them.")
            )
            raise InvalidInputError(msg)
        taken = [name for name in self._names(reweighter.n_members) if name in table.columns]
        if taken:
            msg = (
                f"Got {taken[0]!r} as the new column, but {table.label!r} has such a column; expected a name that is "
                "free."
            )
            raise InvalidInputError(msg, advice="Choose another with `weight_name`.")
        return table, chosen

    def _names(self, n_members: int) -> list[str]:
        name = self.weight_name
        return [
            name,
            *([f"{name}_std", *(f"{name}_member_{k}" for k in range(n_members))] if self.members else []),
        ]

    def fitted(
        self, reweighter: PositiveReweighter, sample: WeightedSample, *, fit: bool = True
    ) -> NewWeights:
        """Fit the reweighter, unless it is, and return what it makes of the sample."""
        sample.require_positive_sum("sample")
        if fit:
            reweighter.fit(sample, sample.weights)
        after = WeightedSample(sample, np.asarray(reweighter.predict_weights(sample, sample.weights)))
        compared = distinct_features(sample, sample)
        edges = dict.fromkeys(compared, partial(natural_edges, n_bins=_N_BINS))
        agreement = closure(after, {}, sample, observables=compared, edges=edges)
        kept, new_weights = np.ones(len(sample), dtype=bool), after.weights
        if self.resample:
            drawn = reweighter.resample(sample, sample.weights, np.random.default_rng(self.random_state))
            kept = np.zeros(len(sample), dtype=bool)
            kept[drawn.kept] = True
            new_weights = np.zeros(len(sample))
            new_weights[drawn.kept] = drawn.weights
        added = [new_weights]
        if self.members:
            of_members = reweighter.predict_member_weights(sample, sample.weights)
            added += [of_members.std(axis=0, ddof=1), *of_members]
        names = self._names(reweighter.n_members)
        return NewWeights(dict(zip(names, added, strict=True)), kept, agreement)

    def summary(
        self,
        path: Path,
        table: Table,
        chosen: Sequence[Feature],
        reweighter: PositiveReweighter,
        new: NewWeights,
    ) -> PositiveFiles:
        """Return what was written."""
        names = tuple(one.name for one in chosen)
        n_written = int(new.kept.sum())
        return PositiveFiles(
            path, table.label, names, self.weight, reweighter.report_, new.closure, n_written
        )


def write_with_columns(
    new_file: TableWriter,
    table: Table,
    selection: str | None,
    columns: Mapping[str, npt.NDArray[np.float64]],
    kept: npt.NDArray[np.bool_],
    *,
    progress: ShowEvents | None = None,
) -> None:
    """Copy a table with more columns.

    Args:
        new_file: What `create_table` returned.
        table: Events to copy.
        selection: Those to take; all when left out.
        columns: New columns, at all events that are taken.
        kept: Which of these are written.
        progress: Called after each chunk with the events done and the events at most.
    """
    condition = parse_expression(selection) if selection else None
    n_read = 0
    with new_file as writer:
        for chunk in table.chunks(selection=condition):
            n_events = len(next(iter(chunk.values())))
            here = slice(n_read, n_read + n_events)
            mask = kept[here]
            copied = chunk if mask.all() else {name: values[mask] for name, values in chunk.items()}
            writer.append({**copied, **{name: values[here][mask] for name, values in columns.items()}})
            n_read += n_events
            if progress is not None:
                progress(n_read, table.n_events)
