r"""The sign-resolved classifier: one softmax over label and sign.

One network learns $\pi_k(x)$ for the classes $k$ = (label, sign) from all events with absolute weights, and

$$r(x) = \frac{\pi_{1+} - \pi_{1-}}{\pi_{0+} - \pi_{0-}}.$$

The risk is bounded below whatever the signs of the weights, and the mixture coefficients are learned along. Where a
density is known to be positive its sign odds are capped (see `sign_odds`).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from quasiratio.model_files.document import refuse_if
from quasiratio.networks.mlp import StackedMlp
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
    from quasiratio.networks import FeatureScaling

__all__ = ["ResolvedModelDocument", "SignResolvedModel", "signed_ratio"]


def signed_ratio(logits: Tensor, classes: Sequence[SignClass]) -> RatioValues:
    """Turn class logits (last axis) into the ratio of signed densities.

    The softmax's own denominator cancels; each density is taken relative to its larger part, so that neither
    vanishes by underflow.
    """
    densities, shifts = [], []
    for label in (0, 1):
        parts = [(index, part.sign) for index, part in enumerate(classes) if part.label == label]
        shift = torch.stack([logits[..., index] for index, _ in parts]).amax(dim=0)
        terms = [sign * (logits[..., index] - shift).exp() for index, sign in parts]
        densities.append(torch.stack(terms).sum(dim=0))
        shifts.append(shift)
    reference, target = densities
    ratio = (shifts[1] - shifts[0]).exp() * (target / reference)
    has_negative_reference = any(part.label == 0 and part.sign < 0 for part in classes)
    return RatioValues(ratio, reference <= 0 if has_negative_reference else None)


class ResolvedModelDocument(RatioModelDocument):
    """One softmax over the classes (label, sign)."""

    floors: FloorsDocument = FloorsDocument()
    kind: Literal["sign-resolved"]
    classes: list[Annotated[list[int], Field(min_length=2, max_length=2)]] = Field(max_length=4)

    @model_validator(mode="after")
    def _check(self) -> Self:
        possible = [
            [[0, a] for a in first] + [[1, b] for b in second]
            for first in POSSIBLE_SIGNS
            for second in POSSIBLE_SIGNS
        ]
        refuse_if(self.classes not in possible, "the classes (label, sign) are none that occur")
        self.require_networks(1, len(self.classes))
        return self


class SignResolvedModel(RatioModel):
    """One softmax network per member.

    Args:
        scaling: Turns raw features into network inputs.
        network: One network per member, with one output per class.
        n_members: Number of members.
        classes: The (label, sign) classes that carry weight.
        floors: Smallest sign asymmetry of each label, where its density is positive.
    """

    document_type: ClassVar[type[RatioModelDocument]] = ResolvedModelDocument

    def __init__(
        self,
        scaling: FeatureScaling,
        network: StackedMlp,
        n_members: int,
        classes: Sequence[SignClass],
        floors: SignFloors = SignFloors(),  # noqa: B008 - a tuple never changes
    ) -> None:
        super().__init__(scaling, network, n_members)
        self.classes = tuple(classes)
        self.floors = floors
        self._caps = [
            (self.classes.index(part._replace(sign=1)), index, floors[part.label])
            for index, part in enumerate(self.classes)
            if part.sign < 0 and floors[part.label] is not None
        ]

    def bounded(self, outputs: Tensor) -> Tensor:
        """Cap the odds of a negative weight, by moving the logit of the negative class."""
        if not self._caps:
            return outputs
        columns = list(outputs.unbind(dim=-1))
        for plus, minus, floor in self._caps:
            columns[minus] = columns[plus] + capped_log_odds(columns[minus] - columns[plus], floor)
        return torch.stack(columns, dim=-1)

    def log_odds_of_reference(self, outputs: Tensor) -> Tensor | None:
        """Return the difference of the reference's two logits."""
        plus, minus = (SignClass(0, sign) for sign in (+1, -1))
        if minus not in self.classes:
            return None
        return outputs[..., self.classes.index(minus)] - outputs[..., self.classes.index(plus)]

    def member_values(self, outputs: Tensor) -> RatioValues:
        """Return the ratio of each member's signed class probabilities."""
        return signed_ratio(outputs, self.classes)

    def sensitivity(self, outputs: Tensor) -> Tensor:
        r"""Return the errors of numerator and denominator, $e_k (1 + |l_k|)$ added in squares."""
        scale = (outputs - outputs.amax(dim=-1, keepdim=True)).exp()
        errors = (scale * (1.0 + outputs.abs())).square()
        zero = torch.zeros_like(scale[..., 0])
        sums, squares = [zero, zero], [zero, zero]  # of the reference and of the target
        for index, part in enumerate(self.classes):
            sums[part.label] = sums[part.label] + part.sign * scale[..., index]
            squares[part.label] = squares[part.label] + errors[..., index]
        (reference, target), (of_reference, of_target) = sums, squares
        return (of_target + (target / reference).square() * of_reference).sqrt() / reference.abs()

    def mean_with(self, other: Self) -> Self:
        """Return a model of one member, whose network is the mean of this one's and of that of another of its shape.

        Means are of the log-probabilities, as in `average`.
        """
        both = copy.deepcopy(self)
        both.network, both.n_members = StackedMlp.side_by_side([self.network, other.network]), 2
        return both.averaged()

    def average(self, outputs: Tensor) -> Tensor:
        """Average the log-probabilities, in which cross-entropy is convex."""
        return torch.log_softmax(outputs, dim=-1).mean(dim=0, keepdim=True)

    def document_fields(self) -> dict[str, Any]:
        """Return the classes and the floors."""
        classes = [[part.label, part.sign] for part in self.classes]
        return {"kind": "sign-resolved", "classes": classes, "floors": floors_document(self.floors)}

    @classmethod
    def from_document(cls, document: ResolvedModelDocument, stored: StoredModel) -> Self:
        """Make the model again."""
        classes = [SignClass(label, sign) for label, sign in document.classes]
        return cls(stored.scaling, stored.network, document.n_members, classes, document.floors.restored())

    def add_onnx_bounded(self, graph: OnnxGraph, outputs: str) -> str:
        """Add the caps of the sign odds to a graph: new logits of the negative classes."""
        columns = {}
        for label, floor in enumerate(self.floors):
            pair = [index for index, part in enumerate(self.classes) if part.label == label]
            if floor is None or len(pair) < 2:
                continue
            plus, minus = (graph.add("Gather", outputs, graph.axes(index), axis=-1) for index in pair)
            capped = add_capped_log_odds(graph, graph.add("Sub", minus, plus), floor)
            columns[pair[1]] = graph.add("Add", plus, capped)
        if not columns:
            return outputs
        every = [
            columns.get(index) or graph.add("Gather", outputs, graph.axes(index), axis=-1)
            for index in range(len(self.classes))
        ]
        return graph.add("Concat", *every, axis=-1)

    def add_onnx_members(self, graph: OnnxGraph, outputs: str, *, n_members: int) -> str:  # noqa: ARG002
        """Add the ratio of signed class probabilities to a graph."""
        largest = graph.add("ReduceMax", outputs, graph.axes(-1), keepdims=1)
        scale = graph.add("Exp", graph.add("Sub", outputs, largest))
        target = np.array([part.sign * part.label for part in self.classes], dtype=np.float64)
        reference = np.array([part.sign * (1 - part.label) for part in self.classes], dtype=np.float64)
        return graph.add("Div", graph.add("MatMul", scale, target), graph.add("MatMul", scale, reference))

    def add_onnx_average(self, graph: OnnxGraph, outputs: str) -> str:
        """Add the average of the log-probabilities to a graph."""
        outputs = graph.add("LogSoftmax", outputs, axis=-1)
        return graph.add("ReduceMean", outputs, graph.axes(0), keepdims=1)
