"""A file of signed weights copied with positive ones: all events, or resampled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quasiratio as qr
from quasiratio.errors import InvalidInputError, SupportWarning
from quasiratio.io import Table, open_table
from quasiratio.workflows import positive_files

N_EVENTS = 3000


@pytest.fixture
def table(tmp_path: Path) -> Table:
    rng = np.random.default_rng(0)
    w = rng.choice([1.0, -1.0], N_EVENTS, p=[0.8, 0.2])
    np.savez(tmp_path / "in.npz", x=rng.normal(size=N_EVENTS), event=np.arange(N_EVENTS), w=w)
    return open_table(tmp_path / "in.npz")


def written(path: Path) -> dict[str, Any]:
    (chunk,) = open_table(path).chunks()
    return chunk


def reweighter() -> qr.PositiveReweighter:
    return qr.PositiveReweighter(max_steps=60, n_members=4, random_state=0)


def test_writes_positive_weights_of_the_same_sum_beside_everything(table: Table, tmp_path: Path) -> None:
    done = positive_files(
        table.sources[0], reweighter=reweighter(), output=tmp_path / "out.npz", features=["x"], weight="w * 2"
    )
    new = written(tmp_path / "out.npz")
    assert list(new) == ["x", "event", "w", "weight_positive"]
    assert new["weight_positive"].min() >= 0
    assert new["weight_positive"].sum() == pytest.approx(2 * new["w"].sum())
    assert done.n_written == N_EVENTS
    assert done.report.gain > 2
    assert done.closure["x"].reference.chi_squared.value < 1.5
    assert done.as_dict()["closure"][0]["observable"] == "x"


def test_constants_copies_and_numbers_for_missing_values(tmp_path: Path) -> None:
    """A feature with one value had ended the command after its training."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=N_EVENTS)
    columns: dict[str, Any] = {"x": x, "copy": x, "year": np.full(N_EVENTS, 2018), "flag": x > 0}
    columns |= {"tau": np.where(x > 1, -999.0, x), "w": rng.choice([1.0, -1.0], N_EVENTS, p=[0.8, 0.2])}
    np.savez(tmp_path / "in.npz", **columns)
    with pytest.warns(SupportWarning, match="one value only: 'year'|copies: 'copy' of 'x'"):
        done = positive_files(
            tmp_path / "in.npz", reweighter=reweighter(), output=tmp_path / "out.npz", weight="w"
        )
    assert [one.name for one in done.closure.observables] == ["x", "flag", "tau"]
    assert done.closure["flag"].edges.tolist() == [-0.5, 0.5, 1.5]
    assert done.closure["tau"].edges[0] == -999.0
    assert done.closure["tau"].reference.chi_squared.n_dof > 20


def test_resampling_keeps_whole_events(table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Table, "chunk_events", lambda *_: 700)
    given = next(open_table(table.sources[0]).chunks(chunk_events=N_EVENTS))
    done = positive_files(
        table.sources[0],
        reweighter=reweighter(),
        output=tmp_path / "out.npz",
        features=["x"],
        weight="w",
        resample=True,
        random_state=3,
    )
    chunks = list(open_table(tmp_path / "out.npz").chunks())
    new = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
    assert 0.2 * N_EVENTS < done.n_written < 0.6 * N_EVENTS  # (2g - 1)^2 = 0.36
    assert len(new["event"]) == done.n_written
    assert np.array_equal(given["x"][new["event"]], new["x"])
    assert new["weight_positive"].sum() == pytest.approx(given["w"].sum(), rel=0.1)
    assert np.square(new["weight_positive"]).sum() == pytest.approx(N_EVENTS, rel=0.1)


def test_selection_limits_fit_and_file(table: Table, tmp_path: Path) -> None:
    done = positive_files(
        table.sources[0],
        reweighter=reweighter(),
        output=tmp_path / "out.npz",
        features=["x"],
        weight="w",
        selection="x > 0",
    )
    new = written(tmp_path / "out.npz")
    assert done.n_written == len(new["x"]) < N_EVENTS
    assert new["x"].min() > 0
    assert new["weight_positive"].sum() == pytest.approx(new["w"].sum())


def test_members_are_written_beside_the_weight(table: Table, tmp_path: Path) -> None:
    positive_files(
        table.sources[0],
        reweighter=reweighter(),
        output=tmp_path / "out.npz",
        features=["x"],
        weight="w",
        members=True,
    )
    new = written(tmp_path / "out.npz")
    assert list(new)[3:5] == ["weight_positive", "weight_positive_std"]
    members = np.array([new[f"weight_positive_member_{k}"] for k in range(4)])
    assert np.allclose(new["weight_positive_std"], members.std(axis=0, ddof=1))
    # The sum of 3000 signs with an asymmetry of 0.6 is known to sqrt(0.64 * 3000) = 44, or 0.02 of it.
    assert 10 < members.sum(axis=1).std(ddof=1) < 150


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"weight_name": "w"}, "Got 'w' as the new column"),
        ({"members": True, "resample": True}, "resampled events, which have none"),
        ({"weight": "0 - w"}, "expected a positive, finite sum"),
        ({"selection": "x > 1000"}, "keeps none"),
        ({"features": ["z"]}, "'z'"),
    ],
)
def test_refuses_and_writes_nothing(
    table: Table, tmp_path: Path, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInputError) as error:
        positive_files(
            table.sources[0],
            reweighter=reweighter(),
            output=tmp_path / "out.npz",
            **{"features": ["x"], "weight": "w", **options},
        )
    assert sentence in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in.npz"]
