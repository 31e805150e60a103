r"""Scaling of the input features, stored inside the model.

Each feature becomes $(f(x) - \mu)/\sigma$, with $f = \ln$ for positive heavy-tailed features (transverse
momenta, masses) and $f = 1$ for the others. What was decided is stored with the model and shown by it, so
that a user feeds raw features and never a separate scaler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["FeatureScaling"]

_HEAVY_TAIL_SKEWNESS = 1.0


class FeatureScaling(nn.Module):
    """Logarithm where it helps, then zero mean and unit variance, per feature.

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

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.register_buffer("uses_log", torch.zeros(n_features, dtype=torch.bool))
        self.register_buffer("floor", torch.full((n_features,), -torch.inf))
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))

    @classmethod
    def from_data(cls, features: npt.NDArray[np.float32]) -> Self:
        """Decide on logarithms and measure mean and width, unweighted, on the training features.

        A feature is taken in logarithm when every value is positive, its skewness exceeds one, and the
        logarithm at least halves the skewness.
        """
        scaling = cls(features.shape[1])
        for column in range(features.shape[1]):
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
        return (features - self.mean) / self.scale

    def below_floor(self, features: Tensor) -> Tensor:
        """Return, per feature, the fraction of events below the floor of a logarithmic feature."""
        return ((features < self.floor) & self.uses_log).double().mean(dim=0)


def _is_heavy_tailed(values: npt.NDArray[np.float64]) -> bool:
    skewness = _skewness(values)
    return skewness > _HEAVY_TAIL_SKEWNESS and abs(_skewness(np.log(values))) < 0.5 * skewness


def _skewness(values: npt.NDArray[np.float64]) -> float:
    centred = values - values.mean()
    variance = float(np.mean(centred**2))
    return float(np.mean(centred**3)) / variance**1.5 if variance > 0 else 0.0
