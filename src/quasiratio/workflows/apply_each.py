"""A model applied to many files, one output for each, by as many processes or machines as there are."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from quasiratio.errors import QuasiratioError
from quasiratio.io import open_table, parse_expression
from quasiratio.io.file_format import Location
from quasiratio.io.locations import locate
from quasiratio.outputs import output_file, require_output_name
from quasiratio.progress import ShowTasks
from quasiratio.registry import load_plugins
from quasiratio.tasks import Outcome, Row, chosen_workers
from quasiratio.tasks.worker import kept_warnings, say_again
from quasiratio.wording import feature_line
from quasiratio.workflows.application import Application
from quasiratio.workflows.apply_files import write_applied
from quasiratio.workflows.apply_result import AppliedFiles
from quasiratio.workflows.file_tasks import FileTask, FileTasks, input_fingerprint
from quasiratio.workflows.fitted_model import LoadedModel, load_ratio_model, loaded_once, model_digest
from quasiratio.workflows.running_counts import EventCounts, RangeCount
from quasiratio.workflows.sample_files import Files

__all__ = ["AppliedEach", "apply_each_file", "apply_one_file"]


@dataclass(frozen=True)
class AppliedEach:
    """What was written, file by file.

    Attributes:
        directory: Where the outputs are.
        outputs: The new files, in the order of the inputs.
        failures: Why inputs have no output, by input.
        empty: Inputs without events, which have no output.
        n_before: Outputs that an earlier run had written.
        total: The sums over all events that were written; `None` where no file was.
    """

    directory: Path
    outputs: tuple[Path, ...]
    failures: Mapping[str, str]
    empty: tuple[str, ...]
    n_before: int
    total: AppliedFiles | None

    @property
    def is_complete(self) -> bool:
        """Whether every input has its output."""
        return not self.failures

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by name."""
        total = {} if self.total is None else self.total.as_dict()
        return {
            **total,
            "output": str(self.directory),
            "outputs": [str(path) for path in self.outputs],
            "failures": dict(self.failures),
            "without_events": list(self.empty),
            "n_from_earlier_runs": self.n_before,
        }


def apply_each_file(
    model: str | os.PathLike[str],
    files: Files,
    output_dir: str | os.PathLike[str],
    *,
    name_pattern: str = "{stem}_reweighted{suffix}",
    resume: bool = False,
    jobs: int | None = None,
    scheduler: str | None = None,
    features: Sequence[str] | None = None,
    weight: str | None = None,
    weights: Sequence[str] | None = None,
    selection: str | None = None,
    tree: str | None = None,
    allow_large: bool = False,
    ratio_name: str = "ratio",
    weight_name: str = "weight_reweighted",
    members: bool = False,
    compression: str | None = "auto",
    plugins: Sequence[str] = (),
    overwrite: bool = False,
    say: Callable[[str], None] | None = None,
    progress: ShowTasks | None = None,
) -> AppliedEach:
    """Copy each file to one of its own with the ratio and weight times ratio, as `quasiratio apply --output-dir` does.

    A file that cannot be read is named in `failures`, and the others are finished. What is done is kept in a store in
    `output_dir`: killed at any moment, the same call with `resume=True` does the rest.

    Args:
        model: Directory of a model; with `scheduler`, one that all workers see.
        files: Events to reweight: paths, patterns, addresses, `@files.txt`.
        output_dir: Directory of the new files; with `scheduler`, one that all workers see.
        name_pattern: Their names, out of `{stem}`, `{suffix}`, `{parent}` (the directory of the input) and `{number}` (from
            1); the suffix says the format.
        resume: Go on with what an earlier call with the same model and options has left.
        jobs: Processes of this machine; by default the work is done in this one.
        scheduler: Address of a Dask scheduler instead.
        features: As for `apply_files`, like all that follow.
        weight: Expression of the weight before.
        weights: The weights of a model of several.
        selection: Events to write.
        tree: Tree of ROOT files, where the path names none.
        allow_large: Read small files that unpack to gigabytes.
        ratio_name: Name of the ratio's column.
        weight_name: Name of the new weight's column.
        members: Add the spread of the members and the ratio of each.
        compression: As for `quasiratio.io.create_table`.
        plugins: Modules with estimators, losses or activations of your own, which workers import.
        overwrite: Begin again, and replace outputs that are there.
        say: Called with lines for people: the features in use, and files that failed.
        progress: Called with the files done and in all.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import quasiratio as qr
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(np.repeat([0.0, 0.5], 2000), 1.0), np.repeat([0, 1], 2000)
        >>> model = qr.DirectRatio(max_steps=100, random_state=0).fit({"x": X}, y)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     model.save(f"{directory}/model")
        ...     for part in range(3):
        ...         np.savez(f"{directory}/part{part}.npz", x=X[part * 500 : part * 500 + 500])
        ...     done = qr.workflows.apply_each_file(
        ...         f"{directory}/model", f"{directory}/part*.npz", f"{directory}/new"
        ...     )
        >>> [path.name for path in done.outputs]
        ['part0_reweighted.npz', 'part1_reweighted.npz', 'part2_reweighted.npz']
        >>> done.total.n_events, done.is_complete
        (1500, True)
    """
    directory = require_output_name(output_dir, "directory", option="output_dir")
    loaded = load_ratio_model(model)
    locations = locate(files, tree=tree, allow_large=allow_large)
    application = Application(
        None if features is None else tuple(features),
        weight,
        None if weights is None else tuple(weights),
        selection,
        ratio_name,
        weight_name,
        members,
    )
    options = {**asdict(application), "compression": compression}
    digest = model_digest(model)
    tasks = FileTasks(
        "apply",
        directory,
        settings={"model": digest, **options},
        arguments={
            "model": str(Path(model).absolute()),
            "digest": digest,
            "application": asdict(application),
            "compression": compression,
            "plugins": list(plugins),
        },
    )
    planned = tasks.planned(locations, name_pattern, resume=resume, overwrite=overwrite)
    _require_usable(loaded, locations, application, say)
    with tasks.tidied(planned), chosen_workers(jobs, scheduler, default=1) as pool:
        n_before = tasks.forget_changed(planned, afresh=overwrite and not resume)
        if say is not None:
            before = f", of which {n_before} are done" if n_before else ""
            say(f"{len(planned)} files{before}, on {pool.description}")
        outcome = tasks.run(apply_one_file, planned, pool, show=progress)
    done = _summary(loaded, directory, planned, outcome, n_before)
    say_again([one for row in outcome.rows for one in row.values["warnings"]])
    for warning in done.total.warnings() if done.total is not None else ():
        warnings.warn(warning, stacklevel=2)
    return done


def apply_one_file(arguments: Mapping[str, Any]) -> Iterator[Row]:
    """Apply a model to one file, in a worker; a file without events has no output."""
    load_plugins(arguments["plugins"])
    (location,) = locate(arguments["source"], allow_large=arguments["allow_large"])
    fingerprint = input_fingerprint(location)  # of what is read, not of what comes later
    loaded = loaded_once(arguments["model"], arguments["digest"])
    application = Application(**arguments["application"])
    table = open_table(arguments["source"], allow_large=arguments["allow_large"])
    stream = application.stream(loaded, table)
    counted: set[str] = set()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if table.n_events:
            out, compression = output_file(arguments["output"], overwrite=True), arguments["compression"]
            done = write_applied(
                stream, table, out, application, loaded, compression=compression, allow_empty=True
            )
            counted = {str(one) for one in done.warnings()}  # said once for all files
    yield Row(
        arguments["key"],
        {
            "source": arguments["source"],
            "fingerprint": fingerprint,
            "is_written": bool(table.n_events),
            "weight": None if stream.weight is None else stream.weight.text,
            "columns": list(stream.new_columns),
            "counts": stream.counts.document(),
            "warnings": kept_warnings(caught, counted),
        },
    )


def _require_usable(
    loaded: LoadedModel,
    locations: Sequence[Location],
    application: Application,
    say: Callable[[str], None] | None,
) -> None:
    """Raise at once what would fail for every file: the options are tried on the first that can be opened."""
    first_error: QuasiratioError | None = None
    for location in locations:
        try:
            table = open_table(location.text, allow_large=location.allow_large)
        except QuasiratioError as error:
            first_error = first_error or error
            continue
        stream = application.stream(loaded, table)
        if application.selection:
            table.require_numbers(parse_expression(application.selection).names)
        if say is not None:
            say(feature_line(stream.inputs))
        return
    if first_error is not None:
        raise first_error


def _summary(
    loaded: LoadedModel, directory: Path, planned: Sequence[FileTask], outcome: Outcome, n_before: int
) -> AppliedEach:
    rows = {row.key: row.values for row in outcome.rows}
    counts = EventCounts(ranges=RangeCount(loaded.ranges))
    keys = {task.output.relative_to(directory).as_posix(): task for task in planned}
    done = [key for key in keys if key in rows]
    written = [key for key in done if rows[key]["is_written"]]
    total = None
    for key in written:
        part = EventCounts.of_document(rows[key]["counts"])
        counts = part if key == written[0] else counts
        if part is not counts:
            counts.merge(part)
    if written:
        first = rows[written[0]]
        label = str(keys[written[0]].location.path)
        label += f" and {len(written) - 1} more" if len(written) > 1 else ""
        total = AppliedFiles(
            directory, label, first["weight"], tuple(first["columns"]), counts, loaded.estimator.fit_check_
        )
    return AppliedEach(
        directory,
        tuple(keys[key].output for key in written),
        {str(keys[key].location.path): why for key, why in outcome.failures.items()},
        tuple(str(keys[key].location.path) for key in done if key not in written),
        n_before,
        total,
    )
