"""Results on disk: one row of SQLite for each, written as soon as it is known.

Every row is its own transaction, forced to disk before the next begins, so that killing a process at any
moment loses only what was not yet known. Tasks are claimed before they are computed. A claim holds for a lease
that its owner keeps renewing; the claims of a process that died run out, and others take them over. Several
processes may share a store. It uses SQLite's rollback journal, which, unlike its write-ahead log, does not need
memory shared between processes.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from quasiratio.errors import InvalidInputError, QuasiratioError
from quasiratio.provenance import Provenance
from quasiratio.tasks.task import Row, Settings
from quasiratio.wording import shortened

__all__ = ["LEASE_SECONDS", "ResultStore"]

_ELSEWHERE = "Choose another directory."

LEASE_SECONDS = 60.0
_BUSY_SECONDS = 60.0
_FORMAT = "1"
_OTHER_CONTENT = "it holds something else than was written"
_TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (
    id INTEGER PRIMARY KEY, started REAL NOT NULL, versions TEXT NOT NULL, commit_id TEXT NOT NULL,
    machine TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS points (
    key TEXT PRIMARY KEY, task TEXT NOT NULL, seed INTEGER, result TEXT NOT NULL, seconds REAL NOT NULL,
    finished REAL NOT NULL, run INTEGER NOT NULL REFERENCES runs (id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tasks (
    key TEXT PRIMARY KEY, state TEXT NOT NULL CHECK (state IN ('claimed', 'done', 'failed')),
    run INTEGER NOT NULL REFERENCES runs (id), expires REAL NOT NULL, sentence TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS checksums (key TEXT PRIMARY KEY, sha256 TEXT NOT NULL) WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS results AS
    SELECT points.key, task, seed, result, seconds, finished, versions, commit_id, machine,
        (SELECT value FROM facts WHERE name = 'settings') AS settings
    FROM points JOIN runs ON runs.id = points.run;
"""


class ResultStore:
    """The store of one work, such as a study, with one set of settings.

    Args:
        path: The file; made where it is missing.
        study: Name of the study, or of what else is done.
        settings: Its settings; a store that was made with others is refused.
        provenance: Versions and commit, kept with every row of this process.

    Example:
        >>> import tempfile
        >>> from quasiratio.provenance import Provenance
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     store = ResultStore(Path(directory) / "r.sqlite", "toy", {"seeds": 1}, Provenance.here())
        ...     with store:
        ...         store.claim("seed-0"), store.add("seed-0", Row("a", {"chi2": 1.1}), seconds=0.5, seed=0)
        ...         store.rows()
        (True, True)
        [Row(key='a', values={'chi2': 1.1})]
    """

    def __init__(self, path: Path, study: str, settings: Settings, provenance: Provenance) -> None:
        self.path = Path(path)
        facts = {"format": _FORMAT, "study": study, "settings": _json(settings)}
        with self._sentences():
            self._connection = _connect(self.path)
        try:
            with self._sentences():
                for statement in _TABLES.split(";\n"):
                    self._connection.execute(statement)
            with self._transaction() as execute:
                known = dict(execute("SELECT name, value FROM facts"))
                if known:
                    _require_same(self.path, known, facts)
                else:
                    for item in (facts | {"checksums": "1"}).items():
                        execute("INSERT INTO facts VALUES (?, ?)", item)
                entry = (time.time(), _json(provenance.versions), provenance.commit, provenance.machine)
                row = execute(
                    "INSERT INTO runs (started, versions, commit_id, machine) VALUES (?, ?, ?, ?)", entry
                )
                self.run = int(row.lastrowid or 0)
                self.started = entry[0]
        except BaseException:
            self._connection.close()
            raise

    @classmethod
    def joined(cls, path: Path, run: int) -> ResultStore:
        """Open the store of a run that another process has begun, to add rows to it."""
        store = cls.__new__(cls)
        store.path, store.run, store.started = Path(path), run, time.time()
        with store._sentences():
            store._connection = _connect(store.path)
        return store

    def add(self, task: str, row: Row, *, seconds: float, seed: int | None = None) -> bool:
        """Keep a row; false where one of that key is there already, which then stays as it is."""
        entry = (row.key, task, seed, _json(row.values), seconds, time.time(), self.run)
        with self._transaction() as execute:
            added = execute("INSERT OR IGNORE INTO points VALUES (?, ?, ?, ?, ?, ?, ?)", entry)
            if int(added.rowcount) != 1:
                return False
            execute("INSERT OR REPLACE INTO checksums VALUES (?, ?)", (row.key, _checksum(row.key, entry[3])))
            return True

    def study_name(self) -> str:
        """Return the name of the study whose rows these are."""
        with self._transaction(write=False) as execute:
            return str(execute("SELECT value FROM facts WHERE name = 'study'").fetchone()[0])

    def rows(self) -> list[Row]:
        """Return all rows, in the order of their keys."""
        with self._transaction(write=False) as execute:
            found = execute("SELECT key, result FROM points ORDER BY key").fetchall()
            known = dict(execute("SELECT key, sha256 FROM checksums"))
            has_checksums = execute("SELECT 1 FROM facts WHERE name = 'checksums'").fetchone() is not None
        missing = sorted(map(str, known.keys() - {key for key, _ in found}))
        if missing:
            problem = f"its row {shortened(missing[0])!r} was removed"
            raise self._damaged(problem)
        for key, values in found:  # rows of older versions have none
            if (key in known or has_checksums) and known.get(key) != _checksum(key, values):
                problem = f"its row {shortened(str(key))!r} has a wrong checksum"
                raise self._damaged(problem)
        return [Row(key, self._parsed(values)) for key, values in found]

    def known(self) -> frozenset[str]:
        """Return the keys of all rows."""
        with self._transaction(write=False) as execute:
            return frozenset(key for (key,) in execute("SELECT key FROM points"))

    def records(self) -> list[dict[str, Any]]:
        """Return all rows with seed, settings, versions, commit and wall-clock."""
        names = "key, task, seed, result, seconds, finished, versions, commit_id, machine, settings"
        with self._transaction(write=False) as execute:
            found = execute(f"SELECT {names} FROM results ORDER BY key").fetchall()  # noqa: S608 - fixed names
        records = [dict(zip(names.split(", "), values, strict=True)) for values in found]
        for record in records:
            record |= {name: self._parsed(record[name]) for name in ("result", "versions", "settings")}
            record["commit"] = record.pop("commit_id")
        return records

    def sources(self) -> list[Provenance]:
        """Return what rows were computed with, in the order of the runs: more than one after a change in between."""
        with self._transaction(write=False) as execute:
            found = execute(
                "SELECT versions, commit_id, machine FROM runs WHERE id IN (SELECT run FROM points) ORDER BY started, id"
            ).fetchall()
        distinct = dict.fromkeys(found)
        return [Provenance(self._parsed(versions), commit, machine) for versions, commit, machine in distinct]

    def seconds(self) -> float:
        """Return the time that workers took for all rows."""
        with self._transaction(write=False) as execute:
            return float(execute("SELECT coalesce(sum(seconds), 0) FROM points").fetchone()[0])

    def claim(self, task: str, *, lease: float = LEASE_SECONDS) -> bool:
        """Take a task; false where it is done, or failed since this run began, or another process has it."""
        now = time.time()
        with self._transaction() as execute:
            found = execute("SELECT state, run, expires FROM tasks WHERE key = ?", (task,)).fetchone()
            if found is not None:
                state, run, expires = found
                failed_now = state == "failed" and (run == self.run or expires >= self.started)
                if state == "done" or failed_now or (state == "claimed" and expires > now):
                    return False
            entry = (task, self.run, now + lease)
            execute("INSERT OR REPLACE INTO tasks VALUES (?, 'claimed', ?, ?, NULL)", entry)
        return True

    def renew(self, *, lease: float = LEASE_SECONDS) -> None:
        """Extend every claim of this run."""
        with self._transaction() as execute:
            expires = time.time() + lease
            execute("UPDATE tasks SET expires = ? WHERE state = 'claimed' AND run = ?", (expires, self.run))

    def release(self, task: str | None = None) -> None:
        """Give up one claim of this run, or all, so that others need not wait for them to run out."""
        with self._transaction() as execute:
            execute(
                "DELETE FROM tasks WHERE state = 'claimed' AND run = ? AND key = coalesce(?, key)",
                (self.run, task),
            )

    def finish(self, task: str) -> None:
        """Mark a task as done."""
        with self._transaction() as execute:
            execute(
                "INSERT OR REPLACE INTO tasks VALUES (?, 'done', ?, ?, NULL)", (task, self.run, time.time())
            )

    def fail(self, task: str, sentence: str) -> None:
        """Mark a task as failed; the next run tries again."""
        with self._transaction() as execute:
            entry = (task, self.run, time.time(), sentence)
            execute("INSERT OR REPLACE INTO tasks VALUES (?, 'failed', ?, ?, ?)", entry)

    def forget(self, task: str) -> None:
        """Drop the rows and the state of a task, which is to be done again."""
        with self._transaction() as execute:
            execute("DELETE FROM checksums WHERE key IN (SELECT key FROM points WHERE task = ?)", (task,))
            execute("DELETE FROM points WHERE task = ?", (task,))
            execute("DELETE FROM tasks WHERE key = ?", (task,))

    def states(self) -> dict[str, tuple[str, str | None]]:
        """Return the state of each task that was ever claimed, and what made it fail."""
        with self._transaction(write=False) as execute:
            return {
                key: (state, why) for key, state, why in execute("SELECT key, state, sentence FROM tasks")
            }

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _transaction(self, *, write: bool = True) -> Iterator[Any]:
        """Run statements as one; writers wait for each other before they read."""
        with self._sentences():
            self._connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield self._connection.execute
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a damaged file may have ended the transaction itself
                    self._connection.execute("ROLLBACK")
                raise

    def _parsed(self, text: object) -> dict[str, Any]:
        try:
            values = json.loads(text) if isinstance(text, str) else None
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            raise self._damaged(_OTHER_CONTENT)
        return values

    def _damaged(self, problem: str) -> InvalidInputError:
        return InvalidInputError(
            f"Got the store {str(self.path)!r}, which was edited or damaged ({problem}); expected one that only quasiratio "
            "has written to. Restore it from a copy, or start again in another directory."
        )

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError, OverflowError) as error:  # values of other types than were written
            if isinstance(error, QuasiratioError):
                raise
            raise self._damaged(_OTHER_CONTENT) from error
        except sqlite3.Error as error:
            msg = (
                f"Could not use the store {str(self.path)!r} ({error}); expected a SQLite file of quasiratio that can "
                "be written."
            )
            raise InvalidInputError(msg, advice=_ELSEWHERE) from error


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _checksum(key: object, text: object) -> str:
    return hashlib.sha256(f"{key}\n{text}".encode("utf-8", "replace")).hexdigest()


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _require_same(path: Path, known: dict[str, str], expected: dict[str, str]) -> None:
    if known.get("format") != _FORMAT:
        msg = f"Got the store {str(path)!r} of format {shortened(str(known.get('format')))!r}; expected {_FORMAT}."
        raise InvalidInputError(msg, advice=_ELSEWHERE)
    if known.get("study") != expected["study"]:
        msg = (
            f"Got the store {str(path)!r} of {shortened(str(known.get('study')))!r}; expected one of "
            f"{expected['study']!r}."
        )
        raise InvalidInputError(msg, advice=_ELSEWHERE)
    if known.get("settings") == expected["settings"]:
        return
    try:
        before, now = json.loads(known["settings"]), json.loads(expected["settings"])
        before = dict(before)
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        msg = f"Got the store {str(path)!r}, whose settings were edited or damaged; start again in another directory."
        raise InvalidInputError(msg) from error
    changes = [
        f"{name} = {shortened(repr(before.get(name)))} there and {shortened(repr(now.get(name)))} now"
        for name in sorted(before | now)
        if before.get(name) != now.get(name)
    ]
    msg = (
        f"Got the store {str(path)!r}, which was made with other settings ({'; '.join(changes)}); "
        "expected the same."
    )
    msg += " Repeat the options of the first run, or choose another directory."
    raise InvalidInputError(msg)
