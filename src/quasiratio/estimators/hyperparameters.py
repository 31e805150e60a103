"""The hyperparameters that every estimator with networks has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from quasiratio.errors import InvalidInputError
from quasiratio.estimators.devices import usable_device
from quasiratio.estimators.fitting import Fit
from quasiratio.estimators.training_data import LabelledEvents
from quasiratio.networks import default_hidden_layers
from quasiratio.training import TrainingSettings

__all__ = ["NetworkEstimator"]

_RATE_TIMES_WIDTH = 0.64
_NARROWEST = 32


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of all estimators that train networks.

    The dataclass writes the constructor, which only stores; so scikit-learn finds every parameter in its
    signature, and subclasses add their own without repeating these. `fit` validates.

    Args:
        hidden_layers: Widths of the hidden layers; by default 2 x 64 up to four features, 3 x 128 above
            (half as wide for the several networks of `SignedMixtureRatio`).
        activation: `"silu"`, `"hardswish"`, `"relu"`, `"tanh"` or `"gelu"`; by default SiLU, and hard swish for
            the small networks of a signed mixture. Several joined by `+` share the members of an ensemble among
            them, as `"silu+hardswish"` does by default for those of `SignResolvedRatio`.
        batch_size: Events per optimiser step.
        learning_rate: Peak rate; by default 0.64 over the width of the widest layer: 0.01 for 64.
        max_steps: Optimiser steps; by default 3000 or six passes over the data, whichever is more.
        patience: Epochs without a better validation loss before stopping; by default none for the cosine
            schedule and 20 for the constant one.
        schedule: `"cosine"` (warm-up, then decay to zero) or `"constant"` (the published one).
        epoch_size: Training events between two validations; by default a twentieth of the fit.
        weight_decay: Decoupled weight decay.
        n_members: Networks in the ensemble. Each sees its own (balanced) Poisson bootstrap of the data.
        validation_fraction: Share of the events held out when `fit` gets no `validation`.
        device: `"auto"`, `"cpu"`, `"cuda"`, ...
        on_divergence: `"warn"` keeps the best validated state, `"raise"` stops with `DivergenceError`.
        random_state: Seed; the same seed gives the same bits on one machine and thread count.
        verbose: Draw a progress bar when standard error is a terminal.
    """

    hidden_layers: Sequence[int] | None = None
    activation: str | None = None
    batch_size: int = 8192
    learning_rate: float | None = None
    max_steps: int | None = None
    patience: int | None = None
    schedule: Literal["cosine", "constant"] = "cosine"
    epoch_size: int | None = None
    weight_decay: float = 0.0
    n_members: int = 1
    validation_fraction: float = 0.1
    device: str = "auto"
    on_divergence: Literal["warn", "raise"] = "warn"
    random_state: int | np.random.RandomState | None = None
    verbose: bool = True

    def _new_seed(self) -> int:
        """Draw the seed of a fit from `random_state`."""
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _prepared(self, training: LabelledEvents, held_out: LabelledEvents, seed: int) -> Fit:
        """Check the hyperparameters and put the events on the device."""
        return Fit(
            training,
            held_out,
            self._checked_settings(),
            self.n_members,
            self._widths(),
            self._activation(),
            usable_device(self.device),
            self.verbose,
            seed,
        )

    def _checked_settings(self) -> TrainingSettings:
        for name in ("batch_size", "n_members", "max_steps", "patience", "epoch_size"):
            value = getattr(self, name)
            is_default = value is None and name not in ("batch_size", "n_members")
            if not is_default and not _is_count(value):
                msg = f"Got {name} = {value!r}; expected a positive whole number."
                raise InvalidInputError(msg)
        if not _are_widths(self.hidden_layers):
            msg = f"Got hidden_layers = {self.hidden_layers!r}; expected a sequence of widths, such as (64, 64)."
            raise InvalidInputError(msg)
        if not 0 <= self.weight_decay < np.inf:
            msg = f"Got weight_decay = {self.weight_decay}; expected zero or a positive number."
            raise InvalidInputError(msg)
        for name, choices in (("schedule", ("cosine", "constant")), ("on_divergence", ("warn", "raise"))):
            if getattr(self, name) not in choices:
                msg = f"Got {name} = {getattr(self, name)!r}; expected one of {', '.join(choices)}."
                raise InvalidInputError(msg)
        return TrainingSettings(
            batch_size=int(self.batch_size),
            learning_rate=self._rate(),
            max_steps=self.max_steps,
            patience=self.patience,
            schedule=self.schedule,
            epoch_size=self.epoch_size,
            weight_decay=self.weight_decay,
            on_divergence=self.on_divergence,
        )

    def _widths(self) -> Sequence[int]:
        """Return the hidden layers in use."""
        return (
            default_hidden_layers(self.n_features_in_) if self.hidden_layers is None else self.hidden_layers
        )

    def _activation(self) -> str:
        """Return the activation in use."""
        return "silu" if self.activation is None else self.activation

    def _rate(self) -> float:
        if self.learning_rate is None:
            return _RATE_TIMES_WIDTH / max([*self._widths(), _NARROWEST])
        if not 0 < self.learning_rate < np.inf:
            msg = f"Got learning_rate = {self.learning_rate}; expected a positive number."
            raise InvalidInputError(msg)
        return self.learning_rate

    def _names(self) -> list[str]:
        return list(self.feature_names_ or (f"x{i}" for i in range(self.n_features_in_)))


def _is_count(value: object) -> bool:
    return isinstance(value, int | np.integer) and bool(value >= 1)


def _are_widths(value: object) -> bool:
    return value is None or (isinstance(value, Sequence | np.ndarray) and all(_is_count(n) for n in value))
