"""Ensembles: shapes, spread, the average, and its law."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import pytest
import torch

from quasiratio.errors import InvalidInputError
from quasiratio.estimators import SingleModelRatio
from quasiratio.losses import LOSSES, loss_by_name
from quasiratio.ratios import ratio_model
from quasiratio.registry import ESTIMATORS
from quasiratio.training import CrossEntropyObjective

N_MEMBERS = 4
COMMON: dict[str, Any] = {
    "n_members": N_MEMBERS, "max_steps": 80, "hidden_layers": (16,), "batch_size": 512, "random_state": 0, "verbose": False,
}  # fmt: skip
LOSSES_OF_ONE_NETWORK = ("lsif", "revert")


def variants() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield every registered estimator of one model, with two losses where it takes one and with each of its tunings."""
    for name in ESTIMATORS.methods():
        kind = ESTIMATORS[name]
        if not issubclass(kind, SingleModelRatio):
            continue
        fields = kind.parameters_type.model_fields
        tunings = [{"tune": how} for how in get_args(fields["tune"].annotation)] if "tune" in fields else [{}]
        losses = [{"loss": loss} for loss in LOSSES_OF_ONE_NETWORK] if "loss" in fields else [{}]
        for own in ({**tuning, **loss} for tuning in tunings for loss in losses):
            yield " ".join([name, *own.values()]), partial(_made, kind, own)


def _made(kind: Callable[..., Any], own: dict[str, str], **options: Any) -> Any:
    return kind(**{**own, **COMMON, **options})


MAKERS: dict[str, Callable[..., Any]] = dict(variants())
TUNED = [kind for kind in MAKERS if kind.endswith((" all", " coefficients"))]
every_kind = pytest.mark.parametrize("kind", MAKERS)
Events = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.float64]]


def events(seed: int = 1, n: int = 6000, signed: bool = True) -> Events:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 2)) + 0.3 * y[:, None]
    return X, y, np.where(signed & (y == 1) & (rng.random(n) < 0.1), -1.0, 1.0)


@pytest.fixture(scope="module")
def fitted() -> Callable[[str], Any]:
    cache: dict[str, Any] = {}

    def fit(kind: str) -> Any:
        if kind not in cache:
            X, y, w = events()
            cache[kind] = MAKERS[kind]().fit(X, y, sample_weight=w, validation=events(seed=2))
        return cache[kind]

    return fit


def test_every_registered_estimator_of_one_model_takes_part() -> None:
    taking_part = {kind.partition(" ")[0] for kind in MAKERS}
    assert set(ESTIMATORS.methods()) - taking_part == {"auto"}  # it is made of the others
    assert len(TUNED) >= 3


def test_half_of_a_sign_resolved_ensemble_has_hard_swish(fitted: Callable[[str], Any]) -> None:
    def activation(model: Any) -> Any:
        return model.model_.network.activation

    X, y, w = events(signed=False)
    assert activation(fitted("sign-resolved none")) == "silu+hardswish"
    assert activation(MAKERS["sign-resolved none"](n_members=1, max_steps=2).fit(X, y, w)) == "silu"
    assert activation(MAKERS["sign-resolved none"](activation="gelu", max_steps=2).fit(X, y, w)) == "gelu"


@every_kind
def test_shapes_and_spread(kind: str, fitted: Callable[[str], Any]) -> None:
    X, _, _ = events()
    estimator = fitted(kind)
    members = estimator.predict_members(X)
    ratio, std = estimator.predict_ratio(X, return_std=True)
    assert members.shape == (N_MEMBERS, len(X))
    assert ratio.shape == std.shape == (len(X),)
    assert members.dtype == ratio.dtype == std.dtype == np.float64
    np.testing.assert_allclose(std, members.std(axis=0, ddof=1))  # not divided by sqrt(K)
    np.testing.assert_array_equal(ratio, estimator.predict_ratio(X))
    assert np.median(std) > 1e-3  # the members differ: bootstrap and start
    assert np.all(np.abs(ratio - members.mean(axis=0)) <= np.ptp(members, axis=0) + 0.02)


@every_kind
def test_every_member_is_normalised(kind: str, fitted: Callable[[str], Any]) -> None:
    X, y, w = events()
    reference = y == 0
    for row in fitted(kind).predict_members(X[reference]):
        assert np.average(row, weights=w[reference]) == pytest.approx(1.0, abs=1e-6)


@every_kind
def test_chunks_do_not_matter(
    kind: str, fitted: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, _, _ = events()
    whole = fitted(kind).predict_ratio(X)
    np.testing.assert_allclose(
        np.concatenate([fitted(kind).predict_ratio(part) for part in np.array_split(X, 7)]),
        whole,
        rtol=1e-5,
        atol=1e-6,
    )
    monkeypatch.setattr(ratio_model, "_CHUNK_VALUES", 64 * 999)
    np.testing.assert_allclose(fitted(kind).predict_ratio(X), whole, rtol=1e-5, atol=1e-6)


def test_bootstrap_gives_members_their_own_coefficients(fitted: Callable[[str], Any]) -> None:
    _, y, w = events()
    coefficients = fitted("rosmm none").coefficients_
    assert coefficients.shape == (N_MEMBERS, 2)
    np.testing.assert_array_equal(coefficients[:, 0], 1.0)
    assert len(set(coefficients[:, 1])) == N_MEMBERS
    target = w[y == 1]
    c1 = target[target > 0].sum() / target.sum()
    error = c1 * (c1 - 1) / np.sqrt(np.sum(target < 0))  # of order: relative error of the negative sum
    np.testing.assert_allclose(coefficients[:, 1], c1, atol=6 * error)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_risk_of_the_average_is_at_most_the_average_risk(loss: str) -> None:
    """Jensen's law on a trained ensemble, exactly, for positive weights of events it never saw."""
    X, y, _ = events(signed=False)
    estimator = MAKERS["direct lsif"](loss=loss, normalize=False).fit(X, y)
    at, labels, _ = events(seed=7, signed=False)
    weights = np.random.default_rng(0).exponential(1.0, len(at))
    judge = loss_by_name(loss)
    classes, w = torch.from_numpy(labels), torch.from_numpy(weights)

    def risk(ratio: npt.NDArray[np.float64]) -> float:
        return float((judge.per_event(judge.link.raw(torch.from_numpy(ratio)), classes) * w).mean())

    mean_risk = np.mean([risk(row) for row in estimator.predict_members(at)])
    assert risk(estimator.predict_ratio(at)) < mean_risk


def test_the_law_holds_for_cross_entropy(fitted: Callable[[str], Any]) -> None:
    estimator = fitted("sign-resolved none")
    at, labels, w = events(seed=7)
    model = estimator.model_
    outputs = model.outputs(model.scaling(torch.from_numpy(at.astype(np.float32)))).detach().double()
    numbers = {part: index for index, part in enumerate(model.classes)}
    classes = torch.tensor([numbers[int(y), 1 if v > 0 else -1] for y, v in zip(labels, w, strict=True)])
    objective = CrossEntropyObjective()
    members = objective.per_event(outputs, classes.expand(N_MEMBERS, -1)).mean(dim=1)
    average = objective.per_event(model.average(outputs), classes[None]).mean()
    assert float(average) < float(members.mean())


@pytest.mark.parametrize("kind", [kind for kind in TUNED if kind.endswith(" all")])
def test_a_tuned_ensemble_obeys_the_law_of_its_tuning_loss(kind: str, fitted: Callable[[str], Any]) -> None:
    estimator = fitted(kind)
    at, labels, _ = events(seed=7)
    judge = estimator.model_.tuned_with
    predictions = estimator.model_.predict(at.astype(np.float32), members=True)

    def risk(ratio: npt.NDArray[np.float64]) -> float:
        return float(
            judge.per_event(judge.link.raw(torch.from_numpy(ratio)), torch.from_numpy(labels)).mean()
        )

    assert risk(predictions.ratio) < np.mean([risk(row) for row in predictions.members])


@every_kind
def test_tuning_never_raises_a_members_validation_risk(kind: str, fitted: Callable[[str], Any]) -> None:
    estimator = fitted(kind)
    if kind not in TUNED:
        assert estimator.tuning_history_ is None
        return
    history = estimator.tuning_history_
    at, labels, w = events(seed=2)
    judge = estimator.model_.tuned_with
    untuned = MAKERS[f"{kind.partition(' ')[0]} none"]()
    X, y, v = events()
    untuned.fit(X, y, sample_weight=v, validation=(at, labels, w))
    normal = np.where(labels == 1, 1 / w[labels == 1].sum(), 1 / w[labels == 0].sum())

    def risks(model: Any) -> npt.NDArray[np.float64]:
        ratios = torch.from_numpy(model.predict(at.astype(np.float32), members=True).members)
        losses = judge.per_event(judge.link.raw(ratios), torch.from_numpy(labels).expand(N_MEMBERS, -1))
        result: npt.NDArray[np.float64] = losses.numpy() @ (normal * w)
        return result

    before, after = risks(untuned.model_), risks(estimator.model_)
    assert np.all(after <= before + 1e-5)
    kept = history.best_epoch < 0
    np.testing.assert_allclose(after[kept], before[kept], rtol=1e-5)
    assert np.all(after[~kept] < before[~kept])


@pytest.mark.filterwarnings("ignore::quasiratio.errors.UntrustworthyFitWarning")
def test_too_few_events_for_a_bootstrap_say_so() -> None:
    X, y, _ = events(n=20)
    w = np.where(y == 0, 1.0, 1e-12)
    w[1] = 1.0
    with pytest.raises(InvalidInputError, match=r"too few events: use n_members=1|expected a positive sum"):
        MAKERS["direct lsif"](n_members=64, validation_fraction=0.1).fit(X[:6], y[:6], w[:6])
