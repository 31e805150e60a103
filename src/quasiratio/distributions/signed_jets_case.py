r"""A pair of samples as next-to-leading-order generators make them, with a ratio in closed form.

Twelve features of an event with a Z boson and jets: heavy-tailed momenta, a resonance, pseudorapidities, angles
and a count. Each class $y$ has a density of absolute weights, $h_y(x)$, and a sign asymmetry
$a_y(x) = E[\operatorname{sign} w \mid x]$; its signed density is

$$q_y(x) = h_y(x)\,a_y(x) / Z_y, \qquad Z_y = \int h_y a_y\,dx,$$

which is positive wherever $a_y$ is. The absolute weights are log-normal and independent of $x$; their width makes
the effective size 0.12 of the number of events. With $s_n$ the scale of the boson's momentum beside $n$ jets and
$\Delta\varphi$ the angle by which the leading jet misses the direction opposite to the boson,

$$a_y = A_y + B_y\,n^{-1/2}\,(1 + p_T/s_n)^{-3} + C_y \cos\Delta\varphi,$$

so that $Z_y$ is a finite sum of known integrals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import i0e, i1e

from quasiratio.errors import InvalidInputError
from quasiratio.sample import WeightedSample

__all__ = ["SignAsymmetry", "SignedJets", "SignedJetsCase", "signed_jets_case"]

FloatArray = npt.NDArray[np.float64]

_NAMES = (
    "z_pt",
    "z_eta",
    "z_phi",
    "z_mass",
    "jet1_pt",
    "jet1_eta",
    "jet1_phi",
    "jet2_pt",
    "jet2_eta",
    "met",
    "met_phi",
    "n_jets",
)
_EFFECTIVE_SHARE = 0.12
_JETS = np.arange(1, 7)
_ASYMMETRY_POWER = 3.0
_Z_MASS, _Z_WIDTH, _MASS_WINDOW = 91.2, 2.5, 25.0
_JET_RECOIL, _JET_SPREAD, _JET2_THRESHOLD = 20.0, 0.35, 15.0


@dataclass(frozen=True)
class SignAsymmetry:
    r"""The coefficients of $a = A + B\,n^{-1/2}(1 + p_T/s_n)^{-3} + C\cos\Delta\varphi$.

    Args:
        constant: $A$.
        soft: $B$, what soft bosons with few jets have more.
        back_to_back: $C$.
    """

    constant: float
    soft: float
    back_to_back: float


@dataclass(frozen=True)
class SignedJets:
    r"""One class of events: a density of absolute weights times a sign asymmetry.

    Args:
        asymmetry: $a(x)$, anywhere in $[-1, 1]$, with a positive mean.
        jet_growth: Ratio of the shares of successive numbers of jets (a geometric law from one to six).
        tail: Index of the boson's momentum, $h(p_T) \propto (1 + p_T/s_n)^{-1-\mathrm{tail}}$.
        eta_width: Width of the boson's pseudorapidity.
        jet_shift: Mean of $\ln$ of the leading jet's momentum over the boson's plus 20.
        jet_eta_width: Width of the leading jet's pseudorapidity around half of the boson's.
        alignment: Concentration of the leading jet opposite to the boson (von Mises).
        met_scale: Scale of the missing momentum.

    Example:
        >>> jets = SignedJets(SignAsymmetry(1.0, 0.0, 0.0))  # no negative weights
        >>> sample = jets.sample(1000, np.random.default_rng(0))
        >>> sample.names[:3], sample.negative_fraction
        (('z_pt', 'z_eta', 'z_phi'), 0.0)
    """

    asymmetry: SignAsymmetry
    jet_growth: float = 0.35
    tail: float = 4.5
    eta_width: float = 1.6
    jet_shift: float = -0.1
    jet_eta_width: float = 1.3
    alignment: float = 3.0
    met_scale: float = 100.0

    @property
    def mean_asymmetry(self) -> float:
        r"""$Z = \int h\,a\,dx$, the sum of weights over the sum of absolute weights."""
        soft = self.tail / (self.tail + _ASYMMETRY_POWER) * float(self._jet_shares @ _JETS**-0.5)
        cosine = float(i1e(self.alignment) / i0e(self.alignment))
        terms = self.asymmetry
        return terms.constant + terms.soft * soft + terms.back_to_back * cosine

    @property
    def _jet_shares(self) -> FloatArray:
        shares = self.jet_growth ** (_JETS - 1.0)
        return np.asarray(shares / shares.sum())

    def sign_asymmetry(self, X: npt.ArrayLike) -> FloatArray:
        r"""Return $a(x)$ at the `(n, 12)` points; the density is negative where it is."""
        x = _columns(X)
        soft = x["n_jets"] ** -0.5 * (1.0 + x["z_pt"] / _pt_scale(x["n_jets"])) ** -_ASYMMETRY_POWER
        terms = self.asymmetry
        return terms.constant + terms.soft * soft + terms.back_to_back * np.cos(_acoplanarity(x))

    def log_abs_density(self, X: npt.ArrayLike) -> FloatArray:
        r"""Return $\ln h(x)$, up to terms that all classes share."""
        x = _columns(X)
        log_pt = np.log1p(x["z_pt"] / _pt_scale(x["n_jets"]))
        balance = np.log(x["jet1_pt"] / (_JET_RECOIL + x["z_pt"]))
        return np.asarray(
            np.log(self._jet_shares)[x["n_jets"].astype(int) - 1]
            + math.log(self.tail)
            - self.tail * log_pt
            + _log_normal(x["z_eta"], 0.0, self.eta_width)
            + _log_normal(balance, self.jet_shift, _JET_SPREAD)
            + _log_normal(x["jet1_eta"], 0.5 * x["z_eta"], self.jet_eta_width)
            + self.alignment * (np.cos(_acoplanarity(x)) - 1.0)
            - math.log(float(i0e(self.alignment)))
            - math.log(self.met_scale)
            - 6.0 * np.log1p(x["met"] / self.met_scale)
        )

    def sample(self, n: int, rng: np.random.Generator) -> WeightedSample:
        """Draw `n` events with weights of either sign."""
        if not self.mean_asymmetry**2 > _EFFECTIVE_SHARE:
            msg = (
                f"The mean asymmetry is {self.mean_asymmetry:.3g}; expected more than "
                f"{math.sqrt(_EFFECTIVE_SHARE):.3g}, so that some width of the weights has the effective size "
                f"{_EFFECTIVE_SHARE} n."
            )
            raise InvalidInputError(msg)
        n_jets = rng.choice(_JETS, size=n, p=self._jet_shares).astype(np.float64)
        z_pt = _pt_scale(n_jets) * rng.pareto(self.tail, n)
        z_eta, z_phi = rng.normal(0.0, self.eta_width, n), rng.uniform(-np.pi, np.pi, n)
        edge = math.atan(2.0 * _MASS_WINDOW / _Z_WIDTH)
        columns = {
            "z_pt": z_pt,
            "z_eta": z_eta,
            "z_phi": z_phi,
            "z_mass": _Z_MASS + 0.5 * _Z_WIDTH * np.tan(rng.uniform(-edge, edge, n)),
            "jet1_pt": (_JET_RECOIL + z_pt) * np.exp(rng.normal(self.jet_shift, _JET_SPREAD, n)),
            "jet1_eta": rng.normal(0.5 * z_eta, self.jet_eta_width),
            "jet1_phi": _wrapped(z_phi + np.pi + rng.vonmises(0.0, self.alignment, n)),
            "jet2_pt": _JET2_THRESHOLD + 25.0 * rng.pareto(3.0, n),
            "jet2_eta": rng.normal(0.0, 2.0, n),
            "met": self.met_scale * rng.pareto(5.0, n),
            "met_phi": rng.uniform(-np.pi, np.pi, n),
            "n_jets": n_jets,
        }
        features = np.column_stack([columns[name] for name in _NAMES])
        width = math.sqrt(math.log(self.mean_asymmetry**2 / _EFFECTIVE_SHARE))
        abs_weights = rng.lognormal(-0.5 * width**2, width, n)
        is_positive = rng.random(n) < 0.5 * (1.0 + self.sign_asymmetry(features))
        return WeightedSample(features, np.where(is_positive, abs_weights, -abs_weights), _NAMES)


@dataclass(frozen=True)
class SignedJetsCase:
    """A reference and a target whose ratio is known.

    Args:
        name: What to call it in tables.
        reference: The class in the denominator.
        target: The class in the numerator.
    """

    name: str
    reference: SignedJets
    target: SignedJets

    def exact_ratio(self, X: npt.ArrayLike) -> FloatArray:
        r"""Return $r^*(x) = q_\mathrm{target}(x) / q_\mathrm{reference}(x)$ at the `(n, 12)` points."""
        asymmetries = self.target.sign_asymmetry(X) / self.reference.sign_asymmetry(X)
        return self.abs_ratio(X) * asymmetries * self.reference.mean_asymmetry / self.target.mean_asymmetry

    def abs_ratio(self, X: npt.ArrayLike) -> FloatArray:
        r"""Return $h_\mathrm{target}(x) / h_\mathrm{reference}(x)$, what a classifier on $|w|$ learns."""
        return np.exp(self.target.log_abs_density(X) - self.reference.log_abs_density(X))

    def samples(self, n: int, rng: np.random.Generator) -> tuple[WeightedSample, WeightedSample]:
        """Draw `n` reference and `n` target events with weights of either sign."""
        return self.reference.sample(n, rng), self.target.sample(n, rng)


_ORDINARY = SignAsymmetry(0.22, 0.55, 0.03)
_OPPOSITE = SignAsymmetry(0.85, -0.5, -0.05)
_NEGATIVE = SignAsymmetry(-0.3, 1.1, 0.15)
_ASYMMETRIES = {
    "equal-shares": (_ORDINARY, _ORDINARY),
    "different-shares": (_ORDINARY, _OPPOSITE),
    "negative-target": (_ORDINARY, _NEGATIVE),
    "negative-reference": (_NEGATIVE, _ORDINARY),
}


def signed_jets_case(name: str) -> SignedJetsCase:
    """Return one of four cases with the same densities of absolute weights.

    In `"equal-shares"` the share of negative weights is the same function of the features in both classes, so that
    a classifier on absolute weights happens to be right; in `"different-shares"` it is not, and both densities are
    positive still. `"negative-target"` and `"negative-reference"` have one density that is negative for hard bosons.

    Example:
        >>> case = signed_jets_case("different-shares")
        >>> reference, target = case.samples(20_000, np.random.default_rng(0))
        >>> bool(0.1 < reference.effective_size / 20_000 < 0.14), bool(case.exact_ratio(reference.features).min() > 0)
        (True, True)
    """
    if name not in _ASYMMETRIES:
        msg = f"Got the case {name!r}; expected one of {sorted(_ASYMMETRIES)}."
        raise InvalidInputError(msg)
    of_reference, of_target = _ASYMMETRIES[name]
    target = SignedJets(
        of_target,
        jet_growth=0.42,
        tail=4.0,
        eta_width=1.5,
        jet_shift=0.0,
        jet_eta_width=1.38,
        alignment=2.62,
        met_scale=110.0,
    )
    return SignedJetsCase(name, SignedJets(of_reference), target)


def _columns(X: npt.ArrayLike) -> dict[str, FloatArray]:
    matrix = np.asarray(X, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != len(_NAMES):
        msg = f"Got points of shape {matrix.shape}; expected (n, {len(_NAMES)}): {', '.join(_NAMES)}."
        raise InvalidInputError(msg)
    return dict(zip(_NAMES, matrix.T, strict=True))


def _pt_scale(n_jets: FloatArray) -> FloatArray:
    """Return the scale of the boson's momentum beside so many jets."""
    return 40.0 + 20.0 * n_jets


def _acoplanarity(x: dict[str, FloatArray]) -> FloatArray:
    return x["jet1_phi"] - x["z_phi"] - np.pi


def _wrapped(angle: FloatArray) -> FloatArray:
    return (angle + np.pi) % (2.0 * np.pi) - np.pi


def _log_normal(x: FloatArray, mean: FloatArray | float, width: float) -> FloatArray:
    return -0.5 * np.square((x - mean) / width) - math.log(width)
