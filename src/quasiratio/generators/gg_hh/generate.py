"""Samples of gg -> hh from one call: parton-level or showered, in one process or in many.

A run is cut into chunks of a fixed size. The random numbers of a chunk follow from the seed, the sample
and the index of the chunk alone, so that the events do not depend on how many processes share the work.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.generators.gg_hh.amplitudes import require_expansion
from quasiratio.generators.gg_hh.chunks import Chunk, ChunkStore, fingerprint
from quasiratio.generators.gg_hh.couplings import PAPER_POINT, Couplings
from quasiratio.generators.gg_hh.cross_section import HardProcess
from quasiratio.generators.gg_hh.jets import import_fastjet
from quasiratio.generators.gg_hh.parton_density import bundled_grid_path
from quasiratio.generators.gg_hh.points import WeightPoint
from quasiratio.generators.gg_hh.production import (
    PARTON_FEATURES,
    SAMPLES,
    ChunkSettings,
    SampleName,
    make_chunk,
    parton_sampler,
)
from quasiratio.generators.gg_hh.selection import FEATURES, REFERENCE_PT_CUTS, PtCuts
from quasiratio.generators.gg_hh.shower import import_pythia
from quasiratio.provenance import versions_of
from quasiratio.sample import WeightedSample
from quasiratio.wording import shortened

__all__ = ["GeneratedSample", "generate"]

FloatArray = npt.NDArray[np.float64]
Progress = Callable[[int, int, float], None]

_PARTICLE_CHUNK, _PARTON_CHUNK = 4000, 100_000
_MOST_EVENTS = 10**10


@dataclass(frozen=True, eq=False)
class GeneratedSample:
    """Events and where they come from.

    Attributes:
        columns: One-dimensional arrays of one length: the features, `weight` (+1 or -1), at particle
            level the pair observables, and columns that start with `truth_`, which no estimator may see.
        metadata: Settings, cross-sections in fb (without branching fractions), numbers of events and
            versions; plain JSON values. Every event stands for `weight * fb_per_event`.
    """

    columns: dict[str, FloatArray]
    metadata: dict[str, Any]

    def __len__(self) -> int:
        return len(self.columns["weight"])

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns to train on."""
        return tuple(self.metadata["features"])

    def to_sample(self) -> WeightedSample:
        """Return features and weights as a `WeightedSample`."""
        return WeightedSample({name: self.columns[name] for name in self.features}, self.columns["weight"])


def generate(
    sample: SampleName,
    n_events: int,
    seed: int,
    *,
    executor: Executor | None = None,
    mpi: bool = False,
    parton_level: bool = False,
    ecm: float = 13000.0,
    couplings: Couplings = PAPER_POINT,
    pdf: str | Path | None = None,
    pt_cuts: PtCuts = REFERENCE_PT_CUTS,
    points: Sequence[WeightPoint] = (),
    photons: bool = True,
    chunk_dir: str | Path | None = None,
    chunk_size: int | None = None,
    progress: Progress | None = None,
) -> GeneratedSample:
    r"""Generate gg -> hh events with weights of +1 and -1.

    Every event carries the exact ratio of the parton-level process, for the linear and for the quadratic
    target: `truth_raw_ratio_linear` is $d\sigma_{linear}/d\sigma_{sm}$, and `truth_ratio_linear` the same for
    densities normalised to one over all events (before a selection).

    Args:
        sample: `"sm"`, `"linear"` (SM and interference, signed) or `"quadratic"` (also the square).
        n_events: Events to generate. At particle level about 76% of them pass the selection.
        seed: Nonnegative seed; samples of different names are independent at the same seed.
        executor: Where to run the chunks, e.g. `ProcessPoolExecutor(2)`; in this process when left out.
        mpi: Simulate multiparton interactions (seven times slower).
        parton_level: Stop before the shower; numpy and scipy suffice if `pdf` is given.
        ecm: Collider energy in GeV.
        couplings: Couplings of the targets.
        pdf: LHAPDF grid text file; the one inside pythia8mc when left out.
        pt_cuts: Upper bounds of the selection, from `reference_pt_cuts`. By default those of the
            13 TeV Standard-Model sample without multiparton interactions.
        points: Points from `weight_points`, at each of which every event gets a weight, in a column of its own.
        photons: Let the muons radiate photons; without, they determine the hard process.
        chunk_dir: Directory that keeps finished chunks; a run with the same settings takes them up.
        chunk_size: Events of a chunk. Part of what defines the events, like the seed.
        progress: Called with events done, events wanted and seconds since the start after every chunk.

    Example:
        >>> events = generate("linear", 1000, seed=1, parton_level=True)
        >>> len(events), sorted(set(events.columns["weight"].tolist()))
        (1000, [-1.0, 1.0])
    """
    require_expansion(sample, SAMPLES)
    _require_counts(n_events, seed, chunk_size)
    if not parton_level:
        import_pythia()
        import_fastjet()
    grid = Path(pdf if pdf is not None else bundled_grid_path()).resolve()
    process = parton_sampler(sample, couplings, float(ecm), str(grid)).process
    _ = process.signed_total  # bad input fails here, and forked workers inherit the table of form factors
    settings = ChunkSettings(
        sample=sample,
        seed=int(seed),
        couplings=couplings,
        ecm=float(ecm),
        pdf=str(grid),
        pdf_sha256=hashlib.sha256(grid.read_bytes()).hexdigest(),
        parton_level=parton_level,
        mpi=mpi,
        pt_cuts=pt_cuts,
        chunk_size=int(chunk_size or (_PARTON_CHUNK if parton_level else _PARTICLE_CHUNK)),
        versions=_versions(parton_level=parton_level),
        points=tuple(points),
        photons=photons,
    )
    store = None if chunk_dir is None else ChunkStore(Path(chunk_dir), fingerprint(settings.as_dict()))
    chunks = _run(settings, int(n_events), executor, store, progress)
    names = chunks[0].columns
    columns = {name: np.concatenate([chunk.columns[name] for chunk in chunks]) for name in names}
    return GeneratedSample(columns, _metadata(settings, process, chunks, columns["weight"]))


def _require_counts(n_events: int, seed: int, chunk_size: int | None) -> None:
    if int(n_events) != n_events or not 0 < n_events <= _MOST_EVENTS:
        msg = (
            f"Got n_events = {shortened(str(n_events))}; expected a positive whole number. Ask for at least one event, and for at "
            f"most {_MOST_EVENTS:,}."
        )
        raise InvalidInputError(msg)
    if int(seed) != seed or not 0 <= seed < 2**63:
        msg = f"Got seed = {shortened(str(seed))}; expected a nonnegative whole number below 2^63. Choose another seed."
        raise InvalidInputError(msg)
    if chunk_size is not None and (int(chunk_size) != chunk_size or chunk_size <= 0):
        msg = (
            f"Got chunk_size = {chunk_size}; expected a positive whole number. Leave it out for the default."
        )
        raise InvalidInputError(msg)


def _run(
    settings: ChunkSettings,
    n_events: int,
    executor: Executor | None,
    store: ChunkStore | None,
    progress: Progress | None,
) -> list[Chunk]:
    """Make every chunk that is not on disk yet; keep each as soon as it is there."""
    start = time.monotonic()
    size = settings.chunk_size
    sizes = [min(size, n_events - first) for first in range(0, n_events, size)]
    done: dict[int, Chunk] = {}
    for index, n in enumerate(sizes):
        chunk = None if store is None else store.load(index, n)
        if chunk is not None:
            done[index] = chunk
    n_done = sum(sizes[index] for index in done)
    if progress is not None and done:
        progress(n_done, n_events, time.monotonic() - start)
    missing = [(index, n) for index, n in enumerate(sizes) if index not in done]
    for index, chunk in _results(settings, missing, executor):
        if store is not None:
            store.save(index, chunk)
        done[index] = chunk
        n_done += sizes[index]
        if progress is not None:
            progress(n_done, n_events, time.monotonic() - start)
    return [done[index] for index in range(len(sizes))]


def _results(
    settings: ChunkSettings, missing: list[tuple[int, int]], executor: Executor | None
) -> Iterator[tuple[int, Chunk]]:
    if executor is None:
        for index, n in missing:
            yield index, make_chunk(settings, index, n)
        return
    futures = {executor.submit(make_chunk, settings, index, n): index for index, n in missing}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()


def _versions(*, parton_level: bool) -> dict[str, str]:
    names = ("quasiratio", "numpy", "scipy") + (() if parton_level else ("pythia8mc", "fastjet"))
    return versions_of(*names)


def _metadata(
    settings: ChunkSettings, process: HardProcess, chunks: list[Chunk], weights: FloatArray
) -> dict[str, Any]:
    n_generated = sum(chunk.n_generated for chunk in chunks)
    per_event = process.absolute_total / max(n_generated, 1)
    signed = float(weights.sum())
    return {
        "generator": "gg-hh",
        "settings": settings.as_dict(),
        "weight_columns": [point.column for point in settings.points],
        "features": list(PARTON_FEATURES if settings.parton_level else FEATURES),
        "cross_section_fb": process.signed_total,
        "absolute_cross_section_fb": process.absolute_total,
        "selected_cross_section_fb": per_event * signed,
        "selected_cross_section_error_fb": per_event
        * (max(0.0, len(weights) - signed**2 / max(n_generated, 1)) ** 0.5),
        "fb_per_event": per_event,
        "n_generated": n_generated,
        "n_failed": sum(chunk.n_failed for chunk in chunks),
        "n_selected": len(weights),
        "versions": settings.versions,
    }
