"""Parton shower and hadronisation of parton-level events with Pythia 8, in memory.

Both Higgs bosons are forced to decay to two muons. The first emission of the initial-state shower stays
below half the invariant mass of the pair (`SpaceShower:pTmaxMatch = 1` with that scale in the event), so
that the leading-order events are not given jets harder than the process itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quasiratio.errors import MissingExtraError
from quasiratio.generators.gg_hh.les_houches import event_source
from quasiratio.generators.gg_hh.sampler import PartonEvents

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["FinalParticles", "final_particles", "import_pythia", "pythia_for", "shower"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

BATCH_SIZE = 500
MAX_PYTHIA_SEED = 900_000_000
_SETTINGS = (
    "Print:quiet = on",
    "Beams:frameType = 5",
    "25:onMode = off",
    "25:onIfMatch = 13 -13",
    "SpaceShower:pTmaxMatch = 1",
    "Random:setSeed = on",
)


class FinalParticles(NamedTuple):
    """Final particles of a batch of events, one flat array per quantity, in the order of the events.

    Attributes:
        source: For each event, its place among the parton-level events.
        counts: Number of final particles of each event.
        pid: Particle numbers, flat.
        momenta: `(px, py, pz, E)` in GeV, shape `(4, n_particles)`.
    """

    source: IntArray
    counts: IntArray
    pid: npt.NDArray[np.int32]
    momenta: FloatArray


def import_pythia() -> ModuleType:
    """Import pythia8mc, or say which extra installs it."""
    try:
        import pythia8mc  # noqa: PLC0415 - optional, and slow to load
    except ImportError as error:
        msg = (
            "Got no pythia8mc; expected it for particle-level events. "
            "Run pip install 'quasiratio[gghh]', or ask for parton-level events."
        )
        raise MissingExtraError(msg) from error
    module: ModuleType = pythia8mc
    return module


def pythia_for(
    events: PartonEvents, *, ecm: float, seed: int, mpi: bool = False, photons: bool = True
) -> tuple[Any, Any]:
    """Return a Pythia object that will shower the events in order, and its event source.

    The caller must hold the source as long as Pythia runs: Pythia only keeps a pointer to it.

    Args:
        events: Parton-level events.
        ecm: Collider energy in GeV.
        seed: Seed of Pythia's random numbers, from 1 to 900 000 000.
        mpi: Simulate multiparton interactions; seven times slower, and only the jet mass changes visibly.
        photons: Let the muons radiate photons (`TimeShower:QEDshowerByL`).
    """
    pythia8mc = import_pythia()
    pythia = pythia8mc.Pythia("", False)
    switches = (
        f"PartonLevel:MPI = {'on' if mpi else 'off'}",
        f"TimeShower:QEDshowerByL = {'on' if photons else 'off'}",
    )
    for line in (*_SETTINGS, f"Random:seed = {seed}", *switches):
        if not pythia.readString(line):
            msg = f"Pythia refused the setting {line!r}; this module is written for pythia8mc 8.317.2."
            raise RuntimeError(msg)
    source = event_source(pythia8mc, events, ecm)
    pythia.setLHAupPtr(source)
    if not pythia.init():
        msg = f"Pythia did not start at {ecm} GeV; its own messages say why."
        raise RuntimeError(msg)
    return pythia, source


def shower(
    events: PartonEvents, *, ecm: float, seed: int, mpi: bool = False, photons: bool = True
) -> Iterator[FinalParticles]:
    """Shower and hadronise the events; yield their final particles in batches.

    The few events that Pythia cannot finish are missing from the batches; `source` tells which are there.
    """
    pythia, source = pythia_for(events, ecm=ecm, seed=seed, mpi=mpi, photons=photons)
    n_left = len(events)
    while n_left > 0:
        batch = pythia.nextBatch(min(BATCH_SIZE, n_left))
        n_left -= min(BATCH_SIZE, n_left)
        if len(batch):
            yield final_particles(batch)
    del source


def final_particles(batch: Any) -> FinalParticles:  # noqa: ANN401 - an awkward array
    """Keep the final particles of an awkward batch, as flat arrays."""
    import awkward as ak  # noqa: PLC0415 - optional

    lists = batch.prt.layout
    starts, stops = np.asarray(lists.starts), np.asarray(lists.stops)
    particles = lists.content[int(starts[0]) : int(stops[-1])]
    final = ak.to_numpy(particles["status"]) > 0
    ends = np.concatenate(([0], np.cumsum(final)))
    counts = ends[stops - starts[0]] - ends[starts - starts[0]]
    momenta = particles["p"]
    return FinalParticles(
        source=np.rint(ak.to_numpy(batch.info.alphaEM)).astype(np.int64),
        counts=counts.astype(np.int64),
        pid=ak.to_numpy(particles["id"])[final],
        momenta=np.stack([ak.to_numpy(momenta[name])[final] for name in ("px", "py", "pz", "e")]),
    )
