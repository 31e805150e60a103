r"""The ratio of signed mixtures (RoSMM).

With $\ell_{ab} = \ln p_{1b}/p_{0a}$, the four log-ratios between the parts of either sign,

$$r = \frac{c_1}{c_0 e^{-\ell_{++}} + (1-c_0) e^{-\ell_{-+}}}
    + \frac{1-c_1}{c_0 e^{-\ell_{+-}} + (1-c_0) e^{-\ell_{--}}}.$$

Parts that carry no weight are left out of the sum, never multiplied by zero. Where a density is known to be positive
the odds between its parts are capped (see `sign_odds`); the sub-ratios are trained separately, so that the cap is part
of the recombination.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from quasiratio.columns import FeatureMatrix
from quasiratio.model_files.document import refuse_if
from quasiratio.ratios.ratio_model import RatioModel, RatioModelDocument, RatioValues, StoredModel
from quasiratio.ratios.sign_odds import (
    FloorsDocument,
    SignFloors,
    add_capped_log_odds,
    capped_log_odds,
    floors_document,
)
from quasiratio.ratios.sign_partition import POSSIBLE_SIGNS, SignClass

if TYPE_CHECKING:
    from quasiratio.model_files.onnx_graph import OnnxGraph
    from quasiratio.networks import FeatureScaling, StackedMlp

__all__ = ["MixtureModelDocument", "SignPair", "SignedMixtureModel", "recombine", "sign_pairs"]

SignPair = tuple[int, int]
"""Sign of the reference part, sign of the target part."""

_CHUNK_ROWS = 2**13
_NO_FLOORS = SignFloors()
_LARGEST_LOG = 1e4
"""Beyond any number, but not infinite: differences of logarithms stay defined."""
_LEAST_NEGATIVE = 1e-12
"""Coefficient of the negative part below which the logarithm of its odds is not taken."""


def sign_pairs(present: Sequence[SignClass]) -> tuple[SignPair, ...]:
    """Return the sub-ratios to learn: one for each reference part and each target part that carry weight."""
    signs: dict[int, list[int]] = {0: [], 1: []}
    for part in present:
        signs[part.label].append(part.sign)
    return tuple((a, b) for a in signs[0] for b in signs[1])


def recombine(
    log_ratios: Mapping[SignPair, Tensor],
    c0: Tensor | float,
    c1: Tensor | float,
    floors: SignFloors = _NO_FLOORS,
) -> RatioValues:
    r"""Combine sub-ratios into the ratio of the signed mixtures.

    Args:
        log_ratios: $\ell_{ab}$ for the pairs $(a, b)$ that exist.
        c0: Coefficient of the reference, $\sum_{w \ge 0} w / \sum w$.
        c1: Coefficient of the target.
        floors: Smallest sign asymmetry of each class, where its density is positive.

    Returns:
        The ratio, and where a denominator, proportional to the reference density, is not positive.

    Example:
        >>> half = torch.tensor([0.5]).log()
        >>> recombine({(1, 1): half, (1, -1): half}, 1.0, 1.25).ratio
        tensor([0.5000])
    """
    if (+1, +1) not in log_ratios:
        msg = "recombine needs at least the sub-ratio of the positive parts"
        raise ValueError(msg)
    log_sizes: dict[int, Tensor] = {}
    signs: dict[int, Tensor] = {}
    for target_sign in (+1, -1):
        if (+1, target_sign) in log_ratios:
            log_sizes[target_sign], sign = _log_part(log_ratios, target_sign, c0, floors.reference)
            if sign is not None:
                signs[target_sign] = sign
    if -1 not in log_sizes:
        total = signs.get(+1, 1.0) * c1 * log_sizes[+1].exp()
    elif floors.target is not None:
        log_odds = _log_coefficients(c1, log_sizes[+1]) + log_sizes[-1] - log_sizes[+1]
        total = (
            signs.get(+1, 1.0) * c1 * log_sizes[+1].exp() * -capped_log_odds(log_odds, floors.target).expm1()
        )
    else:
        larger = torch.maximum(log_sizes[+1], log_sizes[-1]).clamp(max=_LARGEST_LOG)
        plus = signs.get(+1, 1.0) * c1 * (log_sizes[+1] - larger).exp()
        minus = signs.get(-1, 1.0) * (1.0 - c1) * (log_sizes[-1] - larger).exp()
        total = larger.exp() * (plus + minus)
    nonpositive = None
    if signs:
        nonpositive = torch.stack([sign < 0 for sign in signs.values()]).any(dim=0)
    return RatioValues(total, nonpositive)


def _log_part(
    log_ratios: Mapping[SignPair, Tensor], target_sign: int, c0: Tensor | float, floor: float | None
) -> tuple[Tensor, Tensor | None]:
    """Return the logarithm of one part of the target over the reference and, where that may be negative, its sign."""
    plus = log_ratios[+1, target_sign]
    if (-1, target_sign) not in log_ratios:
        return plus, None
    minus = log_ratios[-1, target_sign]
    if floor is not None:
        # p_0-/p_0+ = r_++/r_-+, so that the odds of a negative reference weight follow from two sub-ratios.
        log_odds = capped_log_odds(_log_coefficients(c0, plus) + plus - minus, floor)
        return plus - (-log_odds.expm1()).log() - torch.as_tensor(c0, dtype=plus.dtype).log(), None
    # Take the larger exponential out, so that neither overflows.
    shift = torch.maximum(-plus, -minus)
    # Minus zero where it vanishes, which counts as not positive.
    denominator = c0 * (-plus - shift).exp() + (1.0 - c0) * (-minus - shift).exp()
    denominator = torch.where(denominator == 0, -torch.zeros_like(denominator), denominator)
    return -shift - denominator.abs().log(), torch.copysign(torch.ones_like(denominator), denominator)


def _log_coefficients(c: Tensor | float, like: Tensor) -> Tensor:
    """Return the logarithm of the coefficient of the negative part over that of the positive one."""
    c = torch.as_tensor(c, dtype=like.dtype, device=like.device)
    return ((c - 1.0).clamp(min=_LEAST_NEGATIVE) / c).log()


class MixtureModelDocument(RatioModelDocument):
    """Sub-ratio networks for the pairs of signs (reference, target), and the coefficients of each member."""

    floors: FloorsDocument = FloorsDocument()
    kind: Literal["signed-mixture"]
    pairs: list[Annotated[list[Literal[1, -1]], Field(min_length=2, max_length=2)]] = Field(max_length=4)
    coefficients: list[Annotated[list[float], Field(min_length=2, max_length=2)]]

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if(
            self.pairs
            not in [
                [[a, b] for a in first for b in second]
                for first in POSSIBLE_SIGNS
                for second in POSSIBLE_SIGNS
            ],
            "the pairs of signs are none that occur",
        )
        refuse_if(
            len(self.coefficients) != self.n_members,
            "the number of coefficients does not fit the number of members",
        )
        self.require_networks(len(self.pairs), 1)
        return self


class SignedMixtureModel(RatioModel):
    """Sub-ratio networks of every member, and the members' mixture coefficients.

    Args:
        scaling: Turns raw features into network inputs.
        network: `n_members * len(pairs)` networks; network `k * len(pairs) + p` is pair `p` of member `k`.
        n_members: Number of members.
        pairs: The sub-ratios that exist.
        coefficients: `(n_members, 2)` values of $(c_0, c_1)$.
        floors: Smallest sign asymmetry of each class, where its density is positive.
    """

    document_type: ClassVar[type[RatioModelDocument]] = MixtureModelDocument
    is_free: Tensor

    def __init__(
        self,
        scaling: FeatureScaling,
        network: StackedMlp,
        n_members: int,
        pairs: Sequence[SignPair],
        coefficients: Tensor,
        floors: SignFloors = _NO_FLOORS,
    ) -> None:
        super().__init__(scaling, network, n_members)
        self.pairs = tuple(pairs)
        self.floors = floors
        self.coefficients = nn.Parameter(coefficients.clone())
        has_negative = [any(a < 0 for a, _ in pairs), any(b < 0 for _, b in pairs)]
        self.register_buffer("is_free", torch.tensor(has_negative), persistent=False)

    def fixed_where_certain(self, coefficients: Tensor) -> Tensor:
        """Set the coefficient of a class without negative weights to one, whatever tuning made of it."""
        return torch.where(self.is_free, coefficients, torch.ones_like(coefficients))

    def log_ratios(self, outputs: Tensor) -> dict[SignPair, Tensor]:
        """Split the network outputs into sub-log-ratios of shape `(n_members, n)`."""
        n_members = len(outputs) // len(self.pairs)
        by_pair = outputs[..., 0].view(n_members, len(self.pairs), -1)
        return {pair: by_pair[:, index] for index, pair in enumerate(self.pairs)}

    @torch.inference_mode()
    def predict_log_ratios(self, features: FeatureMatrix) -> dict[SignPair, npt.NDArray[np.float64]]:
        """Return the sub-log-ratios of all members together at the `(n, d)` raw features, in chunks."""
        device = self.scaling.mean.device
        parts = []
        for start in range(0, len(features), _CHUNK_ROWS):
            inputs = self.scaling(self.scaling.taken(features[start : start + _CHUNK_ROWS], device))
            parts.append(self.average(self.outputs(inputs).double()).cpu())
        found = self.log_ratios(torch.cat(parts, dim=1))
        return {pair: values[0].numpy() for pair, values in found.items()}

    def coefficients_of(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return $c_0$ and $c_1$ of each member, or their mean where `outputs` are those of one."""
        coefficients = self.fixed_where_certain(self.coefficients.to(outputs.dtype))
        if len(outputs) == len(self.pairs):  # one member, or the average of all
            coefficients = coefficients.mean(dim=0, keepdim=True)
        return coefficients[:, :1], coefficients[:, 1:]

    def log_odds_of_reference(self, outputs: Tensor) -> Tensor | None:
        """Return the odds that the sub-ratios to the target's positive part imply."""
        log_ratios = self.log_ratios(outputs)
        if (-1, +1) not in log_ratios:
            return None
        plus, minus = log_ratios[+1, +1], log_ratios[-1, +1]
        c0, _ = self.coefficients_of(outputs)
        return capped_log_odds(_log_coefficients(c0, plus) + plus - minus, self.floors.reference)

    def member_values(self, outputs: Tensor) -> RatioValues:
        """Recombine each member's sub-ratios."""
        return recombine(self.log_ratios(outputs), *self.coefficients_of(outputs), self.floors)

    def sensitivity(self, outputs: Tensor) -> Tensor:
        r"""Add the errors $1 + |\ell_{ab}|$ of the sub-log-ratios in squares."""
        c0, c1 = (torch.stack([c, 1.0 - c], dim=1) for c in self.coefficients_of(outputs))
        n_signs = [2 if is_free else 1 for is_free in self.is_free.tolist()]
        log_ratios = outputs[..., 0].view(len(c0), *n_signs, -1)  # member, reference sign, target sign, event
        shift = log_ratios.amin(dim=1, keepdim=True)
        terms = c0[:, : n_signs[0], None] * (shift - log_ratios).exp()
        errors = (terms * (1.0 + log_ratios.abs())).square().sum(dim=1)
        factors = c1[:, : n_signs[1]] * shift[:, 0].exp() / terms.sum(dim=1).square()
        return (factors.square() * errors).sum(dim=1).sqrt()

    def average(self, outputs: Tensor) -> Tensor:
        """Average the sub-log-ratios, in which cross-entropy is convex."""
        return outputs.view(self.n_members, len(self.pairs), *outputs.shape[1:]).mean(dim=0)

    def averaged(self) -> Self:
        """Return a model of one member, with the means of networks and coefficients."""
        one = super().averaged()
        one.coefficients = nn.Parameter(self.coefficients.detach().mean(dim=0, keepdim=True))
        return one

    def document_fields(self) -> dict[str, Any]:
        """Return the pairs, the coefficients and the floors."""
        return {
            "kind": "signed-mixture",
            "pairs": [list(pair) for pair in self.pairs],
            "coefficients": self.coefficients.detach().tolist(),
            "floors": floors_document(self.floors),
        }

    @classmethod
    def from_document(cls, document: MixtureModelDocument, stored: StoredModel) -> Self:
        """Make the model again."""
        pairs = [(first, second) for first, second in document.pairs]
        coefficients = torch.tensor(document.coefficients, dtype=torch.float32)
        floors = document.floors.restored()
        return cls(stored.scaling, stored.network, document.n_members, pairs, coefficients, floors)

    def add_onnx_members(self, graph: OnnxGraph, outputs: str, *, n_members: int) -> str:
        """Add the recombination of the sub-ratios to a graph."""
        coefficients = self.fixed_where_certain(self.coefficients.detach()).double().cpu().numpy()
        if n_members == 1:
            coefficients = coefficients.mean(axis=0, keepdims=True)
        c0, c1 = coefficients[:, :1], coefficients[:, 1:]
        by_pair = graph.add("Reshape", outputs, graph.axes(n_members, len(self.pairs), -1))
        log_ratios = {
            pair: graph.add("Gather", by_pair, graph.constant(np.array(index)), axis=1)
            for index, pair in enumerate(self.pairs)
        }
        parts = {
            target_sign: _add_part(graph, log_ratios, target_sign, c0, self.floors.reference)
            for target_sign in (+1, -1)
            if (+1, target_sign) in log_ratios
        }
        total = graph.add("Mul", parts[+1], c1)
        if -1 not in parts:
            return total
        if self.floors.target is None:
            return graph.add("Add", total, graph.add("Mul", parts[-1], 1.0 - c1))
        quotient = graph.add("Div", parts[-1], parts[+1])
        log_odds = graph.add("Add", graph.add("Log", quotient), _log_odds_of(c1))
        odds = graph.add("Exp", add_capped_log_odds(graph, log_odds, self.floors.target))
        return graph.add("Mul", total, graph.add("Sub", 1.0, odds))

    def add_onnx_average(self, graph: OnnxGraph, outputs: str) -> str:
        """Add the average of the sub-log-ratios to a graph."""
        by_member = graph.add("Reshape", outputs, graph.axes(self.n_members, len(self.pairs), -1, 1))
        return graph.add("ReduceMean", by_member, graph.axes(0), keepdims=0)


def _add_part(
    graph: OnnxGraph,
    log_ratios: dict[SignPair, str],
    target_sign: int,
    c0: npt.NDArray[np.float64],
    floor: float | None,
) -> str:
    """Add the ratio of one part of the target to the whole reference."""
    plus = log_ratios[+1, target_sign]
    if (-1, target_sign) not in log_ratios:
        return graph.add("Exp", plus)
    minus = log_ratios[-1, target_sign]
    if floor is not None:
        log_odds = graph.add("Add", graph.add("Sub", plus, minus), _log_odds_of(c0))
        odds = graph.add("Exp", add_capped_log_odds(graph, log_odds, floor))
        return graph.add("Div", graph.add("Exp", plus), graph.add("Mul", graph.add("Sub", 1.0, odds), c0))
    shift = graph.add("Min", plus, minus)
    terms = [
        graph.add("Mul", graph.add("Exp", graph.add("Sub", shift, part)), coefficient)
        for part, coefficient in ((plus, c0), (minus, 1.0 - c0))
    ]
    return graph.add("Div", graph.add("Exp", shift), graph.add("Add", *terms))


def _log_odds_of(c: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the logarithm of the coefficient of the negative part over that of the positive one."""
    return np.asarray(np.log(np.maximum(c - 1.0, _LEAST_NEGATIVE) / c))
