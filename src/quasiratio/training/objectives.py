"""What the networks minimise, event by event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor, nn

from quasiratio.metrics.negative_density import is_negative, tail_lengths

if TYPE_CHECKING:
    from quasiratio.losses import RatioLoss

__all__ = ["CrossEntropyObjective", "Objective", "RatioObjective", "TunedRatioObjective"]


class Objective(Protocol):
    """A per-event loss on the outputs of a model, and a test for a risk without a minimum."""

    @property
    def name(self) -> str:
        """Name for messages and histories."""
        ...

    def per_event(self, outputs: Tensor, classes: Tensor) -> Tensor:
        """Losses of shape `(n_networks, n)`."""
        ...

    def runs_away(self, outputs: Tensor, classes: Tensor, weights: Tensor) -> Tensor:
        """Per network, whether the risk is unbounded below where the outputs are extreme."""
        ...


@dataclass(frozen=True)
class RatioObjective:
    """A `RatioLoss` on networks with one raw output."""

    loss: RatioLoss

    @property
    def name(self) -> str:
        """Name of the loss."""
        return self.loss.name

    def per_event(self, outputs: Tensor, classes: Tensor) -> Tensor:
        """Apply the loss to the raw outputs."""
        return self.loss.per_event(outputs[..., 0], classes)

    def runs_away(self, outputs: Tensor, classes: Tensor, weights: Tensor) -> Tensor:
        r"""Look for a tail of the outputs where some $a_0 q_0 + a_1 q_1$ of the loss is negative.

        Outputs run away exactly where the risk has no minimum, so the tails of the output (1%, 5% and 20%
        of the events on either side) are where to look. Negative by four standard deviations counts.
        """
        return tails_are_negative(outputs[..., 0], classes, weights, self.loss)


@dataclass(frozen=True)
class TunedRatioObjective:
    """A `RatioLoss` on models that output the ratio itself."""

    loss: RatioLoss

    @property
    def name(self) -> str:
        """Name of the loss, marked as tuning."""
        return f"tune:{self.loss.name}"

    def per_event(self, outputs: Tensor, classes: Tensor) -> Tensor:
        """Apply the loss to the ratios, through its link."""
        return self.loss.per_event(self.loss.link.raw(outputs), classes)

    def runs_away(self, outputs: Tensor, classes: Tensor, weights: Tensor) -> Tensor:
        """As for `RatioObjective`."""
        return tails_are_negative(outputs, classes, weights, self.loss)


@dataclass(frozen=True)
class CrossEntropyObjective:
    r"""Softmax cross-entropy, $-\ln \pi_k(x)$ for an event of class $k$; for absolute weights only."""

    name: str = "cross-entropy"

    def per_event(self, outputs: Tensor, classes: Tensor) -> Tensor:
        """Return minus the log-probability of each event's class."""
        return nn.functional.cross_entropy(outputs.transpose(1, 2), classes.long(), reduction="none")

    def runs_away(self, outputs: Tensor, classes: Tensor, weights: Tensor) -> Tensor:  # noqa: ARG002
        """Never: with absolute weights the risk is bounded below by zero."""
        return torch.zeros(len(outputs), dtype=torch.bool, device=outputs.device)


def tails_are_negative(raw: Tensor, classes: Tensor, weights: Tensor, loss: RatioLoss) -> Tensor:
    """Test, per network, the densities in the tails of its outputs against the needs of the loss."""
    found = torch.zeros(len(raw), dtype=torch.bool, device=raw.device)
    if not bool((weights < 0).any()):
        return found
    order = raw.argsort(dim=1)
    sorted_weights = weights.double().gather(1, order)
    is_target = classes.double().gather(1, order)
    for a0, a1 in loss.requires_positive:
        terms = sorted_weights * (a0 * (1.0 - is_target) + a1 * is_target)
        for n_tail in tail_lengths(raw.shape[1]):
            for tail in (terms[:, :n_tail], terms[:, -n_tail:]):
                found |= is_negative(tail.sum(dim=1), tail.square().sum(dim=1).sqrt())
    return found
