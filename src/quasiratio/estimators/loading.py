"""Estimators by name, and from their files with the same bits.

A model is a directory with `model.json`, which a person can read, and `weights.safetensors`. Neither holds
code: a file from a stranger can at worst be refused.
"""

from __future__ import annotations

import os
from typing import Any, TypeVar, overload

from pydantic import ValidationError

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.base import RatioEstimator
from quasiratio.estimators.persistent import (
    ModelFileDocument,
    PersistentEstimator,
    StoredParts,
    stored_estimator,
)
from quasiratio.losses.loss_document import UserLosses
from quasiratio.model_files.bundle import JSON_NAME, read_document, read_timed_bundle
from quasiratio.model_files.document import TensorSpec, one_sentence
from quasiratio.registry import ESTIMATORS

__all__ = ["describe", "estimator_by_name", "load", "load_described"]

Kind = TypeVar("Kind", bound=PersistentEstimator)


def estimator_by_name(method: str, **parameters: Any) -> RatioEstimator:  # noqa: ANN401 - of the estimator
    """Return an unfitted estimator.

    Args:
        method: `"sign-resolved"`, `"rosmm"`, `"direct"`, `"auto"`, or one that was registered.
        parameters: What the estimator takes; a name it does not have is refused.

    Example:
        >>> estimator_by_name("direct", loss="lsif", n_members=4)
        DirectRatio(loss='lsif', n_members=4)
    """
    methods = ESTIMATORS.methods()
    if method not in methods:
        msg = f"Got the method {method!r}; expected one of {', '.join(methods)}."
        raise InvalidInputError(msg)
    estimator: RatioEstimator = ESTIMATORS[method]()
    known = estimator.get_params(deep=False)
    for name, value in parameters.items():
        if name not in known:
            msg = (
                f"Got {name} = {value!r} for the method {method!r}, which has no such option; expected one of "
                f"{', '.join(sorted(known))}. Leave it out, or choose another method."
            )
            raise InvalidInputError(msg)
    estimator.set_params(**parameters)
    return estimator


@overload
def load(path: str | os.PathLike[str], *, losses: UserLosses | None = None) -> PersistentEstimator: ...


@overload
def load(path: str | os.PathLike[str], *, losses: UserLosses | None = None, expected: type[Kind]) -> Kind: ...


def load(
    path: str | os.PathLike[str],
    *,
    losses: UserLosses | None = None,
    expected: type[PersistentEstimator] = PersistentEstimator,
) -> PersistentEstimator:
    """Load a saved estimator; its predictions are those of the saved one, bit by bit on the same machine.

    A file that is missing, truncated, damaged, edited or of a newer format is refused with the reason. Nothing is
    imported because the file says so: estimators and losses of your own must be registered before.

    Args:
        path: The directory that `save` wrote.
        losses: Losses of your own by name (the class, or an instance), where the model was fitted with one that is not
            registered.
        expected: The class, or a base of it, that the estimator must have; also for type checkers.
    """
    estimator = load_described(path, losses=losses)[0]
    if not isinstance(estimator, expected):
        msg = (
            f"Got the model {os.fspath(path)!r}, which is of the class {type(estimator).__name__}; expected one of the "
            f"class {expected.__name__}."
        )
        raise InvalidInputError(msg)
    return estimator


def load_described(
    path: str | os.PathLike[str], *, losses: UserLosses | None = None
) -> tuple[PersistentEstimator, ModelFileDocument]:
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
    return stored_estimator(planned[-1].estimator, StoredParts(bundle, losses or {})), planned[-1]


def describe(path: str | os.PathLike[str]) -> ModelFileDocument:
    """Return the checked content of a model's `model.json`, without reading its weights.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import quasiratio as qr
        >>> X, y = np.random.default_rng(0).normal(size=(1000, 1)), np.repeat([0, 1], 500)
        >>> model = qr.DirectRatio(max_steps=20, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     model.save(f"{directory}/model", notes={"selection": "pt > 20"})
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
