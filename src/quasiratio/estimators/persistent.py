"""What every estimator can do with files, `save` and `export_onnx`, and what it brings for that.

A model file is a document (`model.json`), tensors and times. An estimator knows its own part of each:

1. `parameters_type`, a `Document` of its constructor's parameters. Those that a subclass adds without saying more are
   taken for plain JSON values or losses, with the default of the constructor where a file lacks them.
2. `fitted_type`, a `FittedDocument` of what a fit learned, with `tensors(prefix)`: names, types and shapes of the
   tensors, so that a file is checked before it is read.
3. `fitted_fields()`, the values of that document; `fitted_tensors(prefix)` and `fitted_times(prefix)`, the arrays and
   the wall-clock; `fitted_parts()`, fitted estimators inside, whose tensors and times then follow.
4. `restore(document, stored)`, which sets the learned attributes as a fit does.
5. `add_onnx(graph, features)`, its predictions as operations.

Each calls `super()` and adds its own. Estimators are found by the name of their class in `quasiratio.registry`.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
from pydantic import Field, JsonValue, ValidationError, create_model
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.fingerprint import DataFingerprint, FingerprintDocument
from quasiratio.losses import RatioLoss
from quasiratio.losses.loss_document import LossDocument, UserLosses, loss_document
from quasiratio.model_files.bundle import Bundle, write_bundle
from quasiratio.model_files.document import Document, Name, TensorSpec, by_kind, one_sentence
from quasiratio.model_files.onnx_file import add_inputs, checked_onnx_path, input_names, write_onnx
from quasiratio.model_files.onnx_graph import OnnxGraph, RatioNames, add_std
from quasiratio.provenance import versions_of
from quasiratio.registry import ESTIMATORS

__all__ = [
    "Arrays",
    "FittedDocument",
    "ModelFileDocument",
    "PersistentEstimator",
    "StoredParts",
    "TemplateDocument",
    "stored_estimator",
]

Arrays = dict[str, npt.NDArray[Any]]
PlainParameter = Annotated[LossDocument | JsonValue, Field(union_mode="left_to_right")]
SomeDocument = TypeVar("SomeDocument", bound=Document)
_LIBRARIES = ("quasiratio", "numpy", "scikit-learn", "torch", "python")
_MEANINGS = {
    "ratio": "ratio of the unit-normalised densities, target over reference",
    "ratio_std": "standard deviation of the ratio across the members of the ensemble",
    "weight_factor": "new weight over old weight",
    "weight_factor_std": "standard deviation of the factor across the members of the ensemble",
}


class TemplateDocument(Document):
    """An unfitted estimator: its class and its parameters."""

    kind: Name
    parameters: Any

    def restored(self, losses: UserLosses) -> PersistentEstimator:
        """Make the estimator again."""
        return _class_of_kind(self.kind).from_parameters(self.parameters, losses)


class FittedDocument(TemplateDocument):
    """What every fitted estimator has in `model.json`."""

    fingerprint: FingerprintDocument

    def tensors(self, prefix: str = "") -> Iterator[tuple[str, TensorSpec]]:  # noqa: ARG002
        """Return names, types and shapes of all tensors."""
        yield from ()


class StoredParts(NamedTuple):
    """What a fitted estimator is made of beside its document.

    Attributes:
        bundle: Tensors and times of the whole file.
        losses: Losses that the user gave to `load`.
        prefix: How the names of this estimator's tensors begin.
    """

    bundle: Bundle
    losses: UserLosses
    prefix: str = ""

    def under(self, part: str) -> StoredParts:
        """Return the same for a part, whose tensors begin with `part` after the prefix."""
        return self._replace(prefix=f"{self.prefix}{part}")


class PersistentEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of all estimators of quasiratio: what they do with files, and the five things they bring for it.

    Attributes:
        parameters_type: Document of the constructor's parameters.
        fitted_type: Document of what a fit learned; `kind` and `parameters` are narrowed to the class.
        onnx_result: Name of the result in ONNX graphs, `"ratio"` or `"weight_factor"`.
    """

    parameters_type: ClassVar[type[Document]] = Document
    fitted_type: ClassVar[type[FittedDocument]] = FittedDocument
    onnx_result: ClassVar[Literal["ratio", "weight_factor"]] = "ratio"

    @classmethod
    def document_type(cls) -> type[FittedDocument]:
        """Return the document of a fitted estimator of this very class."""
        return _document_type(cast(Any, cls))

    @classmethod
    def template_type(cls) -> type[TemplateDocument]:
        """Return the document of an unfitted estimator of this very class."""
        return _template_type(cast(Any, cls))

    @classmethod
    def document_annotations(cls) -> dict[str, Any]:
        """Return types of fields of `fitted_type` that depend on the class, as `create_model` takes them."""
        return {}

    def fitted_fields(self) -> dict[str, Any]:
        """Return the fields of the document of the fitted estimator."""
        return {
            **self.template_fields(),
            "fingerprint": self.fingerprint_.document(),
        }

    def fitted_document(self) -> FittedDocument:
        """Describe the fitted estimator, all but its tensors."""
        return self.document_type()(**self.fitted_fields())

    def fitted_parts(self) -> dict[str, PersistentEstimator]:
        """Return fitted estimators inside by how the names of their tensors begin, such as `"folds.0."`."""
        return {}

    def named_parts(self) -> dict[str, PersistentEstimator]:
        """Return the same by names for people; an empty name where there is one only."""
        return {name.rstrip("."): part for name, part in self.fitted_parts().items()}

    def fitted_tensors(self, prefix: str = "") -> Arrays:
        """Return all arrays by name."""
        tensors: Arrays = {}
        for name, part in self.fitted_parts().items():
            tensors |= part.fitted_tensors(f"{prefix}{name}")
        return tensors

    def fitted_times(self, prefix: str = "") -> dict[str, list[float]]:
        """Return the wall-clock times of every training by the name of its history."""
        times: dict[str, list[float]] = {}
        for name, part in self.fitted_parts().items():
            times |= part.fitted_times(f"{prefix}{name}")
        return times

    def restore(self, document: Any, stored: StoredParts) -> None:  # noqa: ANN401, ARG002 - of the type `document_type`
        """Set the learned attributes, as a fit does."""
        self.fingerprint_ = DataFingerprint.stored(document.fingerprint)

    def template_fields(self) -> dict[str, Any]:
        """Return the class, which must be registered and no subclass of that, and the parameters."""
        name = type(self).__name__
        if _class_of_kind(name) is not type(self):
            msg = (
                f"Got an estimator of the class {type(self).__qualname__}, which is another than the one that is "
                "registered; expected an estimator that model files know. Register it."
            )
            raise InvalidInputError(msg)
        return {"kind": name, "parameters": self.parameter_document()}

    def template(self) -> TemplateDocument:
        """Describe the unfitted estimator."""
        return _checked(lambda: self.template_type()(**self.template_fields()))

    def parameter_document(self) -> Document:
        """Describe the constructor's parameters."""
        given = self.get_params(deep=False)
        values = {name: self.stored_parameter(name, value) for name, value in given.items()}
        return _checked(lambda: _parameters_type(cast(Any, type(self)))(**values))

    @classmethod
    def from_parameters(cls, document: Document, losses: UserLosses) -> PersistentEstimator:
        """Make an unfitted estimator from the document of its parameters."""
        names = type(document).model_fields
        return cls(**{name: cls.restored_parameter(name, getattr(document, name), losses) for name in names})

    def stored_parameter(self, name: str, value: Any) -> Any:  # noqa: ANN401
        """Turn a parameter into what its document holds."""
        if isinstance(value, RatioLoss):
            return loss_document(value)
        if isinstance(value, PersistentEstimator):
            return value.template()
        field = _parameters_type(cast(Any, type(self))).model_fields.get(name)
        if field is not None and field.annotation is bool:
            return bool(value)
        if isinstance(value, tuple):
            return list(value)
        return value.item() if isinstance(value, np.generic) else value

    @classmethod
    def restored_parameter(cls, name: str, value: Any, losses: UserLosses) -> Any:  # noqa: ANN401, ARG003
        """Turn what a document holds into a parameter."""
        return value.restored(losses) if hasattr(value, "restored") else value

    def feature_list(self) -> list[str]:
        """Return the names of the features of the fit, or `x0`, `x1`, ... where they have none."""
        return list(self.feature_names_ or (f"x{i}" for i in range(self.n_features_in_)))

    def add_onnx(self, graph: OnnxGraph, features: str) -> RatioNames:  # noqa: ARG002
        """Add what predictions do, but for warnings, to a graph: `(n, d)` features in double precision."""
        msg = f"Got an estimator of the class {type(self).__qualname__}, which has no ONNX form; give it add_onnx."
        raise InvalidInputError(msg)

    def onnx_note(self) -> str:
        """Return what to know of the result of a graph, in a few words."""
        return ""

    def training_summary(self) -> Any:  # noqa: ANN401 - JSON values
        """Return what the metadata of a graph say of the training."""
        return {name.rstrip("."): part.training_summary() for name, part in self.fitted_parts().items()}

    def onnx_metadata(self, outputs: Mapping[str, str], **own: Any) -> dict[str, str]:  # noqa: ANN401 - JSON values
        """Return what a graph says of itself: versions, features, the training, meanings of outputs, and what is `own`."""
        about = {
            "features": self.feature_list(),
            "fill": self.fill_,
            **own,
            "outputs": dict(outputs),
            "training_summary": self.training_summary(),
        }
        return {
            "quasiratio_version": versions_of("quasiratio")["quasiratio"],
            "estimator": " ".join(repr(self).split()),
            "note": self.onnx_note(),
            "training_events": str(self.fingerprint_.n_events),
            "training_sha256": self.fingerprint_.sha256,
            **{name: json.dumps(value) for name, value in about.items()},
        }

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        notes: Mapping[str, Any] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write the fitted estimator to a directory that `qr.load` reads, whole or not at all.

        `model.json` is readable and `weights.safetensors` holds the tensors; nothing is pickled. The same data and
        seed give the same bytes: the times of the training stand in `times.json`. A directory with other files
        in it is left alone.

        Args:
            path: The directory; the one above it must exist.
            notes: JSON values to keep with the model, such as how the events were selected.
            overwrite: Replace, in one step, a model that is there already.

        Example:
            >>> import tempfile
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
        check_is_fitted(self, "fingerprint_")
        versions = versions_of(*_LIBRARIES)
        try:
            fitted = self.fitted_document()
            document = ModelFileDocument(versions=versions, estimator=fitted, notes=dict(notes or {}))
        except ValidationError as error:
            fix = "expected a fit that ended with finite numbers, and notes of plain JSON values."
            raise one_sentence(error, "a model", fix) from None
        content, times = document.model_dump(mode="json"), self.fitted_times()
        write_bundle(path, content, self.fitted_tensors(), times=times, overwrite=overwrite)

    def export_onnx(
        self, path: str | os.PathLike[str], *, separate_inputs: bool = False, overwrite: bool = False
    ) -> None:
        """Write the fitted estimator as one ONNX graph: raw features in, result out.

        Scaling, logarithms, networks, recombination, ensemble average and normalisation are inside, in double
        precision. Input: `features`, float32 of shape `(batch, d)`, or float64 where the features need it (a time
        stamp); a missing value is NaN or the number of its fill, which the metadata have. Outputs, float32 of shape `(batch,)`: `ratio`
        and, for an ensemble, `ratio_std`; reweighters give `weight_factor` instead, by which to multiply the
        weight (`Reweighter`) or its absolute value (`PositiveReweighter`).

        Args:
            path: The file; the directory must exist.
            separate_inputs: One input of shape `(batch, 1)` per feature, under its name.
            overwrite: Replace, in one step, a file that is there already.

        Example:
            >>> import tempfile
            >>> import onnxruntime
            >>> import quasiratio as qr
            >>> X, y = np.random.default_rng(0).normal(size=(1000, 2)).astype(np.float32), np.repeat([0, 1], 500)
            >>> model = qr.SignResolvedRatio(max_steps=20, random_state=0).fit(X, y)
            >>> with tempfile.TemporaryDirectory() as directory:
            ...     model.export_onnx(f"{directory}/model.onnx")
            ...     session = onnxruntime.InferenceSession(f"{directory}/model.onnx")
            >>> (ratio,) = session.run(["ratio"], {"features": X})
            >>> bool(np.allclose(ratio, model.predict_ratio(X), rtol=1e-5))
            True
        """
        check_is_fitted(self, "fingerprint_")
        target, names = checked_onnx_path(path, overwrite=overwrite), self.feature_list()
        stem: str = self.onnx_result
        inputs = input_names(names, [stem, f"{stem}_std"], separate=separate_inputs)
        graph = OnnxGraph([*inputs, stem, f"{stem}_std"])
        result, members = self.add_onnx(graph, add_inputs(graph, inputs))
        outputs = {stem: result}
        if members is not None:
            outputs[f"{stem}_std"] = add_std(graph, members, self.n_members)
        note = self.onnx_note()
        write_onnx(
            target,
            graph,
            dict.fromkeys(inputs, 1) if separate_inputs else {"features": len(names)},
            outputs,
            metadata=self.onnx_metadata({name: _MEANINGS[name] for name in outputs}),
            description=f"{type(self).__name__} of quasiratio: {_MEANINGS[stem]}{'; ' if note else ''}{note}",
            double_inputs=inputs if self.is_exact_ else (),
        )


def _class_of_kind(kind: str) -> type[PersistentEstimator]:
    return cast("type[PersistentEstimator]", ESTIMATORS.of_kind(kind))


class ModelFileDocument(Document):
    """The whole of `model.json`, but for the entries that `bundle` checks and takes away."""

    versions: dict[Name, Name]
    estimator: Annotated[Any, by_kind(lambda kind: _class_of_kind(kind).document_type())]
    notes: dict[Name, JsonValue] = Field(default_factory=dict)


def stored_estimator(document: FittedDocument, stored: StoredParts) -> PersistentEstimator:
    """Make a fitted estimator from its document, its tensors and its times."""
    estimator = document.restored(stored.losses)
    estimator.restore(document, stored)
    return estimator


@cache
def _parameters_type(kind: Any) -> type[Document]:  # noqa: ANN401 - a class of estimators
    """Return the declared document, with parameters that a subclass added and did not declare as plain values."""
    declared: type[Document] = kind.parameters_type
    undeclared: dict[str, Any] = {
        name: (PlainParameter, parameter.default)
        for name, parameter in inspect.signature(kind).parameters.items()
        if name not in declared.model_fields
    }
    if not undeclared:
        return declared
    return create_model(f"{kind.__name__}Parameters", __base__=declared, **undeclared)


@cache
def _template_type(kind: Any) -> type[TemplateDocument]:  # noqa: ANN401
    fields: dict[str, Any] = _narrowed(kind)
    return create_model(f"{kind.__name__}Template", __base__=TemplateDocument, **fields)


@cache
def _document_type(kind: Any) -> type[FittedDocument]:  # noqa: ANN401
    fields: dict[str, Any] = {**_narrowed(kind), **kind.document_annotations()}
    fitted: type[FittedDocument] = kind.fitted_type
    return create_model(f"{kind.__name__}Document", __base__=fitted, **fields)


def _narrowed(kind: type[PersistentEstimator]) -> dict[str, Any]:
    return {"kind": (Literal[kind.__name__], ...), "parameters": (_parameters_type(cast(Any, kind)), ...)}


def _checked(make: Callable[[], SomeDocument]) -> SomeDocument:
    try:
        return make()
    except ValidationError as error:
        raise one_sentence(error, "an estimator", "expected parameters that `fit` accepts.") from None
