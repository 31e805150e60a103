"""The MLP of every point: binary cross-entropy with the point's signed weights on events that all share."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from quasiratio.studies.weight_variance.fast_passes.perceptron_pass import StackedPass, with_ones
from quasiratio.studies.weight_variance.fast_passes.signed_events import SignedEvents, cyclic, weights_by_code

__all__ = ["ClassifierProblem", "SharedBatches", "validation_chunks"]

_CACHED_ROWS, _LEAST_ROWS = 2**13, 512


class SharedBatches:
    """Batches that all points see at once, each with its own weights; every epoch goes on where the last ended."""

    def __init__(self, events: SignedEvents, batch_size: int, steps_per_epoch: int) -> None:
        self.events, self.batch_size = events, batch_size
        self.n_epoch = batch_size * steps_per_epoch
        self.inputs = self.labels = self.weights = torch.empty(0)

    def begin_epoch(self, epoch: int) -> None:
        """Lay out the events of an epoch."""
        stretches = cyclic(epoch * self.n_epoch, self.n_epoch, len(self.events.labels))
        self.inputs = with_ones(torch.cat([self.events.inputs[one] for one in stretches]))
        self.labels = torch.cat([self.events.labels[one] for one in stretches])
        negative = torch.cat([self.events.negative[:, one] for one in stretches], dim=1)
        self.weights = weights_by_code(self.events.weights, self.labels, negative)

    def batch(self, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return inputs with ones, labels and weights of a step."""
        chosen = slice(step * self.batch_size, (step + 1) * self.batch_size)
        return self.inputs[chosen], self.labels[chosen], self.weights[:, chosen]


def validation_chunks(n_events: int, n_networks: int) -> list[slice]:
    """Cut events into stretches whose activations fit the processor's cache.

    Example:
        >>> len(validation_chunks(4096, 8))
        4
    """
    size = max(_LEAST_ROWS, _CACHED_ROWS // n_networks)
    return [slice(start, start + size) for start in range(0, n_events, size)]


class ClassifierProblem:
    r"""Minimise $\frac1n \sum w\,[\ln(1 + e^z) - y z]$ for every point.

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
        outputs = self.passes.outputs(parameters, inputs)
        slopes = (outputs.sigmoid_() - labels).mul_(weights).mul_(1.0 / len(labels))
        return self.passes.gradients(parameters, slopes)

    def validation_losses(self, parameters: list[Tensor]) -> Tensor:
        """Return the weighted validation loss of each point."""
        events = self.validation
        total = torch.zeros(len(events.weights), dtype=torch.float64)
        for chunk in validation_chunks(len(events.labels), len(parameters[0])):
            outputs = self.passes.outputs(parameters, self.validation_inputs[chunk])
            losses = softplus(outputs) - events.labels[chunk] * outputs
            total += (losses * self.validation_weights[:, chunk]).sum(dim=1, dtype=torch.float64)
        return total / len(events.labels)

    def keep(self, members: Tensor) -> None:
        """Go on with some of the points."""
        self.training.keep(members)
        self.validation.keep(members)
        self.validation_weights = self.validation_weights[members]
