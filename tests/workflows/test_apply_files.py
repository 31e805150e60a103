"""A model applied to files: all columns kept, ours added, in chunks of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quasiratio as qr
from quasiratio.errors import InvalidInputError, NegativeDensityWarning, SupportWarning
from quasiratio.io import Table, open_table, read_metadata
from quasiratio.workflows.apply_files import apply_to_table
from quasiratio.workflows.ratio_stream import NewColumns
from quasiratio.workflows.running_counts import RangeCount

FEATURES = ["x", "y"]


def columns(n_events: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "x": rng.normal(size=n_events),
        "event": np.arange(n_events),
        "y": rng.normal(size=n_events).astype(np.float32),
        "w": rng.choice([1.0, -0.5], n_events, p=[0.8, 0.2]),
        "flag": rng.random(n_events) > 0.5,
    }


def everything(path: Path) -> dict[str, Any]:
    chunks = list(open_table(path).chunks())
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}


@pytest.fixture(scope="module")
def model() -> qr.SignResolvedRatio:
    reference, target = columns(1500, 0), columns(1500, 1)
    X = {name: np.concatenate([reference[name], target[name] + 0.3]) for name in FEATURES}
    w = np.concatenate([reference["w"], target["w"]])
    return qr.SignResolvedRatio(max_steps=30, n_members=3, random_state=0).fit(X, np.repeat([0, 1], 1500), w)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    np.savez(tmp_path / "in.npz", **columns(1000, 2))
    return open_table(tmp_path / "in.npz")


@pytest.mark.parametrize("suffix", [".npz", ".root", ".parquet"])
def test_keeps_every_column_and_adds_ratio_and_weight(
    model: qr.SignResolvedRatio, table: Table, tmp_path: Path, suffix: str
) -> None:
    output = tmp_path / f"out{suffix}"
    metadata = {"model": "m"}
    done = apply_to_table(model, table, output, features=FEATURES, weight="2 * w", metadata=metadata)
    written, given = everything(output), columns(1000, 2)
    for name, values in given.items():
        assert np.array_equal(written[name], values), name
        assert written[name].dtype == values.dtype
    ratio = model.predict_ratio(np.column_stack([given["x"], given["y"]]).astype(np.float32))
    assert np.array_equal(written["ratio"], ratio)
    assert np.array_equal(written["weight_reweighted"], 2 * given["w"] * ratio)
    assert set(written) == {*given, "ratio", "weight_reweighted"}
    assert done.n_events == 1000
    assert done.after.total == pytest.approx(float((2 * given["w"] * ratio).sum()))
    assert done.before.negative_fraction == pytest.approx(float(np.mean(given["w"] < 0)))
    assert done.ratio_range == (ratio.min(), ratio.max())
    assert read_metadata(output) == metadata


def test_members_and_their_spread(model: qr.SignResolvedRatio, table: Table, tmp_path: Path) -> None:
    names = NewColumns("r", "w_new")
    apply_to_table(
        model, table, tmp_path / "out.npz", features=FEATURES, weight="1", names=names, members=True
    )
    written = everything(tmp_path / "out.npz")
    X = np.column_stack([written["x"], written["y"]]).astype(np.float32)
    ratio, std = model.predict_ratio(X, return_std=True)
    assert np.array_equal(written["r"], ratio)
    assert np.array_equal(written["w_new"], ratio)
    assert np.allclose(written["r_std"], std)
    for k, row in enumerate(model.predict_members(X)):
        assert np.array_equal(written[f"r_member_{k}"], row)


def test_selection_writes_what_it_keeps(model: qr.SignResolvedRatio, table: Table, tmp_path: Path) -> None:
    apply_to_table(
        model, table, tmp_path / "out.npz", features=FEATURES, weight="1", selection="x > 0 and flag"
    )
    written = everything(tmp_path / "out.npz")
    given = columns(1000, 2)
    assert np.array_equal(written["event"], given["event"][(given["x"] > 0) & given["flag"]])


def test_chunks_do_not_matter(
    model: qr.SignResolvedRatio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in range(3):
        np.savez(tmp_path / f"part{part}.npz", **columns(300 + part, part))
    table = open_table(str(tmp_path / "part*.npz"))
    calls: list[tuple[int, int]] = []
    apply_to_table(
        model,
        table,
        tmp_path / "whole.npz",
        features=FEATURES,
        weight="1",
        progress=lambda *n: calls.append(n),
    )
    assert calls[-1] == (903, 903)
    assert len(calls) == 3
    monkeypatch.setattr(Table, "chunk_events", lambda *_: 17)
    done = apply_to_table(model, table, tmp_path / "chunks.npz", features=FEATURES, weight="1")
    whole, chunks = everything(tmp_path / "whole.npz"), everything(tmp_path / "chunks.npz")
    assert done.n_events == 903
    for name, values in whole.items():
        assert np.allclose(chunks[name], values, rtol=1e-6, atol=0), name


def test_events_outside_the_training_range_are_counted(
    model: qr.SignResolvedRatio, table: Table, tmp_path: Path
) -> None:
    given = columns(1000, 2)
    ranges = {"x": (-1.0, 1.0), "y": (-9.0, 9.0)}
    with pytest.warns(SupportWarning, match=r"'x' \(31\.800% outside -1 \.\. 1, 0\.300% farther"):
        done = apply_to_table(
            model, table, tmp_path / "out.npz", features=FEATURES, weight="1", ranges=ranges
        )
    assert done.outside[0].outside == np.mean(np.abs(given["x"]) > 1)
    assert done.outside[0].far_outside == np.mean(np.abs(given["x"]) > 3)
    assert (done.outside[1].outside, done.outside[1].is_notable) == (0.0, False)


def test_a_lone_event_outside_is_not_worth_a_warning_but_a_far_one_is() -> None:
    values = np.linspace(0.0, 1.0, 10_000, dtype=np.float32)[:, None]
    count = RangeCount({"x": (0.0001, 1.0)})
    count.add(values)
    assert count.result()[0].outside == 1e-4
    assert not count.result()[0].is_notable
    count.add(np.array([[1000.0]], dtype=np.float32))
    assert count.result()[0].is_notable


def test_events_that_the_fit_did_not_select(
    model: qr.SignResolvedRatio, table: Table, tmp_path: Path
) -> None:
    with pytest.warns(SupportWarning, match="do not pass the selection of the fit"):
        done = apply_to_table(
            model, table, tmp_path / "out.npz", features=FEATURES, weight="1", fit_selection="x > 0"
        )
    assert done.n_unselected == np.sum(columns(1000, 2)["x"] <= 0)
    apply_to_table(
        model, table, tmp_path / "out.npz", features=FEATURES, weight="1", fit_selection="unknown > 0"
    )


@pytest.mark.filterwarnings("ignore::quasiratio.errors.UntrustworthyFitWarning")
def test_events_of_negative_reference_density_are_counted_over_all_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).normal(size=3000)
    w = np.where((np.abs(x) < 0.4) & (np.arange(3000) < 1500), -1.0, 1.0)
    model = qr.SignResolvedRatio(max_steps=100, batch_size=512, random_state=0)
    with pytest.warns(NegativeDensityWarning):
        model.fit({"x": x}, np.repeat([0, 1], 1500), w).predict_ratio({"x": x})
    np.savez(tmp_path / "in.npz", x=x)
    monkeypatch.setattr(Table, "chunk_events", lambda *_: 500)
    with pytest.warns(NegativeDensityWarning) as caught:
        done = apply_to_table(model, open_table(tmp_path / "in.npz"), tmp_path / "out.npz", features=["x"])
    found = [
        one for one in caught if one.category is NegativeDensityWarning
    ]  # the fit is poor, and that is said, too
    assert len(found) == 1
    assert 300 < done.n_nonpositive < 1500
    assert f"for {done.n_nonpositive} of 3000 events" in str(found[0].message)


def test_a_reweighter_gives_its_own_scale(table: Table, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(500, 2)), rng.normal(size=(900, 2))
    reweighter = qr.Reweighter(qr.SignResolvedRatio(max_steps=5, random_state=0)).fit(
        dict(zip(FEATURES, reference.T, strict=True)), dict(zip(FEATURES, target.T, strict=True))
    )
    apply_to_table(reweighter, table, tmp_path / "out.npz", features=FEATURES, weight="w")
    written = everything(tmp_path / "out.npz")
    X = {name: written[name] for name in FEATURES}
    assert np.allclose(written["weight_reweighted"], reweighter.predict_weights(X, written["w"]), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"names": NewColumns("w", "new")}, "Got 'w' as new columns"),
        ({"names": NewColumns("a", "a")}, "or they are the same"),
        ({"features": ["x", "z"]}, "'z'"),
        ({"weight": "v"}, "'v'"),
        ({"weight": "w / (w - w)"}, "1000 weights that are NaN or infinite"),
        ({"selection": "x > 100"}, "keeps none"),
        ({"selection": "x"}, "expected a condition"),
        ({"features": ["x"]}, "feature names should match"),
    ],
)
def test_refuses_and_writes_nothing(
    model: qr.SignResolvedRatio, table: Table, tmp_path: Path, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInputError) as error:
        apply_to_table(model, table, tmp_path / "out.npz", **{"features": FEATURES, "weight": "1", **options})
    assert sentence in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in.npz"]


def test_refuses_members_of_a_single_model_and_its_own_input(
    model: qr.SignResolvedRatio, table: Table, tmp_path: Path
) -> None:
    before = (tmp_path / "in.npz").read_bytes()
    with pytest.raises(InvalidInputError, match="as output and as input"):
        apply_to_table(model, table, tmp_path / "in.npz", features=FEATURES, weight="1")
    assert (tmp_path / "in.npz").read_bytes() == before
    single = qr.SignResolvedRatio(max_steps=2).fit(
        np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    )
    with pytest.raises(InvalidInputError, match="no ensemble"):
        apply_to_table(single, table, tmp_path / "out.npz", features=FEATURES, weight="1", members=True)
