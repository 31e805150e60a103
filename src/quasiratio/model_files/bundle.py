"""A model file: a directory with `model.json` and `weights.safetensors`, and `times.json` beside them.

The JSON holds a checksum of itself and one of the tensors, so that a damaged or edited file is noticed.
Neither file can make the reader run code, open another file, or allocate more than the files hold: names and
shapes of the tensors follow from the document, and are compared with the file before it is read. Two fits with the
same seed give the same two files: what the clock said stands in the third, which may be missing.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from quasiratio.atomic_files import (
    checked_path,
    names_inside,
    opened_together,
    write_directory,
)
from quasiratio.errors import InvalidInputError
from quasiratio.model_files.document import TensorSpec, json_checksum, parse_object

__all__ = [
    "FORMAT_VERSION",
    "JSON_NAME",
    "TIMES_NAME",
    "WEIGHTS_NAME",
    "Bundle",
    "read_bundle",
    "read_document",
    "read_timed_bundle",
    "write_bundle",
]

FORMAT_VERSION = 3
"""Format 2 is format 1 with fields of their own for angles, checks, densities and trials, format 3 has edges of all features
besides; a file without them means what it meant then. Files of all are read."""
JSON_NAME, WEIGHTS_NAME, TIMES_NAME = "model.json", "weights.safetensors", "times.json"
_FORMAT = "quasiratio model"
_MAX_JSON_BYTES = 2**26
_MAX_HEADER_BYTES = 2**24
_MAX_WEIGHTS_BYTES = 2**30
_AGAIN = "Restore it from a copy, or save the model again."

Tensors = dict[str, npt.NDArray[Any]]


class Bundle(NamedTuple):
    """What was read of a model: its tensors, and the times that belong to it, if they are there."""

    tensors: Tensors
    times: dict[str, list[float]]


def write_bundle(
    path: str | os.PathLike[str],
    document: Mapping[str, Any],
    tensors: Tensors,
    *,
    times: Mapping[str, list[float]] | None = None,
    overwrite: bool = True,
) -> None:
    """Write a model directory, whole or not at all.

    Args:
        path: The directory; nothing but a model may stand there.
        document: JSON values.
        tensors: float32, float64 and int64 arrays.
        times: Seconds by name, which say nothing of the model and are not part of its checksum.
        overwrite: Replace a model that is there.
    """
    target = checked_path(path)
    if not os.path.isdir(target.parent):  # noqa: PTH112 - false, not an error, for impossible names
        msg = f"Got the model directory {str(target)!r}, but {str(target.parent)!r} does not exist; create it first."
        raise InvalidInputError(msg)
    weights = safetensors.numpy.save({name: np.ascontiguousarray(tensors[name]) for name in tensors})
    body = {
        "format": _FORMAT,
        "format_version": FORMAT_VERSION,
        **document,
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
    }
    body["json_sha256"] = json_checksum(body)
    text = json.dumps(body, indent=1, allow_nan=False).encode("ascii") + b"\n"
    for name, size, limit in (
        (JSON_NAME, len(text), _MAX_JSON_BYTES),
        (WEIGHTS_NAME, len(weights), _MAX_WEIGHTS_BYTES),
    ):
        if size > limit:
            msg = f"Got a model whose {name} would have {size} bytes; expected at most {limit}."
            raise InvalidInputError(msg)
    files = {WEIGHTS_NAME: weights, JSON_NAME: text}
    if times:
        clock = {"model": body["json_sha256"], "seconds": dict(times)}
        files[TIMES_NAME] = json.dumps(clock).encode("ascii") + b"\n"

    def require_replaceable(place: Path) -> None:
        _require_replaceable(place, overwrite=overwrite)

    write_directory(target, files, require_replaceable=require_replaceable)


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read and check `model.json`; return it without the entries that say what it is."""
    with opened_together(path, JSON_NAME) as (file,):
        return _checked_document(file, path)[0]


def read_bundle(
    path: str | os.PathLike[str], planned: Callable[[dict[str, Any]], Mapping[str, TensorSpec]]
) -> Tensors:
    """Read the tensors that belong to the document of a model; see `read_timed_bundle`."""
    return read_timed_bundle(path, planned).tensors


def read_timed_bundle(
    path: str | os.PathLike[str], planned: Callable[[dict[str, Any]], Mapping[str, TensorSpec]]
) -> Bundle:
    """Read the tensors that belong to the document of a model, and its times.

    Both files are those of one `write_bundle`, also where other processes replace the model meanwhile.

    Args:
        path: The model directory.
        planned: Checks the document, and says which tensors must be there.

    Returns:
        The tensors by name: exactly those of the plan, with its types and shapes; and the times.
    """
    with opened_together(path, JSON_NAME, WEIGHTS_NAME, optional=TIMES_NAME) as files:
        json_file, weights_file, *times_file = files
        document, checksum_of_document = _checked_document(json_file, path)
        times = _times(times_file[0], checksum_of_document) if times_file else {}
        checksum = document.pop("weights_sha256", None)
        return Bundle(_checked_tensors(weights_file, path, checksum, planned(document)), times)


def _times(file: BinaryIO, model: str) -> dict[str, list[float]]:
    """Return the times, if they are those of this model; nothing depends on them."""
    try:
        content = json.loads(_sized_content(file, TIMES_NAME, at_least=0, at_most=_MAX_JSON_BYTES))
        if content["model"] != model:
            return {}
        return {str(name): [float(one) for one in values] for name, values in content["seconds"].items()}
    except (
        InvalidInputError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        OverflowError,
    ):
        return {}


def _checked_document(file: BinaryIO, path: str | os.PathLike[str]) -> tuple[dict[str, Any], str]:
    """Return the document without the entries that say what it is, and its checksum."""
    shown = _shown(path, JSON_NAME)
    document = parse_object(_sized_content(file, shown, at_least=0, at_most=_MAX_JSON_BYTES), shown)
    version = document.pop("format_version", None)
    if document.pop("format", None) != _FORMAT or type(version) is not int or version < 1:
        msg = f"Got {shown}, which describes no model of quasiratio; expected one that `save` wrote."
        raise InvalidInputError(msg)
    if version > FORMAT_VERSION:
        msg = (
            f"Got the model {os.fspath(path)!r} of format {version}, which is newer than {FORMAT_VERSION}, the newest "
            "that this version of quasiratio reads; upgrade quasiratio."
        )
        raise InvalidInputError(msg)
    checksum = document.pop("json_sha256", None)
    computed = json_checksum({"format": _FORMAT, "format_version": version, **document})
    if checksum != computed:
        msg = f"Got {shown}, which was edited or damaged (its checksum is wrong). {_AGAIN}"
        raise InvalidInputError(msg)
    return document, computed


def _checked_tensors(
    file: BinaryIO, path: str | os.PathLike[str], checksum: object, plan: Mapping[str, TensorSpec]
) -> Tensors:
    shown = _shown(path, WEIGHTS_NAME)
    n_bytes = sum(spec.n_bytes for spec in plan.values())
    at_most = min(n_bytes + _MAX_HEADER_BYTES, _MAX_WEIGHTS_BYTES)
    content = _sized_content(file, shown, at_least=n_bytes, at_most=at_most)
    if hashlib.sha256(content).hexdigest() != checksum:
        msg = f"Got {shown}, which does not belong to its {JSON_NAME} or is damaged (its checksum is wrong). {_AGAIN}"
        raise InvalidInputError(msg)
    try:
        tensors: Tensors = safetensors.numpy.load(content)
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError) as error:
        msg = f"Got {shown}, which is no valid safetensors file ({error}). {_AGAIN}"
        raise InvalidInputError(msg) from None
    found = {name: (str(tensor.dtype), tensor.shape) for name, tensor in tensors.items()}
    wanted = {name: (spec.dtype, spec.shape) for name, spec in plan.items()}
    for name in sorted(found.keys() | wanted.keys()):
        if found.get(name) != wanted.get(name):
            msg = (
                f"Got {shown} with {_described(name, found.get(name))}; expected {_described(name, wanted.get(name))} "
                f"according to its {JSON_NAME}. {_AGAIN}"
            )
            raise InvalidInputError(msg)
    return tensors


def _described(name: str, tensor: tuple[str, tuple[int, ...]] | None) -> str:
    return (
        f"no tensor {name!r}"
        if tensor is None
        else f"the tensor {name!r} of type {tensor[0]}, shape {tensor[1]}"
    )


def _require_replaceable(path: Path, *, overwrite: bool) -> None:
    """Raise unless nothing stands at `path`, an empty directory, or a model that may be replaced."""
    if not os.path.lexists(path):
        return
    if not os.path.isdir(path):  # noqa: PTH112 - false, not an error, for impossible names
        msg = f"Got {str(path)!r} to save a model in, which is a file; expected a directory, or a name that is free."
        raise InvalidInputError(msg)
    try:
        names = names_inside(path)
    except OSError as error:
        msg = f"Could not look into {str(path)!r} ({error.strerror}); choose another directory for the model."
        raise InvalidInputError(msg) from None
    others = sorted(names - {JSON_NAME, WEIGHTS_NAME, TIMES_NAME})
    if others or (names and JSON_NAME not in names):
        found = ", ".join(repr(name) for name in (others or sorted(names))[:3])
        msg = (
            f"Got {str(path)!r} to save a model in, which holds other files ({found}); expected a name that is free, "
            "or a saved model to replace. Nothing was overwritten."
        )
        raise InvalidInputError(msg)
    if names and not overwrite:
        msg = (
            f"Got {str(path)!r} to save a model in, which holds a model already; expected a name that is free. Choose "
            "another, or give overwrite=True. Nothing was overwritten."
        )
        raise InvalidInputError(msg)


def _shown(path: str | os.PathLike[str], name: str) -> str:
    return repr(str(Path(path) / name))


def _sized_content(file: BinaryIO, shown: str, *, at_least: int, at_most: int) -> bytes:
    """Read a regular file, if its size can be right."""
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        msg = f"Got {shown}, which is no regular file. {_AGAIN}"
        raise InvalidInputError(msg)
    if not at_least <= status.st_size <= at_most:
        msg = (
            f"Got {shown} of {status.st_size} bytes; expected at least {at_least} and at most {at_most}. It is "
            f"truncated, or not what `save` wrote. {_AGAIN}"
        )
        raise InvalidInputError(msg)
    try:
        return file.read(status.st_size)
    except OSError as error:
        msg = f"Could not read {shown} ({error.strerror or error}). {_AGAIN}"
        raise InvalidInputError(msg) from None
