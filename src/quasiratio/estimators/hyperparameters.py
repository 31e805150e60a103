"""The hyperparameters that every estimator with networks has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator
from sklearn.utils import check_random_state

from quasiratio.columns import FeatureMatrix
from quasiratio.errors import InvalidInputError
from quasiratio.estimators.fitting import MOST_THREADS, Fit, usable_device
from quasiratio.estimators.persistent import FittedDocument, PersistentEstimator, StoredParts
from quasiratio.estimators.training_data import LabelledEvents
from quasiratio.losses.loss_document import UserLosses
from quasiratio.model_files.document import Count, Document, Name, PositiveFloat, refuse_if
from quasiratio.networks import (
    ObjectCoordinates,
    declared_angles,
    default_hidden_layers,
    recognised_angles,
    recognised_sentinels,
    refuse_degrees,
    warn_of_degrees,
)
from quasiratio.sample import WeightedSample
from quasiratio.training import TrainingSettings, TrainingSource
from quasiratio.training.standard import (
    STANDARD_MEMBER_DECAY,
    standard_batch_size,
    standard_passes,
    standard_starts,
    standard_validation_fraction,
    standard_weight_decay,
    trial_settings,
)
from quasiratio.wording import shortened, value_text

__all__ = ["FittedNetworkDocument", "NetworkEstimator", "NetworkParameters"]

_RATE_TIMES_WIDTH = 0.64
_NARROWEST = 32
_LARGEST_COUNT = 10**12


class Widths(Document):
    """Hidden layers, as the tuple or list that was given."""

    container: Literal["tuple", "list"]
    values: list[Count] = Field(max_length=1000)

    def restored(self, losses: UserLosses) -> list[int] | tuple[int, ...]:  # noqa: ARG002
        """Make the widths again."""
        return tuple(self.values) if self.container == "tuple" else list(self.values)


class NetworkParameters(Document):
    """Hyperparameters of `NetworkEstimator`; a default is what versions without the parameter did."""

    hidden_layers: Widths | None
    activation: Name | None
    batch_size: Count | None
    learning_rate: PositiveFloat | None
    max_steps: Annotated[int, Field(ge=1)] | None
    patience: Annotated[int, Field(ge=1)] | None
    schedule: Literal["cosine", "constant"]
    epoch_size: Annotated[int, Field(ge=1)] | None
    weight_decay: Annotated[float, Field(ge=0)] | None
    n_members: Count
    validation_fraction: float | None
    device: Annotated[str, Field(pattern=r"^(auto|(cpu|cuda|mps|xpu)(:[0-9]{1,3})?)$")]
    on_divergence: Literal["warn", "raise", "ignore"]
    random_state: int | None
    verbose: bool
    periodic: list[Name | Annotated[int, Field(ge=0)]] | None = Field(default=[], max_length=100_000)
    n_threads: Count | None = None
    fill: dict[Name, float] | None = None
    objects: dict[Name, list[Name]] | Name | None = None
    symmetry: list[Name] | Name | None = None
    invariants: bool = False


class FeaturesDocument(Document):
    """Number, names and order of the features; `from_frame` where scikit-learn knows the names as well.

    `fill` says what stands for a missing value, `is_exact` that float32 is not enough for them.
    """

    count: Count
    names: list[Name] | None
    from_frame: bool
    fill: dict[Name, float] = Field(default_factory=dict)
    is_exact: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if(
            self.names is not None and len(self.names) != self.count,
            "the number of names is not the number of features",
        )
        refuse_if(self.names is None and self.from_frame, "a frame has names")
        return self


class FittedNetworkDocument(FittedDocument):
    """What every fitted estimator with networks has."""

    seed: Annotated[int, Field(ge=0, lt=2**63)]
    features: FeaturesDocument


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkEstimator(PersistentEstimator):
    """Base of all estimators that train networks.

    The dataclass writes the constructor, which only stores; so scikit-learn finds every parameter in its
    signature, and subclasses add their own without repeating these. `fit` validates.

    Args:
        hidden_layers: Widths of the hidden layers; by default 2 x 64 up to four features, above 3 x 64, and 3 x 128
            from 400,000 events on (half as wide for the several networks of `SignedMixtureRatio`).
        activation: `"silu"`, `"hardswish"`, `"relu"`, `"tanh"` or `"gelu"`; by default SiLU, and hard swish for
            the small networks of a signed mixture. Several joined by `+` share the members of an ensemble among
            them, as `"silu+hardswish"` does by default for those of `SignResolvedRatio`.
        batch_size: Events per optimiser step; by default about a hundredth of the events, between 256 and 8192.
        learning_rate: Peak rate; by default 0.64 over the width of the widest layer: 0.01 for 64, or what the trials prefer.
        max_steps: Optimiser steps of one training, with nothing tried. By default about twelve passes over the
            data, and up to 400,000 events a few other lengths and strengths, above a faster one with less decay, judged on
            validation data.
        patience: Epochs without a better validation loss before stopping; by default none for the cosine
            schedule and 20 for the constant one.
        schedule: `"cosine"` (warm-up, then decay to zero) or `"constant"` (the published one).
        epoch_size: Training events between two validations; by default a twentieth of the fit.
        weight_decay: Decoupled weight decay; by default 0.3 at 20,000 events, less for more events, or what the
            trials prefer, and a third of it for the members of an ensemble.
        n_members: Networks in the ensemble. Each sees its own (balanced) Poisson bootstrap of the data. Up to 40,000
            events the network of a single member is the mean of four that start differently, unless `max_steps` is given.
        validation_fraction: Share of the events held out when `fit` gets no `validation`; by default a tenth up to
            20,000 events, less for more.
        periodic: Names (or numbers, from zero) of features that are angles in radians, besides those that are recognised: a
            word of their name ends with phi or contains azimuth, and their values fill one turn. `()` for none at all.
        fill: What stands for a missing value (NaN), by feature, such as `{"jet1_pt": 0.0}`; elsewhere a missing value is
            an error. The networks are told whether the value is there. By default that of the `WeightedSample`.
        objects: Groups of features with the coordinates of a momentum, such as
            `{"mu1": ["mu1_pt", "mu1_eta", "mu1_phi"]}`; a fourth one is the mass, and eta may be `"-"`.
        symmetry: What does not change the densities, one or several of `"azimuth"` (a turn about the beam: azimuths are
            measured from the first object, or from mu2 with `"azimuth:mu2"`), `"reflection"` (in phi) and `"eta"` (a
            reflection in eta).
        invariants: Whether the networks get masses and distances Delta R of all pairs of objects.
        device: `"auto"`, `"cpu"`, `"cuda"`, ...
        n_threads: Threads of a training step; by default one for small networks, which threads make slower, and up to
            four where a step is large enough to share.
        on_divergence: If the risk has no minimum: `"warn"` ends the training soon and keeps the best validated state,
            `"raise"` stops with `DivergenceError`, `"ignore"` goes on for as long as the patience allows, as the
            published training does.
        random_state: Seed; the same seed gives the same bits on one machine and thread count.
        verbose: Draw a progress bar when standard error is a terminal.
    """

    hidden_layers: Sequence[int] | None = None
    activation: str | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    max_steps: int | None = None
    patience: int | None = None
    schedule: Literal["cosine", "constant"] = "cosine"
    epoch_size: int | None = None
    weight_decay: float | None = None
    n_members: int = 1
    validation_fraction: float | None = None
    periodic: Sequence[str | int] | None = None
    fill: Mapping[str, float] | None = None
    objects: Mapping[str, Sequence[str]] | str | None = None
    symmetry: Sequence[str] | str | None = None
    invariants: bool = False
    device: str = "auto"
    n_threads: int | None = None
    on_divergence: Literal["warn", "raise", "ignore"] = "warn"
    random_state: int | np.random.RandomState | None = None
    verbose: bool = True

    parameters_type: ClassVar[type[Document]] = NetworkParameters
    fitted_type: ClassVar[type[FittedDocument]] = FittedNetworkDocument
    has_noisy_labels: ClassVar[bool] = True  # whether an event knows its class only, and no value

    def new_seed(self) -> int:
        """Draw the seed of a fit from `random_state`."""
        try:
            return int(check_random_state(self.random_state).randint(2**31 - 1))
        except ValueError as error:
            msg = (
                f"Got random_state = {shortened(repr(self.random_state))}; expected a whole number from 0 to {2**32 - 1}, a "
                "NumPy RandomState, or None."
            )
            raise InvalidInputError(msg) from error

    def prepared_fit(
        self,
        training: LabelledEvents,
        held_out: LabelledEvents,
        seed: int,
        judge_weights: npt.NDArray[np.float64] | None = None,
        *,
        stored: TrainingSource | None = None,
        say: Callable[[str], None] | None = None,
    ) -> Fit:
        """Check the hyperparameters and put the events on the device; those of a store stay on disk."""
        n_events = len(training) if stored is None else len(stored)
        settings = self.checked_settings(n_events, training.effective_share)
        is_ours = self.has_noisy_labels and self.max_steps is None and self.schedule == "cosine"
        n_starts = standard_starts(n_events) if is_ours and stored is None and self.n_members == 1 else 1
        trials = trial_settings(
            settings,
            n_events,
            fixed_decay=self.weight_decay is not None,
            fixed_rate=self.learning_rate is not None,
        )
        fill = {self.feature_list().index(name): value for name, value in self.fill_.items()}
        if self.periodic is None or len(self.periodic):
            warn_of_degrees(self.feature_list(), training.features, fill)
        return Fit(
            training,
            held_out,
            judge_weights,
            settings,
            trials,
            self.n_members,
            self.layer_widths(n_events),
            self.activation_name(),
            self.periodic_columns(training.features),
            fill | recognised_sentinels(training.features, fill),
            self.object_coordinates(),
            usable_device(self.device),
            self.n_threads,
            self.verbose,
            seed,
            n_starts,
            stored,
            say,
        )

    def checked_settings(self, n_events: int, effective_share: float = 1.0) -> TrainingSettings:
        """Check the hyperparameters, and settle those that depend on the number of events and on what they are worth."""
        for name in ("batch_size", "n_members", "max_steps", "patience", "epoch_size", "n_threads"):
            value = getattr(self, name)
            is_default = value is None and name != "n_members"
            if not is_default and not _is_count(value):
                msg = f"Got {name} = {value!r}; expected a positive whole number."
                raise InvalidInputError(msg)
            if not is_default and value > _LARGEST_COUNT:
                msg = f"Got {name} = {value_text(value)}; expected at most {_LARGEST_COUNT:,}."
                raise InvalidInputError(msg)
        if self.n_threads is not None and self.n_threads > MOST_THREADS:
            msg = f"Got n_threads = {self.n_threads}; expected at most {MOST_THREADS}."
            raise InvalidInputError(msg)
        if not _are_widths(self.hidden_layers):
            msg = f"Got hidden_layers = {self.hidden_layers!r}; expected a sequence of widths, such as (64, 64)."
            raise InvalidInputError(msg)
        if self.weight_decay is not None and not 0 <= self.weight_decay < np.inf:
            msg = f"Got weight_decay = {self.weight_decay}; expected zero or a positive number."
            raise InvalidInputError(msg)
        for name, choices in (
            ("schedule", ("cosine", "constant")),
            ("on_divergence", ("warn", "raise", "ignore")),
        ):
            if getattr(self, name) not in choices:
                msg = f"Got {name} = {getattr(self, name)!r}; expected one of {', '.join(choices)}."
                raise InvalidInputError(msg)
        weight_decay = self.weight_decay
        if weight_decay is None:
            weight_decay = self.default_decay(n_events, effective_share)
            if self.schedule == "constant":  # the published schedule has none
                weight_decay = 0.0
        return TrainingSettings(
            batch_size=standard_batch_size(n_events) if self.batch_size is None else int(self.batch_size),
            learning_rate=self._rate(n_events),
            max_steps=self.max_steps,
            n_passes=standard_passes(n_events),
            patience=self.patience,
            schedule=self.schedule,
            epoch_size=self.epoch_size,
            weight_decay=weight_decay,
            member_decay=STANDARD_MEMBER_DECAY if self.weight_decay is None else 1.0,
            on_divergence=self.on_divergence,
        )

    def default_decay(self, n_events: int, effective_share: float) -> float:
        """Return the weight decay where none is given, by the number of events and what of it their |w| leave."""
        return standard_weight_decay(effective_share * n_events, noisy=self.has_noisy_labels)

    def periodic_columns(self, features: FeatureMatrix) -> list[int]:
        """Return the columns that are angles, in order: those that are recognised, and those that are declared."""
        names = self.feature_list()
        declared = declared_angles(self.periodic, names)
        if self.periodic is not None and not declared:
            return []
        fill = {names.index(name): value for name, value in self.fill_.items()}
        for column in declared:
            refuse_degrees(names[column], features[:, column], fill.get(column))
        return sorted(declared | set(recognised_angles(names, features, fill)))

    def sample_of(self, events: Any, weights: npt.ArrayLike | None = None) -> WeightedSample:  # noqa: ANN401
        """Return events as a sample; missing values are taken for what `fill` says."""
        fill = None if isinstance(events, WeightedSample) else self.fill
        return WeightedSample(events, weights, fill=fill)

    def require_features(self, names: Sequence[str]) -> None:
        """Raise unless the angles and objects that were declared are made of features of these names."""
        declared_angles(self.periodic, names)
        ObjectCoordinates.of(self.objects, self.symmetry, names, invariants=self.invariants)

    def object_coordinates(self) -> ObjectCoordinates | None:
        """Return the coordinates that objects and symmetries ask for."""
        return ObjectCoordinates.of(
            self.objects, self.symmetry, self.feature_list(), invariants=self.invariants
        )

    def held_out_fraction(self, n_events: int) -> float:
        """Return the share of the events that validates."""
        if self.validation_fraction is None:
            return standard_validation_fraction(n_events)
        return self.validation_fraction

    def layer_widths(self, n_events: int) -> Sequence[int]:
        """Return the hidden layers in use."""
        if self.hidden_layers is not None:
            return self.hidden_layers
        return default_hidden_layers(self.n_features_in_, n_events)

    def activation_name(self) -> str:
        """Return the activation in use."""
        return "silu" if self.activation is None else self.activation

    def _rate(self, n_events: int) -> float:
        if self.learning_rate is None:
            return _RATE_TIMES_WIDTH / max([*self.layer_widths(n_events), _NARROWEST])
        if not 0 < self.learning_rate < np.inf:
            msg = f"Got learning_rate = {self.learning_rate}; expected a positive number."
            raise InvalidInputError(msg)
        return self.learning_rate

    def stored_parameter(self, name: str, value: Any) -> Any:  # noqa: ANN401
        """Turn a parameter into what its document holds."""
        if name == "hidden_layers" and value is not None:
            values = [int(width) for width in value]
            return Widths(container="list" if isinstance(value, list) else "tuple", values=values)
        if name == "periodic" and value is not None:
            return [feature if isinstance(feature, str) else int(feature) for feature in value]
        if name == "fill" and value is not None:
            return {str(feature): float(number) for feature, number in value.items()}
        if name == "objects" and isinstance(value, Mapping):
            return {str(key): [str(column) for column in columns] for key, columns in value.items()}
        if name == "symmetry" and value is not None:
            return value if isinstance(value, str) else [str(kind) for kind in value]
        if name == "random_state":  # a generator cannot be stored; the seed that was drawn from it can
            return int(value) if isinstance(value, int | np.integer) else None
        if name == "device":
            return str(value)
        return super().stored_parameter(name, value)

    def fitted_fields(self) -> dict[str, Any]:
        """Add the seed and the features."""
        features = FeaturesDocument(
            count=self.n_features_in_,
            names=None if self.feature_names_ is None else list(self.feature_names_),
            from_frame=hasattr(self, "feature_names_in_"),
            fill=self.fill_,
            is_exact=self.is_exact_,
        )
        return {**super().fitted_fields(), "seed": self.seed_, "features": features}

    def restore(self, document: Any, stored: StoredParts) -> None:  # noqa: ANN401
        """Set the seed and the features."""
        super().restore(document, stored)
        names = document.features.names
        self.seed_ = document.seed
        self.n_features_in_ = document.features.count
        self.feature_names_ = None if names is None else tuple(names)
        self.fill_, self.is_exact_ = document.features.fill, document.features.is_exact
        if document.features.from_frame:
            self.feature_names_in_ = np.array(names, dtype=object)


def _is_count(value: object) -> bool:
    return isinstance(value, int | np.integer) and bool(value >= 1)


def _are_widths(value: object) -> bool:
    return value is None or (isinstance(value, Sequence | np.ndarray) and all(_is_count(n) for n in value))
