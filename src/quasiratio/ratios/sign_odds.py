r"""Sign odds with a cap, so that a density that is positive is never estimated to vanish.

A signed density is $q = h\,a$: a density $h$ of absolute weights times the sign asymmetry
$a(x) = E[\operatorname{sign} w \mid x]$. A ratio divides by the reference's asymmetry; where events are few the noise of
a network carries it through zero, and one event then carries the whole sample. Where the density is known to be
positive, $a > 0$, and the logarithm $d = \ln (1-a)/(1+a)$ of the odds of a negative weight is replaced by

$$d_\mathrm{max} - \frac{1}{\beta} \operatorname{softplus}\bigl(\beta\,(d_\mathrm{max} - d)\bigr), \qquad
  d_\mathrm{max} = \ln\frac{1 - a_\mathrm{min}}{1 + a_\mathrm{min}}.$$

It is the identity well below the cap and never above it, so that $a > a_\mathrm{min}$ everywhere. The networks train
through it; nothing is clipped afterwards. Where the true asymmetry is below $a_\mathrm{min}$, the estimate stays there
and a ratio over it comes out too small by $a/a_\mathrm{min}$.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import Field
from torch import Tensor
from torch.nn.functional import softplus

from quasiratio.model_files.document import Document

if TYPE_CHECKING:
    from quasiratio.model_files.onnx_graph import OnnxGraph

__all__ = [
    "SHARPNESS",
    "FloorsDocument",
    "SignFloors",
    "add_capped_log_odds",
    "capped_log_odds",
    "floors_document",
    "largest_log_odds",
]

Asymmetry = Annotated[float, Field(gt=0, lt=1)]

SHARPNESS = 4.0
"""The parameter beta: the cap is felt within about 1/beta of it."""


class SignFloors(NamedTuple):
    """The smallest sign asymmetry that an estimate may have, per class; `None` where any sign is allowed."""

    reference: float | None = None
    target: float | None = None


def largest_log_odds(floor: float) -> float:
    r"""Return $d_\mathrm{max}$.

    Example:
        >>> round(largest_log_odds(0.5), 4)  # three positive weights for each negative one
        -1.0986
    """
    return math.log((1.0 - floor) / (1.0 + floor))


def capped_log_odds(log_odds: Tensor, floor: float | None) -> Tensor:
    """Keep the odds of a negative weight below those of the smallest asymmetry; `None` leaves them as they are.

    Example:
        >>> import torch
        >>> odds = capped_log_odds(torch.tensor([-6.0, 50.0], dtype=torch.float64), 0.1).exp()
        >>> [round(a, 4) for a in ((1 - odds) / (1 + odds)).tolist()]
        [0.9951, 0.1]
    """
    if floor is None:
        return log_odds
    largest = largest_log_odds(floor)
    return largest - softplus(SHARPNESS * (largest - log_odds)) / SHARPNESS


def add_capped_log_odds(graph: OnnxGraph, log_odds: str, floor: float) -> str:
    """Add the cap to a graph, with softplus in a form that does not overflow."""
    gap = graph.add("Mul", graph.add("Sub", largest_log_odds(floor), log_odds), SHARPNESS)
    tail = graph.add("Log", graph.add("Add", graph.add("Exp", graph.add("Neg", graph.add("Abs", gap))), 1.0))
    softplus = graph.add("Add", graph.add("Relu", gap), tail)
    return graph.add("Sub", largest_log_odds(floor), graph.add("Div", softplus, SHARPNESS))


class FloorsDocument(Document):
    """Smallest sign asymmetry of each class; `None` where the density may have any sign."""

    reference: Asymmetry | None = None
    target: Asymmetry | None = None

    def restored(self) -> SignFloors:
        """Make the floors again."""
        return SignFloors(self.reference, self.target)


def floors_document(floors: SignFloors) -> FloorsDocument:
    """Describe the floors."""
    return FloorsDocument(**floors._asdict())
