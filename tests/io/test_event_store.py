"""A store of events: every event once, in random order, made once, used again, and refused where it is damaged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quasiratio.errors import InvalidInputError
from quasiratio.io import EventStore, create_store, store_conversion
from quasiratio.io.event_store import BLOCK_EVENTS, COLUMN_FILES, HEADER_FILE

N_EVENTS = 40_000


def samples(directory: Path, n_events: int = N_EVENTS) -> tuple[str, str]:
    """Write a reference and a target whose first feature is the number of the event, in several files."""
    rng = np.random.default_rng(0)
    for label, role in enumerate(("reference", "target")):
        for part in range(2):
            number = np.arange(n_events // 4) + (2 * label + part) * (n_events // 4)
            np.savez(
                directory / f"{role}{part}.npz",
                number=number.astype(np.float32),
                twice=2.0 * number,
                w=np.where(number % 5 == 0, -0.5, 1.0 + label),
                kept=rng.random(len(number)) < 0.5,
            )
    return str(directory / "reference*.npz"), str(directory / "target*.npz")


def made(directory: Path, **options: Any) -> EventStore:
    pair = samples(directory) if not (directory / "target1.npz").exists() else None
    pair = pair or (str(directory / "reference*.npz"), str(directory / "target*.npz"))
    return create_store(
        directory / "store", *pair, **{"features": ["number", "twice"], "weight": "w", **options}
    )


def test_every_event_is_there_once_with_its_label_and_weight(tmp_path: Path) -> None:
    store = made(tmp_path)
    features, labels, weights = store.read(0, len(store))
    number = features[:, 0].astype(int)
    assert sorted(number.tolist()) == list(range(N_EVENTS))
    assert np.array_equal(features[:, 1], 2.0 * features[:, 0])
    assert np.array_equal(labels, number >= N_EVENTS // 2)
    assert np.array_equal(weights, np.where(number % 5 == 0, -0.5, 1.0 + labels))
    for sample, chosen in ((store.reference, weights[~labels]), (store.target, weights[labels])):
        assert (len(sample), sample.n_negative) == (len(chosen), int(np.sum(chosen < 0)))
        assert sample.sum_of_weights == pytest.approx(chosen.sum(), rel=1e-12)
        assert sample.effective_size == pytest.approx(chosen.sum() ** 2 / np.square(chosen).sum(), rel=1e-12)
        assert sample.mixture_coefficient == pytest.approx(chosen[chosen > 0].sum() / chosen.sum(), rel=1e-12)
    assert store.target.largest == 2.0
    assert (store.reference.lowest[0], store.target.highest[0]) == (0.0, N_EVENTS - 1.0)


def test_all_orders_are_equally_likely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_conversion, "_BUCKET_BYTES", 50_000)  # some fourteen buckets
    number = made(tmp_path).read(0, N_EVENTS).features[:, 0].astype(int)
    # Where an event was and where it is now are independent: 64 cells of 625 events.
    cells = np.histogram2d(number, np.arange(N_EVENTS), bins=8)[0]
    chi_squared = float(np.square(cells - N_EVENTS / 64).sum() / (N_EVENTS / 64))
    assert abs(chi_squared - 49) < 5 * np.sqrt(2 * 49)
    # Neighbours ascend as often as they descend, which events in the order of the files would not.
    n_ascents = int(np.sum(np.diff(number) > 0))
    assert abs(n_ascents - (N_EVENTS - 1) / 2) < 5 * np.sqrt((N_EVENTS + 1) / 12)


def test_a_selection_and_missing_values(tmp_path: Path) -> None:
    store = made(tmp_path, selection="kept and number >= 10", reference_weight="2*w")
    assert 0.45 * N_EVENTS < len(store) < 0.55 * N_EVENTS
    assert store.read(0, len(store)).features[:, 0].min() >= 10
    assert abs(store.reference.largest) == 2.0
    with pytest.raises(InvalidInputError, match="keeps none of the"):
        made(tmp_path, selection="number < 0")


def test_a_store_is_used_again_and_made_again_when_something_changed(tmp_path: Path) -> None:
    said: list[str] = []
    before = made(tmp_path, say=said.append).sha256
    header = tmp_path / "store" / HEADER_FILE
    inode = header.stat().st_ino
    assert made(tmp_path, say=said.append).sha256 == before
    assert header.stat().st_ino == inode
    assert said[0].endswith("converted and shuffled now (0.00068 GB at most)")
    assert said[1].endswith("which was made of the same files before")
    for options, difference in (
        ({"features": ["number"]}, "other features"),
        ({"features": ["number"], "weight": "2*w"}, "another weight"),
        ({"features": ["number"], "weight": "2*w", "selection": "kept"}, "another selection"),
        ({}, "other features"),
    ):
        made(tmp_path, say=said.append, **options)
        assert said[-1].endswith(f"in place of one with {difference})")
    # The same events make the same store; a file that was written again is another file.
    assert made(tmp_path, say=said.append).sha256 == before
    os.utime(tmp_path / "target1.npz", ns=(1, 1))
    assert made(tmp_path, say=said.append).sha256 == before
    assert said[-1].endswith("in place of one with other files)")


@pytest.mark.parametrize("name", COLUMN_FILES)
def test_damage_is_found_when_its_block_is_read(name: str, tmp_path: Path) -> None:
    samples(tmp_path, 2 * BLOCK_EVENTS + 4000)
    store = made(tmp_path)
    path = tmp_path / "store" / COLUMN_FILES[name]
    content = bytearray(path.read_bytes())
    row_bytes = len(content) // len(store)
    content[(BLOCK_EVENTS + 5) * row_bytes] ^= 1
    path.write_bytes(content)
    damaged = EventStore(tmp_path / "store")
    damaged.read(0, BLOCK_EVENTS)
    with pytest.raises(
        InvalidInputError, match=rf"damaged \({COLUMN_FILES[name]}: block 1 does not have"
    ) as told:
        damaged.read(BLOCK_EVENTS - 1, BLOCK_EVENTS + 1)
    assert str(told.value).endswith("Delete it, and it is made again.")
    path.write_bytes(content[:-1])
    with pytest.raises(InvalidInputError, match="bytes instead of"):
        EventStore(tmp_path / "store")


def test_a_header_that_was_edited_is_refused(tmp_path: Path) -> None:
    made(tmp_path)
    header = tmp_path / "store" / HEADER_FILE
    header.write_text(header.read_text().replace('"twice"', '"thrice"'))
    for use in (lambda: EventStore(tmp_path / "store"), lambda: made(tmp_path)):
        with pytest.raises(InvalidInputError, match="its checksum is wrong"):
            use()
    with pytest.raises(InvalidInputError, match="no store of events"):
        EventStore(tmp_path)


def test_what_a_store_cannot_hold_or_replace_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples(tmp_path)
    with pytest.raises(InvalidInputError, match="'late', whose events differ by less than float32 can tell"):
        made(tmp_path, features=["late=number+1.7e9"])
    with pytest.raises(InvalidInputError, match="weights of the target sum to"):
        made(tmp_path, target_weight="-w")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "mine.txt").write_text("")
    with pytest.raises(InvalidInputError, match=r"holds something else \('mine.txt'\)"):
        made(tmp_path)
    monkeypatch.setattr(store_conversion, "_SPARE", 1e12)
    with pytest.raises(InvalidInputError, match=r"expected so much room"):
        made(tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*")) == [
        "reference0.npz", "reference1.npz", "store", "target0.npz", "target1.npz",
    ]  # fmt: skip


KILLED = """
import os, signal, sys
from quasiratio.io import create_store, store_conversion

store_conversion._append_shuffled = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
create_store("store", "reference*.npz", "target*.npz", features=["number", "twice"], weight="w")
"""


def test_a_killed_conversion_leaves_nothing_that_is_taken_for_a_store(tmp_path: Path) -> None:
    samples(tmp_path)
    result = subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, check=False)
    assert result.returncode == -9
    (left,) = tmp_path.glob(".quasiratio-*")
    assert list((left / "buckets").iterdir())
    assert not (tmp_path / "store").exists()
    assert len(made(tmp_path)) == N_EVENTS
    assert not left.exists()
