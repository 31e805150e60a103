"""A model applied to files of any length: events pass through in chunks, and all columns are kept."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.predictor import RatioPredictor
from quasiratio.io import Feature, Table, create_table
from quasiratio.outputs import OutputFile, output_file
from quasiratio.progress import ShowEvents
from quasiratio.tasks import chosen_workers
from quasiratio.wording import feature_line, shortened
from quasiratio.workflows.application import Application, checked_stream
from quasiratio.workflows.apply_merged import merged_chunks
from quasiratio.workflows.apply_result import AppliedFiles
from quasiratio.workflows.fitted_model import FitNotes, LoadedModel, load_ratio_model
from quasiratio.workflows.ratio_stream import NewColumns, RatioStream
from quasiratio.workflows.sample_files import Files, SampleFiles

__all__ = ["apply_files", "apply_to_table", "write_applied"]


def apply_files(
    model: RatioPredictor | LoadedModel | str | os.PathLike[str],
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
    jobs: int | None = None,
    scheduler: str | None = None,
    plugins: Sequence[str] = (),
    say: Callable[[str], None] | None = None,
    progress: ShowEvents | None = None,
) -> AppliedFiles:
    """Copy events to a new file with two more columns, the ratio and weight times ratio, as `quasiratio apply` does.

    Memory does not grow with the file. Nothing is left behind if anything fails.

    Args:
        model: Directory of a model, or a fitted ratio estimator or reweighter, or what was loaded already.
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
        jobs: Processes of this machine that predict, file by file, while this one reads and writes.
        scheduler: Address of a Dask scheduler instead.
        plugins: Modules with estimators, losses or activations of your own, which workers import.
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
    application = Application(
        None if features is None else tuple(features),
        weight,
        None if weights is None else tuple(weights),
        selection,
        ratio_name,
        weight_name,
        members,
    )
    loaded = model if isinstance(model, LoadedModel) else _loaded(model)
    table = SampleFiles(files, tree=tree, allow_large=allow_large).open()
    stream = application.stream(loaded, table)
    if say is not None:
        say(feature_line(stream.inputs))
    write = functools.partial(
        write_applied, stream, table, out, application, loaded, compression=compression, progress=progress
    )
    if jobs in (None, 1) and scheduler is None:
        return write()
    with chosen_workers(jobs, scheduler) as pool:
        return write(chunks=merged_chunks(stream, table, application, loaded, pool, plugins=plugins))


def write_applied(
    stream: RatioStream,
    table: Table,
    out: OutputFile,
    application: Application,
    loaded: LoadedModel,
    *,
    compression: Any = "auto",  # noqa: ANN401 - what `create_table` takes
    chunks: Iterable[Mapping[str, Any]] | None = None,
    allow_empty: bool = False,
    progress: ShowEvents | None = None,
) -> AppliedFiles:
    """Write what a stream makes of a table, and say what it found.

    Args:
        stream: Makes the new columns, and counts.
        table: Events to reweight.
        out: The new file.
        application: What was asked for.
        loaded: The model.
        compression: As for `create_table`.
        chunks: Chunks with the new columns, where others have made them.
        allow_empty: Write a file without events where the selection keeps none.
        progress: Called after each chunk with the events done and the events at most.
    """
    about = {"model": str(loaded.path)} if loaded.path.name else {}
    weight = None if stream.weight is None else stream.weight.text
    return _written(
        stream,
        table,
        out.path,
        selection=application.selection,
        tree=out.tree_like(table.sources[0], table.files[0].path),
        compression=compression,
        metadata={"quasiratio": {**about, "weight": weight, "selection": application.selection}},
        chunks=chunks,
        allow_empty=allow_empty,
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
    stream = checked_stream(
        model,
        table,
        features=features,
        weight=weight,
        variations=variations,
        names=names,
        members=members,
        ranges=ranges,
        fit_selection=fit_selection,
    )
    return _written(
        stream,
        table,
        output,
        selection=selection,
        tree=tree,
        compression=compression,
        metadata=metadata,
        progress=progress,
    )


def _written(
    stream: RatioStream,
    table: Table,
    output: str | os.PathLike[str],
    *,
    selection: str | None,
    tree: str,
    compression: Any,  # noqa: ANN401 - what `create_table` takes
    metadata: Mapping[str, Any] | None,
    chunks: Iterable[Mapping[str, Any]] | None = None,
    allow_empty: bool = False,
    progress: ShowEvents | None = None,
) -> AppliedFiles:
    n_read = 0
    with create_table(
        output, tree=tree, compression=compression, metadata=metadata, inputs=[table]
    ) as writer:
        for chunk in stream.chunks(table, selection) if chunks is None else chunks:
            writer.append(chunk)
            n_read += len(next(iter(chunk.values())))
            if progress is not None:
                progress(n_read, table.n_events)
        if n_read == 0 and not (allow_empty and table.n_events):
            raise _nothing_left(table, selection)
    weight = None if stream.weight is None else stream.weight.text
    done = AppliedFiles(
        Path(output), table.label, weight, tuple(stream.new_columns), stream.counts, stream.model.fit_check_
    )
    for warning in done.warnings():
        warnings.warn(warning, stacklevel=4)
    return done


def _loaded(model: RatioPredictor | str | os.PathLike[str]) -> LoadedModel:
    return (
        LoadedModel(Path(), model, FitNotes())
        if isinstance(model, RatioPredictor)
        else load_ratio_model(model)
    )


def _nothing_left(table: Table, selection: str | None) -> InvalidInputError:
    why = (
        f"of which the selection {shortened(selection)!r} keeps none" if selection else "which has no events"
    )
    return InvalidInputError(f"Got {table.label!r}, {why}; expected at least one. Check the file.")
