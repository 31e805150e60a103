"""The state of one fit: tensors on the device, seeds and settings, shared by all estimators."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from quasiratio.errors import InvalidInputError
from quasiratio.networks import FeatureScaling, ObjectCoordinates, StackedMlp
from quasiratio.networks.threads import network_threads
from quasiratio.progress import training_progress
from quasiratio.ratios import sign_parts
from quasiratio.registry import ESTIMATORS
from quasiratio.training import (
    Batch,
    Batches,
    Pool,
    Ranks,
    TrainedNetworks,
    TrainingPool,
    TrainingSettings,
    TrainingSource,
    member_weights,
    normalized_per_group,
    projected_line,
    train,
)
from quasiratio.wording import shortened

if TYPE_CHECKING:
    import numpy.typing as npt

    from quasiratio.estimators.training_data import LabelledEvents
    from quasiratio.training.objectives import Objective

__all__ = [
    "MOST_THREADS",
    "Fit",
    "available_device",
    "require_one_process",
    "streaming_estimators",
    "usable_device",
    "with_own_threads",
]

_Method = TypeVar("_Method", bound=Callable[..., Any])

MOST_THREADS = 1024
"""Many more end the process."""
_DEVICE_KINDS = ("cpu", "cuda", "mps", "xpu")
_LABEL_OF_PART = np.array([0.0, 0.0, 1.0, 1.0], dtype=np.float32)


def usable_device(name: str) -> torch.device:
    """Return the device of this name, or raise unless it computes in single and in double precision.

    Example:
        >>> usable_device("cpu")
        device(type='cpu')
        >>> usable_device("meta")
        Traceback (most recent call last):
        ...
        quasiratio.errors.InvalidInputError: Got the device 'meta', which is not available here; ...
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    given: object = name
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about kinds of devices that PyTorch has given up
            device = torch.device(name)
        if (
            isinstance(given, str)
            and device.type in _DEVICE_KINDS
            and not (device.type == "cpu" and device.index)
        ):
            for precision in (torch.float32, torch.float64):  # Apple's mps has no double precision
                float(torch.ones(1, dtype=precision, device=device).sum())
            return device
    except (RuntimeError, AssertionError, TypeError, ValueError, NotImplementedError):
        pass
    more = ", 'cuda'" if torch.cuda.is_available() else ""
    msg = f"Got the device {shortened(str(name))!r}, which is not available here; use 'auto' or 'cpu'{more}."
    raise InvalidInputError(msg)


def available_device(name: str) -> torch.device:
    """Return the device of a fit, or the processor where this machine has no such device."""
    try:
        return usable_device(name)
    except InvalidInputError:
        return torch.device("cpu")


def require_one_process(what: str) -> None:
    """Raise where several processes are to do together what needs all events in one."""
    if Ranks.present().size > 1:
        msg = f"Got several processes for {what}, which needs all events in one; expected {streaming_estimators()}."
        raise InvalidInputError(msg)


def streaming_estimators() -> str:
    """Return which estimators need not have all events in memory, as a sentence has them."""
    classes = {method: ESTIMATORS.require(method) for method in ESTIMATORS.methods()}
    able = [
        f"{found.__name__} ({method!r})"
        for method, found in classes.items()
        if getattr(found, "trains_from_store", False)
    ]
    return f"{' or '.join(able)}, without folds or several weights"


def with_own_threads(fit: _Method) -> _Method:
    """Keep all that a `fit` does, tests of signs and checks among it, to the threads that its estimator was given.

    Args:
        fit: A method of an estimator with `n_threads`.
    """

    @functools.wraps(fit)
    def limited(estimator: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - those of the method
        given = estimator.n_threads
        if (
            not isinstance(given, int) or not 0 < given <= MOST_THREADS
        ):  # left out, or refused by `fit` itself
            return fit(estimator, *args, **options)
        with network_threads(given):
            return fit(estimator, *args, **options)

    return cast("_Method", limited)


@dataclass
class Fit:
    """Everything an estimator needs to train one stage after another.

    Attributes:
        train_events: Training events as checked arrays.
        validation_events: Validation events.
        judge_weights: Weights of the validation events by which signed losses are judged: those of the reference
            are positive where its density is (see `judging`); `None` for the weights of the events.
        settings: Settings of every stage.
        trials: Other settings to try, where the sample is small enough.
        n_members: Ensemble size.
        hidden_layers: Width of the hidden layers.
        activation: Name of the activation.
        periodic: Columns of the features that are angles.
        fill: What stands for a missing value, by column.
        objects: Turns features into other coordinates.
        device: Where the tensors live.
        n_threads: Threads of a step; `None` for as many as its work is worth.
        verbose: Whether to draw a progress bar on a terminal.
        seed: Seed of every random choice of the fit.
        n_starts: Networks from different starts that one network of a single member is the mean of.
        stored: The training events, where they stay on disk or are those of several processes; `train_events` are then
            some of them, enough to scale features by and to look at.
        say: Called with a line about the time that a training from disk will take.
    """

    train_events: LabelledEvents
    validation_events: LabelledEvents
    judge_weights: npt.NDArray[np.float64] | None
    settings: TrainingSettings
    trials: Sequence[TrainingSettings]
    n_members: int
    hidden_layers: Sequence[int]
    activation: str
    periodic: Sequence[int]
    fill: Mapping[int, float]
    objects: ObjectCoordinates | None
    device: torch.device
    n_threads: int | None
    verbose: bool
    seed: int
    n_starts: int = 1
    stored: TrainingSource | None = None
    say: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        self._seed_generators()
        # Validation may use the first events only, so their order must not matter.
        order = int(np.random.SeedSequence(self.seed).generate_state(4)[3])
        shuffled = np.random.default_rng(order).permutation(len(self.validation_events))
        self.validation_events = self.validation_events.select(shuffled)
        if self.judge_weights is not None:
            self.judge_weights = self.judge_weights[shuffled]
        self.scaling = FeatureScaling.from_data(
            self.train_events.features, self.periodic, objects=self.objects, fill=self.fill, drop=True
        ).to(self.device)
        self.validation_inputs = self._scaled(self.validation_events)
        if self.stored is not None:
            self.train_inputs = self.stored.inputs(self.scaling)
            self.stored = self.stored.for_members(self.n_members, self.bootstrap_generator.initial_seed())
            return
        self.train_inputs = self._scaled(self.train_events)
        weights = torch.from_numpy(self.train_events.weights).to(self.device)
        self.member_weights = member_weights(weights, self.n_members, self.bootstrap_generator)
        """Signed, bootstrapped, not yet normalised: `(n_members, n)`."""

    def _seed_generators(self) -> None:
        initial, shuffles, bootstrap, _ = np.random.SeedSequence(self.seed).generate_state(4)
        self.initial_generator = torch.Generator().manual_seed(int(initial))
        self.shuffle_generator = torch.Generator(self.device).manual_seed(int(shuffles))
        self.bootstrap_generator = torch.Generator(self.device).manual_seed(int(bootstrap))

    def _scaled(self, events: LabelledEvents) -> Tensor:
        scaled: Tensor = self.scaling(torch.from_numpy(events.features).to(self.device))
        return scaled

    @property
    def n_training(self) -> int:
        """Number of training events."""
        return len(self.train_events) if self.stored is None else len(self.stored)

    def alone(self) -> Self:
        """Return the same fit with one member, which sees the data as they are."""
        single = copy.copy(self)
        single.n_members = single.n_starts = 1
        if self.stored is not None:
            single.stored = self.stored.for_members(1)
            return single
        single.member_weights = self.tensor(self.train_events.weights)[None]
        return single

    def from_starts(self) -> Self:
        """Return the same fit with `n_starts` members that all see the data as they are, and start differently."""
        several = self.alone()
        several.n_members = self.n_starts
        several.member_weights = several.member_weights.expand(self.n_starts, -1)
        return several

    def with_settings(self, settings: TrainingSettings) -> Self:
        """Return the same fit, from the same seed, with other settings and nothing to try."""
        other = copy.copy(self)
        other.settings, other.trials = settings, ()
        other._seed_generators()
        return other

    def network(self, n_outputs: int, *, n_per_member: int = 1, start: Tensor | float = 0.0) -> StackedMlp:
        """Make the stacked networks of all members.

        Args:
            n_outputs: Outputs of each network.
            n_per_member: Networks of each member.
            start: Bias of the outputs to begin with: what a network without any knowledge of the features says, to
                which weight decay then pulls it.
        """
        network = StackedMlp(
            self.n_members * n_per_member,
            self.scaling.n_inputs,
            self.hidden_layers,
            n_outputs,
            activation=self.activation,
            generator=self.initial_generator,
        ).to(self.device)
        with torch.no_grad():
            network.biases[-1].copy_(torch.as_tensor(start).expand_as(network.biases[-1]))
        return network

    def tensor(self, array: npt.NDArray[np.generic]) -> Tensor:
        """Put an array on the device."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def part_sums(self) -> npt.NDArray[np.float64]:
        """Return the sums of the absolute training weights of the four `SIGN_CLASSES`."""
        if self.stored is not None:
            return np.asarray(self.stored.part_sums[0])
        parts = sign_parts(self.train_events.labels, self.train_events.weights)
        return np.asarray(np.bincount(parts, weights=np.abs(self.train_events.weights), minlength=4), float)

    def training_pool(self, class_of: npt.NDArray[Any], *, absolute: bool = False) -> TrainingPool:
        """Return all training events, wherever they are, with weights normalised per label.

        Args:
            class_of: What the networks are told of an event of each of the four `SIGN_CLASSES`.
            absolute: Whether they get the absolute weights.
        """
        if self.stored is not None:
            return self.stored.pool(self.scaling, class_of, absolute=absolute)
        return self.memory_pool(class_of, absolute=absolute)

    def memory_pool(self, class_of: npt.NDArray[Any] = _LABEL_OF_PART, *, absolute: bool = False) -> Pool:
        """Return `training_pool` of a fit whose events are in memory; by default as in `signed_pools`."""
        events = self.train_events
        weights = normalized_per_group(self.member_weights, self.tensor(events.labels))
        classes = self.tensor(class_of[sign_parts(events.labels, events.weights)])
        return Pool(None, classes, weights.abs() if absolute else weights)

    def validation_pool(self) -> Pool:
        """Return all validation events with weights normalised per class.

        They are signed, but for those of the reference where its density is positive: a pole on an event of negative
        weight would lower the risk there, and be taken for an improvement.
        """
        labels = self.tensor(self.validation_events.labels)
        judged = self.validation_events.weights if self.judge_weights is None else self.judge_weights
        return Pool(None, labels.float(), normalized_per_group(self.tensor(judged)[None], labels))

    def signed_pools(self) -> tuple[TrainingPool, Pool]:
        """Return all training events with signed weights normalised per class, and `validation_pool`."""
        return self.training_pool(_LABEL_OF_PART), self.validation_pool()

    def train(
        self,
        model: nn.Module,
        objective: Objective,
        training: Sequence[TrainingPool],
        validation: Sequence[Pool],
        *,
        settings: TrainingSettings | None = None,
        keep_initial: bool = False,
    ) -> TrainedNetworks:
        """Train `model` on one pool, or on several side by side, to its best validated state.

        Raises:
            InvalidInputError: Several processes are to train on events that this one has.
        """
        settings, ranks = settings or self.settings, Ranks.present()
        if self.stored is None:
            require_one_process("this fit")
        batches = Batches(self.train_inputs, training, settings.batch_size, self.shuffle_generator, ranks)
        n_held_out = settings.n_validation_events(max(len(pool) for pool in validation))
        held_out = self._validation_batch(validation, n_held_out)
        n_rows = settings.batch_size * (self.n_members * len(training)) // ranks.size
        with (
            network_threads(self.n_threads, n_rows, max([*self.hidden_layers, 1])),
            training_progress(objective.name, verbose=self.verbose and ranks.is_first) as progress,
        ):
            if self.stored is not None and self.say is not None:
                self.say(projected_line(model, objective, training, held_out, settings, self.device, ranks))
            return train(
                model,
                objective,
                batches,
                held_out,
                settings,
                keep_initial=keep_initial,
                progress=progress,
                ranks=ranks,
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
