"""Two thousand random mutations of everything that is read back: what comes of it is a result or an error of ours.

The fast part tries a few dozen of each kind; `-m slow` tries five hundred of each.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import quasiratio as qr
from quasiratio.cli.configuration import fit_configuration
from quasiratio.errors import QuasiratioError
from quasiratio.model_files.document import json_checksum
from quasiratio.provenance import Provenance
from quasiratio.studies.engine.study import Row
from quasiratio.tasks.store import ResultStore
from quasiratio.training import resumable
from quasiratio.training.checkpoints import StageCheckpoint
from quasiratio.workflows.fitted_model import load_ratio_model

FEW, MANY = 40, 500
KEY = "this fit"
CONFIGURATION = """\
# A fit.
reference: [a.root:events, 'b*.root:events']
target: target.parquet
output: model
features: [pt, 'jet_*', "jet_pt[0]"]
weight: w_gen * w_pu
selection: pt > 30 and abs(eta) < 2.5
method: rosmm
tune: all
tune_loss: lsif
members: 4
seed: 7
batch_size: 1024
learning_rate: 1e-3
hidden_layers: [64, 64]
activation: silu
"""
ODD_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**40, -(10**40), 0.0, -0.0, 1e-300, 1e38, 1e308, "", "nan", "inf",
    "auto", "meta", "cuda", "../..", "\x00", "\ud800", [], [[]], [0], [-1, 2], {}, {"a": 1}, {"kind": "AutoRatio"}, "x" * 5000,
]  # fmt: skip

Damage = Callable[[np.random.Generator, Path], object]


def with_changed_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """Replace, remove, repeat or cut off a few bytes."""
    changed = bytearray(content)
    for _ in range(rng.integers(1, 5)):
        start = int(rng.integers(0, len(changed) + 1))
        end = min(len(changed), start + int(rng.integers(0, 24)))
        kind = rng.integers(0, 4)
        if kind == 0:
            changed[start:end] = rng.bytes(end - start)
        elif kind == 1:
            del changed[start:end]
        elif kind == 2:
            changed[start:start] = changed[start:end] or rng.bytes(3)
        else:
            del changed[max(start, 1) :]
    return bytes(changed)


def with_changed_values(document: Any, rng: np.random.Generator) -> Any:
    """Replace or remove a few values anywhere in a document."""
    for _ in range(rng.integers(1, 4)):
        parent, key = document, None
        while isinstance(parent, dict | list) and parent:
            key = (
                list(parent)[rng.integers(len(parent))]
                if isinstance(parent, dict)
                else int(rng.integers(len(parent)))
            )
            if rng.random() < 0.25 or not isinstance(parent[key], dict | list) or not parent[key]:
                break
            parent = parent[key]
        if key is None or not isinstance(parent, dict | list):
            continue
        if isinstance(parent, dict) and rng.random() < 0.2:
            del parent[key]
        else:
            parent[key] = ODD_VALUES[rng.integers(len(ODD_VALUES))]
    return document


def quick_events() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    return rng.lognormal(size=(400, 2)), np.arange(400) % 2, rng.choice([1.0, -0.2], 400, p=[0.9, 0.1])


QUICK: dict[str, Any] = {
    "max_steps": 12, "batch_size": 100, "hidden_layers": (3,), "verbose": False, "device": "cpu",
}  # fmt: skip


def resumed_fit(state: Path) -> None:
    with resumable(state, KEY):
        qr.SignResolvedRatio(random_state=0, **QUICK).fit(*quick_events())


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_originals(tmp_path_factory.mktemp("originals"))


def make_originals(here: Path) -> Path:
    """Make a model, the state of a fit, and a store; not to be changed."""
    X, y, w = quick_events()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        candidates = {"a": qr.SignResolvedRatio(**QUICK), "b": qr.SignedMixtureRatio(tune="all", **QUICK)}
        auto = qr.AutoRatio(candidates=candidates, random_state=0, **QUICK)
        qr.Reweighter(auto).fit(X[y == 0], X[y == 1], w[y == 0], w[y == 1]).save(
            here / "model", notes={"fit": {"selection": "pt > 30", "kinds": {"x0": "float"}}}
        )
        resumed_fit(here / "state")
    with ResultStore(here / "store.sqlite", "toy", {"seeds": 2}, Provenance.here()) as store:
        for seed in range(2):
            store.claim(f"seed-{seed}")
            store.add(
                f"seed-{seed}", Row(f"row-{seed}", {"chi2": 1.5, "curve": [1.0, 2.0]}), seconds=0.1, seed=seed
            )
            store.finish(f"seed-{seed}")
    return here


def damaged_model(rng: np.random.Generator, here: Path, originals: Path) -> None:
    document = json.loads((originals / "model" / "model.json").read_text())
    weights = (originals / "model" / "weights.safetensors").read_bytes()
    text = (originals / "model" / "model.json").read_bytes()
    place = here / "model"
    place.mkdir()
    kind = rng.integers(0, 4)
    if kind == 0:  # anybody's disk
        (text, weights) = (
            (with_changed_bytes(text, rng), weights)
            if rng.random() < 0.5
            else (text, with_changed_bytes(weights, rng))
        )
    else:  # somebody who knows how to sign
        if kind == 1:
            document["estimator"] = with_changed_values(document["estimator"], rng)
        elif kind == 2:
            document["notes"] = with_changed_values({"notes": document["notes"]}, rng).get("notes", {})
        else:
            tensors = safetensors.numpy.load(weights)
            names = sorted(tensors)
            name = names[rng.integers(len(names))]
            tensors[name] = np.full_like(tensors[name], [1e38, -1e38, 3e-39, 0][rng.integers(4)])
            weights = safetensors.numpy.save(tensors)
            document["weights_sha256"] = hashlib.sha256(weights).hexdigest()
        del document["json_sha256"]
        try:
            document["json_sha256"] = json_checksum(document)
        except (QuasiratioError, UnicodeEncodeError):
            return
        text = json.dumps(document).encode()
    (place / "model.json").write_bytes(text)
    (place / "weights.safetensors").write_bytes(weights)
    loaded = load_ratio_model(place)
    ratio = loaded.estimator.predict_ratio([[0.1, 2.0], [5.0, 1.0]])
    assert ratio.shape == (2,)
    qr.load(place).save(here / "again")


def damaged_state(rng: np.random.Generator, here: Path, originals: Path) -> None:
    stages = sorted((originals / "state").iterdir())
    path = here / stages[0].name
    if rng.random() < 0.8:  # anybody's disk
        path.write_bytes(with_changed_bytes(stages[0].read_bytes(), rng))
        state = StageCheckpoint(path, KEY).load()
        assert str(state) == str(StageCheckpoint(stages[0], KEY).load())  # padding may change, no more
        return
    signed: Any = StageCheckpoint(stages[0], KEY).load()  # somebody who knows how to sign
    part = list(signed)[rng.integers(len(signed))]
    kept = ("next_step", "n_diverged_epochs", "model", "optimiser", "best", "average", "batches")
    if part in kept and rng.random() < 0.5:
        del signed[part]
    elif part in kept:
        signed[part] = ODD_VALUES[rng.integers(len(ODD_VALUES))]
    else:
        signed["model"] = {name: values[..., :0] for name, values in signed["model"].items()}
    StageCheckpoint(path, KEY).save(signed)
    resumed_fit(here)


def damaged_store(rng: np.random.Generator, here: Path, originals: Path) -> None:
    path = here / "store.sqlite"
    content = (originals / "store.sqlite").read_bytes()
    path.write_bytes(content if rng.random() < 0.7 else with_changed_bytes(content, rng))
    if path.read_bytes() == content:
        columns = {
            "facts": ["name", "value"], "runs": ["started", "versions", "commit_id"],
            "points": ["key", "task", "seed", "result", "seconds", "run"], "tasks": ["key", "state", "run", "expires", "sentence"],
        }  # fmt: skip
        table = list(columns)[rng.integers(len(columns))]
        column = columns[table][rng.integers(len(columns[table]))]
        odd = ODD_VALUES[rng.integers(len(ODD_VALUES))]
        value: Any = odd if isinstance(odd, str | float | bytes | None) else json.dumps(odd)
        with sqlite3.connect(path) as connection:
            try:
                statement = f"UPDATE {table} SET {column} = ?"  # noqa: S608 - names from above
                connection.execute(statement, (b"\xff" if rng.random() < 0.2 else value,))
            except (sqlite3.Error, UnicodeEncodeError):  # a constraint holds
                connection.rollback()
        connection.close()
    with ResultStore(path, "toy", {"seeds": 2}, Provenance.here()) as store:
        for row in store.rows():
            assert set(row.values) == {"chi2", "curve"}
        store.known(), store.records(), store.states()
        if store.claim("seed-0"):
            store.fail("seed-0", "again")


def damaged_configuration(rng: np.random.Generator, here: Path, _: Path) -> None:
    path = here / "fit.yaml"
    if rng.random() < 0.5:
        path.write_bytes(with_changed_bytes(CONFIGURATION.encode(), rng))
    else:
        lines = CONFIGURATION.splitlines()
        for _change in range(rng.integers(1, 4)):
            number = rng.integers(len(lines))
            odd = ODD_VALUES[rng.integers(len(ODD_VALUES))]
            lines[number] = f"{lines[number].partition(':')[0]}: {json.dumps(odd)}"
        path.write_text("\n".join(lines))
    fit_configuration(path, {})


KINDS: dict[str, Callable[[np.random.Generator, Path, Path], None]] = {
    "model": damaged_model,
    "state": damaged_state,
    "store": damaged_store,
    "configuration": damaged_configuration,
}


def check(kind: str, numbers: range, tmp_path: Path, originals: Path) -> int:
    """Return how many mutations were refused; all others were read, and nothing else happened."""
    n_refused = 0
    for number in numbers:
        here = tmp_path / str(number)
        here.mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                KINDS[kind](np.random.default_rng([number, len(kind)]), here, originals)
            except QuasiratioError as error:
                n_refused += 1
                assert "\n" not in str(error)  # noqa: PT017
                assert len(str(error)) < 1500  # noqa: PT017
            except Exception as error:
                msg = f"mutation {number} of a {kind}"
                raise AssertionError(msg) from error
    assert n_refused > len(numbers) // 10
    return n_refused


def numbers_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of a number in a document."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [place for key, inner in items for place in numbers_of(inner, (*path, key))]
    return [path] if isinstance(value, int | float) and not isinstance(value, bool) else []


def test_oversized_numbers_in_every_place_of_a_signed_model(tmp_path: Path, originals: Path) -> None:
    text = (originals / "model" / "model.json").read_text()
    places = numbers_of(json.loads(text)["estimator"])
    rng = np.random.default_rng(0)
    for number, place in enumerate([places[i] for i in rng.permutation(len(places))[:60]]):
        for value in (2**70, 1e38):
            document = json.loads(text)
            parent = document["estimator"]
            for key in place[:-1]:
                parent = parent[key]
            parent[place[-1]] = value
            del document["json_sha256"]
            document["json_sha256"] = json_checksum(document)
            here = tmp_path / f"{number}-{value}"
            here.mkdir()
            (here / "model.json").write_text(json.dumps(document))
            (here / "weights.safetensors").write_bytes(
                (originals / "model" / "weights.safetensors").read_bytes()
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    qr.load(here).predict_weights([[0.1, 2.0]])
                except QuasiratioError:
                    continue
                except Exception as error:
                    msg = f"{value} at {place}"
                    raise AssertionError(msg) from error


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_mutations(kind: str, tmp_path: Path, originals: Path) -> None:
    check(kind, range(FEW), tmp_path, originals)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_five_hundred_mutations(kind: str, tmp_path: Path, originals: Path) -> None:
    check(kind, range(FEW, FEW + MANY), tmp_path, originals)
