r"""Parton-level events as four-momenta in the order of the Les Houches accord.

The pair has mass $m$ and rapidity $y$; in its rest frame the bosons leave back to back with momentum
$k = \sqrt{m^2/4 - m_h^2}$ at the angles $(\theta, \varphi)$. A boost along the beam takes them to the laboratory:

$$E = \tfrac{m}{2}\cosh y \pm k\cos\theta \sinh y, \qquad p_z = \tfrac{m}{2}\sinh y \pm k\cos\theta\cosh y.$$
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quasiratio.generators.gg_hh.form_factors import HIGGS_MASS
from quasiratio.generators.gg_hh.sampler import PartonEvents
from quasiratio.generators.gg_hh.strong_coupling import alpha_s

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["boson_momenta", "event_source"]

FloatArray = npt.NDArray[np.float64]

_GLUON, _HIGGS, _PROTON = 21, 25, 2212
_INCOMING, _OUTGOING = -1, 1
_SPIN_UNKNOWN = 9.0
_KEEP_SIGNED_WEIGHTS = -4


def boson_momenta(events: PartonEvents) -> FloatArray:
    """Return the laboratory momenta (px, py, pz, E) of both bosons, shape `(n_events, 2, 4)`."""
    k = np.sqrt(np.maximum(0.25 * np.square(events.m_hh) - HIGGS_MASS**2, 0.0))
    transverse = k * np.sqrt(np.maximum(1.0 - np.square(events.cos_theta), 0.0))
    longitudinal, energy = k * events.cos_theta, 0.5 * events.m_hh
    cosh, sinh = np.cosh(events.rapidity), np.sinh(events.rapidity)
    momenta = np.empty((len(events), 2, 4))
    for boson, sign in enumerate((1.0, -1.0)):
        momenta[:, boson, 0] = sign * transverse * np.cos(events.phi)
        momenta[:, boson, 1] = sign * transverse * np.sin(events.phi)
        momenta[:, boson, 2] = energy * sinh + sign * longitudinal * cosh
        momenta[:, boson, 3] = energy * cosh + sign * longitudinal * sinh
    return momenta


def event_source(pythia8mc: ModuleType, events: PartonEvents, ecm: float) -> Any:  # noqa: ANN401
    """Return an `LHAup` object that hands the events to Pythia one by one.

    The shower starts at half the invariant mass. Pythia may drop an event; so that the others keep their
    truth, each carries its index in the slot for the electromagnetic coupling, which Pythia only copies
    to its event information.

    Args:
        pythia8mc: The imported module.
        events: Parton-level events.
        ecm: Collider energy in GeV.
    """
    scales = 0.5 * events.m_hh
    header = np.column_stack((events.weights, scales, np.arange(len(events)), alpha_s(scales))).tolist()
    gluons = (0.5 * ecm * np.column_stack((events.x1, events.x2))).tolist()
    bosons = boson_momenta(events).tolist()

    class EventSource(pythia8mc.LHAup):  # type: ignore[misc, name-defined, unused-ignore]
        """Les Houches interface that reads the arrays above."""

        def __init__(self) -> None:
            super().__init__()
            self.n_given = 0

        def setInit(self) -> bool:
            self.setBeamA(_PROTON, 0.5 * ecm)
            self.setBeamB(_PROTON, 0.5 * ecm)
            self.setStrategy(_KEEP_SIGNED_WEIGHTS)
            self.addProcess(1, 1.0, 0.0, 1.0)
            return True

        def setEvent(self, _process: int = 0) -> bool:
            if self.n_given == len(header):
                return False
            index = self.n_given
            self.n_given += 1
            (energy1, energy2), (first, second) = gluons[index], bosons[index]
            self.setProcess(1, *header[index])
            add = self.addParticle
            add(_GLUON, _INCOMING, 0, 0, 101, 102, 0.0, 0.0, energy1, energy1, 0.0, 0.0, _SPIN_UNKNOWN)
            add(_GLUON, _INCOMING, 0, 0, 102, 101, 0.0, 0.0, -energy2, energy2, 0.0, 0.0, _SPIN_UNKNOWN)
            add(_HIGGS, _OUTGOING, 1, 2, 0, 0, *first, HIGGS_MASS, 0.0, _SPIN_UNKNOWN)
            add(_HIGGS, _OUTGOING, 1, 2, 0, 0, *second, HIGGS_MASS, 0.0, _SPIN_UNKNOWN)
            return True

    return EventSource()
