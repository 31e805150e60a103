"""The sub-ratios of RoSMM at every point: classifiers between a part of the reference and one of the target.

At one point all weights of a part are equal, so that absolute weights of equal sums are no weights at all when a
batch takes as many events of one part as of the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import softplus

from quasiratio.studies.weight_variance.fast_passes.classifier_problem import validation_chunks
from quasiratio.studies.weight_variance.fast_passes.perceptron_pass import StackedPass, with_ones
from quasiratio.studies.weight_variance.fast_passes.signed_events import SignedEvents, cyclic

__all__ = ["PAIRS", "SubRatioProblem"]

PAIRS = ((+1, +1), (+1, -1), (-1, +1), (-1, -1))
"""Sign of the reference part, sign of the target part; network `4 k + p` is pair `p` of point `k`."""


class SubRatioProblem:
    """Minimise the cross-entropy of every sub-ratio; a member is one network.

    Args:
        training: Training events with the points' signs.
        validation: Validation events with the points' signs.
        batch_size: Events per step, half of either part.
        steps_per_epoch: Steps per epoch.
    """

    def __init__(
        self, training: SignedEvents, validation: SignedEvents, *, batch_size: int, steps_per_epoch: int
    ) -> None:
        self.inputs, self.half, self.n_steps = with_ones(training.inputs), batch_size // 2, steps_per_epoch
        self.parts = _parts_of_networks(training)
        self.batches = torch.empty(0)
        self.labels = torch.tensor([0.0, 1.0]).repeat_interleave(self.half)
        self.validation = _PairedValidation(validation)
        self.passes = StackedPass()

    def begin_epoch(self, epoch: int) -> None:
        """Gather the events of an epoch; every part goes on where it ended."""
        n_part = self.half * self.n_steps
        shape = (self.n_steps, len(self.parts), 2, self.half, self.inputs.shape[1])
        if self.batches.shape != shape:
            self.batches = torch.empty(shape)
        for network, pair in enumerate(self.parts):
            for side, events in enumerate(pair):
                stretches = cyclic(epoch * n_part, n_part, len(events))
                chosen = torch.cat([events[one] for one in stretches])
                gathered = self.inputs.index_select(0, chosen)
                self.batches[:, network, side] = gathered.view(self.n_steps, self.half, -1)

    def gradients(self, parameters: list[Tensor], step: int) -> list[Tensor]:
        """Return the gradients of one batch."""
        inputs = self.batches[step].flatten(1, 2)
        outputs = self.passes.outputs(parameters, inputs)
        slopes = (outputs.sigmoid_() - self.labels).mul_(1.0 / len(self.labels))
        return self.passes.gradients(parameters, slopes)

    def validation_losses(self, parameters: list[Tensor]) -> Tensor:
        """Return the validation loss of each network."""
        return self.validation.losses(self.passes, parameters)

    def keep(self, members: Tensor) -> None:
        """Go on with some of the networks."""
        self.parts = [self.parts[member] for member in members.tolist()]
        self.validation.keep(members)


class _PairedValidation:
    """The validation events of each network; both parts count one half.

    Networks have between a few and nearly all of the events. They are in the order of their sizes, so that a chunk has
    the networks with so many events only, and little is padded with events of no weight.
    """

    def __init__(self, events: SignedEvents) -> None:
        networks = _parts_of_networks(events)
        sizes = torch.tensor([sum(len(part) for part in pair) for pair in networks])
        self.order = sizes.argsort(descending=True, stable=True)
        self.sizes = sizes[self.order]
        shape = (len(networks), int(sizes.max()))
        inputs = with_ones(events.inputs)
        self.inputs = torch.zeros(*shape, inputs.shape[1])
        self.labels, self.weights = (torch.zeros(shape) for _ in range(2))
        for row, network in enumerate(self.order.tolist()):
            start = 0
            for side, part in enumerate(networks[network]):
                chosen = slice(start, start + len(part))
                self.inputs[row, chosen] = inputs.index_select(0, part)
                self.labels[row, chosen] = side
                self.weights[row, chosen] = 0.5 / len(part)
                start += len(part)

    def losses(self, passes: StackedPass, parameters: list[Tensor]) -> Tensor:
        """Return the mean of the two parts' mean losses."""
        total = torch.zeros(len(self.weights), dtype=torch.float64)
        ordered = [parameter[self.order] for parameter in parameters]
        for chunk in validation_chunks(int(self.sizes[0]), len(self.weights)):
            n_networks = int((self.sizes > chunk.start).sum())
            outputs = passes.outputs([one[:n_networks] for one in ordered], self.inputs[:n_networks, chunk])
            losses = softplus(outputs) - self.labels[:n_networks, chunk] * outputs
            total[:n_networks] += (losses * self.weights[:n_networks, chunk]).sum(dim=1, dtype=torch.float64)
        return torch.empty_like(total).scatter_(0, self.order, total)

    def keep(self, networks: Tensor) -> None:
        rows = self.order.argsort()[networks]  # where they are
        by_size = rows.sort()
        self.order = by_size.indices
        self.sizes, self.inputs, self.labels, self.weights = (
            one[by_size.values] for one in (self.sizes, self.inputs, self.labels, self.weights)
        )


def _parts_of_networks(events: SignedEvents) -> list[Sequence[Tensor]]:
    """Return for each network the events of its reference part and of its target part."""
    found: list[Sequence[Tensor]] = []
    for row in range(len(events.weights)):
        parts = {
            (label, sign): events.parts(row, label, negative=sign < 0) for label in (0, 1) for sign in (1, -1)
        }
        found += [(parts[0, a], parts[1, b]) for a, b in PAIRS]
    return found
