"""Batches from a store are those from memory: scaled features, classes, bootstrapped and normalised weights."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.in_ranks import in_ranks
from tests.training.test_ranks import Recorded, Repeated

from quasiratio.errors import InvalidInputError
from quasiratio.io import EventStore, create_store
from quasiratio.io.event_store import BLOCK_EVENTS
from quasiratio.losses import Bce
from quasiratio.networks import FeatureScaling, StackedMlp
from quasiratio.training import (
    Batch,
    Batches,
    Ranks,
    RatioObjective,
    StoredPool,
    StoredTraining,
    TrainingSettings,
    normalized_per_group,
)
from quasiratio.training.bootstrap import block_counts
from quasiratio.training.trainer import train

N_EVENTS, START = 150_000, 20_000
CLASSES = np.array([0, 1, 2, 3])
SETTINGS = TrainingSettings(batch_size=96, max_steps=10, weight_decay=0.1)


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


def of_rank(_rank: int, path: str, n_members: int) -> dict[str, Any]:
    """Return what a rank has of a store: its events with their weights for every member, and the sums of all."""
    events = StoredTraining(EventStore(path), START, n_members, seed=3, ranks=Ranks.present())
    stored = StoredPool(events, FeatureScaling(1), CLASSES)
    rows = [
        [
            stored.block(member, start)
            for start, _ in events.store.stretches(events.own.start, events.own.stop)
        ]
        for member in range(n_members)
    ]
    none = stored.shuffled(torch.empty(0), torch.Generator()).take(0)
    return {
        "number": torch.cat([block.features[:, 0] for block in rows[0]]).numpy().astype(int),
        "weights": np.stack([torch.cat([block.weights for block in blocks]).numpy() for blocks in rows]),
        "reference": sum(len(weights) for _, weights in events.reference_events()),
        "lengths": (len(events), len(stored), len(none)),
        "sums": events.part_sums,
        "sizes": events.effective_sizes,
        "class_sums": stored.class_sums(4).numpy(),
    }


@pytest.mark.parametrize("n_members", [1, 2])
def test_ranks_have_every_training_event_once_as_one_process_sees_it(
    store: EventStore, n_members: int
) -> None:
    alone = of_rank(0, str(store.path), n_members)
    found = in_ranks(of_rank, str(store.path), n_members, n_ranks=3)
    assert [one["lengths"][:2] for one in found] == [(130_000, 43_333), (130_000, 43_333), (130_000, 43_334)]
    for name in ("number", "weights"):
        joined = np.concatenate([one[name] for one in found], axis=-1)
        np.testing.assert_array_equal(joined, alone[name])
    assert sum(one["reference"] for one in found) == alone["reference"]
    for one in found:
        assert one["lengths"][2] == 0
        for name in ("sums", "sizes", "class_sums"):
            np.testing.assert_allclose(one[name], alone[name], rtol=1e-12)


def trained_from_store(rank: int, path: str) -> dict[str, Any]:
    """Take ten steps with what the ranks have of a store, and return parameters and batches."""
    ranks = Ranks.present()
    events = StoredTraining(EventStore(path), START, ranks=ranks)
    scaling = FeatureScaling.from_data(events.store.read(START, N_EVENTS).features)
    stored = events.pool(scaling, np.array([0.0, 0.0, 1.0, 1.0], np.float32))
    batches = Recorded(torch.empty(0), [stored], 96, torch.Generator().manual_seed(10 + rank), ranks)
    model = StackedMlp(1, 1, (8, 8), 1, generator=torch.Generator().manual_seed(0))
    train(model, RatioObjective(Bce()), batches, held_out(events.store, scaling), SETTINGS, ranks=ranks)
    return {
        "parameters": [one.detach().numpy() for one in model.parameters()],
        "given": [[one.features.numpy(), one.classes.numpy(), one.weights.numpy(), one.n_events] for one in batches.given],
    }  # fmt: skip


def held_out(store: EventStore, scaling: FeatureScaling) -> Batch:
    features, labels, weights = store.read(0, 301)
    classes = torch.from_numpy(labels).float()[None]
    return Batch(scaling(torch.from_numpy(features)), classes, torch.from_numpy(weights).float()[None])


def test_ten_steps_of_two_ranks_are_those_of_one_process_on_the_same_batches(store: EventStore) -> None:
    found = in_ranks(trained_from_store, str(store.path))
    scaling = FeatureScaling.from_data(store.read(START, N_EVENTS).features)
    batches = Repeated(torch.empty(0), [pool(store)], 96, torch.Generator().manual_seed(0))
    batches.union = [
        [Batch(*(torch.from_numpy(one) for one in share[:3]), n_events=share[3]) for share in shares]
        for shares in zip(*(one["given"] for one in found), strict=True)
    ]
    assert all(sum(share.classes.shape[1] for share in shares) == 96 for shares in batches.union)
    model = StackedMlp(1, 1, (8, 8), 1, generator=torch.Generator().manual_seed(0))
    before = [one.detach().clone() for one in model.parameters()]
    train(model, RatioObjective(Bce()), batches, held_out(store, scaling), SETTINGS)
    for one in found:
        for ours, theirs in zip(one["parameters"], model.parameters(), strict=True):
            np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=0, atol=1e-5)
    assert any(not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))


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
