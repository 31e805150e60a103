"""What every ratio model has: scaled features, stacked networks, members and their combination."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from quasiratio.columns import FeatureMatrix
from quasiratio.errors import InvalidInputError
from quasiratio.losses.loss_document import LossDocument, UserLosses, loss_document, stored_loss
from quasiratio.model_files.document import Count, Document, Name, TensorSpec, refuse_if
from quasiratio.model_files.onnx_graph import OnnxGraph, RatioNames
from quasiratio.networks.mlp import TILE, whole_tiles
from quasiratio.networks.stored_networks import (
    Arrays,
    NetworkDocument,
    ScalingDocument,
    add_networks,
    add_scaling,
    network_document,
    network_tensors,
    scaling_document,
    stored_network,
    stored_scaling,
)
from quasiratio.ratios.double_precision import (
    USUAL_NOISE,
    DoubleNetworks,
    is_outlying,
    needs_double,
    rounding_noise,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from quasiratio.losses import RatioLoss
    from quasiratio.networks import FeatureScaling, StackedMlp

__all__ = [
    "OutputView",
    "RatioModel",
    "RatioModelDocument",
    "RatioPredictions",
    "RatioValues",
    "RatioView",
    "StoredModel",
    "usable_loss",
]

_CHUNK_VALUES = (
    2**20
)  # of a layer: memory for more would go back to the system, and come from there, each time


class RatioValues(NamedTuple):
    """Ratios, and where the estimated reference density is zero or negative (`None`: it cannot be)."""

    ratio: Tensor
    nonpositive_reference: Tensor | None


class RatioPredictions(NamedTuple):
    """Predictions for a set of events, before normalisation."""

    ratio: npt.NDArray[np.float64]
    members: npt.NDArray[np.float64]
    n_nonpositive_reference: int


class RatioModelDocument(Document):
    """What every ratio model has in `model.json`: all but the weights of its networks.

    A model of its own derives from it, with a `kind: Literal[...]` and what else its constructor needs.
    """

    kind: Name
    n_members: Count
    scaling: ScalingDocument
    network: NetworkDocument
    tuned_with: LossDocument | None
    output_noise: Annotated[float, Field(ge=0)]

    def require_networks(self, n_per_member: int, n_outputs: int) -> None:
        """Complain, as a validator does, unless the networks are as many and as wide as the model has them."""
        refuse_if(
            self.network.n_inputs != self.scaling.n_inputs,
            "the networks and the scaling have different numbers of features",
        )
        refuse_if(
            self.network.n_networks != self.n_members * n_per_member,
            "the number of networks does not fit the number of members",
        )
        refuse_if(self.network.n_outputs != n_outputs, "the networks have the wrong number of outputs")

    def tensors(self, prefix: str) -> Iterator[tuple[str, TensorSpec]]:
        """Return names, types and shapes of all tensors."""
        yield from self.network.tensors(f"{prefix}network.")


class StoredModel(NamedTuple):
    """The parts of a model that were made again from a file, and the losses that the user gave."""

    scaling: FeatureScaling
    network: StackedMlp
    losses: UserLosses


def usable_loss(document: LossDocument, losses: UserLosses) -> RatioLoss:
    """Make the loss of a trained model again."""
    loss = stored_loss(document, losses)
    loss.link  # noqa: B018 - raises where a parameter is still to be chosen
    return loss


class RatioModel(nn.Module, ABC):
    """Raw features in, ratio out, for `n_members` members at once.

    Args:
        scaling: Turns raw features into network inputs.
        network: All networks of all members; member `k` owns the `k`-th block of rows.
        n_members: Number of members.

    Attributes:
        tuned_with: The loss that tuned the model as a whole, if any.
        output_noise: Relative rounding error of the networks' outputs in float32.
        document_type: What the model is in `model.json`.
    """

    document_type: ClassVar[type[RatioModelDocument]]

    def __init__(self, scaling: FeatureScaling, network: StackedMlp, n_members: int) -> None:
        super().__init__()
        self.scaling = scaling
        self.network = network
        self.n_members = n_members
        self.tuned_with: RatioLoss | None = None
        self.output_noise = USUAL_NOISE

    def outputs(self, inputs: Tensor) -> Tensor:
        """Evaluate every network on scaled inputs, `(n, d)` for all or `(n_members, n, d)` for each."""
        if inputs.dim() == 3:
            inputs = inputs.repeat_interleave(self.network.n_networks // len(inputs), dim=0)
        return self.bounded(self.network(inputs))

    def bounded(self, outputs: Tensor) -> Tensor:
        """Impose on the networks' outputs what the model knows of the densities; nothing by default."""
        return outputs

    @abstractmethod
    def member_values(self, outputs: Tensor) -> RatioValues:
        """Turn network outputs into ratios of shape `(n_members, n)`."""

    @abstractmethod
    def sensitivity(self, outputs: Tensor) -> Tensor:
        r"""Return $\sigma_r / \delta$, `(n_members, n)`: what relative errors of the outputs do to the ratio.

        It decides which events need double precision (see `double_precision`); a few digits are enough.
        """

    @abstractmethod
    def average(self, outputs: Tensor) -> Tensor:
        """Average the networks of all members into those of one, in the same shape with one member."""

    def averaged(self) -> Self:
        """Return a model of one member, whose networks are the means of those of all members."""
        one = copy.deepcopy(self)
        one.network, one.n_members = self.network.averaged(self.n_members), 1
        return one

    def log_odds_of_reference(self, outputs: Tensor) -> Tensor | None:  # noqa: ARG002
        """Return the logarithm of the odds of a negative reference weight, where the model has such odds.

        Args:
            outputs: Outputs of one member, or of the average of all.
        """
        return None

    @torch.inference_mode()
    def reference_asymmetry(self, features: FeatureMatrix) -> npt.NDArray[np.float64] | None:
        """Return the estimated sign asymmetry of the reference at each event, or `None` where there is none."""
        device = self.scaling.mean.device
        parts = []
        for start in range(0, len(features), self._chunk_events):
            chunk = self.scaling.taken(features[start : start + self._chunk_events], device)
            outputs = self.outputs(self.scaling(chunk))
            averaged = self.average(outputs) if self.n_members > 1 else outputs
            log_odds = self.log_odds_of_reference(averaged.double())
            if log_odds is None:
                return None
            parts.append(torch.tanh(-0.5 * log_odds).flatten().cpu().numpy())
        return np.concatenate(parts) if parts else np.empty(0)

    def combined_values(self, outputs: Tensor) -> RatioValues:
        """Return the ratio of the whole ensemble, of shape `(1, n)`.

        Members are averaged where their training risk is convex, so that by Jensen's inequality the
        average is never worse than the members are on average: in the networks' outputs, or, for a
        tuned model, in the raw coordinate of the tuning loss.
        """
        return self._combined(outputs)[0]

    def _combined(self, outputs: Tensor) -> tuple[RatioValues, Tensor]:
        """Return the ratio of the whole ensemble and its sensitivity."""
        if self.n_members == 1 or self.tuned_with is None:
            return self._single(self.average(outputs) if self.n_members > 1 else outputs)
        (ratios, nonpositive), sensitivities = self._single(outputs)
        loss = self.tuned_with
        mean = loss.link.ratio(loss.average(loss.link.raw(ratios)))[None]
        values = RatioValues(mean, None if nonpositive is None else nonpositive.any(dim=0, keepdim=True))
        return values, sensitivities.square().mean(dim=0, keepdim=True).sqrt()

    def _single(self, outputs: Tensor) -> tuple[RatioValues, Tensor]:
        """Return the ratios of single members and their sensitivities."""
        return self.member_values(outputs), self.sensitivity(outputs.float())

    @torch.inference_mode()
    def measure_noise(self, features: FeatureMatrix) -> None:
        """Set `output_noise` from the rounding errors at these events."""
        events = self.scaling.taken(features, self.scaling.mean.device)
        exact = self.bounded(DoubleNetworks(self.scaling, self.network).outputs(events))
        self.output_noise = rounding_noise(self.outputs(self.scaling(events)).double(), exact)

    @torch.inference_mode()
    def predict(self, features: FeatureMatrix, *, members: bool = False) -> RatioPredictions:
        """Predict in chunks of constant memory.

        Networks run in float32 and the recombination in float64; events whose ratio would suffer from the
        rounding of the networks are evaluated in float64 altogether.

        Args:
            features: `(n, d)` raw features.
            members: Whether to fill in the ratios of the single members as well.
        """
        n_events = len(features)
        ratio = np.empty(n_events)
        member_ratios = np.empty((self.n_members if members else 0, n_events))
        n_nonpositive = 0
        device = self.scaling.mean.device
        exact = DoubleNetworks(self.scaling, self.network)
        size = self._chunk_events
        with self.network.threads(n_events):
            for start in range(0, n_events, size):
                n_here = min(size, n_events - start)
                chunk = self.scaling.taken(features[start : start + size], device)
                if n_events >= TILE:  # a handful is evaluated as it always was, to the bit
                    chunk = whole_tiles(chunk)
                scaled = self.scaling(chunk)
                outputs, is_far = self.outputs(scaled).double(), is_outlying(scaled)
                values = self._refined(self._combined, outputs, chunk, exact, is_far)
                ratio[start : start + size] = values.ratio[0, :n_here].cpu().numpy()
                if values.nonpositive_reference is not None:
                    n_nonpositive += int(values.nonpositive_reference[:, :n_here].sum())
                if members:
                    rows = self._refined(self._single, outputs, chunk, exact, is_far).ratio
                    member_ratios[:, start : start + size] = rows[:, :n_here].cpu().numpy()
        return RatioPredictions(ratio, member_ratios, n_nonpositive)

    @property
    def _chunk_events(self) -> int:
        return math.ceil(_CHUNK_VALUES / (self.network.n_networks * self.network.width))

    def _refined(
        self,
        evaluate: Callable[[Tensor], tuple[RatioValues, Tensor]],
        outputs: Tensor,
        features: Tensor,
        exact: DoubleNetworks,
        is_far: Tensor,
    ) -> RatioValues:
        """Evaluate, and where rounding matters evaluate again in float64."""
        (ratio, nonpositive), sensitivity = evaluate(outputs)
        rough = needs_double(ratio, sensitivity, self.output_noise) | is_far
        if rough.any():
            better, _ = evaluate(self.bounded(exact.outputs(features[rough])))
            ratio = ratio.clone()
            ratio[:, rough] = better.ratio
            if nonpositive is not None and better.nonpositive_reference is not None:
                nonpositive[:, rough] = better.nonpositive_reference
        return RatioValues(ratio, nonpositive)

    def document_fields(self) -> dict[str, Any]:
        """Return what the document has beside the fields of every model, `kind` among it."""
        return {}

    @classmethod
    def from_document(cls, document: Any, stored: StoredModel) -> Self:  # noqa: ANN401 - of the type `document_type`
        """Make the model again from its document, its scaling and its networks."""
        msg = f"{cls.__qualname__} has no from_document, and cannot be loaded"
        raise NotImplementedError(msg)

    def document(self) -> RatioModelDocument:
        """Describe the trained model, all but the weights of its networks."""
        return self.document_type(
            n_members=self.n_members,
            output_noise=self.output_noise,
            tuned_with=None if self.tuned_with is None else loss_document(self.tuned_with),
            scaling=scaling_document(self.scaling),
            network=network_document(self.network),
            **self.document_fields(),
        )

    def tensors(self, prefix: str) -> Arrays:
        """Return the weights by name."""
        return network_tensors(self.network, f"{prefix}network.")

    @classmethod
    def stored(
        cls,
        document: RatioModelDocument,
        tensors: Arrays,
        prefix: str,
        *,
        losses: UserLosses,
        device: torch.device,
    ) -> Self:
        """Make the model from its document and its tensors, whose names and shapes were checked."""
        network = stored_network(document.network, tensors, f"{prefix}network.")
        model = cls.from_document(document, StoredModel(stored_scaling(document.scaling), network, losses))
        model.output_noise = document.output_noise
        if document.tuned_with is not None:
            model.tuned_with = usable_loss(document.tuned_with, losses)
        return model.to(device).eval()

    def add_onnx_members(self, graph: OnnxGraph, outputs: str, *, n_members: int) -> str:  # noqa: ARG002
        """Add what `member_values` does to a graph: the ratios `(n_members, n)` of each member, or of their average."""
        raise self._not_exportable(n_members)

    def add_onnx_average(self, graph: OnnxGraph, outputs: str) -> str:  # noqa: ARG002
        """Add what `average` does to a graph."""
        raise self._not_exportable(self.n_members)

    def add_onnx_bounded(self, graph: OnnxGraph, outputs: str) -> str:  # noqa: ARG002
        """Add what `bounded` does to a graph; nothing by default."""
        return outputs

    def add_onnx(self, graph: OnnxGraph, features: str) -> RatioNames:
        """Add the whole model to a graph: raw features in double precision to ratios before normalisation."""
        outputs = add_networks(graph, add_scaling(graph, features, self.scaling), self.network)
        outputs = self.add_onnx_bounded(graph, outputs)
        members = self.add_onnx_members(graph, outputs, n_members=self.n_members)
        if self.n_members == 1:
            return RatioNames(_first_row(graph, members), None)
        if self.tuned_with is None:
            averaged = self.add_onnx_members(graph, self.add_onnx_average(graph, outputs), n_members=1)
            return RatioNames(_first_row(graph, averaged), members)
        loss = self.tuned_with
        mean = loss.checked_onnx_average(graph, loss.add_onnx_raw(graph, members))
        return RatioNames(loss.add_onnx_ratio(graph, _first_row(graph, mean)), members)

    def _not_exportable(self, n_members: int) -> InvalidInputError:
        what = (
            f"a model of the class {type(self).__qualname__} with {n_members} member{'s' * (n_members > 1)}"
        )
        return InvalidInputError(
            f"Got {what}, which has no ONNX form; give it add_onnx_members and add_onnx_average."
        )


def _first_row(graph: OnnxGraph, rows: str) -> str:
    return graph.add("Squeeze", rows, graph.axes(0))


class OutputView(nn.Module):
    """A ratio model seen as a map from scaled features to its bounded outputs, for training."""

    def __init__(self, model: RatioModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor) -> Tensor:
        """Return outputs of shape `(n_networks, n, n_outputs)`."""
        return self.model.outputs(inputs)


class RatioView(nn.Module):
    """A ratio model seen as a map from scaled features to member ratios, for tuning."""

    def __init__(self, model: RatioModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor) -> Tensor:
        """Return ratios of shape `(n_members, n)`."""
        return self.model.member_values(self.model.outputs(inputs)).ratio
