r"""Tuning RoSMM at every point (RoSMM_r): sub-ratios and coefficients together, with PARE on signed weights.

With $A_b = c_0 / r_{+b} + (1 - c_0) / r_{-b}$ the ratio is $c_1 / A_+ + (1 - c_1) / A_-$, and what PARE wants of it,
$u = r / (1 + \epsilon^2 r)$, is $c_1 f_+ + (1 - c_1) f_-$ with $f_\pm = A_\mp / M$ and
$M = A_+ A_- + \epsilon^2 [c_1 A_- + (1 - c_1) A_+]$. Its derivatives are as short, $\partial u / \partial A_+ = - c_1 f_+^2$
and $\partial u / \partial A_- = - (1 - c_1) f_-^2$, and written out they take a tenth of the time of a graph over so few
events. A test compares them with automatic differentiation of `recombine` and `Pare`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from quasiratio.losses import Pare
from quasiratio.ratios.signed_mixture import recombine
from quasiratio.studies.weight_variance.fast_passes.classifier_problem import SharedBatches, validation_chunks
from quasiratio.studies.weight_variance.fast_passes.perceptron_pass import StackedPass, with_ones
from quasiratio.studies.weight_variance.fast_passes.signed_events import SignedEvents
from quasiratio.studies.weight_variance.fast_passes.sub_ratio_problem import PAIRS

__all__ = ["MixtureProblem", "mixture_ratio", "signs_to_coefficients"]

_EPS_SQUARED = -1.0 / Pare().pole
_LARGEST_LOSS = 10.0
"""Root mean square of the losses of a state that may be kept; ratios of order one have losses of that order."""


def mixture_ratio(outputs: Tensor, coefficients: Tensor) -> Tensor:
    """Recombine the sub-log-ratios `(4 k, n)` of k points with their coefficients `(k, 2)`.

    Example:
        >>> half = torch.full((4, 3), 0.5).log()
        >>> mixture_ratio(half, torch.tensor([[1.5, 1.5]]))
        tensor([[0.5000, 0.5000, 0.5000]])
    """
    by_pair = outputs.view(len(coefficients), len(PAIRS), -1)
    log_ratios = {pair: by_pair[:, index] for index, pair in enumerate(PAIRS)}
    return recombine(log_ratios, coefficients[:, :1], coefficients[:, 1:]).ratio


class MixtureProblem:
    """Minimise PARE, with the published parameters, over the networks and the coefficients of every point.

    The last parameter is `(n_points, 2)`, the coefficients; those before are of the networks.

    Args:
        training: Training events with the points' weights.
        validation: Validation events with the points' weights.
        batch_size: Events per step.
        steps_per_epoch: Steps per epoch.
    """

    def __init__(
        self, training: SignedEvents, validation: SignedEvents, *, batch_size: int, steps_per_epoch: int
    ) -> None:
        self.training, self.validation = training, validation
        self.validation_inputs = with_ones(validation.inputs)
        self.validation_weights = validation.weights_of(slice(None))
        self.batches = SharedBatches(training, batch_size, steps_per_epoch)
        self.passes = StackedPass()

    def begin_epoch(self, epoch: int) -> None:
        """Lay out the events of an epoch."""
        self.batches.begin_epoch(epoch)

    def gradients(self, parameters: list[Tensor], step: int) -> list[Tensor]:
        """Return the gradients of one batch."""
        inputs, labels, weights = self.batches.batch(step)
        outputs = self.passes.outputs(parameters[:-1], inputs)
        mixture = _Mixture.of(outputs, parameters[-1])
        slopes = mixture.u * (1.0 - (1.0 - _EPS_SQUARED) * labels) - labels
        slopes *= weights * (2.0 / len(labels))
        of_outputs, of_coefficients = mixture.gradients(slopes)
        return [*self.passes.gradients(parameters[:-1], of_outputs), of_coefficients]

    def validation_losses(self, parameters: list[Tensor]) -> Tensor:
        """Return the weighted validation loss of each point, or infinity where a few events decide it.

        With signed weights a state that puts a pole onto an event of the right sign has a loss as low as one
        likes; it must not count as the best. Its losses, weighted with the squares of the weights as in their
        variance, are large.
        """
        events = self.validation
        total = torch.zeros(len(events.weights), dtype=torch.float64)
        squares = torch.zeros_like(total)
        for chunk in validation_chunks(len(events.labels), len(parameters[0])):
            outputs = self.passes.outputs(parameters[:-1], self.validation_inputs[chunk])
            u, labels = _Mixture.of(outputs, parameters[-1]).u, events.labels[chunk]
            losses = u * (u * (1.0 - (1.0 - _EPS_SQUARED) * labels) - 2.0 * labels)
            weighted = losses * self.validation_weights[:, chunk]
            total += weighted.sum(dim=1, dtype=torch.float64)
            squares += weighted.square().sum(dim=1, dtype=torch.float64)
        largest = _LARGEST_LOSS**2 * self.validation_weights.square().sum(dim=1, dtype=torch.float64)
        return torch.where(squares <= largest, total / len(events.labels), math.inf)

    def keep(self, members: Tensor) -> None:
        """Go on with some of the points."""
        self.training.keep(members)
        self.validation.keep(members)
        self.validation_weights = self.validation_weights[members]


class _Mixture(NamedTuple):
    """The recombination of some events at k points; axes are points, sign of the reference, sign of the target, events.

    Attributes:
        inverse: One over the sub-ratios, `(k, 2, 2, n)`.
        parts: Their sums with the coefficients of the reference parts, the A of the module, `(k, 2, n)`.
        denominator: M, `(k, n)`.
        u: `(k, n)`.
        c0: Coefficients of the reference parts, `(k, 2)`.
        c1: Coefficients of the target parts, `(k, 2)`.
    """

    inverse: Tensor
    parts: Tensor
    denominator: Tensor
    u: Tensor
    c0: Tensor
    c1: Tensor

    @classmethod
    def of(cls, outputs: Tensor, coefficients: Tensor) -> _Mixture:
        """Recombine the sub-log-ratios `(4 k, n)` with the coefficients `(k, 2)`."""
        c0, c1 = torch.stack([coefficients, 1.0 - coefficients], dim=2).unbind(1)
        inverse = torch.neg(outputs).exp_().view(len(coefficients), 2, 2, -1)
        parts = torch.lerp(inverse[:, 1], inverse[:, 0], c0[:, :1, None])
        numerator = torch.lerp(parts[:, 0], parts[:, 1], c1[:, :1])
        denominator = torch.addcmul(_EPS_SQUARED * numerator, parts[:, 0], parts[:, 1])
        return cls(inverse, parts, denominator, numerator / denominator, c0, c1)

    def gradients(self, slopes: Tensor) -> tuple[Tensor, Tensor]:
        """Return those of the outputs `(4 k, n)` and of the coefficients `(k, 2)`, for the slopes in u."""
        f = self.parts.flip(1).div_(self.denominator[:, None])
        # At a fixed A, u changes with c1 by (A_- - A_+) A_+ A_- / M^2.
        of_c1 = (self.parts[:, 1] - self.parts[:, 0]).mul_(f[:, 0]).mul_(f[:, 1]).mul_(slopes).sum(dim=1)
        # But for c1 minus the slopes in A.
        of_parts = f.square_().mul_(slopes[:, None])
        of_outputs = self.inverse * of_parts[:, None]
        by_pair = of_outputs.sum(dim=3)
        of_c0 = ((by_pair[:, 1] - by_pair[:, 0]) * self.c1).sum(dim=1)
        of_outputs *= (self.c0[:, :, None] * self.c1[:, None])[..., None]
        return of_outputs.flatten(0, 2), torch.stack([of_c0, of_c1], dim=1)


def signs_to_coefficients(events: SignedEvents) -> Tensor:
    r"""Return $c_y = \sum_{w \ge 0} w / \sum w$ of each point and class, `(n_points, 2)`."""
    columns: Sequence[Tensor] = []
    columns = [
        ((events.labels == label) & ~events.negative).sum(dim=1) * events.weights[:, label, 0]
        for label in (0, 1)
    ]
    return torch.stack([column / (len(events.labels) / 2) for column in columns], dim=1).float()
