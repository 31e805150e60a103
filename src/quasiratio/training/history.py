"""What happened during a fit, epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field, model_validator

from quasiratio.model_files.bundle import Bundle
from quasiratio.model_files.document import Document, Measured, Name, TensorSpec, as_measured, refuse_if

__all__ = ["HistoryDocument", "TrainingHistory"]

_PER_EPOCH = ("steps", "train_loss", "validation_loss", "learning_rate", "seconds")


class HistoryDocument(Document):
    """One stage of a training; the curves are tensors, and the numbers here a summary for readers."""

    stage: Name
    n_epochs: Annotated[int, Field(ge=0, le=2**31)]
    best_epoch: list[Annotated[int, Field(ge=-1, le=2**31)]]
    diverged: list[bool]
    n_steps: int
    seconds: Measured
    best_validation_loss: list[Measured]

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if(len(self.best_epoch) != len(self.diverged), "the history has different numbers of networks")
        return self

    def tensors(self, prefix: str) -> Iterator[tuple[str, TensorSpec]]:
        """Return names, types and shapes of the curves."""
        yield f"{prefix}steps", TensorSpec("int64", (self.n_epochs,))
        for name in ("learning_rate", "seconds"):
            yield f"{prefix}{name}", TensorSpec("float64", (self.n_epochs,))
        for name in ("train_loss", "validation_loss"):
            yield f"{prefix}{name}", TensorSpec("float64", (self.n_epochs, len(self.best_epoch)))


@dataclass
class TrainingHistory:
    """Training and validation losses of every network, learning rate and wall-clock, one entry per epoch.

    Attributes:
        stage: What was trained, such as `"bce"` or `"tune:pare"`.
        steps: Optimiser steps done at the end of each epoch.
        train_loss: Mean training loss of each epoch, one list entry per epoch, one value per network.
        validation_loss: Validation loss at the end of each epoch, likewise.
        learning_rate: Rate of the last step of each epoch.
        seconds: Wall-clock since the start of the fit.
        best_epoch: Index of the epoch whose state was kept, per network; -1 is the state before training.
        diverged: Per network, whether its risk ran away.
    """

    stage: str
    steps: list[int] = field(default_factory=list)
    train_loss: list[npt.NDArray[np.float64]] = field(default_factory=list)
    validation_loss: list[npt.NDArray[np.float64]] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    best_epoch: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    diverged: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    def __len__(self) -> int:
        return len(self.steps)

    def append(
        self,
        step: int,
        train_loss: npt.NDArray[np.float64],
        validation_loss: npt.NDArray[np.float64],
        learning_rate: float,
        seconds: float,
    ) -> None:
        """Add one epoch."""
        self.steps.append(step)
        self.train_loss.append(train_loss)
        self.validation_loss.append(validation_loss)
        self.learning_rate.append(learning_rate)
        self.seconds.append(seconds)

    @property
    def n_steps(self) -> int:
        """Optimiser steps in all."""
        return self.steps[-1] if self.steps else 0

    @property
    def wall_clock(self) -> float:
        """Seconds from start to end."""
        return self.seconds[-1] if self.seconds else 0.0

    @property
    def kept_loss(self) -> npt.NDArray[np.float64]:
        """Validation loss of the state that was kept, per network; NaN where that is the one before training."""
        curves = [np.full(len(self.best_epoch), np.nan), *self.validation_loss]
        return np.array([curves[epoch + 1][k] for k, epoch in enumerate(self.best_epoch)], dtype=np.float64)

    @property
    def peak_fraction(self) -> float:
        """Share of the steps after which the kept state was reached, the mean over the networks."""
        reached = [0, *self.steps]
        return float(np.mean([reached[epoch + 1] for epoch in self.best_epoch])) / max(1, self.n_steps)

    def validation_curves(self) -> npt.NDArray[np.float64]:
        """Validation losses as an array of shape `(n_epochs, n_networks)`."""
        return np.array(self.validation_loss, dtype=np.float64)

    def state_dict(self) -> dict[str, Any]:
        """Return the epochs so far, as tensors and numbers."""
        return {
            name: [
                torch.from_numpy(value) if isinstance(value, np.ndarray) else value
                for value in getattr(self, name)
            ]
            for name in _PER_EPOCH
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from earlier epochs."""
        for name in _PER_EPOCH:
            setattr(self, name, [v.numpy() if isinstance(v, torch.Tensor) else v for v in state[name]])

    def document(self) -> HistoryDocument:
        """Summarise the training; the curves go to the tensors."""
        return HistoryDocument(
            stage=self.stage,
            n_epochs=len(self),
            best_epoch=[int(epoch) for epoch in self.best_epoch],
            diverged=[bool(flag) for flag in self.diverged],
            n_steps=int(self.n_steps),
            seconds=as_measured(np.nan),  # another each time; the times stand beside the model
            best_validation_loss=[as_measured(loss) for loss in self.kept_loss],
        )

    def tensors(self, prefix: str) -> dict[str, npt.NDArray[Any]]:
        """Return the curves by name."""
        shape = (len(self), len(self.best_epoch))
        return {
            f"{prefix}steps": np.array(self.steps, dtype=np.int64),
            f"{prefix}learning_rate": np.array(self.learning_rate, dtype=np.float64),
            f"{prefix}seconds": np.full(len(self), np.nan),
            f"{prefix}train_loss": np.array(self.train_loss, dtype=np.float64).reshape(shape),
            f"{prefix}validation_loss": np.array(self.validation_loss, dtype=np.float64).reshape(shape),
        }

    @classmethod
    def stored(cls, document: HistoryDocument, bundle: Bundle, prefix: str) -> Self:
        """Make a history from its document, its tensors and its times; older models have these among the tensors."""
        tensors, seconds = bundle.tensors, bundle.times.get(prefix, [])
        return cls(
            stage=document.stage,
            steps=tensors[f"{prefix}steps"].tolist(),
            train_loss=[np.array(row) for row in tensors[f"{prefix}train_loss"]],
            validation_loss=[np.array(row) for row in tensors[f"{prefix}validation_loss"]],
            learning_rate=tensors[f"{prefix}learning_rate"].tolist(),
            seconds=seconds if len(seconds) == document.n_epochs else tensors[f"{prefix}seconds"].tolist(),
            best_epoch=np.array(document.best_epoch, dtype=np.int64),
            diverged=np.array(document.diverged, dtype=np.bool_),
        )
