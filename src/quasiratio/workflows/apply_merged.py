"""Many files into one: workers predict file by file, and one process reads, puts side by side and writes in order."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quasiratio.io import Table, parse_expression
from quasiratio.registry import load_plugins
from quasiratio.tasks import WorkerPool, ordered_results
from quasiratio.tasks.worker import kept_warnings, say_again
from quasiratio.workflows.application import Application
from quasiratio.workflows.fitted_model import LoadedModel, loaded_once, model_digest
from quasiratio.workflows.ratio_stream import RatioStream
from quasiratio.workflows.running_counts import EventCounts

__all__ = ["merged_chunks", "predicted_columns"]


class Predicted(NamedTuple):
    """What a worker found in one file: the new columns of all its events, the counts, and its warnings."""

    columns: dict[str, npt.NDArray[np.float64]]
    counts: dict[str, Any]
    warnings: list[list[str]]


def merged_chunks(
    stream: RatioStream,
    table: Table,
    application: Application,
    loaded: LoadedModel,
    pool: WorkerPool,
    *,
    plugins: Sequence[str] = (),
) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a table with the new columns, which workers predict, in the order of its files.

    Chunks are those of `RatioStream.chunks`, and so are all numbers. The new columns of a file are held until it is
    their turn, of at most three files per worker.

    Args:
        stream: Takes the counts of all workers.
        table: Events to reweight.
        application: What was asked for.
        loaded: The model; one that is in no directory is sent along.
        pool: Who predicts.
        plugins: Modules that workers import first.
    """
    condition = parse_expression(application.selection) if application.selection else None
    read = [*stream.read_columns(table), *(condition.names if condition is not None else ())]
    chunk_events = table.chunk_events(read)
    in_directory = bool(loaded.path.name)
    common = {
        "model": str(loaded.path.absolute()) if in_directory else loaded,
        "digest": model_digest(loaded.path) if in_directory else "",
        "application": asdict(application),
        "chunk_events": chunk_events,
        "plugins": list(plugins),
    }
    parts = table.parts()
    results = ordered_results(pool, predicted_columns, [{**common, "table": part} for part in parts])
    for part, predicted in zip(parts, results, strict=True):
        stream.counts.merge(EventCounts.of_document(predicted.counts))
        say_again(predicted.warnings)
        start = 0
        for chunk in part.chunks(selection=condition, chunk_events=chunk_events):
            stop = start + len(next(iter(chunk.values())))
            yield chunk | {name: values[start:stop] for name, values in predicted.columns.items()}
            start = stop


def predicted_columns(arguments: Mapping[str, Any]) -> Predicted:
    """Predict the new columns of one file, in a worker."""
    load_plugins(arguments["plugins"])
    loaded = arguments["model"]
    if not isinstance(loaded, LoadedModel):
        loaded = loaded_once(loaded, arguments["digest"])
    application = Application(**arguments["application"])
    table: Table = arguments["table"]
    stream = application.stream(loaded, table)
    parts: dict[str, list[npt.NDArray[np.float64]]] = {name: [np.empty(0)] for name in stream.new_columns}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chunks = stream.chunks(table, application.selection, chunk_events=arguments["chunk_events"])
        for chunk in chunks:
            for name in stream.new_columns:
                parts[name].append(chunk[name])
    columns = {name: np.concatenate(values) for name, values in parts.items()}
    return Predicted(columns, stream.counts.document(), kept_warnings(caught))
