"""Save fitted estimators, and load them again with the same bits.

A model is a directory with `model.json`, which a person can read, and `weights.safetensors`. Neither holds
code: a file from a stranger can at worst be refused.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from pydantic import ValidationError
from sklearn.utils.validation import check_is_fitted

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.base import RatioEstimator
from quasiratio.estimators.positive import PositiveReweighter
from quasiratio.estimators.reweighter import Reweighter
from quasiratio.estimators.stored_estimators import (
    fitted_document,
    fitted_tensors,
    fitted_times,
    stored_estimator,
)
from quasiratio.estimators.stored_losses import UserLosses
from quasiratio.model_files.bundle import JSON_NAME, read_document, read_timed_bundle, write_bundle
from quasiratio.model_files.document import TensorSpec, one_sentence
from quasiratio.model_files.fitted_documents import ModelFileDocument

__all__ = ["describe", "load", "load_described", "save"]

AnyEstimator = RatioEstimator | Reweighter | PositiveReweighter
_LIBRARIES = ("quasiratio", "numpy", "scikit-learn", "torch")


def save(
    estimator: AnyEstimator,
    path: str | os.PathLike[str],
    *,
    notes: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a fitted estimator to a directory, whole or not at all.

    A directory with anything but a model in it is left alone. The same fit gives the same `model.json` and
    `weights.safetensors`; the wall-clock times of the training stand in `times.json`.

    Args:
        estimator: Any fitted estimator of quasiratio.
        path: The directory; the one above it must exist.
        notes: JSON values to keep with the model, such as how the events were selected.
        overwrite: Replace a model that is there already.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import quasiratio as qr
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(size=(1000, 1)), np.repeat([0, 1], 500)
        >>> model = qr.DirectRatio(max_steps=20, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     model.save(f"{directory}/model")
        ...     again = qr.load(f"{directory}/model")
        >>> bool(np.array_equal(again.predict_ratio(X), model.predict_ratio(X)))
        True
    """
    check_is_fitted(estimator, "fingerprint_")
    versions = {name: version(name) for name in _LIBRARIES} | {"python": platform.python_version()}
    try:
        fitted = fitted_document(estimator)
        document = ModelFileDocument(versions=versions, estimator=fitted, notes=dict(notes or {}))
    except ValidationError as error:
        fix = "expected a fit that ended with finite numbers, and notes of plain JSON values."
        raise one_sentence(error, "a model", fix) from None
    content, times = document.model_dump(mode="json"), fitted_times(estimator)
    write_bundle(path, content, fitted_tensors(estimator), times=times, overwrite=overwrite)


def load(path: str | os.PathLike[str], *, losses: UserLosses | None = None) -> Any:  # noqa: ANN401 - any estimator
    """Load a saved estimator; its predictions are those of the saved one, bit by bit on the same machine.

    A file that is missing, truncated, damaged, edited or of a newer format is refused with the reason.

    Args:
        path: The directory that `save` wrote.
        losses: Losses of your own by name (the class, or an instance), where the model was fitted with one.
    """
    return load_described(path, losses=losses)[0]


def load_described(
    path: str | os.PathLike[str], *, losses: UserLosses | None = None
) -> tuple[Any, ModelFileDocument]:
    """Load a saved estimator together with its `model.json`, from one reading of the files.

    Args:
        path: The directory that `save` wrote.
        losses: As for `load`.
    """
    planned: list[ModelFileDocument] = []

    def plan(content: dict[str, Any]) -> dict[str, TensorSpec]:
        planned.append(_checked(content, path))
        return dict(planned[-1].estimator.tensors())

    bundle = read_timed_bundle(path, plan)
    return stored_estimator(planned[-1].estimator, bundle, losses or {}), planned[-1]


def describe(path: str | os.PathLike[str]) -> ModelFileDocument:
    """Return the checked content of a model's `model.json`, without reading its weights.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import quasiratio as qr
        >>> X, y = np.random.default_rng(0).normal(size=(1000, 1)), np.repeat([0, 1], 500)
        >>> model = qr.DirectRatio(max_steps=20, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     save(model, f"{directory}/model", notes={"selection": "pt > 20"})
        ...     content = describe(f"{directory}/model")
        >>> content.estimator.kind, content.estimator.features.count, content.notes
        ('DirectRatio', 1, {'selection': 'pt > 20'})
    """
    content = read_document(path)
    content.pop("weights_sha256", None)
    return _checked(content, path)


def _checked(content: dict[str, Any], path: str | os.PathLike[str]) -> ModelFileDocument:
    what = repr(os.path.join(path, JSON_NAME))  # noqa: PTH118 - for the message
    try:
        return ModelFileDocument.model_validate(content)
    except ValidationError as error:
        raise one_sentence(
            error, what, "expected a file as `save` writes it; save the model again."
        ) from None
    except RecursionError:
        msg = f"Got {what}, which is nested too deeply; expected a file as `save` writes it."
        raise InvalidInputError(msg) from None
