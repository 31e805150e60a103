"""Samples beyond memory: whether a fit needs a store of events on disk, and where it is."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from quasiratio.atomic_files import scratch_directory
from quasiratio.errors import InvalidInputError
from quasiratio.estimators.predictor import RatioPredictor
from quasiratio.estimators.stored_fit import require_streaming
from quasiratio.io import EventStore, Feature, Table, create_store
from quasiratio.machine import available_memory
from quasiratio.outputs import create_output_directory, require_output_name
from quasiratio.training import Ranks
from quasiratio.workflows.sample_files import SampleFiles

__all__ = ["LARGEST_SHARE", "bytes_in_memory", "require_apart", "store_for_fit"]

LARGEST_SHARE = 0.5
"""Of the memory that is available; samples that would need more are converted to a store."""
_COPIES = 6
"""Of the features in memory, at most: as read, joined, training events, scaled, in the order of the batches, in between."""
_BYTES_OF_EVENT, _BYTES_OF_MEMBER = 80, 16


def bytes_in_memory(n_events: int, n_features: int, n_members: int = 1) -> int:
    """Estimate what a fit of events in memory needs.

    Example:
        >>> bytes_in_memory(40_000_000, 16) / 1e9
        19.2
    """
    return n_events * (4 * _COPIES * n_features + _BYTES_OF_EVENT + _BYTES_OF_MEMBER * n_members)


def require_apart(cache: str | os.PathLike[str], *outputs: Path) -> None:
    """Raise where a store would stand in the place of an output, or one of them within the other.

    Example:
        >>> require_apart("fits/events", Path("fits/model"))
        >>> require_apart("fits", Path("fits/model"))
        Traceback (most recent call last):
        ...
        quasiratio.errors.InvalidInputError: Got the cache 'fits' and the output 'fits/model', one within the other; expected ...
    """
    place = require_output_name(cache, "directory for the store", option="cache").resolve()
    for output in outputs:
        other = output.resolve()
        if place in (other, *other.parents) or other in place.parents:
            msg = (
                f"Got the cache {os.fspath(cache)!r} and the output {str(output)!r}, one within the other; expected two "
                "directories that have nothing of each other."
            )
            raise InvalidInputError(msg, advice="Choose another with `cache`.")


@contextmanager
def store_for_fit(
    cache: str | os.PathLike[str] | None,
    estimator: RatioPredictor,
    files: Sequence[SampleFiles],
    tables: Sequence[Table],
    features: Sequence[Feature],
    *,
    beside: Path,
    ranks: Ranks,
    say: Callable[[str], None],
    quiet: bool,
) -> Iterator[EventStore | None]:
    """Yield the store of events that a fit reads, or `None` where its samples belong into memory.

    Args:
        cache: Directory of a store to keep; without one there is a store where the samples would need more than half of
            the memory that is available, and it is removed at the end.
        estimator: What will be fitted.
        files: Both samples.
        tables: Their tables.
        features: The features.
        beside: Where a store that is removed again may be.
        ranks: The processes that will read it; the first one makes it.
        say: Called with lines for people.
        quiet: Show no progress of the conversion.
    """

    def converted(path: str | os.PathLike[str]) -> Path:
        reference, target = files
        return create_store(
            path,
            tables[0],
            tables[1],
            features=features,
            reference_weight=reference.weight,
            target_weight=target.weight,
            selection=reference.selection,
            say=say,
            quiet=quiet,
        ).path

    if cache is not None:
        require_streaming(estimator, "the cache")
        yield _opened(ranks.once(partial(converted, cache)), ranks)
        return
    hosts = ranks.gathered(socket.gethostname())
    n_events = sum(table.n_events for table in tables)
    needed = bytes_in_memory(n_events, len(features), getattr(estimator, "n_members", 1))
    here = _shortage(n_events, needed * hosts.count(hosts[ranks.rank]) // ranks.size)
    shortage = next(filter(None, ranks.gathered(here)), "")
    if not shortage:
        yield None
    elif not getattr(estimator, "trains_from_store", False):
        say(f"{shortage}, and {type(estimator).__name__} cannot train from disk")
        yield None
    elif len(set(hosts)) > 1:
        say(f"{shortage} on one of the machines; a cache on a disk that all of them see needs less")
        yield None
    else:
        say(f"{shortage}: they are trained from a store on disk, which is removed afterwards")
        with ExitStack() as stack:
            path = ranks.once(lambda: converted(stack.enter_context(_scratch(beside)) / "store"))
            yield _opened(path, ranks)


def _shortage(n_events: int, needed: int) -> str:
    """Return a sentence where events would need too much of the memory that is available here, else nothing."""
    available = available_memory()
    if available is None or needed <= LARGEST_SHARE * available:
        return ""
    return f"{n_events} events would need about {needed / 1e9:.3g} GB of the {available / 1e9:.3g} GB that are available"


@contextmanager
def _scratch(beside: Path) -> Iterator[Path]:
    create_output_directory(beside)
    with scratch_directory(beside) as directory:
        yield directory


def _opened(path: Path, ranks: Ranks) -> EventStore:
    """Open the store that the first process has made, in all of them."""
    with ranks.agreed():
        if not ranks.is_first and not path.is_dir():
            msg = f"Got the store {str(path)!r}, which process {ranks.rank} does not see; expected a directory on a disk that all share."
            raise InvalidInputError(msg, advice="Choose another with `cache`.")
        return EventStore(path)
