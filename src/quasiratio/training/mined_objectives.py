r"""Objectives for what is known of each event: joint coefficients instead of labels.

The second argument of `per_event` holds, in place of a class, the quantities that an event brings along,
`(n_networks, n, n_targets)`. All of these risks are bounded below whatever the signs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

__all__ = ["MinedCrossEntropy", "MinedRegression", "PointsRegression"]


def _never(outputs: Tensor) -> Tensor:
    return torch.zeros(len(outputs), dtype=torch.bool, device=outputs.device)


@dataclass(frozen=True)
class MinedRegression:
    r"""Squares of $f_k(x) - c_k$, in units of the spread of $c_k$, averaged over the terms.

    With a reference of both signs the measure is $|w|$, the last output is the logarithm $d$ of the odds of a negative weight,
    $s = \tanh(-d/2)$, and what is compared is $f_k s$ with $c_k \operatorname{sign} w$, beside the cross-entropy of the sign.

    Args:
        offsets: Mean of each coefficient in units of its spread.
        has_signs: Whether the reference has weights of both signs; the last target is then the sign.
    """

    offsets: Sequence[float]
    has_signs: bool
    name: str = "mined regression"

    def per_event(self, outputs: Tensor, classes: Tensor) -> Tensor:
        """Return the loss of each event from standardised functions and standardised coefficients."""
        if not self.has_signs:
            return (outputs - classes).square().mean(dim=-1)
        offsets = torch.tensor(list(self.offsets), dtype=outputs.dtype, device=outputs.device)
        log_odds, sign = outputs[..., -1], classes[..., -1]
        asymmetry = torch.tanh(-0.5 * log_odds)[..., None]
        learned = (outputs[..., :-1] + offsets) * asymmetry
        known = (classes[..., :-1] + offsets) * sign[..., None]
        return (learned - known).square().mean(dim=-1) + nn.functional.softplus(sign * log_odds)

    def runs_away(self, outputs: Tensor, classes: Tensor, weights: Tensor) -> Tensor:  # noqa: ARG002
        """Never: squares with positive weights are bounded below."""
        return _never(outputs)


@dataclass(frozen=True)
class MinedCrossEntropy:
    r"""Cross-entropy with several classes per event, $-\sum_j y_j \ln \pi_j(x)$.

    The classes are the reference and, for each term, its two signs: $y$ is one for the reference and $a_k c_k^\pm$ for the
    others. Targets are the $y_j$.
    """

    name: str = "mined cross-entropy"

    def per_event(self, outputs: Tensor, classes: Tensor) -> Tensor:
        """Return minus the log-probabilities, each times its target."""
        return -(classes * torch.log_softmax(outputs, dim=-1)).sum(dim=-1)

    def runs_away(self, outputs: Tensor, classes: Tensor, weights: Tensor) -> Tensor:  # noqa: ARG002
        """Never: all targets and weights are positive."""
        return _never(outputs)


@dataclass(frozen=True)
class PointsRegression:
    r"""LSIF of several samples over one reference, $\frac12 E_\mathrm{ref}[f_s^2] - E_s[f_s]$, averaged over the samples.

    The target of an event is the number of its sample, from one, or zero for the reference. With a reference of both signs its
    events have the weight $|w|$ and their sign as a second target; the square is then taken with $s(x)$, learned by the last
    output, in place of the sign, so that it never turns negative. Weights of the samples keep their signs.
    """

    n_samples: int
    has_signs: bool
    name: str = "points regression"

    def per_event(self, outputs: Tensor, classes: Tensor) -> Tensor:
        """Return the loss of each event."""
        number = classes[..., 0].long()
        functions = outputs[..., : self.n_samples]
        is_reference = number == 0
        square = 0.5 * functions.square().sum(dim=-1)
        extra = torch.zeros_like(square)
        if self.has_signs:
            log_odds = outputs[..., -1]
            square = square * torch.tanh(-0.5 * log_odds.detach())
            extra = nn.functional.softplus(classes[..., 1] * log_odds)
        own = functions.gather(-1, (number - 1).clamp(min=0)[..., None])[..., 0]
        return torch.where(is_reference, square + extra, -own) / self.n_samples

    def runs_away(self, outputs: Tensor, classes: Tensor, weights: Tensor) -> Tensor:  # noqa: ARG002
        """Never: the square grows faster than the linear term wherever the reference has events."""
        return _never(outputs)
