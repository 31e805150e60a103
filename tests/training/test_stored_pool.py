"""Batches from a store are those from memory: scaled features, classes, bootstrapped and normalised weights."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from quasiratio.errors import InvalidInputError
from quasiratio.io import EventStore, create_store
from quasiratio.io.event_store import BLOCK_EVENTS
from quasiratio.networks import FeatureScaling
from quasiratio.training import Batches, StoredPool, StoredTraining, normalized_per_group
from quasiratio.training.bootstrap import block_counts

N_EVENTS, START = 150_000, 20_000
CLASSES = np.array([0, 1, 2, 3])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> EventStore:
    directory = tmp_path_factory.mktemp("store")
    for label, role in enumerate(("reference", "target")):
        number = np.arange(N_EVENTS // 2) + label * (N_EVENTS // 2)
        weights = np.where(number % 7 == 0, -0.5, 1.0 + label)
        np.savez(directory / f"{role}.npz", number=number.astype(np.float32), w=weights)
    pair = (str(directory / f"{role}.npz") for role in ("reference", "target"))
    return create_store(directory / "store", *pair, weight="w", features=["number"])


def pool(store: EventStore, n_members: int = 1, *, absolute: bool = False) -> StoredPool:
    events = StoredTraining(store, START, n_members, seed=3)
    return StoredPool(events, FeatureScaling(1), CLASSES, absolute=absolute)


def batches(stored: StoredPool, size: int = 8192) -> Batches:
    return Batches(torch.empty(0), [stored], size, torch.Generator().manual_seed(0))


@pytest.mark.parametrize("absolute", [False, True])
def test_a_pass_sees_every_training_event_once_as_it_would_from_memory(
    store: EventStore, absolute: bool
) -> None:
    stored = pool(store, absolute=absolute)
    features, labels, weights = store.read(START, N_EVENTS)
    number = features[:, 0].astype(int)
    expected = np.full(N_EVENTS, np.nan)
    expected[number] = normalized_per_group(torch.from_numpy(weights)[None], torch.from_numpy(labels))[0]
    taken = list(itertools.islice(batches(stored, 10_000), 13))
    assert len(stored) == 130_000
    seen = torch.cat([batch.features[0, :, 0] for batch in taken]).numpy().astype(int)
    assert sorted(seen.tolist()) == sorted(number.tolist())
    parts = 2 * (seen >= N_EVENTS // 2) + (seen % 7 == 0)
    assert np.array_equal(torch.cat([batch.classes[0] for batch in taken]).numpy(), parts)
    found = torch.cat([batch.weights[0] for batch in taken]).numpy()
    np.testing.assert_allclose(found, np.abs(expected[seen]) if absolute else expected[seen], rtol=1e-6)
    sums = np.bincount(parts, weights=found, minlength=4)
    np.testing.assert_allclose(stored.class_sums(4).numpy(), sums, rtol=1e-5)


def test_later_passes_begin_elsewhere_and_a_state_goes_on_where_it_was(store: EventStore) -> None:
    stream = batches(pool(store, 2))
    taken = list(itertools.islice(stream, 16))  # one more than a pass has
    assert not torch.equal(taken[15].features, taken[0].features)
    assert not set(taken[0].features[0].flatten().tolist()) & set(taken[0].features[1].flatten().tolist())
    state = stream.state_dict()
    other = batches(pool(store, 2))
    other.load_state_dict(state)
    for batch, again in itertools.islice(zip(stream, other, strict=False), 3):
        for name in ("features", "classes", "weights"):
            assert torch.equal(getattr(batch, name), getattr(again, name))


def test_every_member_sees_its_bootstrap_with_the_same_sum_of_both_classes(store: EventStore) -> None:
    n_members = 3
    stored = pool(store, n_members)
    seen, weights = np.zeros((n_members, N_EVENTS)), np.zeros((n_members, N_EVENTS))
    for batch in itertools.islice(batches(stored, 10_000), 13):
        for member in range(n_members):
            rows = batch.features[member, :, 0].numpy().astype(int)
            seen[member, rows] += 1
            weights[member, rows] = batch.weights[member].numpy()
    assert seen.sum(axis=1).tolist() == [130_000] * n_members
    assert seen.max() == 1
    is_target = np.arange(N_EVENTS) >= N_EVENTS // 2
    for label in (is_target, ~is_target):
        np.testing.assert_allclose(weights[:, label].sum(axis=1), 65_000, rtol=1e-5)
    given = np.where(np.arange(N_EVENTS) % 7 == 0, -0.5, 1.0 + is_target)
    counts = weights / given / stored.factors[:, is_target.astype(int)]
    np.testing.assert_allclose(counts, counts.round(), atol=1e-4)
    trained = seen[0] == 1
    assert np.all(counts.round().sum(axis=0)[trained] == n_members)


def test_counts_have_the_mean_and_the_variance_of_a_bootstrap() -> None:
    n_members, n_events = 4, BLOCK_EVENTS
    counts = block_counts(n_events, n_members, seed=1, block=2)
    error = 5 / np.sqrt(n_events)
    assert np.all(counts.sum(axis=0) == n_members)
    for member in counts:
        assert abs(member.mean() - 1) < error
        assert abs(member.var() - (1 - 1 / n_members)) < 2 * error
    assert np.array_equal(counts, block_counts(n_events, n_members, seed=1, block=2))
    for other in (
        block_counts(n_events, n_members, seed=1, block=3),
        block_counts(n_events, n_members, seed=2, block=2),
    ):
        assert abs(np.corrcoef(counts[0], other[0])[0, 1]) < error


def test_a_member_without_a_positive_sum_is_refused(tmp_path: Path) -> None:
    for name, weights in (("a", [1.0, -0.9, 0.1]), ("b", [1.0, 1.0, 1.0])):
        np.savez(tmp_path / f"{name}.npz", x=[1.0, 2.0, 3.0], w=weights)
    small = create_store(tmp_path / "s", tmp_path / "a.npz", tmp_path / "b.npz", weight="w")
    with pytest.raises(InvalidInputError, match="use n_members=1, or more events"):
        StoredPool(StoredTraining(small, 0, 40), FeatureScaling(1), CLASSES)
