"""Estimators in several processes: each gives its own events, and all get one model of all events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.in_ranks import in_ranks

import quasiratio as qr
from quasiratio.errors import InvalidInputError
from quasiratio.networks import FeatureScaling
from quasiratio.training import Ranks, SharedTraining, normalized_per_group

QUICK: dict[str, Any] = {
    "max_steps": 60, "batch_size": 256, "hidden_layers": (8, 8), "random_state": 4, "verbose": False,
}  # fmt: skip


def events(seed: int = 0, n: int = 3000) -> tuple[Any, Any, Any]:
    """Two shifted Gaussians with weights of both signs."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    features = rng.normal(size=(n, 2)).astype(np.float32) + 0.3 * labels[:, None]
    weights = np.where(rng.random(n) < 0.15, -0.7, 1.0) * rng.uniform(0.5, 1.5, n)
    return features, labels, weights


def share(rank: int, labels: Any, weights: Any) -> Any:
    """Return what a rank has: the second one little of the target, and that with a negative sum of weights."""
    of_second = ((labels == 0) & (np.arange(len(labels)) % 3 == 0)) | ((labels == 1) & (weights < -0.6))
    return of_second if rank == 1 else ~of_second


def normalized(rank: int, n_members: int) -> dict[str, Any]:
    features, labels, weights = events()
    own = share(rank, labels, weights)
    if n_members > 1:  # nothing of the target in the second rank
        of_second = (labels == 0) & (np.arange(len(labels)) % 2 == 1)
        own = of_second if rank == 1 else ~of_second
    source = SharedTraining(
        features[own], labels[own] == 1, weights[own], Ranks.present(), n_members=n_members, seed=5
    )
    pool = source.pool(FeatureScaling.from_data(features), np.arange(4), absolute=False)
    return {
        "own": np.flatnonzero(own),
        "weights": pool.weights.numpy(),
        "n_events": (len(source), len(pool)),
        "class_sums": pool.class_sums(4).numpy(),
        "sizes": source.effective_sizes,
        "target_sum": weights[own & (labels == 1)].sum(),
        "members": source.part_sums,
    }


def test_weights_are_normalised_by_the_sums_of_all() -> None:
    _, labels, weights = events()
    found = in_ranks(normalized, 1)
    assert found[1]["target_sum"] < -10
    group = torch.from_numpy(labels)
    expected = normalized_per_group(torch.from_numpy(weights)[None], group)[0].numpy()
    for one in found:
        np.testing.assert_allclose(one["weights"][0], expected[one["own"]], rtol=1e-6)
        assert one["n_events"] == (len(labels), len(one["own"]))
        parts = 2 * labels + (weights < 0)
        np.testing.assert_allclose(one["class_sums"], np.bincount(parts, weights=expected), rtol=1e-5)
        sizes = [weights[labels == k].sum() ** 2 / np.square(weights[labels == k]).sum() for k in (0, 1)]
        np.testing.assert_allclose(one["sizes"], sizes, rtol=1e-9)


def test_members_see_their_own_bootstrap_in_every_rank_and_a_rank_may_lack_a_class() -> None:
    found = in_ranks(normalized, 3)
    assert found[1]["target_sum"] == 0
    np.testing.assert_array_equal(found[0]["members"], found[1]["members"])
    total = sum(one["weights"] @ np.ones(len(one["own"])) for one in found)
    np.testing.assert_allclose(total, len(events()[1]), rtol=1e-4)
    drawn = [one["weights"][0][:300] != 0 for one in found]
    assert 0.4 < np.mean(drawn[0] == drawn[1]) < 0.7  # as of independent counts, not the same ones


def fitted(rank: int, kind: str, options: dict[str, Any]) -> dict[str, Any]:
    features, labels, weights = events(n=6000)
    own = share(rank, labels, weights)
    model = getattr(qr, kind)(**QUICK | options)
    model.fit(features[own], labels[own], sample_weight=weights[own])
    reference = labels == 0
    return {
        "ratio": model.predict_ratio(features),
        "mean": float(np.average(model.predict_ratio(features[reference]), weights=weights[reference])),
        "n_events": model.fingerprint_.n_events,
        "sketches": model.fingerprint_.sketches,
        "sum": model.fingerprint_.sum_of_weights,
        "ranges": model.fingerprint_.ranges,
        "sizes": model.training_sizes_,
        "check": model.fit_check_.status,
        "seed": model.seed_,
        "steps": model.history_.n_steps,
        "score": model.score(
            features[own & reference | (labels == 1)], labels[own & reference | (labels == 1)]
        ),
    }


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("SignResolvedRatio", {"n_members": 2}),
        ("SignResolvedRatio", {"tune": "all"}),
        ("DirectRatio", {"loss": "lsif", "reference_density": "positive"}),
    ],
)
def test_all_ranks_get_the_model_of_all_events(kind: str, options: dict[str, Any]) -> None:
    first, second = in_ranks(fitted, kind, options)
    np.testing.assert_array_equal(first["ratio"], second["ratio"])
    assert (first["n_events"], first["seed"]) == (6000, second["seed"])
    features, labels, weights = events(n=6000)
    assert first["sum"] == pytest.approx(weights.sum(), rel=1e-9)
    np.testing.assert_allclose(np.array(list(first["ranges"].values())).T, [features.min(0), features.max(0)])
    assert first["mean"] == pytest.approx(1.0, abs=0.02)
    assert first["check"] == "good"
    alone = getattr(qr, kind)(**QUICK | options).fit(features, labels, sample_weight=weights)
    assert first["steps"] == alone.history_.n_steps
    assert first["sketches"] == alone.fingerprint_.sketches
    assert first["sizes"] == pytest.approx(alone.training_sizes_, rel=0.02)
    exact = np.exp(0.3 * features.sum(axis=1) - 0.09)
    errors = [
        np.sqrt(np.mean((ratio - exact) ** 2)) for ratio in (first["ratio"], alone.predict_ratio(features))
    ]
    assert errors[0] < 1.5 * errors[1] + 0.05


def refused(rank: int) -> list[str]:
    features, labels, weights = events(n=600)
    bad = features.copy()
    bad[5, 1] = np.nan
    estimator = qr.SignResolvedRatio(**QUICK)
    only_negative = np.where(labels == 1, -np.abs(weights), weights)
    trials: list[Any] = [
        lambda: estimator.fit({"x": features[:, 0], ("y", "z")[rank]: features[:, 1]}, labels, weights),
        lambda: estimator.fit(features[:, : rank + 1], labels, weights),
        lambda: qr.SignResolvedRatio(**QUICK | {"batch_size": 100 + rank}).fit(features, labels, weights),
        lambda: estimator.fit(bad if rank == 1 else features, labels, weights),
        lambda: estimator.fit(features, labels, only_negative),
        lambda: estimator.fit(features, labels, weights, validation=(features, labels, weights) if rank else None),
        lambda: qr.SignedMixtureRatio(**QUICK).fit(features, labels, weights),
        lambda: qr.AutoRatio().fit(features, labels, weights),
        lambda: qr.Reweighter(estimator, n_folds=2).fit(features[labels == 0], features[labels == 1]),
        lambda: qr.PositiveReweighter(max_steps=5).fit(features, weights),
    ]  # fmt: skip
    unseeded = qr.SignResolvedRatio(**QUICK | {"random_state": None, "max_steps": 2})
    sentences = [f"seed {unseeded.fit(features, labels, weights).seed_} False"]
    for trial in trials:
        try:
            trial()
        except InvalidInputError as error:
            sentences.append(f"{error} {error.is_told}")
    return sentences


def test_what_ranks_cannot_do_together_is_refused_by_all_of_them() -> None:
    first, second = in_ranks(refused)
    expected = [
        "seed ",
        "Got the features ['x', 'y'] in process 0 and ['x', 'z'] in process 1",
        "Got the features [0] in process 0 and [0, 1] in process 1",
        "Got the option batch_size 100 in process 0 and 101 in process 1",
        "Got values that are NaN, infinite or beyond float32",
        "The weights of the target (y = 1) sum to -",
        "Got validation events none in process 0 and with in process 1",
        "Got several processes for SignedMixtureRatio",
        "Got several processes for AutoRatio",
        "Got several processes for Reweighter",
        "Got several processes for this fit",
    ]
    assert len(first) == len(second) == len(expected)
    for one, other, text in zip(first, second, expected, strict=True):
        assert text in one
        assert one.removesuffix(" False") == other.removesuffix(" True").removesuffix(" False")
