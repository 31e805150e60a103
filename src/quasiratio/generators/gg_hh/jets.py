r"""Anti-kT jets of showered events.

The paper does not define its jets; here they are anti-kT with $R = 0.4$, made from every visible final
particle other than the four muons, and kept at $p_T > 20$ GeV and $|\eta| < 5$.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from quasiratio.errors import MissingExtraError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["MAX_ETA", "MIN_JET_PT", "RADIUS", "Momenta", "cylindrical", "import_fastjet", "leading_jets"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

RADIUS = 0.4
MIN_JET_PT = 20.0
MAX_ETA = 5.0
_MASSLESS = 1e-12  # m^2/E^2 that rounding can give to a jet of one massless particle


class Momenta(NamedTuple):
    """Transverse momentum, pseudorapidity, azimuth and mass; NaN where an event lacks the object."""

    pt: FloatArray
    eta: FloatArray
    phi: FloatArray
    mass: FloatArray


@lru_cache(maxsize=1)
def import_fastjet() -> ModuleType:
    """Import fastjet with its banner off standard output, or say which extra installs it."""
    try:
        import fastjet  # noqa: PLC0415 - optional, and slow to load
        import fastjet._swig as bindings  # noqa: PLC0415 - the only place that has the banner's switch
    except ImportError as error:
        msg = (
            "Got no fastjet; expected it for particle-level events. "
            "Run pip install 'quasiratio[gghh]', or ask for parton-level events."
        )
        raise MissingExtraError(msg) from error
    bindings.ClusterSequence.set_fastjet_banner_stream(None)
    module: ModuleType = fastjet
    return module


def cylindrical(px: FloatArray, py: FloatArray, pz: FloatArray, energy: FloatArray) -> Momenta:
    """Convert Cartesian momenta; masses that rounding could have made are zero."""
    pt = np.hypot(px, py)
    with np.errstate(divide="ignore", invalid="ignore"):
        eta = np.arcsinh(pz / pt)
    mass2 = np.square(energy) - np.square(pz) - np.square(pt)
    mass = np.sqrt(np.where(mass2 > _MASSLESS * np.square(energy), mass2, 0.0))
    return Momenta(pt, eta, np.arctan2(py, px), mass)


def leading_jets(momenta: FloatArray, counts: IntArray) -> Momenta:
    """Return the hardest jet of each event.

    Args:
        momenta: `(px, py, pz, E)` of the clustered particles, shape `(4, n_particles)`.
        counts: Number of these particles in each event.
    """
    import awkward as ak  # noqa: PLC0415 - optional

    fastjet = import_fastjet()
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    contents = [ak.contents.NumpyArray(np.ascontiguousarray(component)) for component in momenta]
    record = ak.contents.RecordArray(contents, ["px", "py", "pz", "E"])
    particles = ak.Array(ak.contents.ListOffsetArray(ak.index.Index64(offsets), record))
    definition = fastjet.JetDefinition(fastjet.antikt_algorithm, RADIUS)
    found = fastjet.ClusterSequence(particles, definition).inclusive_jets(min_pt=MIN_JET_PT)
    event = np.repeat(np.arange(len(counts)), ak.to_numpy(ak.num(found)))
    flat = ak.flatten(found)
    jets = cylindrical(*(ak.to_numpy(flat[name]) for name in ("px", "py", "pz", "E")))
    return _first_by_pt(jets, event, len(counts))


def _first_by_pt(jets: Momenta, event: IntArray, n_events: int) -> Momenta:
    inside = np.abs(jets.eta) < MAX_ETA
    kept, event = Momenta(*(column[inside] for column in jets)), event[inside]
    order = np.lexsort((-kept.pt, event))
    present, first = np.unique(event[order], return_index=True)
    result = np.full((4, n_events), np.nan)
    for row, column in zip(result, kept, strict=True):
        row[present] = column[order][first]
    return Momenta(*result)
