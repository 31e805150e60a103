"""The state of one fit: tensors on the device, seeds and settings, shared by all estimators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from quasiratio.networks import FeatureScaling, StackedMlp
from quasiratio.training import (
    Batch,
    Batches,
    Pool,
    TrainingHistory,
    TrainingSettings,
    member_weights,
    normalized_per_group,
    progress_bar,
    train,
)

if TYPE_CHECKING:
    from quasiratio.estimators.training_data import LabelledEvents
    from quasiratio.training.objectives import Objective

__all__ = ["Fit"]


@dataclass
class Fit:
    """Everything an estimator needs to train one stage after another.

    Attributes:
        train_events: Training events as checked arrays.
        validation_events: Validation events.
        settings: Default settings of every stage.
        n_members: Ensemble size.
        hidden_layers: Width of the hidden layers.
        activation: Name of the activation.
        device: Where the tensors live.
        verbose: Whether to draw a progress bar on a terminal.
        seed: Seed of every random choice of the fit.
    """

    train_events: LabelledEvents
    validation_events: LabelledEvents
    settings: TrainingSettings
    n_members: int
    hidden_layers: Sequence[int]
    activation: str
    device: torch.device
    verbose: bool
    seed: int

    def __post_init__(self) -> None:
        initial, shuffles, bootstrap, order = np.random.SeedSequence(self.seed).generate_state(4)
        self.initial_generator = torch.Generator().manual_seed(int(initial))
        self.shuffle_generator = torch.Generator(self.device).manual_seed(int(shuffles))
        bootstrap_generator = torch.Generator(self.device).manual_seed(int(bootstrap))
        # Validation may use the first events only, so their order must not matter.
        shuffled = np.random.default_rng(int(order)).permutation(len(self.validation_events))
        self.validation_events = self.validation_events.select(shuffled)
        self.scaling = FeatureScaling.from_data(self.train_events.features).to(self.device)
        self.train_inputs = self._scaled(self.train_events)
        self.validation_inputs = self._scaled(self.validation_events)
        weights = torch.from_numpy(self.train_events.weights).to(self.device)
        self.member_weights = member_weights(weights, self.n_members, bootstrap_generator)
        """Signed, bootstrapped, not yet normalised: `(n_members, n)`."""

    def _scaled(self, events: LabelledEvents) -> Tensor:
        scaled: Tensor = self.scaling(torch.from_numpy(events.features).to(self.device))
        return scaled

    def network(self, n_outputs: int, *, n_per_member: int = 1) -> StackedMlp:
        """Make the stacked networks of all members."""
        return StackedMlp(
            self.n_members * n_per_member,
            self.train_inputs.shape[1],
            self.hidden_layers,
            n_outputs,
            activation=self.activation,
            generator=self.initial_generator,
        ).to(self.device)

    def tensor(self, array: np.typing.NDArray[np.generic]) -> Tensor:
        """Put an array on the device."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def signed_pools(self) -> tuple[Pool, Pool]:
        """Return all training and all validation events with signed weights normalised per class."""
        labels = self.tensor(self.train_events.labels)
        training = Pool(None, labels.float(), normalized_per_group(self.member_weights, labels))
        held_out_labels = self.tensor(self.validation_events.labels)
        weights = normalized_per_group(self.tensor(self.validation_events.weights)[None], held_out_labels)
        return training, Pool(None, held_out_labels.float(), weights)

    def train(
        self,
        model: nn.Module,
        objective: Objective,
        training: Sequence[Pool],
        validation: Sequence[Pool],
        *,
        settings: TrainingSettings | None = None,
        keep_initial: bool = False,
    ) -> TrainingHistory:
        """Train `model` on one pool, or on several side by side, to its best validated state."""
        settings = settings or self.settings
        batches = Batches(self.train_inputs, training, settings.batch_size, self.shuffle_generator)
        n_held_out = settings.n_validation_events(max(len(pool) for pool in validation))
        held_out = self._validation_batch(validation, n_held_out)
        with progress_bar(objective.name, verbose=self.verbose) as progress:
            return train(
                model, objective, batches, held_out, settings, keep_initial=keep_initial, progress=progress
            )

    def _validation_batch(self, pools: Sequence[Pool], max_events: int) -> Batch:
        """Lay the pools side by side, each capped, and padded with events of zero weight."""
        if len(pools) == 1:
            pool = pools[0]
            chosen = slice(0, max_events)
            events = self.validation_inputs if pool.events is None else self.validation_inputs[pool.events]
            return Batch(events[chosen], pool.classes[None, chosen], pool.weights[:, chosen])
        length = min(max_events, max(len(pool) for pool in pools))
        shape = (len(pools), length)
        features = torch.zeros(*shape, self.validation_inputs.shape[1], device=self.device)
        classes, weights = torch.zeros(shape, device=self.device), torch.zeros(shape, device=self.device)
        for row, pool in enumerate(pools):
            if pool.events is None:
                continue
            n_events = min(length, len(pool))
            features[row, :n_events] = self.validation_inputs[pool.events[:n_events]]
            classes[row, :n_events] = pool.classes[:n_events]
            # The mean runs over the padded length.
            weights[row, :n_events] = pool.weights[0, :n_events] * (length / n_events)
        copies = self.n_members
        return Batch(features.repeat(copies, 1, 1), classes.repeat(copies, 1), weights.repeat(copies, 1))
