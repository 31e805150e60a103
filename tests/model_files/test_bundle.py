"""Model directories: what is refused, and that a refusal is one sentence that allocates nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quasiratio as qr
from quasiratio.errors import InvalidInputError
from quasiratio.model_files import FORMAT_VERSION, bundle, read_bundle, read_document, write_bundle
from quasiratio.model_files.document import TensorSpec

Change = Callable[[dict[str, Any], dict[str, Any]], None]
Forge = Callable[[Change], Path]


@pytest.fixture
def model(saved_model: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(saved_model, tmp_path / "model"))


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def require_sentence(path: Any, match: str) -> None:
    """Loading raises one sentence, and takes no memory to speak of."""
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInputError, match=match) as caught:
            qr.load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000
    assert peak < 50_000_000


def test_an_untouched_forgery_loads(forge: Forge) -> None:
    """So that the refusals below have the reason they name."""
    assert isinstance(qr.load(forge(lambda *_: None)), qr.AutoRatio)


def test_what_is_no_model_directory(tmp_path: Path, model: Path) -> None:
    require_sentence(tmp_path / "nothing", "does not exist; expected the directory of a saved model")
    require_sentence(model / "model.json", "is a file; expected the directory")
    require_sentence("", "expected the path of a directory")
    require_sentence("model\0", "expected the path of a directory")
    require_sentence(None, "expected the path of a directory")
    require_sentence("x" * 300, "does not exist")
    (tmp_path / "empty").mkdir()
    require_sentence(tmp_path / "empty", r"Could not read .*model.json' \(No such file")


@pytest.mark.parametrize("name", ["model.json", "weights.safetensors"])
def test_files_that_are_missing_truncated_or_no_files(name: str, model: Path) -> None:
    path = model / name
    whole = path.read_bytes()
    for n_bytes in (0, 1, 7, 8, 100, len(whole) // 2, len(whole) - 2):
        path.write_bytes(whole[:n_bytes])
        require_sentence(model, "truncated|checksum")
    path.write_bytes(whole + b"\0")
    require_sentence(model, "truncated|checksum")
    path.unlink()
    require_sentence(model, "No such file")
    path.mkdir()
    require_sentence(model, "Is a directory|regular file|Permission")
    path.rmdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(path)
        require_sentence(model, "no regular file")
        path.unlink()
        path.symlink_to("/dev/zero")
        require_sentence(model, "no regular file")
        path.unlink()
        path.symlink_to(path)
        require_sentence(model, "Could not read")


def test_a_huge_file_is_not_read(model: Path) -> None:
    """Sparse files of a terabyte cost nothing to make."""
    for name in ("weights.safetensors", "model.json"):
        path = model / name
        whole = path.read_bytes()
        with path.open("r+b") as file:
            file.truncate(2**40)
        require_sentence(model, "of 1099511627776 bytes; expected at least")
        path.write_bytes(whole)


def test_a_newer_format_is_named(model: Path) -> None:
    document = json.loads((model / "model.json").read_text(encoding="utf-8"))
    document["format_version"] = FORMAT_VERSION + 1
    document["something"] = "new"
    (model / "model.json").write_text(json.dumps(document), encoding="utf-8")
    require_sentence(model, f"of format {FORMAT_VERSION + 1}, which is newer than {FORMAT_VERSION}.*upgrade")


def test_an_edit_by_hand_is_noticed(model: Path) -> None:
    path = model / "model.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"batch_size": 128', '"batch_size": 129', 1), encoding="utf-8")
    require_sentence(model, "was edited or damaged")
    path.write_text(json.dumps(json.loads(text)), encoding="utf-8")  # only the layout changes
    assert isinstance(qr.load(model), qr.AutoRatio)


def test_weights_of_another_model_are_noticed(model: Path) -> None:
    path = model / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    require_sentence(model, "does not belong to its model.json or is damaged")


def _set(*keys: Any, to: Any) -> Change:
    def change(document: dict[str, Any], _: dict[str, Any]) -> None:
        place: Any = document
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to

    return change


def _candidate(number: int, *keys: Any, to: Any) -> Change:
    return _set("estimator", "candidates", number, "estimator", *keys, to=to)


def _nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


HOSTILE: dict[str, tuple[Change, str]] = {
    "another format": (_set("format", to="pickle"), "describes no model of quasiratio"),
    "a version that is text": (_set("format_version", to="1"), "describes no model of quasiratio"),
    "a version that is true": (_set("format_version", to=True), "describes no model of quasiratio"),
    "version zero": (_set("format_version", to=0), "describes no model of quasiratio"),
    "unknown estimator": (_set("estimator", "kind", to="os.system"), "class os.system, which model files do not know"),
    "no estimator": (_set("estimator", to=None), "estimator"),
    "an unknown entry": (_set("path", to="/etc/passwd"), "path: Extra inputs"),
    "an unknown parameter": (_candidate(0, "parameters", "path", to="../.."), "parameters.path: Extra inputs"),
    "text for a number": (_candidate(0, "normalization", to="1.0"), "normalization: Input should be a valid number"),
    "a negative scale": (_candidate(0, "model", "scaling", "scale", to=[-1.0, 1.0]), "greater than 0"),
    "a floor of zero": (_candidate(0, "model", "scaling", "floor", to=[None, 0.0]), "without a positive floor"),
    "a floor above its ceiling": (_candidate(0, "model", "scaling", "ceiling", to=[-1e30, None]), "above its ceiling"),
    "three ceilings": (_candidate(0, "model", "scaling", "ceiling", to=[None, None, None]), "ceilings differ"),
    "an infinite mean": (_candidate(0, "model", "scaling", "mean", to=[1e308, 10**400]), "mean.1: Input should be"),
    "three means": (_candidate(0, "model", "scaling", "mean", to=[0.0, 0.0, 0.0]), "differ in number"),
    "a logarithm without floor": (_candidate(0, "model", "scaling", "uses_log", to=[True, True]), "without a positive floor"),
    "more features": (_set("estimator", "features", "count", to=3), "number of names"),
    "fewer features": (
        _candidate(0, "features", to={"count": 1, "names": ["a"], "from_frame": False}),
        "another number of features",
    ),
    "another number of members": (_candidate(0, "model", "n_members", to=3), "number of members"),
    "huge layers": (_candidate(0, "model", "network", "hidden_layers", to=[2**31, 2**31]), "expected at least"),
    "a huge ensemble": (_candidate(0, "model", "network", "n_networks", to=2**31), "number of members"),
    "layers beyond counting": (_candidate(0, "model", "network", "hidden_layers", to=[2**80]), "less than or equal"),
    "very many layers": (_candidate(0, "model", "network", "hidden_layers", to=[1] * 5000), "at most 1000"),
    "a wider layer": (_candidate(0, "model", "network", "hidden_layers", to=[4]), "expected at least|tensor"),
    "a narrower layer": (_candidate(0, "model", "network", "hidden_layers", to=[2]), "tensor"),
    "an empty layer": (_candidate(0, "model", "network", "hidden_layers", to=[0]), "greater than or equal to 1"),
    "an unknown activation": (_candidate(0, "model", "network", "activation", to="eval"), "activation 'eval'"),
    "impossible classes": (_candidate(0, "model", "classes", to=[[1, 1], [1, -1], [0, 1]]), "none that occur"),
    "no positive pair": (_candidate(1, "model", "pairs", to=[[-1, 1], [1, -1]]), "none that occur"),
    "a member without coefficients": (_candidate(1, "model", "coefficients", to=[[1.0, 1.1]]), "coefficients"),
    "a longer history": (_candidate(0, "history", "n_epochs", to=2**31), "expected at least"),
    "no history": (_candidate(0, "history", to=None), "history"),
    "a device of another kind": (_candidate(0, "parameters", "device", to="meta"), "device: String should match"),
    "an unknown loss": (
        _candidate(2, "model", "loss", to={"name": "x", "parameters": {}, "is_built_in": True, "type": "os.system"}),
        "needs the loss 'x'",
    ),
    "a loss with odd parameters": (
        _candidate(2, "model", "loss", to={"name": "bce", "parameters": {"a": 1}, "is_built_in": True, "type": ""}),
        "cannot be made",
    ),
    "a loss without its value": (
        _candidate(2, "model", "loss", to={"name": "pare", "parameters": {"eps": "auto"}, "is_built_in": True, "type": ""}),
        "has no value yet",
    ),
    "two candidates of one name": (_set("estimator", "candidates", 1, "name", to="sign-resolved"), "same name"),
    "no candidates": (_set("estimator", "candidates", to=[]), "at least 1"),
    "deep notes": (_set("notes", to={"a": _nested(500)}), "notes"),
    "a checksum that is no text": (_set("estimator", "fingerprint", "sha256", to=["a"]), "sha256"),
    "hashes of events that do not increase": (
        _set("estimator", "fingerprint", "sketches", to=[{"hashes": "f" * 16 + "0" * 16, "is_complete": True}]),
        "do not increase",
    ),
    "hashes of events that are none": (
        _set("estimator", "fingerprint", "sketches", to=[{"hashes": "xyz", "is_complete": True}]),
        "hashes",
    ),
    "an endless name": (_set("estimator", "candidates", 0, "name", to="x" * 10**5), "at most 10000"),
    "a name with line breaks": (_set("estimator", "kind", to="a\nb\nTraceback"), "model files do not know"),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_forged_document_is_refused_in_one_sentence(kind: str, forge: Forge) -> None:
    change, reason = HOSTILE[kind]
    require_sentence(forge(change), reason)


def test_a_file_of_the_first_format_is_read(forge: Forge, saved_model: Path) -> None:
    """Also one with fields that came before the number of the format did."""
    X = np.random.default_rng(0).uniform(0.2, 2.0, size=(50, 2)).astype(np.float32)
    first, newest = qr.load(forge(_set("format_version", to=1))), qr.load(saved_model)
    np.testing.assert_array_equal(first.predict_members(X), newest.predict_members(X))
    assert FORMAT_VERSION == 3


def _replace(name: str, value: Any) -> Change:
    def change(_: dict[str, Any], tensors: dict[str, Any]) -> None:
        assert name in tensors
        tensors[name] = value(tensors[name])

    return change


def _rename(old: str, new: str) -> Change:
    def change(_: dict[str, Any], tensors: dict[str, Any]) -> None:
        tensors[new] = tensors.pop(old)

    return change


WEIGHT = "candidates.0.network.weights.0"
HOSTILE_TENSORS: dict[str, tuple[Change, str]] = {
    "another type": (_replace(WEIGHT, lambda t: t.view(np.int32)), "of type int32"),
    "half precision": (_replace(WEIGHT, lambda t: t.astype(np.float16)), "float16|expected at least"),
    "double precision": (_replace(WEIGHT, lambda t: t.astype(np.float64)), "of type float64"),
    "another shape": (_replace(WEIGHT, lambda t: t.transpose(0, 2, 1).copy()), r"shape \(2, 3, 2\)"),
    "an extra tensor": (
        lambda _, tensors: tensors.update(extra=np.zeros(3, np.float32)),
        "the tensor 'extra' .*expected no tensor 'extra'",
    ),
    "another name": (_rename(WEIGHT, "../../evil"), "evil"),
    "a missing tensor": (lambda _, tensors: tensors.pop(WEIGHT), "expected at least|no tensor"),
    "values that are no numbers": (_replace(WEIGHT, lambda t: t * np.float32(np.nan)), "NaN or infinite"),
}


@pytest.mark.parametrize("kind", HOSTILE_TENSORS)
def test_forged_tensors_are_refused_in_one_sentence(kind: str, forge: Forge) -> None:
    change, reason = HOSTILE_TENSORS[kind]
    require_sentence(forge(change), reason)


def test_only_models_are_replaced(model: Path, tmp_path: Path) -> None:
    estimator = qr.load(model)
    before = (model / "model.json").read_bytes()
    (model / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(
        InvalidInputError, match=r"holds other files \('notes.txt'\).*Nothing was overwritten"
    ):
        estimator.save(model)
    assert (model / "model.json").read_bytes() == before
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "events.root").touch()
    with pytest.raises(InvalidInputError, match="holds other files"):
        estimator.save(tmp_path / "data")
    with pytest.raises(InvalidInputError, match="which is a file"):
        estimator.save(model / "model.json")
    with pytest.raises(InvalidInputError, match="does not exist; create it first"):
        estimator.save(tmp_path / "no" / "model")
    for bad in ("", "a\0b", None, 3):
        with pytest.raises(InvalidInputError, match="expected the path of a directory"):
            estimator.save(bad)  # type: ignore[arg-type]
    assert names(tmp_path) == ["data", "model"]


def test_an_older_model_is_replaced_also_when_damaged(model: Path, saved_model: Path) -> None:
    (model / "weights.safetensors").write_bytes(b"damaged")
    qr.load(saved_model).save(model, overwrite=True)
    assert isinstance(qr.load(model), qr.AutoRatio)


WRITE_MANY = """
import sys
import numpy as np
from quasiratio.model_files import write_bundle
for _ in range(15):
    write_bundle(sys.argv[1], {"number": int(sys.argv[2])}, {"x": np.full(1000, int(sys.argv[2]))})
"""


def test_reading_while_others_write(tmp_path: Path) -> None:
    """A reader gets what one of the writers wrote, never a mixture and never an error."""
    path = tmp_path / "bundle"
    write_bundle(path, {"number": 0}, {"x": np.full(1000, 0)})
    writers = [subprocess.Popen([sys.executable, "-c", WRITE_MANY, str(path), str(n)]) for n in (1, 2, 3)]
    documents: list[dict[str, Any]] = []

    def plan(document: dict[str, Any]) -> dict[str, TensorSpec]:
        documents.append(document)
        return {"x": TensorSpec("int64", (1000,))}

    try:
        while any(writer.poll() is None for writer in writers):
            time.sleep(0.001)  # leave the processor to the writers
            tensors = read_bundle(path, plan)
            assert set(tensors["x"]) == {documents[-1]["number"]}
    finally:
        for writer in writers:
            writer.kill()
        codes = [writer.wait() for writer in writers]
    assert codes == [0, 0, 0]
    assert set(read_bundle(path, plan)["x"]) == {documents[-1]["number"]}
    assert documents[-1]["number"] > 0
    assert names(tmp_path) == ["bundle"]


def test_tensors_and_documents_of_any_kind_are_written(tmp_path: Path) -> None:
    write_bundle(tmp_path / "bundle", {"a": [1, 2.5, "µ"]}, {"x": np.arange(6).reshape(2, 3).T})
    assert read_document(tmp_path / "bundle")["a"] == [1, 2.5, "µ"]


def test_a_document_beyond_the_limit_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "_MAX_JSON_BYTES", 1000)
    with pytest.raises(InvalidInputError, match=r"model\.json would have"):
        write_bundle(tmp_path / "bundle", {"a": "x" * 1000}, {})
    assert not list(tmp_path.iterdir())
