"""A fit whose events stay on disk: as good as one in memory, in memory that does not grow with the sample."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.in_ranks import in_ranks

import quasiratio as qr
from quasiratio.errors import InvalidInputError, UntrustworthyFitWarning
from quasiratio.estimators import stored_fit
from quasiratio.estimators.fingerprint import data_fingerprint
from quasiratio.estimators.training_data import stacked_samples
from quasiratio.io import EventStore, create_store
from quasiratio.training import Ranks

N_EVENTS = 40_000
CASE = qr.distributions.signed_gaussian_case("signed")


def saved(path: Path, sample: qr.WeightedSample) -> str:
    np.savez(path, **dict(zip(sample.names, sample.features.T, strict=True)), w=sample.weights)
    return str(path)


@pytest.fixture(scope="module")
def samples() -> tuple[qr.WeightedSample, qr.WeightedSample]:
    return CASE.samples(N_EVENTS // 2, np.random.default_rng(0))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, samples: Any) -> EventStore:
    directory = tmp_path_factory.mktemp("store")
    pair = (saved(directory / f"{role}.npz", one) for role, one in zip("ab", samples, strict=True))
    return create_store(directory / "store", *pair, weight="w")


def error(model: Any) -> float:
    reference, _ = CASE.samples(20_000, np.random.default_rng(9))
    truth = CASE.exact_ratio(reference.features)
    return float(np.sqrt(np.mean(np.square(model.predict_ratio(reference) - truth))))


@pytest.mark.parametrize(
    "template",
    [
        qr.SignResolvedRatio(max_steps=300, random_state=0),
        qr.DirectRatio("lsif", max_steps=300, random_state=0, n_members=2),
    ],
    ids=["sign-resolved", "two members of lsif"],
)
def test_a_fit_from_disk_is_as_good_and_normalised_over_all_events(
    template: Any, store: EventStore, samples: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(stored_fit, "MOST_COMMON", 8_000)
    said: list[str] = []
    model = template.fit_store(store, say=said.append)
    fraction = model.held_out_fraction(N_EVENTS)
    start = round(fraction * N_EVENTS) + round(0.5 * fraction * N_EVENTS)
    assert len(said) == 1
    assert said[0].startswith(f"Training on {N_EVENTS - start} events: at most 300 steps, about ")
    features, labels, weights = store.read(start, N_EVENTS)
    reference = {name: features[~labels, column] for column, name in enumerate(store.names)}
    for ratio in (model.predict_ratio(reference), *model.predict_members(reference)):
        assert np.average(ratio, weights=weights[~labels]) == pytest.approx(1.0, rel=1e-6)
    sizes = [weights[chosen].sum() ** 2 / np.square(weights[chosen]).sum() for chosen in (~labels, labels)]
    assert model.training_sizes_ == pytest.approx(sizes, rel=1e-9)
    assert model.fit_check_.status == "good"
    qr.load(_written(model, tmp_path / "model"))
    # The same events train. Batches are compared one by one in tests/training/test_stored_pool.py; in another order they
    # move the error of a short training by some ten per cent, another split of so few events by more.
    held_out = store.read(0, start)
    in_memory = type(model)(**model.get_params()).fit(
        features, labels, weights, validation=(held_out.features, held_out.labels, held_out.weights)
    )
    assert error(model) < 1.2 * error(in_memory)
    events, y = stacked_samples(*samples)
    expected = data_fingerprint(store.names, events.features, y == 1, events.weights)
    for name in ("n_events", "sketches", "ranges"):
        assert getattr(model.fingerprint_, name) == getattr(expected, name)
    assert model.fingerprint_.sum_of_weights == pytest.approx(expected.sum_of_weights, rel=1e-12)


def _written(model: Any, path: Path) -> Path:
    model.save(path)
    return path


def test_the_same_seed_gives_the_same_bits(store: EventStore) -> None:
    models = [qr.SignResolvedRatio(max_steps=20, random_state=seed).fit_store(store) for seed in (0, 0, 1)]
    features = store.read(0, 100).features
    first, again, other = (model.predict_ratio(features) for model in models)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def fitted_in_ranks(rank: int, path: str, template: Any, directory: Path) -> list[str]:
    """Fit the store in one of several processes; the first of them alone wants to be told how long it takes."""
    stored_fit.MOST_COMMON = 8_000
    said: list[str] = []
    template.fit_store(EventStore(path), say=said.append if rank == 0 else None).save(directory / f"{rank}")
    return said


@pytest.mark.parametrize(
    "template",
    [
        qr.SignResolvedRatio(max_steps=300, random_state=0),
        qr.DirectRatio("lsif", max_steps=300, random_state=0, n_members=2),
    ],
    ids=["sign-resolved", "two members of lsif"],
)
def test_several_processes_share_a_store(
    template: Any, store: EventStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(stored_fit, "MOST_COMMON", 8_000)
    (line,), silence = in_ranks(fitted_in_ranks, str(store.path), template, tmp_path)
    model, other = (qr.load(tmp_path / f"{rank}", expected=type(template)) for rank in range(2))
    features = store.read(0, 500).features
    np.testing.assert_array_equal(model.predict_ratio(features), other.predict_ratio(features))
    alone = [template.set_params(random_state=seed).fit_store(store) for seed in (0, 1, 2)]
    fraction = model.held_out_fraction(N_EVENTS)
    start = round(fraction * N_EVENTS) + round(0.5 * fraction * N_EVENTS)
    assert line.startswith(f"Training on {N_EVENTS - start} events: at most 300 steps, about ")
    assert silence == []
    assert model.fingerprint_ == alone[0].fingerprint_
    assert model.training_sizes_ == pytest.approx(alone[0].training_sizes_, rel=1e-12)
    features, labels, weights = store.read(start, N_EVENTS)
    reference = {name: features[~labels, column] for column, name in enumerate(store.names)}
    for ratio in (model.predict_ratio(reference), *model.predict_members(reference)):
        assert np.average(ratio, weights=weights[~labels]) == pytest.approx(1.0, rel=1e-6)
    assert model.history_.n_steps == alone[0].history_.n_steps
    assert error(model) < 1.2 * max(error(one) for one in alone)


def refused_in_ranks(rank: int, path: str, other: str) -> list[str]:
    trials: list[Any] = [
        lambda: qr.SignResolvedRatio(max_steps=5).fit_store(EventStore(other if rank else path)),
        lambda: qr.SignResolvedRatio(max_steps=5 + rank).fit_store(EventStore(path)),
        lambda: qr.SignedMixtureRatio().fit_store(EventStore(path)),
    ]
    sentences = []
    for trial in trials:
        with pytest.raises(InvalidInputError) as told:
            trial()
        sentences.append(f"{told.value.is_told} {told.value}")
    return sentences


def test_what_processes_cannot_share_of_a_store_is_said_once(
    store: EventStore, samples: Any, tmp_path: Path
) -> None:
    pair = [saved(tmp_path / f"{role}.npz", one) for role, one in zip("ab", samples, strict=True)]
    other = create_store(tmp_path / "other", *pair, weight="abs(w)")
    found = in_ranks(refused_in_ranks, *(str(one.path) for one in (store, other)))
    expected = [
        f"Got the store {store.sha256} in process 0 and {other.sha256} in process 1",
        "Got the option max_steps 5 in process 0 and 6 in process 1",
        "Got a store of events for SignedMixtureRatio",
    ]
    for one, two, text in zip(*found, expected, strict=True):
        assert text in one
        assert one.startswith("False ")
        assert two == one.replace("False ", "True ", 1)
    for role in "ab":
        np.savez(tmp_path / f"{role}.npz", x=np.arange(50.0))
    few = create_store(tmp_path / "few", *pair)
    with pytest.raises(InvalidInputError, match="Got a store with 85 training events for 90 processes"):
        stored_fit.split_store(few, 0.1, Ranks(0, 90))


@pytest.mark.parametrize("kind", [qr.SignedMixtureRatio, qr.AutoRatio])
def test_estimators_that_need_all_events_say_so(kind: Any, store: EventStore) -> None:
    with pytest.raises(InvalidInputError, match=r"expected SignResolvedRatio .* or DirectRatio") as told:
        kind().fit_store(store)
    assert f"Got a store of events for {kind.__name__}" in str(told.value)


def test_bad_options_and_weights_are_named_before_training(store: EventStore, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"validation_fraction = 1\.5"):
        qr.SignResolvedRatio(validation_fraction=1.5).fit_store(store)
    weights = np.ones(200)
    weights[17] = 300.0
    np.savez(tmp_path / "a.npz", x=np.linspace(0, 1, 200), w=np.ones(200))
    np.savez(tmp_path / "b.npz", x=np.linspace(0, 1, 200), w=weights)
    heavy = create_store(tmp_path / "s", tmp_path / "a.npz", tmp_path / "b.npz", weight="w")
    with pytest.warns(
        UntrustworthyFitWarning, match="One event of the target, number 217, has the weight 300"
    ):
        qr.SignResolvedRatio(max_steps=1, random_state=0, validation_fraction=0.3).fit_store(heavy)


MEASURED = """
import json, sys, threading, warnings
import numpy as np
import quasiratio as qr
from quasiratio.estimators import stored_fit
from quasiratio.estimators.fingerprint import data_fingerprint
from quasiratio.estimators.training_data import stacked_samples

warnings.simplefilter("ignore")
stored_fit.MOST_COMMON = 20_000

def anonymous():
    text = open("/proc/self/status").read()
    return 1024 * int(text.split("RssAnon:")[1].split()[0])

def peak_of(store):
    highest, done = [0], threading.Event()
    def watch():
        while not done.wait(0.005):
            highest[0] = max(highest[0], anonymous())
    watcher = threading.Thread(target=watch)
    watcher.start()
    model = qr.SignResolvedRatio(
        max_steps=3, batch_size=1024, hidden_layers=(8,), validation_fraction=0.01, random_state=0, n_members=2
    )
    model.fit_store(store)
    done.set()
    watcher.join()
    return highest[0]

stores = []
for n_events in (100_000, 700_000):
    for seed, role in enumerate("ab"):
        rng = np.random.default_rng(seed)
        x = rng.normal(0.1 * seed, 1.0, (n_events // 2, 16)).astype(np.float32)
        np.savez(f"{role}{n_events}.npz", **{f"x{i}": x[:, i] for i in range(16)})
    del x
    pair = f"a{n_events}.npz", f"b{n_events}.npz"
    stores.append(qr.io.create_store(f"store{n_events}", *pair))
peak_of(stores[0])  # what a first fit leaves behind
print(json.dumps([peak_of(store) for store in stores]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_memory_does_not_grow_with_the_events(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", MEASURED], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    small, large = json.loads(result.stdout)
    one_copy = 600_000 * 16 * 4
    assert large - small < 0.4 * one_copy
