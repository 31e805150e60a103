"""Keeping the state of a training, so that an interrupted fit goes on where it was.

Inside `resumable` every training writes what it needs to go on to one file after each epoch. The trainings
of a fit are numbered in the order in which they run; with the same data, parameters and seed that order and
every random number are the same again, so that a resumed fit ends in the same bits as an uninterrupted one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from quasiratio.atomic_files import staged_file
from quasiratio.errors import InvalidInputError

__all__ = ["Resumable", "StageCheckpoint", "next_stage", "resumable"]


class Resumable(Protocol):
    """Anything whose state can be taken out and put back."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any], /) -> Any:  # noqa: ANN401 - torch returns a report
        """Go on from a state."""
        ...


class StageCheckpoint:
    """The file of one training.

    Args:
        path: Where it is, or will be.
        key: What tells this fit from any other.
    """

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key

    def load(self) -> dict[str, Any] | None:
        """Return what was saved last, or `None`.

        Raises:
            InvalidInputError: The file belongs to another fit, or cannot be read.
        """
        if not self.path.is_file():
            return None
        try:
            with safetensors.safe_open(self.path, framework="pt") as file:
                facts = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            key, tree = facts["key"], json.loads(facts["tree"])
            is_whole = facts["sha256"] == _checksum(key, facts["tree"], tensors)
        except (
            OSError, KeyError, ValueError, TypeError, RuntimeError, MemoryError, safetensors.SafetensorError,
        ) as error:  # fmt: skip
            raise self._unreadable(" ".join(str(error).split())[:200]) from error
        if not is_whole:
            problem = "it was edited or damaged: its checksum is wrong"
            raise self._unreadable(problem)
        if key != self.key:
            msg = (
                f"Got the interrupted fit in {str(self.path.parent)!r}, which had other data, features or options; "
                "expected those of this fit. Repeat its command, or fit from the start."
            )
            raise InvalidInputError(msg)
        state: dict[str, Any] = _decoded(tree, tensors)
        return state

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """Turn what a state of other parts than were saved makes fail into a sentence."""
        try:
            yield
        except (KeyError, IndexError, AttributeError, ValueError, TypeError, RuntimeError) as error:
            reason = "it does not belong to this training"
            raise self._unreadable(reason) from error

    def _unreadable(self, reason: str) -> InvalidInputError:
        return InvalidInputError(
            f"Got {str(self.path)!r}, which is not a readable state of an interrupted fit ({reason}); "
            "delete it and fit from the start."
        )

    def save(self, state: dict[str, Any]) -> None:
        """Write nested dictionaries and lists of tensors and plain values; replaces the file at once."""
        tensors: dict[str, Tensor] = {}
        tree = json.dumps(_encoded(state, tensors))
        facts = {"key": self.key, "tree": tree, "sha256": _checksum(self.key, tree, tensors)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with staged_file(self.path) as staged:
                safetensors.torch.save_file(tensors, staged, metadata=facts)
        except (OSError, safetensors.SafetensorError) as error:
            msg = f"The state of the fit cannot be written to {str(self.path.parent)!r} ({error}); make room there."
            raise InvalidInputError(msg) from error


class _Stages:
    def __init__(self, directory: Path, key: str) -> None:
        self.directory, self.key, self.n_begun = directory, key, 0

    def next(self) -> StageCheckpoint:
        self.n_begun += 1
        return StageCheckpoint(self.directory / f"stage-{self.n_begun:03d}.safetensors", self.key)


_STAGES: ContextVar[_Stages | None] = ContextVar("_STAGES", default=None)


@contextmanager
def resumable(directory: str | Path, key: str) -> Iterator[None]:
    """Keep, and take up, the state of every training in this block.

    Args:
        directory: Where the states are; made when needed. Delete it once the fit is saved.
        key: Hash of data, parameters and seed; a directory with another key is refused.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as directory, resumable(directory, "fit 1"):
        ...     next_stage().path.name, next_stage().path.name
        ('stage-001.safetensors', 'stage-002.safetensors')
    """
    token = _STAGES.set(_Stages(Path(directory), key))
    try:
        yield
    finally:
        _STAGES.reset(token)


def next_stage() -> StageCheckpoint | None:
    """Return the file of the next training, or `None` outside of `resumable`."""
    stages = _STAGES.get()
    return None if stages is None else stages.next()


def _checksum(key: str, tree: str, tensors: dict[str, Tensor]) -> str:
    """Return the SHA-256 of everything that a state says."""
    digest = hashlib.sha256(json.dumps([key, tree]).encode())
    for name in sorted(tensors, key=int):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _encoded(value: Any, tensors: dict[str, Tensor]) -> Any:  # noqa: ANN401 - a tree
    """Replace tensors by their names, and dictionaries by pairs, whose keys may be numbers."""
    if isinstance(value, Tensor):
        name = str(len(tensors))
        tensors[name] = value.detach().clone().contiguous()
        return {"tensor": name}
    if isinstance(value, dict):
        return {"pairs": [[key, _encoded(inner, tensors)] for key, inner in value.items()]}
    if isinstance(value, list | tuple):
        return [_encoded(inner, tensors) for inner in value]
    return value


def _decoded(value: Any, tensors: dict[str, Tensor]) -> Any:  # noqa: ANN401 - a tree
    if isinstance(value, dict):
        if "tensor" in value:
            return tensors[value["tensor"]]
        return {key: _decoded(inner, tensors) for key, inner in value["pairs"]}
    if isinstance(value, list):
        return [_decoded(inner, tensors) for inner in value]
    return value
