"""Training events that are not all in the memory of this process, and what a fit asks of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from quasiratio.errors import InvalidInputError
from quasiratio.training.ranks import Ranks

if TYPE_CHECKING:
    from quasiratio.columns import FeatureMatrix
    from quasiratio.networks import FeatureScaling
    from quasiratio.training.batches import TrainingPool

__all__ = ["TrainingSource"]

FloatArray = npt.NDArray[np.float64]
_SIGNS = np.array([1.0, -1.0, 1.0, -1.0])


class TrainingSource(ABC):
    """All training events of a fit, of which some may be on disk, or in other processes. Its kinds are dataclasses.

    Attributes:
        n_members: Members of the ensemble.
        seed: Seed of the bootstrap.
        ranks: The processes that share the training.
    """

    n_members: int
    seed: int
    ranks: Ranks

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of training events, of all ranks together."""

    def for_members(self, n_members: int, seed: int | None = None) -> Self:
        """Return the same events for so many members, with the same seed of the bootstrap or another."""
        any_kind: Any = self
        members: Self = replace(any_kind, n_members=n_members, seed=self.seed if seed is None else seed)
        return members

    @property
    @abstractmethod
    def part_sums(self) -> FloatArray:
        """Sums of the absolute weights that each member sees of the four `SIGN_CLASSES`, `(n_members, 4)`."""

    @property
    @abstractmethod
    def effective_sizes(self) -> tuple[float, float]:
        """Effective sizes of the training reference and target."""

    @abstractmethod
    def inputs(self, scaling: FeatureScaling) -> Tensor:
        """Return the scaled features that pools of these events are laid out from; none where they read them themselves."""

    @abstractmethod
    def pool(
        self, scaling: FeatureScaling, class_of: npt.NDArray[Any], *, absolute: bool = False
    ) -> TrainingPool:
        """Return the events to train on, with weights normalised per label.

        Args:
            scaling: Turns features into inputs of the networks, on the device where they train.
            class_of: What the networks are told of an event of each of the four `SIGN_CLASSES`.
            absolute: Whether they get the absolute weights.
        """

    @abstractmethod
    def reference_events(self) -> Iterator[tuple[FeatureMatrix, FloatArray]]:
        """Yield features and weights of the reference events that this process has."""

    def summed(self, values: FloatArray) -> FloatArray:
        """Return the sum of what every rank found in its own events."""
        return self.ranks.sum(torch.from_numpy(np.asarray(values, dtype=np.float64))).numpy()

    def factors(self) -> FloatArray:
        """Return what makes every label's weights sum to half of the number of events, `(n_members, 2)`."""
        signed = (self.part_sums * _SIGNS).reshape(-1, 2, 2).sum(axis=2)
        if not (signed > 0).all():
            msg = (
                f"The weights of one class of an ensemble member sum to {signed.min():.6g}; expected a positive sum. "
                "There are too few events: use n_members=1, or more events."
            )
            raise InvalidInputError(msg)
        return np.asarray(0.5 * len(self) / signed)

    def class_sums(self, class_of: npt.NDArray[Any], n_classes: int, *, absolute: bool) -> Tensor:
        """Return the sum of the normalised weights of each class, for the first member."""
        signs = 1.0 if absolute else _SIGNS
        sums = self.part_sums[0] * signs * self.factors()[0].repeat(2)
        numbers = torch.from_numpy(class_of.astype(np.int64))
        return torch.zeros(n_classes).index_add_(0, numbers, torch.from_numpy(sums).float())
