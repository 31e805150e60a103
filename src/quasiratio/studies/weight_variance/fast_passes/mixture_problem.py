"""Tuning RoSMM at every point (RoSMM_r): sub-ratios and coefficients together, with PARE on signed weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from quasiratio.losses import Pare
from quasiratio.ratios.signed_mixture import recombine
from quasiratio.studies.weight_variance.fast_passes.classifier_problem import SharedBatches, validation_chunks
from quasiratio.studies.weight_variance.fast_passes.perceptron_pass import StackedPass
from quasiratio.studies.weight_variance.fast_passes.signed_events import SignedEvents
from quasiratio.studies.weight_variance.fast_passes.sub_ratio_problem import PAIRS

__all__ = ["MixtureProblem", "mixture_ratio", "signs_to_coefficients"]

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
        self.validation_weights = validation.weights_of(slice(None))
        self.batches = SharedBatches(training, batch_size, steps_per_epoch)
        self.passes = StackedPass()
        self.loss = Pare()

    def begin_epoch(self, epoch: int) -> None:
        """Lay out the events of an epoch."""
        self.batches.begin_epoch(epoch)

    def gradients(self, parameters: list[Tensor], step: int) -> list[Tensor]:
        """Return the gradients of one batch; only the recombination is differentiated automatically."""
        inputs, labels, weights = self.batches.batch(step)
        outputs = self.passes.outputs(parameters[:-1], inputs).requires_grad_()
        coefficients = parameters[-1].detach().requires_grad_()
        risk = (self._losses(outputs, coefficients, labels) * weights).sum() / len(labels)
        slopes, of_coefficients = torch.autograd.grad(risk, (outputs, coefficients))
        return [*self.passes.gradients(parameters[:-1], slopes), of_coefficients]

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
            outputs = self.passes.outputs(parameters[:-1], events.inputs[chunk])
            losses = self._losses(outputs, parameters[-1], events.labels[chunk])
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

    def _losses(self, outputs: Tensor, coefficients: Tensor, labels: Tensor) -> Tensor:
        ratio = mixture_ratio(outputs, coefficients)
        return self.loss.per_event(self.loss.link.raw(ratio), labels)


def signs_to_coefficients(events: SignedEvents) -> Tensor:
    r"""Return $c_y = \sum_{w \ge 0} w / \sum w$ of each point and class, `(n_points, 2)`."""
    columns: Sequence[Tensor] = []
    columns = [
        ((events.labels == label) & ~events.negative).sum(dim=1) * events.weights[:, label, 0]
        for label in (0, 1)
    ]
    return torch.stack([column / (len(events.labels) / 2) for column in columns], dim=1).float()
