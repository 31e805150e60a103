r"""What weights cost the optimiser: the excess variance of stochastic gradients, measured.

For weights $W$ with mean one, events $(\tilde X, W)$ that stand for the distribution of $X$, and the
gradient $g$ of the loss of one event, the variance of a step on weighted data exceeds that on unweighted
data by (paper, equation for the variance of the gradient; per event and in units of the squared rate)

$$\mathrm{Var}(W g(\tilde X)) - \mathrm{Var}(g(X)) = E\left[(W^2 - W)\, g(\tilde X)^2\right].$$
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap

if TYPE_CHECKING:
    from quasiratio.losses import RatioLoss
    from quasiratio.networks import StackedMlp

__all__ = ["GradientVariance", "measure_gradient_variance", "per_event_gradients"]

_CHUNK = 4096


@dataclass(frozen=True)
class GradientVariance:
    """Variances summed over all parameters.

    Attributes:
        weighted: Variance of the weighted gradients.
        unweighted: Variance of the gradients of an unweighted sample.
        formula: The right-hand side of the identity, from the weighted sample.
        error: Standard error of `excess - formula`.
    """

    weighted: float
    unweighted: float
    formula: float
    error: float

    @property
    def excess(self) -> float:
        """The measured left-hand side of the identity."""
        return self.weighted - self.unweighted


def per_event_gradients(network: StackedMlp, loss: RatioLoss, features: Tensor, labels: Tensor) -> Tensor:
    """Return the gradient of each event's loss, `(n, n_parameters)`, for a stack of one network."""
    parameters = {name: parameter.detach() for name, parameter in network.named_parameters()}

    def event_loss(values: dict[str, Tensor], event: Tensor, label: Tensor) -> Tensor:
        raw = functional_call(network, values, (event[None],))[0, 0, 0]
        return loss.per_event(raw, label)

    gradients = vmap(grad(event_loss), in_dims=(None, 0, 0))
    chunks = []
    for start in range(0, len(features), _CHUNK):
        part = gradients(parameters, features[start : start + _CHUNK], labels[start : start + _CHUNK])
        chunks.append(torch.cat([value.flatten(1) for value in part.values()], dim=1))
    return torch.cat(chunks)


def measure_gradient_variance(
    network: StackedMlp,
    loss: RatioLoss,
    weighted: tuple[Tensor, Tensor, Tensor],
    unweighted: tuple[Tensor, Tensor],
) -> GradientVariance:
    """Measure both sides of the identity on a weighted and on an unweighted sample.

    Args:
        network: A stack of one network with one output.
        loss: The per-event loss.
        weighted: Scaled features, labels and weights of mean one per class.
        unweighted: Scaled features and labels of a sample of the same distribution.
    """
    features, labels, weights = weighted
    gradients = per_event_gradients(network, loss, features, labels).double()
    plain = per_event_gradients(network, loss, *unweighted).double()
    scaled = gradients * weights.double()[:, None]
    squares = (gradients.square() * (weights.double().square() - weights.double())[:, None]).sum(dim=1)
    centred = (scaled - scaled.mean(dim=0)).square().sum(dim=1)
    plain_centred = (plain - plain.mean(dim=0)).square().sum(dim=1)
    # The first two come from the same events, so their difference is taken event by event.
    paired = centred - squares
    error = (paired.var() / len(paired) + plain_centred.var() / len(plain_centred)).sqrt()
    return GradientVariance(
        float(centred.mean()), float(plain_centred.mean()), float(squares.mean()), float(error)
    )
