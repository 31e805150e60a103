"""One chunk of a run: parton-level events, their shower, the selection, and the truth beside it.

A chunk is a function of its settings and its index, whichever process makes it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from quasiratio.generators.gg_hh.chunks import Chunk
from quasiratio.generators.gg_hh.couplings import Couplings
from quasiratio.generators.gg_hh.cross_section import HardProcess
from quasiratio.generators.gg_hh.parton_density import load_parton_density
from quasiratio.generators.gg_hh.points import WeightPoint, point_weights
from quasiratio.generators.gg_hh.sampler import PartonEvents, PartonSampler
from quasiratio.generators.gg_hh.selection import FEATURES, OBSERVABLES, PtCuts, observables, passes
from quasiratio.generators.gg_hh.shower import MAX_PYTHIA_SEED, shower

__all__ = ["PARTON_FEATURES", "SAMPLES", "ChunkSettings", "SampleName", "make_chunk", "parton_sampler"]

FloatArray = npt.NDArray[np.float64]
SampleName = Literal["sm", "linear", "quadratic"]

SAMPLES: tuple[SampleName, ...] = ("sm", "linear", "quadratic")
PARTON_FEATURES = ("m_hh", "rapidity", "cos_theta", "phi", "x1", "x2")


@dataclass(frozen=True)
class ChunkSettings:
    """Everything that decides the events of a chunk; small, and can be sent to another process."""

    sample: SampleName
    seed: int
    couplings: Couplings
    ecm: float
    pdf: str
    pdf_sha256: str
    parton_level: bool
    mpi: bool
    pt_cuts: PtCuts
    chunk_size: int
    versions: dict[str, str] = field(hash=False)
    points: tuple[WeightPoint, ...] = ()
    photons: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values that tell apart any two runs with different events."""
        bounds = {name: bound if np.isfinite(bound) else None for name, bound in asdict(self.pt_cuts).items()}
        points = [asdict(point) for point in self.points]
        return asdict(self) | {"pdf": Path(self.pdf).name, "pt_cuts": bounds, "points": points}


@lru_cache(maxsize=8)
def parton_sampler(sample: SampleName, couplings: Couplings, ecm: float, pdf: str) -> PartonSampler:
    """Return the sampler of a process; its tables are built once in every process that uses it."""
    return PartonSampler(HardProcess(sample, couplings, ecm, load_parton_density(pdf)))


def make_chunk(settings: ChunkSettings, index: int, n_events: int) -> Chunk:
    """Generate one chunk; runs in any process."""
    seeds = np.random.SeedSequence(settings.seed, spawn_key=(SAMPLES.index(settings.sample), index))
    hard_seed, shower_seed = seeds.spawn(2)
    sampler = parton_sampler(settings.sample, settings.couplings, settings.ecm, settings.pdf)
    events = sampler.sample(n_events, np.random.default_rng(hard_seed))
    truth = _truth(events, parton_level=settings.parton_level)
    truth |= point_weights(sampler.process, events, settings.points)
    if settings.parton_level:
        features = {name: getattr(events, name) for name in PARTON_FEATURES}
        return Chunk(features | {"weight": events.weights} | truth, n_events, 0)
    pythia_seed = int(shower_seed.generate_state(1)[0]) % MAX_PYTHIA_SEED + 1
    names = (*FEATURES, *OBSERVABLES, "weight", *truth)
    parts: list[dict[str, FloatArray]] = [{name: np.empty(0) for name in names}]
    n_generated = 0
    for particles in shower(
        events, ecm=settings.ecm, seed=pythia_seed, mpi=settings.mpi, photons=settings.photons
    ):
        n_generated += len(particles.source)
        measured = observables(particles)
        kept = passes(measured, settings.pt_cuts)
        origin = particles.source[kept]
        parts.append(
            {name: values[kept] for name, values in measured.items()}
            | {"weight": events.weights[origin]}
            | {name: values[origin] for name, values in truth.items()}
        )
    columns = {name: np.concatenate([part[name] for part in parts]) for name in names}
    return Chunk(columns, n_generated, n_events - n_generated)


def _truth(events: PartonEvents, *, parton_level: bool) -> dict[str, FloatArray]:
    """Name the parton-level columns; at parton level the kinematics are features, not truth."""
    left_out = {"weights", *(PARTON_FEATURES if parton_level else ())}
    return {f"truth_{name}": values for name, values in events.columns().items() if name not in left_out}
