r"""Do the printed chi2 and D_S2 of the toys fit each other, and the stated size of the test samples?

No training: densities in bins from the closed form, and samples of the exact ratio. With $t_i$, $q_i$ the shares of target
and reference in bin $i$ (99 bins), $r_i = t_i/q_i$, N test events per class and a deviation $\delta_i$ of the reweighted share:

- Nonnegative, unweighted test events: the variance of a bin is $(t_i + q_i \hat r_i^2)/N$, so that
  $98\,\chi^2 = \sum \delta_i^2 N / (t_i (1 + \hat r_i^2/r_i))$ while $D_{S_2} = \sum \delta_i^2/t_i$: for small deviations the
  quotient of the two lies between $N/(1 + r_{max})$ and $N$, wherever the deviation is. What the exact ratio leaves of either
  is subtracted first.
- Signed: in bins where the target is negative, a nonnegative ratio (that varies little within a bin) misses by $|t_i|$ at
  least. That alone gives a chi2, whatever it does elsewhere.

`python -m benchmarks.printed_values` (half a minute).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.results import write_rows
from quasiratio.distributions import SignedGaussianMixture, signed_gaussian_case
from quasiratio.metrics import weighted_histogram
from quasiratio.studies.output.published_tables import SIGNED_GAUSSIAN_SIZES, SIGNED_GAUSSIANS
from quasiratio.studies.signed_gaussians.toy_events import closure_of, radius, toy_events

FloatArray = npt.NDArray[np.float64]
TEST_SIZES = (350_000, 500_000, 700_000, SIGNED_GAUSSIAN_SIZES[2])
_N_BINS, _N_SEEDS = 99, 3
_NDOF = _N_BINS - 1
_UPPER = {"nonnegative": 7.3, "signed": 7.3}
"""About where the 99.9 percentile of the target's radii is."""


class Binned:
    """Shares of the densities of a case in radial bins, and variances for one test event per class."""

    def __init__(self, case_name: str) -> None:
        case = signed_gaussian_case(case_name)
        self.is_signed = case_name == "signed"
        edges = np.linspace(0.0, _UPPER[case_name], _N_BINS + 1)
        self.radii = 0.5 * (edges[1:] + edges[:-1])
        self.target, self.reference = (
            np.diff(mixture.radial_cdf(edges)) for mixture in (case.target, case.reference)
        )
        self.ratio = self.target / self.reference
        self.target_variance, self.reference_variance = (
            _variance(mixture, edges) if self.is_signed else np.diff(mixture.radial_cdf(edges))
            for mixture in (case.target, case.reference)
        )

    def chi2(self, ratio: FloatArray, n_test: int) -> float:
        """Return the expected chi2/ndof less its statistical part."""
        ratio = ratio / (self.reference * ratio).sum() * self.target.sum()
        deviation = self.reference * ratio - self.target
        variance = (self.target_variance + self.reference_variance * ratio**2) / n_test
        return float((deviation**2 / variance).sum() / _NDOF)

    def entropy(self, ratio: FloatArray) -> float:
        """Return D_S2 less its statistical part."""
        b, t = self.reference * ratio, self.target
        return float(((b / b.sum()) ** 2 / (t / t.sum())).sum() - 1.0)


def _variance(mixture: SignedGaussianMixture, edges: FloatArray) -> FloatArray:
    """Return the variance of shares of signed events, N times: those of either sign over the square of the mean weight."""
    mean = _mean_weight(mixture)
    parts = (
        (mixture.c * mean, mixture.sigma_1),
        ((mixture.c - 1.0) * mean, mixture.sigma_2),
    )
    chances = [
        share * np.diff(SignedGaussianMixture(1.0, sigma, sigma).radial_cdf(edges)) for share, sigma in parts
    ]
    return np.asarray(sum(chances) / mean**2)


def _mean_weight(mixture: SignedGaussianMixture) -> float:
    """Return that of events with weights of plus and minus one."""
    return 1.0 / (2.0 * mixture.c - 1.0)


def least_chi2_of_nonnegative(binned: Binned, n_test: int) -> float:
    """Return what the bins with a negative target contribute at least, for any nonnegative ratio."""
    negative = binned.target < 0
    missed = -binned.target[negative]
    q, v_t, v_q = (
        values[negative] / scale
        for values, scale in (
            (binned.reference, 1.0),
            (binned.target_variance, n_test),
            (binned.reference_variance, n_test),
        )
    )
    # (missed + q r)^2 / (v_t + v_q r^2) rises from r = 0 and falls to its limit: the least is at one of the ends.
    return float(np.minimum(missed**2 / v_t, q**2 / v_q).sum() / _NDOF)


def deformations(binned: Binned) -> dict[str, FloatArray]:
    """Return smooth relative and absolute errors of the ratio, to be scaled."""
    r = binned.radii
    shapes = {f"relative, cos({k} r)": binned.ratio * np.cos(k * r) for k in (1, 2, 4)}
    shapes["relative, tilt"] = binned.ratio * (r / r.max() - 0.5)
    shapes["absolute, at the centre"] = np.exp(-(r**2) / 0.5)
    shapes["absolute, at the peak of the ratio"] = np.exp(-((r - r[binned.ratio.argmax()]) ** 2) / 0.5)
    return shapes


def quotient_rows() -> list[dict[str, Any]]:
    """98 chi2 over D_S2 of the Nonnegative case: its bounds, deformations of the exact ratio, and what is printed."""
    binned, n_test = Binned("nonnegative"), SIGNED_GAUSSIAN_SIZES[2]
    r_max = float(binned.ratio.max())
    rows: list[dict[str, Any]] = [
        {"what": "bounds of 98 chi2 / D_S2", "case": "nonnegative", "n_test": n, "r_max": r_max,
         "lower": n / (1.0 + r_max), "upper": float(n)}
        for n in TEST_SIZES
    ]  # fmt: skip
    exact = {metric: SIGNED_GAUSSIANS["nonnegative", "exact", metric] for metric in ("chi2", "entropy")}
    for method in ("mlp", "rosmm", "rosmm_c", "rosmm_r"):
        chi2, entropy = (
            SIGNED_GAUSSIANS["nonnegative", method, metric] - exact[metric] for metric in ("chi2", "entropy")
        )
        rows.append(
            {"what": "98 chi2 / D_S2 as printed", "case": "nonnegative", "method": method, "value": _NDOF * chi2 / entropy}
        )  # fmt: skip
    for name, shape in deformations(binned).items():
        scale = 1e-3
        while (
            binned.chi2(binned.ratio + scale * shape, n_test) < SIGNED_GAUSSIANS["nonnegative", "mlp", "chi2"]
        ):
            scale *= 1.02
        deformed = binned.ratio + scale * shape
        value = _NDOF * binned.chi2(deformed, n_test) / binned.entropy(deformed)
        rows.append(
            {"what": "98 chi2 / D_S2 of a deformed exact ratio", "case": "nonnegative", "deformation": name,
             "n_test": n_test, "scale": scale, "chi2": binned.chi2(deformed, n_test), "value": value}
        )  # fmt: skip
    # The exact ratio's own D_S2 is the sum of (1 + r_i) / N.
    rows += [
        {"what": "D_S2 of the exact ratio", "case": "nonnegative", "n_test": n, "value": float((1.0 + binned.ratio).sum() / n),
         "printed": exact["entropy"]}
        for n in TEST_SIZES
    ]  # fmt: skip
    return rows


def nonnegative_ratio_rows() -> list[dict[str, Any]]:
    """What nonnegative ratios have on the Signed case: the bound, and the exact ratio clipped at zero on samples."""
    binned, rows = Binned("signed"), []
    printed = SIGNED_GAUSSIANS["signed", "mlp", "chi2"]
    for n_test in TEST_SIZES:
        found: dict[str, list[float]] = {
            "exact": [],
            "clipped": [],
            "clipped_entropy": [],
            "clipped_unnormalised": [],
        }
        for seed in range(_N_SEEDS):
            events = toy_events("signed", 100 + seed, (10, 10, n_test))
            clipped = np.maximum(events.exact, 0.0)
            closed = closure_of(events.reference, {"exact": events.exact, "clipped": clipped}, events.target)[
                "r"
            ]
            found["exact"].append(closed["exact"].chi_squared.value)
            found["clipped"].append(closed["clipped"].chi_squared.value)
            found["clipped_entropy"].append(closed["clipped"].relative_entropy.value)
            # As if sums of weights per event were compared, and not divided by their totals.
            samples = (
                (events.reference, clipped / _mean_weight(events.case.reference)),
                (events.target, np.full(n_test, 1.0 / _mean_weight(events.case.target))),
            )
            b, t = (
                weighted_histogram(
                    radius(sample.features), sample.weights * factor, edges=closed.target.edges
                )
                for sample, factor in samples
            )
            chi2 = ((b.values - t.values) ** 2 / (b.variances + t.variances)).sum() / _NDOF
            found["clipped_unnormalised"].append(float(chi2))
        rows.append(
            {"what": "nonnegative ratios on the Signed case", "case": "signed", "n_test": n_test,
             "least": least_chi2_of_nonnegative(binned, n_test), "printed": printed,
             "expected_clipped": binned.chi2(np.maximum(binned.ratio, 0.0), n_test), "seeds": _N_SEEDS,
             **{name: float(np.median(values)) for name, values in found.items()}}
        )  # fmt: skip
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    rows = quotient_rows()
    for row in rows:
        print(row)
    write_rows("printed_values", rows + nonnegative_ratio_rows())


if __name__ == "__main__":
    main()
