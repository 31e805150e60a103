"""The numbers that arXiv:2410.10216 prints, as data.

Values of the signed Gaussian toys are those of the radial distribution, values of gg -> hh those of eight
observables. `chi2` is per degree of freedom, `entropy` the absolute Tsallis relative entropy of order two. The
paper prints '1 . 4 . 10^-4' for the entropy of the exact ratio on the Nonnegative case; that is 1.4e-4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

__all__ = ["GG_HH", "GG_HH_OBSERVABLES", "GG_HH_SIZES", "SIGNED_GAUSSIANS", "SIGNED_GAUSSIAN_SIZES", "Metric"]

Metric = Literal["chi2", "entropy"]

SIGNED_GAUSSIAN_SIZES = (2_000_000, 600_000, 1_400_000)
"""Training, validation and test events of each class."""

GG_HH_SIZES = (776_369, 179_162, 238_883)
"""Training, validation and test events of each class."""

SIGNED_GAUSSIANS: Mapping[tuple[str, str, Metric], float] = {
    ("nonnegative", "mlp", "chi2"): 21.0,
    ("nonnegative", "rosmm", "chi2"): 4.22,
    ("nonnegative", "rosmm_c", "chi2"): 4.33,
    ("nonnegative", "rosmm_r", "chi2"): 5.14,
    ("nonnegative", "exact", "chi2"): 0.996,
    ("nonnegative", "mlp", "entropy"): 4.6e-3,
    ("nonnegative", "rosmm", "entropy"): 1.7e-3,
    ("nonnegative", "rosmm_c", "entropy"): 1.8e-3,
    ("nonnegative", "rosmm_r", "entropy"): 1.9e-3,
    ("nonnegative", "exact", "entropy"): 1.4e-4,
    ("signed", "mlp", "chi2"): 11.7,
    ("signed", "rosmm", "chi2"): 1.15,
    ("signed", "rosmm_c", "chi2"): 1.18,
    ("signed", "rosmm_r", "chi2"): 1.14,
    ("signed", "exact", "chi2"): 0.958,
    ("signed", "mlp", "entropy"): 9.03,
    ("signed", "rosmm", "entropy"): 1.2e-3,
    ("signed", "rosmm_c", "entropy"): 1.3e-3,
    ("signed", "rosmm_r", "entropy"): 1.3e-3,
    ("signed", "exact", "entropy"): 4e-4,
}
"""By case, method and metric."""

GG_HH_OBSERVABLES = ("mu1_pt", "mu2_pt", "mu3_pt", "mu4_pt", "jet_pt", "jet_m", "hh_pt", "m_hh")
"""The columns of the two tables of gg -> hh, in their order."""

_CHI2 = {
    "mlp": (113.0, 110.0, 33.3, 11.8, 6.66, 1.78, 3.04, 405.0),
    "rosmm": (1.78, 1.76, 1.10, 1.23, 2.20, 1.65, 2.08, 4.45),
    "rosmm_c": (1.79, 1.80, 1.10, 1.21, 2.21, 1.65, 2.08, 4.50),
    "rosmm_r": (2.18, 2.02, 1.27, 1.54, 1.91, 1.17, 1.94, 3.35),
}
_ENTROPY = {
    "mlp": (0.270, 0.256, 0.0611, 0.0222, 0.0190, 0.0038, 0.0137, 203.0),
    "rosmm": (0.0022, 0.0083, 0.0032, 0.0036, 0.205, 0.0071, 0.0042, 0.0046),
    "rosmm_c": (0.0021, 0.0095, 0.0032, 0.0036, 0.0824, 0.0072, 0.0045, 0.0053),
    "rosmm_r": (0.0036, 0.0058, 0.0036, 0.0048, 0.0038, 0.0056, 0.0074, 0.0014),
}


def _by_observable(
    metric: Metric, table: Mapping[str, tuple[float, ...]]
) -> dict[tuple[str, str, Metric], float]:
    return {
        (observable, method, metric): value
        for method, line in table.items()
        for observable, value in zip(GG_HH_OBSERVABLES, line, strict=True)
    }


GG_HH: Mapping[tuple[str, str, Metric], float] = _by_observable("chi2", _CHI2) | _by_observable(
    "entropy", _ENTROPY
)
"""By observable, method and metric."""
