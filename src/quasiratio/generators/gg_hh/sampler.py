r"""Unweighted parton-level events of pp -> hh, with weights of either sign.

Events follow $|d\sigma|$ and carry the sign of $d\sigma$ as their weight. Given $m_{hh}$, the rapidity and the
scattering angle are independent, hence three steps: $m_{hh}$ by inversion of its cumulative distribution
on a fine grid, then $\cos\theta$ and $y$ by rejection against their largest density at that mass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from quasiratio.generators.gg_hh.amplitudes import Expansion
from quasiratio.generators.gg_hh.cross_section import HardProcess
from quasiratio.generators.gg_hh.form_factors import HIGGS_MASS, TOP_MASS

__all__ = ["PartonEvents", "PartonSampler"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_HEADROOM = 1.05  # over the largest density found on the grid
_TARGETS: tuple[Expansion, ...] = ("linear", "quadratic")


@dataclass(frozen=True, eq=False, kw_only=True)
class PartonEvents:
    r"""Parton-level events, one entry of every array per event.

    Attributes:
        m_hh: Invariant mass of the pair in GeV.
        rapidity: Rapidity of the pair in the laboratory.
        cos_theta: Cosine of the scattering angle in the rest frame of the pair.
        phi: Azimuth of the first Higgs boson.
        x1: Momentum fraction of the gluon along +z.
        x2: Momentum fraction of the gluon along -z.
        weights: +1 or -1, the sign of the differential cross-section of the sample.
        raw_ratio_linear: $d\sigma_{linear}/d\sigma_{sm}$, the ratio of differential cross-sections.
        raw_ratio_quadratic: $d\sigma_{quadratic}/d\sigma_{sm}$.
        ratio_linear: The former times $\sigma_{sm}/\sigma_{linear}$: the ratio of densities that both
            integrate to one, which is what a ratio estimator learns.
        ratio_quadratic: Likewise for the quadratic expansion.
    """

    m_hh: FloatArray
    rapidity: FloatArray
    cos_theta: FloatArray
    phi: FloatArray
    x1: FloatArray
    x2: FloatArray
    weights: FloatArray
    raw_ratio_linear: FloatArray
    raw_ratio_quadratic: FloatArray
    ratio_linear: FloatArray
    ratio_quadratic: FloatArray

    def __len__(self) -> int:
        return len(self.weights)

    def columns(self) -> dict[str, FloatArray]:
        """Return the arrays by name."""
        return {column.name: getattr(self, column.name) for column in fields(self)}


@dataclass(frozen=True, eq=False)
class PartonSampler:
    """Sampler of one `HardProcess`; its tables are built at the first call.

    Args:
        process: What to sample.
    """

    process: HardProcess

    @cached_property
    def _targets(self) -> dict[Expansion, HardProcess]:
        here = self.process
        return {name: HardProcess(name, here.couplings, here.ecm, here.density) for name in ("sm", *_TARGETS)}

    @cached_property
    def _masses(self) -> FloatArray:
        """Mass nodes, quadratic in the distance to the threshold below and logarithmic far above 2 m_t."""
        top = min(2.0 * TOP_MASS, self.process.ecm)
        low = 2.0 * HIGGS_MASS + (top - 2.0 * HIGGS_MASS) * np.linspace(0.0, 1.0, 501) ** 2
        if self.process.ecm <= top:
            return low
        rapidity = np.linspace(0.0, np.arccosh(self.process.ecm / top), 1501)[1:]
        return np.concatenate((low, top * np.cosh(rapidity)))

    @cached_property
    def _spectrum(self) -> tuple[FloatArray, FloatArray]:
        """Density of |d sigma/dm| and largest squared amplitude over the angle, at the mass nodes."""
        squared = np.abs(self.process.angular(self._masses))
        return self.process.mass_density(self._masses, squared), squared.max(axis=1)

    @cached_property
    def _cumulative(self) -> FloatArray:
        """Cumulative integral of the mass density, with straight lines between the nodes."""
        density, _ = self._spectrum
        steps = 0.5 * (density[1:] + density[:-1]) * np.diff(self._masses)
        return np.concatenate(([0.0], np.cumsum(steps)))

    @cached_property
    def _largest_amplitude(self) -> FloatArray:
        """Bound on the squared amplitude over the angle, for each interval of the mass nodes."""
        return _HEADROOM * _interval_maximum(self._spectrum[1])

    @cached_property
    def _largest_gluon_pair(self) -> FloatArray:
        """Largest product of gluon densities over the rapidity, for each interval of the mass nodes."""
        masses = np.repeat(self._masses[:, None], 12, axis=1)
        edge = np.log(self.process.ecm / self._masses)[:, None]
        pair = self.process.gluon_pair(masses, edge * np.linspace(0.0, 0.9, 12))
        return _HEADROOM * _interval_maximum(pair.max(axis=1))

    def sample(self, n_events: int, rng: np.random.Generator) -> PartonEvents:
        """Draw `n_events` independent events; the same generator state gives the same events."""
        m_hh, interval = self._sample_mass(n_events, rng)
        cos_theta = self._sample_angle(m_hh, interval, rng)
        rapidity = self._sample_rapidity(m_hh, interval, rng)
        phi = rng.uniform(-np.pi, np.pi, n_events)
        factors = self.process.form_factors(m_hh, cos_theta)
        squared = {name: process.squared(m_hh, factors) for name, process in self._targets.items()}
        raw = {name: squared[name] / squared["sm"] for name in _TARGETS}
        norm = {
            name: self._targets["sm"].signed_total / self._targets[name].signed_total for name in _TARGETS
        }
        root = m_hh / self.process.ecm
        return PartonEvents(
            m_hh=m_hh,
            rapidity=rapidity,
            cos_theta=cos_theta,
            phi=phi,
            x1=root * np.exp(rapidity),
            x2=root * np.exp(-rapidity),
            weights=np.where(self.process.squared(m_hh, factors) < 0, -1.0, 1.0),
            raw_ratio_linear=raw["linear"],
            raw_ratio_quadratic=raw["quadratic"],
            ratio_linear=raw["linear"] * norm["linear"],
            ratio_quadratic=raw["quadratic"] * norm["quadratic"],
        )

    def _sample_mass(self, n_events: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        """Invert the cumulative distribution, whose density is a straight line on each interval."""
        (density, _), cumulative = self._spectrum, self._cumulative
        wanted = rng.uniform(0.0, cumulative[-1], n_events)
        interval = np.clip(np.searchsorted(cumulative, wanted, side="right") - 1, 0, len(density) - 2)
        left, right = density[interval], density[interval + 1]
        width = np.diff(self._masses)[interval]
        area = (wanted - cumulative[interval]) / width
        # left f + (right - left) f^2 / 2 = area, in the form that survives left = right
        root = np.sqrt(np.maximum(left * left + 2.0 * (right - left) * area, 0.0))
        fraction = np.clip(2.0 * area / np.maximum(left + root, 1e-300), 0.0, 1.0)
        return self._masses[interval] + fraction * width, interval

    def _sample_angle(self, m_hh: FloatArray, interval: IntArray, rng: np.random.Generator) -> FloatArray:
        def density(index: IntArray, cos_theta: FloatArray) -> FloatArray:
            m = m_hh[index]
            return np.abs(self.process.squared(m, self.process.form_factors(m, cos_theta)))

        return _reject(density, self._largest_amplitude[interval], np.ones_like(m_hh), rng)

    def _sample_rapidity(self, m_hh: FloatArray, interval: IntArray, rng: np.random.Generator) -> FloatArray:
        def density(index: IntArray, rapidity: FloatArray) -> FloatArray:
            return self.process.gluon_pair(m_hh[index], rapidity)

        return _reject(density, self._largest_gluon_pair[interval], np.log(self.process.ecm / m_hh), rng)


def _interval_maximum(values: FloatArray) -> FloatArray:
    return np.maximum(values[1:], values[:-1])


def _reject(
    density: Callable[[IntArray, FloatArray], FloatArray],
    largest: FloatArray,
    half_range: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw one value per event, uniform in +-`half_range` and accepted with `density / largest`."""
    result = np.empty_like(largest)
    pending: IntArray = np.arange(largest.size)
    while pending.size:
        proposal = half_range[pending] * rng.uniform(-1.0, 1.0, pending.size)
        accepted = rng.uniform(size=pending.size) * largest[pending] <= density(pending, proposal)
        result[pending[accepted]] = proposal[accepted]
        pending = pending[~accepted]
    return result
