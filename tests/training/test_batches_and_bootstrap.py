"""Batches from memory, the Poisson bootstrap, and the normalisation of the weights per class."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from quasiratio.errors import InvalidInputError
from quasiratio.losses import Bce, Lsif
from quasiratio.training import Batches, Pool, member_weights, normalized_per_group
from quasiratio.training.objectives import tails_are_negative


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def identifiable(n: int, n_members: int = 1, events: torch.Tensor | None = None) -> tuple[torch.Tensor, Pool]:
    """Features that are the event's number, weights that tell member and position."""
    features = torch.arange(100.0)[:, None]
    weights = torch.arange(float(n)) + 1000.0 * torch.arange(float(n_members))[:, None]
    return features, Pool(events, torch.arange(n) % 2, weights)


def test_an_epoch_sees_every_event_once() -> None:
    features, pool = identifiable(100)
    for epoch in range(2):
        stream = iter(Batches(features, [pool], 20, seeded(epoch)))
        seen = torch.cat([batch.features.flatten() for batch in itertools.islice(stream, 5)])
        assert sorted(seen.tolist()) == list(range(100))
        assert seen.tolist() != list(range(100))


@pytest.mark.parametrize("n_members", [1, 3])
def test_features_classes_and_weights_belong_together(n_members: int) -> None:
    events = torch.arange(99, 49, -1)
    features, pool = identifiable(50, n_members, events)
    for batch in itertools.islice(Batches(features, [pool], 16, seeded(0)), 7):
        assert batch.features.shape == (n_members, 16, 1)
        position = 99 - batch.features[..., 0]
        assert torch.equal(batch.classes, position.long() % 2)
        assert torch.equal(batch.weights, position + 1000.0 * torch.arange(float(n_members))[:, None])


def test_members_read_different_events_and_pools_stand_side_by_side() -> None:
    features, first = identifiable(40, 2, torch.arange(40))
    _, second = identifiable(30, 2, torch.arange(60, 90))
    batch = next(iter(Batches(features, [first, second], 8, seeded(0))))
    assert batch.features.shape == (4, 8, 1)
    rows = [set(row.flatten().tolist()) for row in batch.features]
    # Network k * n_pools + p is member k of pool p.
    assert all(max(rows[i]) < 40 for i in (0, 2))
    assert all(min(rows[i]) >= 60 for i in (1, 3))
    assert rows[0].isdisjoint(rows[2])
    assert bool((batch.weights[:2] < 1000).all())
    assert bool((batch.weights[2:] >= 1000).all())


def test_a_small_pool_is_repeated_within_the_batch() -> None:
    features, large = identifiable(50, 1, torch.arange(50))
    _, small = identifiable(7, 1, torch.arange(60, 67))
    batches = Batches(features, [large, small], 20, seeded(0))
    batch = next(iter(batches))
    assert set(batch.features[1].flatten().tolist()) == set(range(60, 67))
    assert Batches(features, [small], 1000, seeded(0)).batch_size == 7


def test_batches_may_grow_and_an_epoch_still_sees_every_event_once() -> None:
    features, pool = identifiable(100)
    sizes = [5, 5, 10, 20, 60, 100]
    batches = list(Batches(features, [pool], 100, seeded(0)).stream(sizes))
    assert [batch.classes.shape[1] for batch in batches] == sizes
    first_epoch = torch.cat([batch.features.flatten() for batch in batches[:5]])
    assert sorted(first_epoch.tolist()) == list(range(100))
    assert sorted(batches[5].features.flatten().tolist()) == list(range(100))


def test_one_member_sees_the_data_as_they_are() -> None:
    weights = torch.tensor([1.0, -2.0, 3.0])
    assert torch.equal(member_weights(weights, 1, seeded(0)), weights[None])


def test_members_see_balanced_poisson_copies_of_the_events() -> None:
    n_events, n_members = 20000, 4
    weights = torch.where(torch.arange(n_events) % 4 == 0, -0.5, 2.0).double()
    counts = member_weights(weights, n_members, seeded(0)) / weights
    assert torch.equal(counts, counts.round())
    assert bool((counts >= 0).all())
    assert torch.equal(counts.sum(dim=0), torch.full((n_events,), float(n_members), dtype=torch.float64))
    error = 5 / np.sqrt(n_events)
    for member in counts:
        assert abs(float(member.mean()) - 1) < error
        assert abs(float(member.var()) - (1 - 1 / n_members)) < 2 * error
    for one, other in itertools.combinations(counts, 2):
        correlation = float(torch.corrcoef(torch.stack([one, other]))[0, 1])
        assert abs(correlation + 1 / (n_members - 1)) < error
    # What `return_std` estimates, the variance across members, is that of independent Poisson counts.
    assert abs(float(counts.var(dim=0).mean()) - 1) < 2 * error


@given(
    weights=st.lists(st.floats(-3, 5).map(lambda w: round(w, 2)), min_size=4, max_size=30),
    factor=st.floats(0.01, 100.0),
)
def test_every_class_carries_half_of_the_events(weights: list[float], factor: float) -> None:
    labels = torch.arange(len(weights)) % 2
    values = torch.tensor([weights], dtype=torch.float64)
    values[0, 0] += 5 * len(weights)  # both sums positive
    values[0, 1] += 5 * len(weights)
    scaled = normalized_per_group(values, labels)
    for label in (0, 1):
        assert float(scaled[0, labels == label].sum()) == pytest.approx(len(weights) / 2, rel=1e-4)
    # The scale of one class drops out.
    other = values * torch.where(labels == 0, factor, 1.0)
    torch.testing.assert_close(normalized_per_group(other, labels), scaled, rtol=1e-5, atol=1e-6)


def test_duplicating_a_class_leaves_the_risk_up_to_a_factor() -> None:
    rng = np.random.default_rng(0)
    labels = torch.from_numpy(rng.integers(0, 2, 200))
    weights = torch.from_numpy(rng.normal(1.0, 1.5, (1, 200)))
    raw = torch.from_numpy(rng.normal(size=(3, 200)))  # three models to compare

    def risks(index: torch.Tensor) -> torch.Tensor:
        scaled = normalized_per_group(weights[:, index], labels[index])
        return (Lsif().per_event(raw[:, index], labels[index].float()) * scaled).mean(dim=1)

    once = torch.arange(200)
    thrice = torch.cat([once, once[labels == 1], once[labels == 1]])
    torch.testing.assert_close(risks(thrice), risks(once), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("total", [0.0, -1.0])
def test_a_class_without_a_positive_sum_is_refused(total: float) -> None:
    weights = torch.tensor([[1.0, 1.0, 1.0, total - 1.0]])
    with pytest.raises(InvalidInputError, match="expected a positive sum"):
        normalized_per_group(weights, torch.tensor([0, 0, 1, 1]))


def test_tails_are_tested_on_both_sides_with_five_deviations() -> None:
    raw = torch.linspace(-1, 1, 2000)[None]
    classes = torch.ones(1, 2000)
    classes[:, ::2] = 0.0
    weights = torch.ones(1, 2000)
    assert tails_are_negative(raw, classes, weights, Bce()).tolist() == [False]
    for negative in (raw < -0.9, raw > 0.9):  # one hundred events, fifty of them target
        bad = torch.where(negative & (classes > 0), -1.0, 1.0)
        assert tails_are_negative(raw, classes, bad, Bce()).tolist() == [True]
        assert tails_are_negative(raw, classes, bad, Lsif()).tolist() == [False]  # the reference is fine
    in_the_middle = torch.where((raw.abs() < 0.1) & (classes > 0), -1.0, 1.0)
    assert tails_are_negative(raw, classes, in_the_middle, Bce()).tolist() == [False]
    few = torch.where((raw > 0.985) & (classes > 0), -1.0, 1.0)  # some eight events: not significant
    assert tails_are_negative(raw, classes, few, Bce()).tolist() == [False]
