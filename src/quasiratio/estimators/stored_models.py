"""Ratio models and training histories to documents and tensors, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.stored_losses import UserLosses, loss_document, stored_loss
from quasiratio.losses import RatioLoss
from quasiratio.model_files.bundle import Bundle
from quasiratio.model_files.document import as_measured
from quasiratio.model_files.model_documents import (
    DirectModelDocument,
    FloorsDocument,
    HistoryDocument,
    MixtureModelDocument,
    NetworkDocument,
    ObjectsDocument,
    ResolvedModelDocument,
    ScalingDocument,
)
from quasiratio.model_files.parameter_documents import LossDocument
from quasiratio.networks import FeatureScaling, ObjectCoordinates, StackedMlp
from quasiratio.networks.objects import ObjectColumns
from quasiratio.ratios import (
    DirectModel,
    RatioModel,
    SignClass,
    SignedMixtureModel,
    SignFloors,
    SignResolvedModel,
)
from quasiratio.training import TrainingHistory

__all__ = [
    "history_document",
    "history_tensors",
    "model_document",
    "network_tensors",
    "stored_history",
    "stored_model",
]

Arrays = dict[str, npt.NDArray[Any]]
AnyModelDocument = DirectModelDocument | MixtureModelDocument | ResolvedModelDocument


def model_document(model: RatioModel) -> AnyModelDocument:
    """Describe a trained model, all but the weights of its networks."""
    network, scaling = model.network, model.scaling
    shapes = [tuple(weight.shape) for weight in network.weights]
    common: dict[str, Any] = {
        "n_members": model.n_members,
        "output_noise": model.output_noise,
        "tuned_with": None if model.tuned_with is None else loss_document(model.tuned_with),
        "scaling": _scaling_document(scaling),
        "network": NetworkDocument(
            n_networks=network.n_networks,
            n_inputs=shapes[0][1],
            hidden_layers=[shape[2] for shape in shapes[:-1]],
            n_outputs=shapes[-1][2],
            activation=network.activation,
        ),
    }
    if isinstance(model, DirectModel):
        return DirectModelDocument(kind="direct", loss=loss_document(model.loss), **common)
    if isinstance(model, SignedMixtureModel):
        common["pairs"] = [list(pair) for pair in model.pairs]
        common["coefficients"] = model.coefficients.detach().tolist()
        floors = FloorsDocument(**model.floors._asdict())
        return MixtureModelDocument(kind="signed-mixture", floors=floors, **common)
    if isinstance(model, SignResolvedModel):
        classes = [[part.label, part.sign] for part in model.classes]
        floors = FloorsDocument(**model.floors._asdict())
        return ResolvedModelDocument(kind="sign-resolved", classes=classes, floors=floors, **common)
    msg = f"Got a model of the class {type(model).__qualname__}, which model files do not know."
    raise InvalidInputError(msg)


def network_tensors(model: RatioModel, prefix: str) -> Arrays:
    """Return the weights of all networks by name."""
    network = model.network
    return {
        f"{prefix}{name}.{layer}": parameter.detach().cpu().numpy()
        for name, parameters in (("weights", network.weights), ("biases", network.biases))
        for layer, parameter in enumerate(parameters)
    }


def stored_model(
    document: AnyModelDocument, tensors: Arrays, prefix: str, losses: UserLosses, device: torch.device
) -> RatioModel:
    """Make a model from its document and its tensors, whose names and shapes were checked."""
    scaling = _stored_scaling(document.scaling)
    network = _stored_network(document.network, tensors, prefix)
    model: RatioModel
    if isinstance(document, DirectModelDocument):
        model = DirectModel(scaling, network, document.n_members, _usable_loss(document.loss, losses))
    elif isinstance(document, MixtureModelDocument):
        pairs = [(first, second) for first, second in document.pairs]
        coefficients = torch.tensor(document.coefficients, dtype=torch.float32)
        model = SignedMixtureModel(
            scaling, network, document.n_members, pairs, coefficients, _stored_floors(document.floors)
        )
    else:
        classes = [SignClass(label, sign) for label, sign in document.classes]
        model = SignResolvedModel(
            scaling, network, document.n_members, classes, _stored_floors(document.floors)
        )
    model.output_noise = document.output_noise
    if document.tuned_with is not None:
        model.tuned_with = _usable_loss(document.tuned_with, losses)
    return model.to(device).eval()


def _scaling_document(scaling: FeatureScaling) -> ScalingDocument:
    uses_log = scaling.uses_log.tolist()
    fill = [] if scaling.fill is None else scaling.fill.tolist()
    return ScalingDocument(
        uses_log=uses_log,
        floor=[f if is_log else None for f, is_log in zip(scaling.floor.tolist(), uses_log, strict=True)],
        mean=scaling.mean.tolist(),
        scale=scaling.scale.tolist(),
        periodic=torch.nonzero(scaling.is_periodic).flatten().tolist(),
        dropped=torch.nonzero(~scaling.is_kept).flatten().tolist(),
        offset=[] if scaling.offset is None else scaling.offset.tolist(),
        unit=[] if scaling.unit is None else scaling.unit.tolist(),
        fill=[None if np.isnan(value) else value for value in fill],
        objects=None if scaling.objects is None else _objects_document(scaling.objects),
    )


def _objects_document(objects: ObjectCoordinates) -> ObjectsDocument:
    values = asdict(objects)
    return ObjectsDocument(**values | {"objects": list(values["objects"])})


def _stored_scaling(document: ScalingDocument) -> FeatureScaling:
    objects = None
    if document.objects is not None:
        values = document.objects.model_dump()
        objects = ObjectCoordinates(
            **values | {"objects": tuple(ObjectColumns(**group) for group in values["objects"])}
        )
    scaling = FeatureScaling(document.n_features, objects)
    scaling.uses_log.copy_(torch.tensor(document.uses_log))
    scaling.floor.copy_(torch.tensor([-torch.inf if f is None else f for f in document.floor]))
    scaling.mean.copy_(torch.tensor(document.mean))
    scaling.scale.copy_(torch.tensor(document.scale))
    scaling.is_periodic[document.periodic] = True
    scaling.is_kept[document.dropped] = False
    if document.offset:
        scaling.offset = torch.tensor(document.offset, dtype=torch.float64)
        scaling.unit = torch.tensor(document.unit, dtype=torch.float64)
    if document.fill:
        fill = [np.nan if value is None else value for value in document.fill]
        scaling.fill = torch.tensor(fill, dtype=torch.float64)
    return scaling


def _stored_floors(document: FloorsDocument) -> SignFloors:
    return SignFloors(document.reference, document.target)


def _stored_network(document: NetworkDocument, tensors: Arrays, prefix: str) -> StackedMlp:
    network = StackedMlp(
        document.n_networks,
        document.n_inputs,
        document.hidden_layers,
        document.n_outputs,
        activation=document.activation,
        generator=torch.Generator().manual_seed(0),  # overwritten; the global generator is left alone
    )
    with torch.no_grad():
        for name, parameters in (("weights", network.weights), ("biases", network.biases)):
            for layer, parameter in enumerate(parameters):
                values = tensors[f"{prefix}{name}.{layer}"]
                if not np.all(np.isfinite(values)):
                    msg = f"Got a model with values that are NaN or infinite in '{prefix}{name}.{layer}'; refit it."
                    raise InvalidInputError(msg)
                parameter.copy_(torch.from_numpy(np.array(values)))
    return network


def _usable_loss(document: LossDocument, losses: UserLosses) -> RatioLoss:
    loss = stored_loss(document, losses)
    loss.link  # noqa: B018 - raises where a parameter is still to be chosen
    return loss


def history_document(history: TrainingHistory) -> HistoryDocument:
    """Summarise a training; the curves go to the tensors."""
    return HistoryDocument(
        stage=history.stage,
        n_epochs=len(history),
        best_epoch=[int(epoch) for epoch in history.best_epoch],
        diverged=[bool(flag) for flag in history.diverged],
        n_steps=int(history.n_steps),
        seconds=as_measured(np.nan),  # another each time; the times stand beside the model
        best_validation_loss=[as_measured(loss) for loss in history.kept_loss],
    )


def history_tensors(history: TrainingHistory, prefix: str) -> Arrays:
    """Return the curves of a training by name."""
    shape = (len(history), len(history.best_epoch))
    return {
        f"{prefix}steps": np.array(history.steps, dtype=np.int64),
        f"{prefix}learning_rate": np.array(history.learning_rate, dtype=np.float64),
        f"{prefix}seconds": np.full(len(history), np.nan),
        f"{prefix}train_loss": np.array(history.train_loss, dtype=np.float64).reshape(shape),
        f"{prefix}validation_loss": np.array(history.validation_loss, dtype=np.float64).reshape(shape),
    }


def stored_history(document: HistoryDocument, bundle: Bundle, prefix: str) -> TrainingHistory:
    """Make a history from its document, its tensors and its times; older models have these among the tensors."""
    tensors, seconds = bundle.tensors, bundle.times.get(prefix, [])
    return TrainingHistory(
        stage=document.stage,
        steps=tensors[f"{prefix}steps"].tolist(),
        train_loss=[np.array(row) for row in tensors[f"{prefix}train_loss"]],
        validation_loss=[np.array(row) for row in tensors[f"{prefix}validation_loss"]],
        learning_rate=tensors[f"{prefix}learning_rate"].tolist(),
        seconds=seconds if len(seconds) == document.n_epochs else tensors[f"{prefix}seconds"].tolist(),
        best_epoch=np.array(document.best_epoch, dtype=np.int64),
        diverged=np.array(document.diverged, dtype=np.bool_),
    )
