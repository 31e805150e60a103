"""The loader under random damage: it returns a model or raises an error of ours, and allocates little."""

from __future__ import annotations

import copy
import hashlib
import json
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import quasiratio as qr
from quasiratio.errors import QuasiratioError
from quasiratio.model_files.document import json_checksum

FUZZ = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**30, max_value=2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["nan", "inf", "../..", "cuda", "meta", "DirectRatio", "auto"])
    | st.lists(st.integers(-2, 5) | st.floats(-2, 2), max_size=4)
    | st.dictionaries(st.text(max_size=4), st.integers(), max_size=2)
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document, by the keys that lead there."""
    below: list[tuple[Any, ...]] = [path] if path else []
    if isinstance(value, dict):
        for key, inner in value.items():
            below += places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            below += places(inner, (*path, index))
    return below


def require_model_or_error(path: Path) -> bool:
    """Load and predict; return whether it could be loaded."""
    tracemalloc.start()
    try:
        model = qr.load(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.predict_ratio([[0.1, 2.0]])
    except QuasiratioError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return False
    else:
        return True
    finally:
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
        tracemalloc.stop()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    return tmp_path / "model"


@FUZZ
@given(data=st.data())
def test_random_bytes_in_either_file(data: st.DataObject, saved_model: Path, place: Path) -> None:
    contents = {
        name: bytearray((saved_model / name).read_bytes()) for name in ("model.json", "weights.safetensors")
    }
    content = contents[data.draw(st.sampled_from(sorted(contents)))]
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = min(len(content), start + data.draw(st.integers(0, 20)))
        content[start:end] = data.draw(st.binary(max_size=20))
    for name, changed in contents.items():
        (place / name).write_bytes(changed)
    require_model_or_error(place)


@FUZZ
@given(data=st.data())
def test_random_values_in_a_signed_document(data: st.DataObject, saved_model: Path, place: Path) -> None:
    """The checksums are right, so that every check behind them has its turn."""
    document = copy.deepcopy(json.loads((saved_model / "model.json").read_text(encoding="utf-8")))
    known = places(document["estimator"])
    for _ in range(data.draw(st.integers(1, 3))):
        *above, last = data.draw(st.sampled_from(known))
        parent: Any = document["estimator"]
        try:
            for key in above:
                parent = parent[key]
            if data.draw(st.booleans()) and isinstance(parent, dict):
                del parent[last]
            else:
                parent[last] = data.draw(VALUES)
        except (KeyError, IndexError, TypeError):  # an earlier change took it away
            continue
    del document["json_sha256"]
    document["json_sha256"] = json_checksum(document)
    (place / "model.json").write_text(json.dumps(document), encoding="utf-8")
    (place / "weights.safetensors").write_bytes((saved_model / "weights.safetensors").read_bytes())
    require_model_or_error(place)


@FUZZ
@given(data=st.data())
def test_random_bytes_in_signed_weights(data: st.DataObject, saved_model: Path, place: Path) -> None:
    weights = bytearray((saved_model / "weights.safetensors").read_bytes())
    n_header = int.from_bytes(weights[:8], "little") + 8
    in_header = data.draw(st.booleans())
    for _ in range(data.draw(st.integers(1, 4))):
        index = data.draw(
            st.integers(0, n_header - 1) if in_header else st.integers(n_header, len(weights) - 1)
        )
        weights[index] = data.draw(st.integers(0, 255))
    document = json.loads((saved_model / "model.json").read_text(encoding="utf-8"))
    del document["json_sha256"]
    document["weights_sha256"] = hashlib.sha256(weights).hexdigest()
    document["json_sha256"] = json_checksum(document)
    (place / "model.json").write_text(json.dumps(document), encoding="utf-8")
    (place / "weights.safetensors").write_bytes(weights)
    require_model_or_error(place)


def test_without_damage_it_loads(saved_model: Path) -> None:
    assert require_model_or_error(saved_model)
