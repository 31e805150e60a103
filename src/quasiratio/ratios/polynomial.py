r"""Coefficient functions $\rho_k(x) = d\sigma_k(x)/d\sigma_\mathrm{ref}(x)$ of a density that is a polynomial of parameters.

Networks learn some functions $f_j$; the coefficient functions are affine in them, $\rho = A f + b$. Terms that are constant
on the reference, and linear relations between terms (such as $\sum_k P_k(\theta_\mathrm{ref})\,\rho_k = 1$), are in $A$ and $b$,
and hold exactly. Three ways to make the $f_j$ of network outputs:

* `RegressionModel`: $f_j = \mu_j + \sigma_j\,o_j$.
* `SignClassesModel`: a softmax over the reference and both signs of each function,
  $f_j = (\pi_{j+} - \pi_{j-}) / (a_j\,\pi_0)$.
* `SquareModel`: $\lambda(x \mid \theta) = |L(x)^T (1, \theta)|^2$ with $L$ lower triangular, which is never negative, and
  general for the second order: every nonnegative quadratic polynomial has this form.

Where the reference has weights of both signs, one more output is the logarithm of the odds of a negative weight (a class of its
own for the softmax), capped where the reference density is positive (see `sign_odds`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from quasiratio.model_files.document import refuse_if
from quasiratio.model_files.onnx_graph import OnnxGraph
from quasiratio.networks.stored_networks import (
    Arrays,
    stored_network,
    stored_scaling,
)
from quasiratio.ratios.coefficient_model import (
    AffineTerms,
    CoefficientModel,
    CoefficientModelDocument,
    StoredModel,
    TargetClass,
    add_columns,
    add_mean,
)
from quasiratio.ratios.sign_odds import add_capped_log_odds, capped_log_odds
from quasiratio.ratios.square_model import SquareDocument, SquareModel

if TYPE_CHECKING:
    import numpy.typing as npt

    from quasiratio.networks import FeatureScaling, StackedMlp

__all__ = [
    "AnyCoefficientDocument",
    "RegressionModel",
    "SignClassesModel",
    "stored_coefficient_model",
]


class RegressionDocument(CoefficientModelDocument):
    """`RegressionModel`."""

    kind: Literal["regression"]

    @property
    def n_outputs(self) -> int:
        """One for each function, and the sign."""
        return self.n_functions + self.has_signs

    def constants(self) -> dict[str, int]:
        """Mean and spread of each function."""
        return {"center": self.n_functions, "spread": self.n_functions}


class RegressionModel(CoefficientModel):
    r"""Functions that are outputs of a network, $f_j = \mu_j + \sigma_j\,o_j$.

    Args:
        scaling: Turns raw features into network inputs.
        network: One network per member, with one output per function, and one more for the sign where there is any.
        n_members: Number of members.
        terms: How coefficient functions follow from the learned functions.
        floor: Smallest sign asymmetry of the reference; `None` for any.
        center: Mean of each function.
        spread: Its standard deviation.
        has_signs: Whether the last output is the sign of the reference weight.
    """

    center: Tensor
    spread: Tensor
    document_type: ClassVar[type[CoefficientModelDocument]] = RegressionDocument

    def __init__(
        self,
        scaling: FeatureScaling,
        network: StackedMlp,
        n_members: int,
        terms: AffineTerms,
        floor: float | None,
        *,
        center: npt.NDArray[np.float64],
        spread: npt.NDArray[np.float64],
        has_signs: bool,
    ) -> None:
        super().__init__(scaling, network, n_members, terms, floor)
        self.has_signs = has_signs
        self.register_buffer("center", torch.from_numpy(np.array(center, dtype=np.float64, order="C")))
        self.register_buffer("spread", torch.from_numpy(np.array(spread, dtype=np.float64, order="C")))

    def training_outputs(self, outputs: Tensor) -> Tensor:
        """Return standardised functions, and the capped log-odds behind them."""
        if not self.has_signs:
            return outputs
        return torch.cat([outputs[..., :-1], capped_log_odds(outputs[..., -1:], self.floor)], dim=-1)

    def log_odds(self, outputs: Tensor) -> Tensor | None:
        """Return the last output, capped."""
        return capped_log_odds(outputs[..., -1], self.floor) if self.has_signs else None

    def member_functions(self, outputs: Tensor) -> Tensor:
        """Undo the standardisation."""
        return self.center + self.spread * outputs[..., : len(self.center)]

    def combined_functions(self, outputs: Tensor) -> Tensor:
        """Average the functions."""
        return self.member_functions(outputs.mean(dim=0))

    def document_fields(self) -> dict[str, Any]:
        """Return the kind."""
        return {"kind": "regression", "has_signs": self.has_signs}

    @classmethod
    def from_document(cls, document: RegressionDocument, stored: StoredModel) -> Self:
        """Make the model again."""
        return cls(*stored[:-1], **stored.constants, has_signs=document.has_signs)

    def add_onnx_functions(self, graph: OnnxGraph, outputs: str, *, average: bool) -> str:
        """Undo the standardisation."""
        outputs = add_columns(graph, outputs, range(len(self.center)))
        if average:
            outputs = add_mean(graph, outputs)
        return graph.add(
            "Add", graph.add("Mul", outputs, self.spread.cpu().numpy()), self.center.cpu().numpy()
        )


class SignClassesDocument(CoefficientModelDocument):
    """`SignClassesModel`."""

    kind: Literal["sign-resolved"]
    classes: list[Annotated[list[int], Field(min_length=2, max_length=2)]]
    is_bounded: bool = False

    @model_validator(mode="after")
    def _check_classes(self) -> Self:
        reference = [[-1, 1], [-1, -1]] if self.has_signs else [[-1, 1]]
        refuse_if(self.classes[: len(reference)] != reference, "the reference is not the first class")
        others = self.classes[len(reference) :]
        is_known = all(0 <= function < self.n_functions and sign in (1, -1) for function, sign in others)
        refuse_if(not is_known, "a class is none of the functions")
        return self

    @property
    def n_outputs(self) -> int:
        """One for each class."""
        return len(self.classes)

    def constants(self) -> dict[str, int]:
        """Scale of each function, and the largest share of each of its classes."""
        bounds = {"largest": len(self.classes) - 1 - self.has_signs} if self.is_bounded else {}
        return {"scales": self.n_functions, **bounds}


class SignClassesModel(CoefficientModel):
    r"""Functions from a softmax over the reference and the signs of each function.

    $f_j = (\pi_{j+} - \pi_{j-}) / (a_j\,(\pi_{0+} - \pi_{0-}))$.

    Args:
        scaling: Turns raw features into network inputs.
        network: One network per member, with one output per class.
        n_members: Number of members.
        terms: How coefficient functions follow from the learned functions.
        floor: Smallest sign asymmetry of the reference; `None` for any.
        classes: The classes that carry weight; the first is the positive reference.
        scales: $a_j$ of each function.
        largest: Upper bound of the share of each class behind the reference, relative to the reference; `None` for no bound. An
            exponential that leaves the events it was trained on would otherwise reach any number.
    """

    scales: Tensor
    largest: Tensor | None
    document_type: ClassVar[type[CoefficientModelDocument]] = SignClassesDocument

    def __init__(
        self,
        scaling: FeatureScaling,
        network: StackedMlp,
        n_members: int,
        terms: AffineTerms,
        floor: float | None,
        *,
        classes: Sequence[TargetClass],
        scales: npt.NDArray[np.float64],
        largest: npt.NDArray[np.float64] | None = None,
    ) -> None:
        super().__init__(scaling, network, n_members, terms, floor)
        self.classes = tuple(classes)
        self.has_signs = TargetClass(-1, -1) in self.classes
        self.register_buffer("scales", torch.from_numpy(np.array(scales, dtype=np.float64, order="C")))
        bounds = None if largest is None else torch.from_numpy(np.array(largest, dtype=np.float64, order="C"))
        self.register_buffer("largest", bounds)

    @property
    def n_reference(self) -> int:
        """Classes of the reference."""
        return 1 + self.has_signs

    def training_outputs(self, outputs: Tensor) -> Tensor:
        """Return the logits, with the odds of a negative reference capped."""
        if not self.has_signs or self.floor is None:
            return outputs
        positive = outputs[..., :1]
        negative = positive + capped_log_odds(outputs[..., 1:2] - positive, self.floor)
        return torch.cat([positive, negative, outputs[..., 2:]], dim=-1)

    def log_odds(self, outputs: Tensor) -> Tensor | None:
        """Return the difference of the two logits of the reference, capped."""
        return capped_log_odds(outputs[..., 1] - outputs[..., 0], self.floor) if self.has_signs else None

    def member_functions(self, outputs: Tensor) -> Tensor:
        """Recombine the classes of each function, relative to the positive reference."""
        return self._functions(self.training_outputs(outputs))

    def _functions(self, logits: Tensor) -> Tensor:
        if self.largest is not None:  # training does without: a bound that is felt there bends the tails
            whole = torch.logsumexp(logits[..., : self.n_reference], dim=-1, keepdim=True)
            others = torch.minimum(
                logits[..., self.n_reference :], whole + self.largest.log().to(logits.dtype)
            )
            logits = torch.cat([logits[..., : self.n_reference], others], dim=-1)
        relative = (logits - logits[..., :1]).exp()
        reference = 1.0 - relative[..., 1] if self.has_signs else torch.ones_like(relative[..., 0])
        functions = [torch.zeros_like(reference) for _ in range(len(self.scales))]
        for index, (function, sign) in enumerate(self.classes):
            if function >= 0:
                functions[function] = functions[function] + sign * relative[..., index]
        return torch.stack(functions, dim=-1) / (self.scales * reference[..., None])

    def combined_functions(self, outputs: Tensor) -> Tensor:
        """Average log-probabilities, in which the cross-entropy is convex."""
        return self._functions(torch.log_softmax(self.training_outputs(outputs), dim=-1).mean(dim=0))

    def document_fields(self) -> dict[str, Any]:
        """Return the kind and the classes."""
        classes = [[part.function, part.sign] for part in self.classes]
        return {
            "kind": "sign-resolved",
            "has_signs": self.has_signs,
            "classes": classes,
            "is_bounded": self.largest is not None,
        }

    @classmethod
    def from_document(cls, document: SignClassesDocument, stored: StoredModel) -> Self:
        """Make the model again."""
        return cls(
            *stored[:-1], **stored.constants, classes=[TargetClass(*part) for part in document.classes]
        )

    def add_onnx_functions(self, graph: OnnxGraph, outputs: str, *, average: bool) -> str:
        """Add the cap, the average of log-probabilities and the recombination."""
        n_classes, n_functions = len(self.classes), len(self.scales)
        if self.has_signs and self.floor is not None:
            plus, minus = (add_columns(graph, outputs, [index]) for index in (0, 1))
            capped = graph.add(
                "Add", plus, add_capped_log_odds(graph, graph.add("Sub", minus, plus), self.floor)
            )
            rest = add_columns(graph, outputs, range(2, n_classes))
            outputs = graph.add("Concat", plus, capped, rest, axis=-1)
        if average:
            outputs = add_mean(graph, graph.add("LogSoftmax", outputs, axis=-1))
        if self.largest is not None:
            outputs = self._add_bound(graph, outputs)
        relative = graph.add("Exp", graph.add("Sub", outputs, add_columns(graph, outputs, [0])))
        signs, reference = np.zeros((n_classes, n_functions)), np.zeros((n_classes, 1))
        for index, (function, sign) in enumerate(self.classes):
            if function < 0:
                reference[index] = sign
            else:
                signs[index, function] = sign / float(self.scales[function])
        return graph.add(
            "Div", graph.add("MatMul", relative, signs), graph.add("MatMul", relative, reference)
        )

    def _add_bound(self, graph: OnnxGraph, logits: str) -> str:
        """Add the bound of all shares behind the reference to a graph."""
        bounds = torch.log(self.largest).cpu().numpy() if self.largest is not None else 0.0
        reference = add_columns(graph, logits, range(self.n_reference))
        whole = graph.add("ReduceLogSumExp", reference, graph.axes(-1), keepdims=1)
        others = add_columns(graph, logits, range(self.n_reference, len(self.classes)))
        return graph.add(
            "Concat", reference, graph.add("Min", others, graph.add("Add", whole, bounds)), axis=-1
        )


AnyCoefficientDocument = Annotated[
    RegressionDocument | SignClassesDocument | SquareDocument, Field(discriminator="kind")
]
_MODELS: tuple[type[CoefficientModel], ...] = (RegressionModel, SignClassesModel, SquareModel)


def stored_coefficient_model(
    document: CoefficientModelDocument, tensors: Arrays, prefix: str, *, device: torch.device
) -> CoefficientModel:
    """Make a model from its document and its tensors, whose names and shapes were checked."""
    stored = StoredModel(
        stored_scaling(document.scaling),
        stored_network(document.network, tensors, f"{prefix}network."),
        document.n_members,
        AffineTerms(tensors[f"{prefix}matrix"], tensors[f"{prefix}offset"]),
        document.floor,
        {name: tensors[f"{prefix}{name}"] for name in document.constants()},
    )
    (model_type,) = (one for one in _MODELS if one.document_type is type(document))
    return model_type.from_document(document, stored).to(device).eval()
