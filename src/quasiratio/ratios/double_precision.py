r"""Where single precision is not enough.

Networks run in float32, so their outputs $o_j$ carry rounding errors of about $\delta\,(1 + |o_j|)$. The ratio
multiplies them: near a zero of the reference density by any factor. To first order

$$\sigma_r = \delta \Big[\sum_j \Big(\frac{\partial r}{\partial o_j}\Big)^2 (1 + |o_j|)^2\Big]^{1/2},$$

and the few events where this exceeds the tolerance are evaluated once more in float64. So are events far outside of the
training data, of which $\delta$ knows nothing, and all events of a model with an unusually large $\delta$: its networks
cancel large numbers, as after a divergence.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from quasiratio.networks import FeatureScaling, StackedMlp

__all__ = ["USUAL_NOISE", "DoubleNetworks", "is_outlying", "needs_double", "rounding_noise"]

USUAL_NOISE = 1e-7
_LARGE_NOISE = 5e-7
_TOLERANCE = 1.5e-6
_LARGEST_IN_SIGMA = 5.0
_FAR = 10.0


def rounding_noise(rounded: Tensor, exact: Tensor) -> float:
    r"""Return $\delta$: the relative rounding error of outputs, root mean square or a fifth of the largest.

    Example:
        >>> rounding_noise(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 3.0]))
        0.0
    """
    errors = (rounded - exact).abs() / (1.0 + exact.abs())
    return float(torch.maximum(errors.square().mean().sqrt(), errors.max() / _LARGEST_IN_SIGMA))


def needs_double(ratio: Tensor, sensitivity: Tensor, noise: float) -> Tensor:
    r"""Return, per event, whether the rounding error of a ratio may be too large beside $1 + |r|$.

    Args:
        ratio: `(n_members, n)` ratios.
        sensitivity: Their errors $\sigma_r / \delta$, in the same shape.
        noise: The relative rounding error $\delta$ of the outputs.

    Example:
        >>> needs_double(torch.tensor([[1.0, 1000.0]]), torch.tensor([[3.0, 1e6]]), noise=1e-7).tolist()
        [False, True]
    """
    if noise > _LARGE_NOISE:
        return torch.ones(ratio.shape[-1], dtype=torch.bool, device=ratio.device)
    is_fine = noise * sensitivity <= _TOLERANCE * (1.0 + ratio.abs())  # false also for what is not a number
    return ~is_fine.all(dim=0)


def is_outlying(scaled: Tensor) -> Tensor:
    """Return, per event, whether a scaled feature is more than ten standard deviations from its mean.

    Example:
        >>> is_outlying(torch.tensor([[0.5, -3.0], [50.0, 0.0]])).tolist()
        [False, True]
    """
    return (scaled.abs() > _FAR).any(dim=-1)


class DoubleNetworks:
    """A model's scaling and networks in float64, copied when they are first needed."""

    def __init__(self, scaling: FeatureScaling, network: StackedMlp) -> None:
        self._single = (scaling, network)

    @cached_property
    def _double(self) -> tuple[FeatureScaling, StackedMlp]:
        scaling, network = self._single
        return deepcopy(scaling).double(), deepcopy(network).double()

    def outputs(self, features: Tensor) -> Tensor:
        """Evaluate every network on raw features, `(n_networks, n, n_outputs)`."""
        scaling, network = self._double
        result: Tensor = network(scaling(features.double()))
        return result
