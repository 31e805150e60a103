"""Positive weights for a sample of many files, one output for each: fitted once to all events, written by many."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from quasiratio.estimators.loading import describe, load
from quasiratio.estimators.positive import PositiveReweighter
from quasiratio.io import Table, create_table, parse_expression
from quasiratio.io.file_format import Location
from quasiratio.io.locations import locate
from quasiratio.outputs import output_file, require_output_name
from quasiratio.progress import ShowTasks
from quasiratio.tasks import Row, chosen_workers
from quasiratio.tasks.worker import kept_warnings, say_again
from quasiratio.wording import feature_line
from quasiratio.workflows.file_tasks import FileTasks, input_fingerprint
from quasiratio.workflows.positive_files import (
    NewWeights,
    PositiveFiles,
    PositiveRequest,
    write_with_columns,
)
from quasiratio.workflows.sample_files import Files, SampleFiles

__all__ = ["PositiveEach", "positive_each_file", "write_one_file"]

_MODEL_NAME = "quasiratio-positive-model"


@dataclass(frozen=True)
class PositiveEach:
    """What was written, file by file.

    Attributes:
        directory: Where the outputs are.
        outputs: The new files, in the order of the inputs.
        failures: Why inputs have no output, by input.
        empty: Inputs without events, which have no output.
        total: What happened to the weights of all events.
    """

    directory: Path
    outputs: tuple[Path, ...]
    failures: Mapping[str, str]
    empty: tuple[str, ...]
    total: PositiveFiles

    @property
    def is_complete(self) -> bool:
        """Whether every input has its output."""
        return not self.failures

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by name."""
        return {
            **self.total.as_dict(),
            "outputs": [str(path) for path in self.outputs],
            "failures": dict(self.failures),
            "without_events": list(self.empty),
        }


def positive_each_file(
    files: Files,
    output_dir: str | os.PathLike[str],
    *,
    weight: str,
    name_pattern: str = "{stem}_positive{suffix}",
    resume: bool = False,
    jobs: int | None = None,
    scheduler: str | None = None,
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
    progress: ShowTasks | None = None,
) -> PositiveEach:
    """Copy each file to one of its own with a weight that is positive, as `quasiratio positive --output-dir` does.

    The files are one sample: the fit sees all of them, and so every file must be readable when it begins. Features and
    weights must fit into memory; workers read, and write the outputs. The fitted model stays in `output_dir`, so that
    `resume=True` does not train again. The new weights are those of `positive_files` for the same files.

    Args:
        files: Events with signed weights: paths, patterns, addresses, `@files.txt`.
        output_dir: Directory of the new files; with `scheduler`, one that all workers see.
        weight: Expression of the signed weight.
        name_pattern: As for `apply_each_file`, like the next three.
        resume: Go on with what an earlier call with the same files and options has left.
        jobs: Processes of this machine; by default the work is done in this one.
        scheduler: Address of a Dask scheduler instead.
        features: As for `positive_files`, like all that follow.
        selection: Events to use and to write.
        tree: Tree of ROOT files, where the path names none.
        allow_large: Read small files that unpack to gigabytes.
        weight_name: Name of the new column.
        members: Add the spread of the members and the weight of each.
        resample: Write the events that `PositiveReweighter.resample` keeps.
        reweighter: An unfitted reweighter.
        random_state: Seed of the resampling.
        overwrite: Begin again, and replace outputs that are there.
        say: Called with lines for people.
        progress: Called with the files done and in all.
    """
    directory = require_output_name(output_dir, "directory", option="output_dir")
    asked = PositiveRequest(weight, features, selection, weight_name, members, resample, random_state)
    reweighter = reweighter if reweighter is not None else PositiveReweighter(random_state=random_state)
    locations = locate(files, tree=tree, allow_large=allow_large)
    settings = _settings(asked, reweighter, locations)
    tasks = FileTasks("positive", directory, settings, {"selection": selection, "weight": weight})
    planned = tasks.planned(locations, name_pattern, resume=resume, overwrite=overwrite)
    sample_files = SampleFiles([one.text for one in locations], weight, selection, None, allow_large)
    table, chosen = asked.opened(sample_files, reweighter)
    if say is not None:
        say(feature_line(chosen))
    with tasks.tidied(planned), chosen_workers(jobs, scheduler, default=1) as pool:
        n_before = tasks.forget_changed(planned, afresh=overwrite and not resume)
        if say is not None:
            before = f", of which {n_before} are done" if n_before else ""
            say(f"{len(planned)} files{before}, on {pool.description}")
        sample = sample_files.read(table, chosen, pool=pool)
        stored, made_of = directory / _MODEL_NAME, {"settings": _digest(settings)}
        if resume and stored.exists() and describe(stored).notes == made_of:
            reweighter = load(stored, expected=PositiveReweighter)
            new = asked.fitted(reweighter, sample, fit=False)
        else:  # a model that is there was fitted to other files, or with other options
            new = asked.fitted(reweighter, sample)
            reweighter.save(stored, notes=made_of, overwrite=True)
        own = dict(zip((tasks.key(task) for task in planned), _shares(table, selection, new), strict=True))
        outcome = tasks.run(write_one_file, planned, pool, own=own, show=progress)
    rows = {row.key: row.values for row in outcome.rows}
    say_again([one for values in rows.values() for one in values["warnings"]])
    by_key = {tasks.key(task): task for task in planned}
    return PositiveEach(
        directory,
        tuple(task.output for key, task in by_key.items() if rows.get(key, {}).get("is_written")),
        {str(by_key[key].location.path): why for key, why in outcome.failures.items()},
        tuple(
            str(task.location.path)
            for key, task in by_key.items()
            if not rows.get(key, {}).get("is_written", True)
        ),
        asked.summary(directory, table, chosen, reweighter, new),
    )


def write_one_file(arguments: Mapping[str, Any]) -> Iterator[Row]:
    """Copy one file with its share of the new columns, in a worker; a file without events has no output."""
    table: Table = arguments["table"]
    fingerprint = input_fingerprint(Location(table.files[0].path))
    out = output_file(arguments["output"], overwrite=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if table.n_events:
            new_file = create_table(
                out.path,
                tree=out.tree_like(table.sources[0], table.files[0].path),
                inputs=[table],
                metadata={"quasiratio": {"weight": arguments["weight"]}},
            )
            columns, kept = arguments["columns"], arguments["kept"]
            write_with_columns(new_file, table, arguments["selection"], columns, kept)
    yield Row(
        arguments["key"],
        {
            "source": arguments["source"],
            "fingerprint": fingerprint,
            "is_written": bool(table.n_events),
            "warnings": kept_warnings(caught),
        },
    )


def _shares(table: Table, selection: str | None, new: NewWeights) -> Iterator[dict[str, Any]]:
    """Yield the events of each file, with their share of the new columns."""
    condition = parse_expression(selection) if selection else None
    start = 0
    for part in table.parts():
        n_events = part.n_events
        if condition is not None:
            chunks = part.chunks(list(condition.names), selection=condition, may_miss=condition.names)
            n_events = sum(len(next(iter(chunk.values()))) for chunk in chunks)
        here = slice(start, start + n_events)
        columns = {name: values[here] for name, values in new.columns.items()}
        yield {"table": part, "columns": columns, "kept": new.kept[here]}
        start += n_events


def _settings(
    asked: PositiveRequest, reweighter: PositiveReweighter, locations: Sequence[Location]
) -> dict[str, Any]:
    """Return what decides the outputs; the fit sees all files, so that each of them does."""
    inputs = {one.text: input_fingerprint(one) for one in locations}
    options = {**asdict(asked), "features": None if asked.features is None else list(asked.features)}
    parameters = {
        name: repr(value) for name, value in reweighter.get_params(deep=False).items() if name != "verbose"
    }
    return {**options, "reweighter": parameters, "files": _digest(inputs)}


def _digest(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
