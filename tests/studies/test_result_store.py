"""The store: rows stay, claims exclude, other settings are refused, and a killed process loses nothing."""

from __future__ import annotations

import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from quasiratio.errors import InvalidInputError
from quasiratio.provenance import Provenance
from quasiratio.studies.engine.study import Row
from quasiratio.tasks.store import ResultStore

HERE = Path(__file__).parent


def opened(directory: Path, settings=None, study="toy") -> ResultStore:
    return ResultStore(
        directory / "r.sqlite", study, {"seeds": 1} if settings is None else settings, Provenance.here()
    )


def test_a_row_comes_back_with_everything_that_made_it(tmp_path: Path) -> None:
    values = {"chi2": 1.25, "curve": [0.5, math.inf], "name": "é", "none": None}
    with opened(tmp_path) as store:
        assert store.add("t", Row("a", values), seconds=2.5, seed=7)
    with opened(tmp_path) as again:
        assert again.rows() == [Row("a", values)]
        (record,) = again.records()
    assert record["seed"] == 7
    assert record["seconds"] == 2.5
    assert record["settings"] == {"seeds": 1}
    assert record["versions"]["torch"].startswith("2.")
    assert record["commit"]
    assert abs(record["finished"] - time.time()) < 600


def test_the_first_row_of_a_key_stays(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        assert store.add("t", Row("a", {"x": 1}), seconds=0)
        assert not store.add("t", Row("a", {"x": 2}), seconds=0)
        assert store.rows() == [Row("a", {"x": 1})]


def test_a_claim_excludes_others_until_it_runs_out_or_is_given_up(tmp_path: Path) -> None:
    with opened(tmp_path) as one, opened(tmp_path) as other:
        assert one.claim("t", lease=0.5)
        assert not other.claim("t")
        one.renew(lease=60)
        time.sleep(0.6)
        assert not other.claim("t")
        one.renew(lease=0.0)
        assert other.claim("t")
        other.release("t")
        assert one.claim("t")
        one.finish("t")
        assert not other.claim("t")


def test_a_failed_task_is_tried_again_by_the_next_run_only(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.claim("t")
        store.fail("t", "ValueError: no")
        assert not store.claim("t")
        assert store.states() == {"t": ("failed", "ValueError: no")}
    with opened(tmp_path) as later:
        assert later.claim("t")


@pytest.mark.parametrize(
    ("settings", "study", "match"),
    [
        ({"seeds": 2}, "toy", "seeds = 1 there and 2 now"),
        ({"seeds": 1}, "another", "of 'toy'; expected one of 'another'"),
    ],
)
def test_a_store_of_something_else_is_refused(tmp_path: Path, settings, study, match) -> None:
    opened(tmp_path).close()
    with pytest.raises(InvalidInputError, match=match):
        opened(tmp_path, settings, study)


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.sqlite").write_bytes(b"not a database, but long enough to look like one" * 40)
    with pytest.raises(InvalidInputError, match="Could not use the store"):
        opened(tmp_path)


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE points SET result = '{\"chi2\": 0.5}'",
        "UPDATE points SET result = 'nonsense'",
        "UPDATE points SET result = x'ff'",
        "DELETE FROM points",
        "UPDATE facts SET value = '[]'",
        "UPDATE runs SET versions = 'x'",
        "DROP TABLE points",
        "DROP TABLE checksums",
    ],
)
def test_a_store_that_was_edited_by_hand_is_one_sentence(tmp_path: Path, edit: str) -> None:
    with opened(tmp_path) as store:
        store.add("t", Row("a", {"chi2": 1.5}), seconds=0.1, seed=1)
    connection = sqlite3.connect(tmp_path / "r.sqlite")
    with connection:
        connection.execute(edit)
    connection.close()

    def read() -> None:
        with opened(tmp_path) as store:
            store.rows()
            store.records()

    with pytest.raises(InvalidInputError) as raised:
        read()
    assert "\n" not in str(raised.value)


def test_threads_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    store = opened(tmp_path)

    def write(first: int) -> None:
        with ResultStore.joined(store.path, store.run) as own:
            for number in range(first, first + 20):
                own.add("t", Row(f"row-{number:03d}", {"x": number}), seconds=0)

    threads = [threading.Thread(target=write, args=(20 * index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [row.values["x"] for row in store.rows()] == list(range(80))
    store.close()


def start(directory: Path, settings: dict[str, object], lease: float) -> subprocess.Popen[str]:
    command = [sys.executable, str(HERE / "run_toy.py"), str(directory), json.dumps(settings), str(lease)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.slow
def test_killing_a_run_loses_no_row_and_computes_none_twice(tmp_path: Path) -> None:
    from tests.studies import toy_study

    settings = toy_study.settings(tmp_path, n_tasks=6, pause=0.15)
    first = start(tmp_path, settings, lease=1.0)
    log = tmp_path / "computed.log"
    deadline = time.monotonic() + 120
    while not (log.exists() and log.read_text().count("\n") >= 3):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    with sqlite3.connect(tmp_path / "results.sqlite") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        n_known = connection.execute("SELECT count(*) FROM points").fetchone()[0]
    connection.close()
    n_computed = log.read_text().count("\n")
    assert n_known >= n_computed - 1  # the last may have been killed between computing and storing
    done = start(tmp_path, settings, lease=1.0)
    assert len(json.loads(done.communicate(timeout=120)[0])) == 12
    computed = Counter(line.split()[0] for line in log.read_text().splitlines())
    assert len(computed) == 12
    assert sum(computed.values()) <= 12 + (n_computed - n_known)


@pytest.mark.slow
def test_two_processes_share_a_store_and_compute_nothing_twice(tmp_path: Path) -> None:
    from tests.studies import toy_study

    settings = toy_study.settings(tmp_path, n_tasks=6, pause=0.2)
    runs = [start(tmp_path, settings, lease=30.0) for _ in range(2)]
    printed = [json.loads(run.communicate(timeout=120)[0]) for run in runs]
    assert len(printed[0]) == 12
    assert printed[0] == printed[1]
    lines = (tmp_path / "computed.log").read_text().splitlines()
    assert len(lines) == 12
    assert len({line.split()[1] for line in lines}) == 2  # both took part
