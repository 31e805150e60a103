r"""From final particles to the features of the paper, and its selection.

Features: the hardest jet $(p_T, \eta, \varphi, m)$ and the four hardest muons by falling $p_T$, each
$(p_T, \eta, \varphi)$: sixteen. For evaluation, the pair of Higgs bosons is rebuilt from the four muons.

Selection: a jet and four muons, $|\eta| < 5$ for each, a jet mass above zero, and each of the five $p_T$ below
the 99.8 percentile of the Standard-Model reference, so that both samples share a bounded region.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.generators.gg_hh.jets import MAX_ETA, cylindrical, leading_jets
from quasiratio.generators.gg_hh.shower import FinalParticles

__all__ = [
    "FEATURES",
    "MUON_MASS",
    "NO_PT_CUTS",
    "OBJECTS",
    "OBSERVABLES",
    "PAPER_PT_CUTS",
    "REFERENCE_PT_CUTS",
    "PtCuts",
    "observables",
    "passes",
    "reference_pt_cuts",
]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

MUON_MASS = 0.10566
_N_MUONS = 4
_MUON = 13
_NEUTRINOS = (12, 14, 16)
_PERCENTILE = 99.8
FEATURES = (
    *(f"jet_{name}" for name in ("pt", "eta", "phi", "m")),
    *(f"mu{i}_{name}" for i in range(1, _N_MUONS + 1) for name in ("pt", "eta", "phi")),
)
OBJECTS = {
    f"mu{i}": tuple(f"mu{i}_{name}" for name in ("pt", "eta", "phi")) for i in range(1, _N_MUONS + 1)
} | {"jet": FEATURES[:4]}
"""The features of each momentum, the hardest muon first."""
OBSERVABLES = ("hh_pt", "hh_eta", "hh_phi", "m_hh")
_PT_FEATURES = ("jet_pt", *(f"mu{i}_pt" for i in range(1, _N_MUONS + 1)))


@dataclass(frozen=True)
class PtCuts:
    """Upper bounds in GeV on the transverse momenta of the jet and of the four muons by falling pT."""

    jet: float
    mu1: float
    mu2: float
    mu3: float
    mu4: float

    def __post_init__(self) -> None:
        if not all(bound > 0 for bound in astuple(self)):
            msg = f"Got the pT bounds {astuple(self)}; expected five positive numbers in GeV. Raise them above zero."
            raise InvalidInputError(msg)


NO_PT_CUTS = PtCuts(*[float("inf")] * 5)
PAPER_PT_CUTS = PtCuts(jet=318.0, mu1=507.0, mu2=395.0, mu3=225.0, mu4=153.0)
REFERENCE_PT_CUTS = PtCuts(
    jet=316.3, mu1=530.0, mu2=398.6, mu3=233.8, mu4=154.2
)  # of 200 000 generated events


def observables(particles: FinalParticles) -> dict[str, FloatArray]:
    """Return features and pair observables of every event; NaN where it lacks a jet or a muon."""
    n_events = len(particles.counts)
    event = np.repeat(np.arange(n_events), particles.counts)
    kind = np.abs(particles.pid)
    muons = np.flatnonzero(kind == _MUON)
    pt = np.hypot(*particles.momenta[:2, muons])
    order = np.lexsort((-pt, event[muons]))
    muons = muons[order]
    rank = np.arange(muons.size) - np.searchsorted(event[muons], event[muons])
    muons, rank = muons[rank < _N_MUONS], rank[rank < _N_MUONS]
    four = np.full((4, n_events, _N_MUONS), np.nan)
    four[:, event[muons], rank] = particles.momenta[:, muons]

    visible = ~np.isin(kind, _NEUTRINOS)
    visible[muons] = False
    counts = np.bincount(event[visible], minlength=n_events)
    jet = leading_jets(particles.momenta[:, visible], counts)
    columns = dict(zip(FEATURES[:4], jet, strict=True))
    muon = cylindrical(*four)
    for i in range(_N_MUONS):
        for name, values in zip(("pt", "eta", "phi"), muon, strict=False):
            columns[f"mu{i + 1}_{name}"] = values[:, i].copy()
    return columns | _pair(four)


def _pair(four: FloatArray) -> dict[str, FloatArray]:
    """Sum the four muons, each on its mass shell."""
    three = four[:3]
    energy = np.sqrt(np.square(three).sum(axis=0) + MUON_MASS**2).sum(axis=1)
    px, py, pz = three.sum(axis=2)
    pair = cylindrical(px, py, pz, energy)
    return dict(zip(OBSERVABLES, pair, strict=True))


def passes(columns: dict[str, FloatArray], pt_cuts: PtCuts) -> BoolArray:
    """Return which events have every object inside the acceptance and below the bounds."""
    result = columns["jet_m"] > 0  # false for NaN: no jet
    for name, bound in zip(_PT_FEATURES, astuple(pt_cuts), strict=True):
        result &= (columns[name] > 0) & (columns[name] < bound)
        result &= np.abs(columns[name.replace("_pt", "_eta")]) < MAX_ETA
    return result


def reference_pt_cuts(columns: dict[str, FloatArray]) -> PtCuts:
    """Return the 99.8 percentiles of a Standard-Model sample made with `pt_cuts=NO_PT_CUTS`."""
    accepted = passes(columns, NO_PT_CUTS)
    if accepted.sum() < 1000:
        msg = (
            f"Got {int(accepted.sum())} accepted events; expected at least 1000 to find the 99.8 percentile. "
            "Generate a larger reference."
        )
        raise InvalidInputError(msg)
    return PtCuts(*(float(np.percentile(columns[name][accepted], _PERCENTILE)) for name in _PT_FEATURES))
