"""What happened during a fit, epoch by epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

__all__ = ["TrainingHistory"]

_PER_EPOCH = ("steps", "train_loss", "validation_loss", "learning_rate", "seconds")


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
