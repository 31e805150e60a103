"""A saved model, and a way to forge one: change anything, with checksums that are right again."""

from __future__ import annotations

import copy
import hashlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import quasiratio as qr
from quasiratio.errors import QuasiratioWarning
from quasiratio.model_files.document import json_checksum

Change = Callable[[dict[str, Any], dict[str, Any]], None]


@pytest.fixture(scope="session")
def saved_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An `AutoRatio` of two members: it has every kind of model but one, a report and several histories."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    X = np.column_stack([rng.normal(size=600) + 0.3 * y, rng.lognormal(1.0, 1.0, 600)]).astype(np.float32)
    w = np.where((rng.random(600) < 0.15) & (y == 1), -0.4, 1.0)
    options: dict[str, Any] = {"max_steps": 15, "batch_size": 128, "hidden_layers": (3,), "n_members": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuasiratioWarning)
        model = qr.AutoRatio(random_state=0, verbose=False, **options).fit({"a": X[:, 0], "b": X[:, 1]}, y, w)
    path = tmp_path_factory.mktemp("saved") / "model"
    model.save(path)
    return path


@pytest.fixture
def forge(saved_model: Path, tmp_path: Path) -> Callable[[Change], Path]:
    """Return a function that writes a changed copy of the model, and says where."""
    document = json.loads((saved_model / "model.json").read_text(encoding="utf-8"))
    tensors = safetensors.numpy.load((saved_model / "weights.safetensors").read_bytes())

    def write(change: Change) -> Path:
        changed, arrays = copy.deepcopy(document), dict(tensors)
        change(changed, arrays)
        weights = safetensors.numpy.save(arrays)
        changed["weights_sha256"] = hashlib.sha256(weights).hexdigest()
        del changed["json_sha256"]
        changed["json_sha256"] = json_checksum(changed)
        path = tmp_path / "forged"
        path.mkdir(exist_ok=True)
        (path / "model.json").write_text(json.dumps(changed), encoding="utf-8")
        (path / "weights.safetensors").write_bytes(weights)
        return path

    return write
