r"""Scaling of the input features, stored inside the model.

Each feature becomes $(f(x) - \mu)/\sigma$, with $f = \ln$ for positive heavy-tailed features (transverse
momenta, masses) and $f = 1$ for the others. An angle becomes two inputs, $\sqrt2\cos x$ and $\sqrt2\sin x$, so that it
has no edge at $\pm\pi$. What was decided is stored with the model and shown by it, so that a user feeds raw features
and never a separate scaler.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["FeatureScaling", "recognised_angles"]

_HEAVY_TAIL_SKEWNESS = 1.0
_ROOT_2 = 2.0**0.5
"""Brings the cosine of an angle without a preferred direction to unit variance."""
_ANGLE_NAME = re.compile(r"(^|[^a-z])d?phi([^a-z]|$)|azimuth", re.IGNORECASE)
_FULL_TURN = 0.9


class FeatureScaling(nn.Module):
    """Logarithm where it helps, then zero mean and unit variance, per feature; angles as cosine and sine.

    The sines of all angles stand behind the other inputs.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x = np.column_stack([rng.normal(5, 2, 4000), rng.lognormal(3, 1, 4000)]).astype(np.float32)
        >>> scaling = FeatureScaling.from_data(x)
        >>> scaling.uses_log.tolist()
        [False, True]
        >>> z = scaling(torch.from_numpy(x))
        >>> bool(z.mean().abs() < 1e-3), bool((z.std(dim=0) - 1).abs().max() < 1e-3)
        (True, True)
    """

    uses_log: Tensor
    floor: Tensor
    mean: Tensor
    scale: Tensor
    is_periodic: Tensor

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.register_buffer("is_periodic", torch.zeros(n_features, dtype=torch.bool))
        self.register_buffer("uses_log", torch.zeros(n_features, dtype=torch.bool))
        self.register_buffer("floor", torch.full((n_features,), -torch.inf))
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))

    @property
    def n_inputs(self) -> int:
        """Number of inputs of the networks."""
        return len(self.mean) + int(self.is_periodic.sum())

    @classmethod
    def from_data(cls, features: npt.NDArray[np.float32], periodic: Sequence[int] = ()) -> Self:
        """Decide on logarithms and measure mean and width, unweighted, on the training features.

        A feature is taken in logarithm when every value is positive, its skewness exceeds one, and the
        logarithm at least halves the skewness.

        Args:
            features: `(n, d)` training features.
            periodic: Columns that are angles in radians.
        """
        scaling = cls(features.shape[1])
        for column in range(features.shape[1]):
            if column in periodic:
                scaling.is_periodic[column] = True
                continue
            values = features[:, column].astype(np.float64)
            smallest = float(values.min())
            if smallest > 0 and _is_heavy_tailed(values):
                scaling.uses_log[column] = True
                scaling.floor[column] = smallest
                values = np.log(values)
            width = float(values.std())
            scaling.mean[column] = float(values.mean())
            # A constant feature carries no information; leave it at zero instead of dividing by zero.
            scaling.scale[column] = width if width > 1e-7 * max(1.0, abs(float(values.mean()))) else 1.0
        return scaling

    def forward(self, features: Tensor) -> Tensor:
        """Scale raw features of shape `(..., n_features)`.

        Values of a logarithmic feature below the training minimum are taken at that minimum; `below_floor`
        counts them.
        """
        if bool(self.uses_log.any()):
            logs = torch.maximum(features, self.floor).log()
            features = torch.where(self.uses_log, logs, features)
        scaled = (features - self.mean) / self.scale
        if not bool(self.is_periodic.any()):
            return scaled
        cosines = torch.where(self.is_periodic, _ROOT_2 * features.cos(), scaled)
        return torch.cat([cosines, _ROOT_2 * features[..., self.is_periodic].sin()], dim=-1)

    def below_floor(self, features: Tensor) -> Tensor:
        """Return, per feature, the fraction of events below the floor of a logarithmic feature."""
        return ((features < self.floor) & self.uses_log).double().mean(dim=0)


def recognised_angles(names: Sequence[str], features: npt.NDArray[np.float32]) -> list[int]:
    """Return the columns that are azimuthal angles, by their name and by a range of one turn.

    The values must lie within [-pi, pi] or [0, 2 pi] and fill at least nine tenths of it.

    Example:
        >>> turn = np.linspace(-np.pi, np.pi, 100, dtype=np.float32)
        >>> recognised_angles(["jet_phi", "eta", "philosophy"], np.column_stack([turn, turn, turn]))
        [0]
    """
    found = []
    for column, name in enumerate(names):
        if not _ANGLE_NAME.search(name):
            continue
        low, high = float(features[:, column].min()), float(features[:, column].max())
        fits = any(start - 1e-5 <= low and high <= start + 2 * math.pi + 1e-5 for start in (-math.pi, 0.0))
        if fits and high - low >= _FULL_TURN * 2 * math.pi:
            found.append(column)
    return found


def _is_heavy_tailed(values: npt.NDArray[np.float64]) -> bool:
    skewness = _skewness(values)
    return skewness > _HEAVY_TAIL_SKEWNESS and abs(_skewness(np.log(values))) < 0.5 * skewness


def _skewness(values: npt.NDArray[np.float64]) -> float:
    centred = values - values.mean()
    variance = float(np.mean(centred**2))
    return float(np.mean(centred**3)) / variance**1.5 if variance > 0 else 0.0
