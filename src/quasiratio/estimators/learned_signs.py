r"""Where in a sample weights are negative, learned by small networks that nothing else depends on.

A signed density is $q = h\,a$ with the sign asymmetry $a(x) = E[\operatorname{sign} w \mid x]$. Two small classifiers of
the sign, each trained on one half of the events, order those of the other half. From them follow

- a test for a region of negative density: a tail of 1%, 5% or 20% of the events, where negative weights are most
  frequent, whose weights sum to less than zero by four standard deviations;
- weights $|w|\,a(x)$, positive and with the same expectations, by which a ratio can be judged: with signed weights a
  pole on an event of negative weight lowers $E_0[r^2]$, and would be taken for an improvement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
import torch

from quasiratio.columns import FeatureMatrix
from quasiratio.estimators.fitting import Fit
from quasiratio.estimators.training_data import LabelledEvents
from quasiratio.metrics.negative_density import (
    NEGATIVE_SIGMAS,
    TAIL_FRACTIONS,
    is_negative,
    tail_lengths,
)
from quasiratio.networks import recognised_sentinels
from quasiratio.ratios import OutputView, SignClass, SignResolvedModel, capped_log_odds
from quasiratio.training import CrossEntropyObjective, Pool, TrainingSettings
from quasiratio.training.standard import standard_batch_size, standard_weight_decay

__all__ = ["DensityTest", "LearnedSigns"]

FloatArray = npt.NDArray[np.float64]
_CLASSES = (SignClass(0, +1), SignClass(0, -1))
_HIDDEN_LAYERS, _RATE, _PASSES = (32, 32), 0.02, 6.0
_MOST_TRAINING_EVENTS = 100_000
_HELD_OUT = 0.1
_POSITIVE_SIGMAS = 2.0
_FEWEST_NEGATIVE = int(NEGATIVE_SIGMAS**2)
"""The sum of n weights is at most sqrt(n) standard deviations below zero."""
_CHUNK_ROWS = 2**15
_FLOOR_SHARE, _LARGEST_FLOOR = 0.25, 0.9
"""The smallest asymmetry of an estimate, in units of the mean one, and altogether."""


@dataclass(frozen=True)
class DensityTest:
    """Whether a density has a region where it is negative.

    Attributes:
        sign: `"negative"` (beyond doubt), `"positive"` (also where negative weights are most frequent), or
            `"undecided"`.
        tail: Share of the events, those where negative weights are most frequent, that says so most clearly.
        asymmetry: Sum of weights over sum of absolute weights there.
        error: Its standard error: asymmetries above minus four of these go unseen.
        n_events: Events that were tested.
    """

    sign: Literal["negative", "positive", "undecided"]
    tail: float
    asymmetry: float
    error: float
    n_events: int

    def __str__(self) -> str:
        where = (
            f"in the {self.tail:.0%} of its {self.n_events} events where negative weights are most frequent, the sum "
            f"of weights over |w| is {self.asymmetry:+.3f} ± {self.error:.3f}"
        )
        if self.sign == "negative":
            return where
        # What is called positive is so where the test can see; how far that is belongs to the answer.
        return (
            f"{where}; a negative density is seen from {-NEGATIVE_SIGMAS * self.error:.2f} on, half of that needs four "
            "times the events"
        )


@dataclass(frozen=True)
class LearnedSigns:
    """The sign asymmetry of one class, and the test of its density.

    Attributes:
        networks: Two classifiers of the sign; none where no weight is negative.
        cross_log_odds: Logarithm of the odds of a negative weight at each event, from the network that has not seen
            the event.
        share: Sum of weights over sum of absolute weights.
        test: The test of the density.
    """

    networks: tuple[SignResolvedModel, ...]
    cross_log_odds: FloatArray
    share: float
    test: DensityTest

    @classmethod
    def of(
        cls,
        features: FeatureMatrix,
        weights: FloatArray,
        *,
        periodic: Sequence[int] = (),
        device: torch.device | None = None,
        seed: int = 0,
    ) -> Self:
        """Learn from signed weights with a positive sum.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> x = rng.uniform(-1.0, 1.0, (20_000, 1)).astype(np.float32)
            >>> w = np.where(rng.random(20_000) < 0.5 + 0.45 * x[:, 0], 1.0, -1.0) + 0.2
            >>> LearnedSigns.of(x, w).test.sign
            'negative'
        """
        share = float(weights.sum() / np.abs(weights).sum())
        n_negative = int(np.sum(weights < 0))
        half = np.random.default_rng(seed).permutation(len(weights)) % 2 == 0
        enough = min(np.sum(weights[part] < 0) for part in (half, ~half)) >= 2
        enough = enough and min(np.sum(weights[part] >= 0) for part in (half, ~half)) >= 2
        if n_negative <= _FEWEST_NEGATIVE or not enough:
            log_odds = np.full(len(weights), np.log((1.0 - share) / (1.0 + share)) if share < 1 else -np.inf)
            sign: Literal["positive", "undecided"] = "positive" if n_negative == 0 else "undecided"
            error = float(np.sqrt(np.square(weights).sum()) / np.abs(weights).sum())
            return cls((), log_odds, share, DensityTest(sign, 1.0, share, error, len(weights)))
        networks = tuple(
            _sign_classifier(features[part], weights[part], periodic, device or torch.device("cpu"), seed)
            for part in (half, ~half)
        )
        log_odds = np.empty(len(weights))
        for network, seen in zip(networks, (half, ~half), strict=True):
            log_odds[~seen] = _log_odds(network, features[~seen])
        return cls(networks, log_odds, share, _tested(log_odds, weights, half))

    @property
    def floor(self) -> float:
        """The smallest asymmetry that an estimate of a positive density may have."""
        return min(_FLOOR_SHARE * self.share, _LARGEST_FLOOR)

    def judge_weights(self, weights: FloatArray) -> FloatArray:
        """Return weights of the same events by which to judge a ratio: positive ones, unless the density is negative."""
        if self.test.sign == "negative":
            return weights
        return self.positive_weights(self.cross_log_odds, weights, self.floor)

    def log_odds(self, features: FeatureMatrix) -> FloatArray:
        """Return the logarithm of the odds of a negative weight at other events."""
        if not self.networks:
            return np.full(len(features), self.cross_log_odds[0])
        return np.asarray(np.mean([_log_odds(network, features) for network in self.networks], axis=0))

    def positive_weights(self, log_odds: FloatArray, weights: FloatArray, floor: float) -> FloatArray:
        r"""Return $|w|\,a(x)$ with an asymmetry above `floor`, of the same sum as `weights`."""
        if not self.networks:
            return np.abs(weights)
        odds = capped_log_odds(torch.from_numpy(log_odds), floor).exp().numpy()
        positive = np.abs(weights) * (1.0 - odds) / (1.0 + odds)
        return np.asarray(positive * (weights.sum() / positive.sum()))


def _sign_classifier(
    features: FeatureMatrix, weights: FloatArray, periodic: Sequence[int], device: torch.device, seed: int
) -> SignResolvedModel:
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(np.flatnonzero(part)) for part in (weights < 0, weights >= 0)])
    if len(order) > _MOST_TRAINING_EVENTS:
        order = rng.choice(order, _MOST_TRAINING_EVENTS, replace=False)
    else:
        order = rng.permutation(order)
    events = LabelledEvents(features[order], weights[order] < 0, np.abs(weights[order]))
    n_held_out = max(1, int(_HELD_OUT * len(order)))
    everywhere = np.arange(len(order))
    fit = Fit(
        events.select(everywhere[n_held_out:]),
        events.select(everywhere[:n_held_out]),
        None,
        TrainingSettings(
            batch_size=standard_batch_size(len(order)),
            learning_rate=_RATE,
            n_passes=_PASSES,
            weight_decay=standard_weight_decay(len(order), noisy=False),
        ),
        (),
        1,
        _HIDDEN_LAYERS,
        "silu",
        periodic,
        recognised_sentinels(events.features),
        None,
        device,
        None,
        False,
        seed,
    )
    share = float(np.average(events.labels, weights=events.weights))
    start = torch.tensor([1.0 - share, share]).clamp(min=1e-6).log()
    model = SignResolvedModel(fit.scaling, fit.network(2, start=start), 1, _CLASSES).to(device)
    pools = [
        Pool(
            None,
            fit.tensor(part.labels.astype(np.int64)),
            fit.tensor(part.weights / part.weights.mean()).float()[None],
        )
        for part in (fit.train_events, fit.validation_events)
    ]
    fit.train(OutputView(model), CrossEntropyObjective(), pools[:1], pools[1:])
    return model.eval()


@torch.inference_mode()
def _log_odds(model: SignResolvedModel, features: FeatureMatrix) -> FloatArray:
    device = model.scaling.mean.device
    found = np.empty(len(features))
    with model.network.threads(len(features)):
        for start in range(0, len(features), _CHUNK_ROWS):
            chunk = model.scaling.taken(features[start : start + _CHUNK_ROWS], device)
            logits = model.outputs(model.scaling(chunk))[0]
            found[start : start + _CHUNK_ROWS] = (logits[:, 1] - logits[:, 0]).double().cpu().numpy()
    return found


def _tested(log_odds: FloatArray, weights: FloatArray, half: npt.NDArray[np.bool_]) -> DensityTest:
    ordered = [weights[part][np.argsort(-log_odds[part], kind="stable")] for part in (half, ~half)]
    tails = []
    lengths = zip(*(tail_lengths(len(part)) for part in ordered), strict=True)
    for fraction, n_tails in zip(TAIL_FRACTIONS, lengths, strict=True):
        tail = np.concatenate([part[:n_tail] for part, n_tail in zip(ordered, n_tails, strict=True)])
        total, error = float(tail.sum()), float(np.sqrt(np.square(tail).sum()))
        scale = float(np.abs(tail).sum())
        tails.append((total / error, fraction, total / scale, error / scale))
    sigmas, fraction, asymmetry, error = min(tails)
    sign: Literal["negative", "positive", "undecided"] = "undecided"
    if is_negative(sigmas, 1.0):
        sign = "negative"
    elif sigmas > _POSITIVE_SIGMAS:
        sign = "positive"
    return DensityTest(sign, fraction, asymmetry, error, len(weights))
