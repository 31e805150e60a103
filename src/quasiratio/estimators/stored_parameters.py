"""Constructor parameters to documents and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
from pydantic import ValidationError
from sklearn.base import BaseEstimator

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.auto import AutoRatio
from quasiratio.estimators.base import RatioEstimator
from quasiratio.estimators.direct import DirectRatio
from quasiratio.estimators.positive import PositiveReweighter
from quasiratio.estimators.reweighter import Reweighter
from quasiratio.estimators.sign_resolved import SignResolvedRatio
from quasiratio.estimators.signed_mixture import SignedMixtureRatio
from quasiratio.estimators.stored_losses import UserLosses, loss_document, stored_loss
from quasiratio.losses import RatioLoss
from quasiratio.model_files.document import Document, one_sentence
from quasiratio.model_files.parameter_documents import (
    AutoTemplate,
    DirectTemplate,
    LossDocument,
    MixtureTemplate,
    NamedTemplate,
    PositiveParameters,
    ResolvedTemplate,
    ReweighterParameters,
    Widths,
)

__all__ = ["parameter_document", "require_known_kind", "template_document", "with_parameters"]

_TEMPLATES: dict[type[BaseEstimator], type[Document]] = {
    AutoRatio: AutoTemplate,
    DirectRatio: DirectTemplate,
    SignedMixtureRatio: MixtureTemplate,
    SignResolvedRatio: ResolvedTemplate,
}
_CLASSES = {kind.__name__: kind for kind in (*_TEMPLATES, PositiveReweighter, Reweighter)}


def require_known_kind(estimator: BaseEstimator) -> str:
    """Return the name of the estimator's class, which must be one of ours and no subclass."""
    name = type(estimator).__name__
    if _CLASSES.get(name) is not type(estimator):
        msg = (
            f"Got an estimator of the class {type(estimator).__qualname__}, which model files do not know; expected one "
            f"of {', '.join(_CLASSES)}."
        )
        raise InvalidInputError(msg)
    return name


def template_document(estimator: BaseEstimator) -> Any:  # noqa: ANN401 - one of the templates
    """Describe an unfitted ratio estimator."""
    kind = require_known_kind(estimator)
    template = _TEMPLATES[type(estimator)]
    return _checked(lambda: template(kind=kind, parameters=parameter_document(estimator)))  # type: ignore[call-arg]


def parameter_document(estimator: BaseEstimator) -> Any:  # noqa: ANN401 - one of the parameter documents
    """Describe the constructor parameters of an estimator."""
    values = {name: _stored(name, value) for name, value in estimator.get_params(deep=False).items()}
    if isinstance(estimator, Reweighter):
        return _checked(lambda: ReweighterParameters(**values))
    if isinstance(estimator, PositiveReweighter):
        return _checked(lambda: PositiveParameters(**values))
    document = _TEMPLATES[type(estimator)].model_fields["parameters"].annotation
    return _checked(lambda: cast("type[Document]", document)(**values))


def with_parameters(kind: str, parameters: Document, losses: UserLosses) -> Any:  # noqa: ANN401 - an estimator
    """Make an unfitted estimator."""
    values = {name: _restored(getattr(parameters, name), losses) for name in type(parameters).model_fields}
    return _CLASSES[kind](**values)


def _stored(name: str, value: Any) -> Any:  # noqa: ANN401
    """Turn a parameter into what its document holds."""
    if name == "hidden_layers" and value is not None:
        values = [int(width) for width in value]
        return Widths(container="list" if isinstance(value, list) else "tuple", values=values)
    if name == "periodic" and value is not None:
        return [feature if isinstance(feature, str) else int(feature) for feature in value]
    if name == "fill" and value is not None:
        return {str(feature): float(number) for feature, number in value.items()}
    if name == "objects" and isinstance(value, Mapping):
        return {str(key): [str(column) for column in columns] for key, columns in value.items()}
    if name == "symmetry" and value is not None:
        return value if isinstance(value, str) else [str(kind) for kind in value]
    if name == "random_state":  # a generator cannot be stored; the seed that was drawn from it can
        return int(value) if isinstance(value, int | np.integer) else None
    if name == "device":
        return str(value)
    if name in {"verbose", "normalize", "balanced_draw", "invariants"}:
        return bool(value)
    if isinstance(value, RatioLoss):
        return loss_document(value)
    if isinstance(value, RatioEstimator):
        return template_document(value)
    if isinstance(value, Mapping):
        return [NamedTemplate(name=key, estimator=template_document(e)) for key, e in value.items()]
    return value.item() if isinstance(value, np.generic) else value


def _restored(value: Any, losses: UserLosses) -> Any:  # noqa: ANN401
    """Turn what a document holds into a parameter."""
    if isinstance(value, Widths):
        return tuple(value.values) if value.container == "tuple" else list(value.values)
    if isinstance(value, LossDocument):
        return stored_loss(value, losses)
    if isinstance(value, DirectTemplate | ResolvedTemplate | MixtureTemplate | AutoTemplate):
        return with_parameters(value.kind, value.parameters, losses)
    if isinstance(value, list) and value and isinstance(value[0], NamedTemplate):
        return {named.name: _restored(named.estimator, losses) for named in value}
    return value


def _checked(make: Callable[[], Document]) -> Document:
    try:
        return make()
    except ValidationError as error:
        raise one_sentence(error, "an estimator", "expected parameters that `fit` accepts.") from None
