"""The registries: names without torch, one's own by a call, and no estimator's name where it does not belong."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor

import quasiratio as qr
from quasiratio import lookup
from quasiratio.errors import InvalidInputError, PluginWarning, QuasiratioWarning
from quasiratio.estimators import SingleModelRatio, TrainedModel, estimator_by_name
from quasiratio.losses import ExponentialLink, RatioLoss, loss_by_name
from quasiratio.networks import Activation
from quasiratio.ratios import OutputView, RatioModel, RatioModelDocument, RatioValues
from quasiratio.registry import ACTIVATIONS, DEFAULT_METHOD, ESTIMATORS, LOSSES, Registry, load_plugins
from quasiratio.training import RatioObjective

SOURCE = Path(qr.__file__).parent
QUICK: dict[str, Any] = {"max_steps": 15, "hidden_layers": (4,), "random_state": 0, "verbose": False}
CLASSES = {name: home.rpartition(":")[2] for name, home in ESTIMATORS.built_in.items()}

# Where a concrete estimator may be named: its own file, those that combine it by design, the studies and the
# demonstration, which compare them, and the packages that export it.
EVERYWHERE = {"__init__.py", "registry.py", "estimators/__init__.py", "workflows/demo.py"}
COMBINES = {
    "estimators/auto.py",
    "estimators/reweighter.py",
    "estimators/variation_factors.py",
    "estimators/reweighter_variations.py",
}
# Folds are looked into, and positive weights are made, by what is written for nothing else.
NO_METHODS = ("workflows/", "report/", "cli/")


def names_in_code(code: str) -> set[str]:
    """Return the names that code uses and the words of its messages, without those of docstrings and comments."""
    tree = ast.parse(code)
    said = {  # texts that stand alone: docstrings of modules, classes, functions and values
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
    }
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            found.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.alias):
            found.add(node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            found |= set(re.findall(r"\w+", node.value))
    return found


def test_names_are_found_in_messages_and_not_in_docstrings() -> None:
    assert "DirectRatio" in names_in_code('msg = f"Got {x}; use DirectRatio()."')
    assert "DirectRatio" in names_in_code("from quasiratio.estimators import DirectRatio")
    assert "DirectRatio" not in names_in_code('def f():\n    """As `DirectRatio` does."""  # DirectRatio')


def events(n: int = 600) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return (rng.normal(size=(n, 2)) + 0.5 * y[:, None]).astype(np.float32), y


def test_names_are_listed_without_torch() -> None:
    script = (
        "import sys; from quasiratio.registry import ESTIMATORS, LOSSES, ACTIVATIONS;"
        "ESTIMATORS.methods(), list(LOSSES), list(ACTIVATIONS), ESTIMATORS.class_names();"
        "sys.exit(any(name in sys.modules for name in ('torch', 'sklearn', 'pydantic')))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize("registry", [ESTIMATORS, LOSSES, ACTIVATIONS], ids=lambda one: one.what)
def test_what_is_registered_is_there(registry: Registry) -> None:
    for name, home in registry.built_in.items():
        module, _, attribute = home.partition(":")
        assert (
            getattr(sys.modules.get(module) or __import__(module, fromlist=["_"]), attribute)
            is registry[name]
        )
    assert list(registry)[: len(registry.built_in)] == list(registry.built_in)
    with pytest.raises(KeyError):
        registry["nothing"]
    with pytest.raises(InvalidInputError, match="'nothing'; expected one of"):
        registry.require("nothing")


def test_losses_have_the_names_they_are_registered_by() -> None:
    assert all(make().name == name for name, make in LOSSES.items())


@pytest.mark.parametrize(("name", "class_name"), CLASSES.items())
def test_no_estimator_is_named_where_it_does_not_belong(name: str, class_name: str) -> None:
    """Else a new one would have to be added there as well."""
    own = ESTIMATORS.built_in[name].partition(":")[0].removeprefix("quasiratio.").replace(".", "/") + ".py"
    elsewhere = ("studies/",) if name in ESTIMATORS.methods() else ("studies/", *NO_METHODS)
    files = {str(path.relative_to(SOURCE)): path for path in SOURCE.rglob("*.py")}
    found = {
        file for file, path in files.items() if class_name in names_in_code(path.read_text(encoding="utf-8"))
    }
    assert {file for file in found if not file.startswith(elsewhere)} <= {own} | COMBINES | EVERYWHERE


def test_model_files_know_no_model() -> None:
    for path in (SOURCE / "model_files").glob("*.py"):
        imported = {
            node.module
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module
        }
        ours = {name for name in imported if name.startswith("quasiratio.")}
        assert all(
            name.split(".")[1] in {"model_files", "errors", "atomic_files", "wording"} for name in ours
        ), path


def test_no_private_method_is_called_from_another_module() -> None:
    """Within estimators: what `x._name` names is defined in the same file."""
    for path in (SOURCE / "estimators").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        defined |= {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
        used = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and node.attr.startswith("_")
            and not node.attr.startswith("__")
        }
        assert used - defined - {"_asdict", "_replace"} == set(), path


def test_messages_recommend_what_accepts_any_reference() -> None:
    assert set(ESTIMATORS.any_reference) <= set(ESTIMATORS.methods())
    assert all(ESTIMATORS[name]().accepts_any_reference for name in ESTIMATORS.any_reference)
    assert not ESTIMATORS["direct"](loss="bce").accepts_any_reference
    assert DEFAULT_METHOD in ESTIMATORS.methods()


class TestRegistering:
    def test_a_taken_name_is_refused(self) -> None:
        with pytest.raises(InvalidInputError, match="'bce' for one's own loss, which is taken"):
            LOSSES.register("bce", Halved)
        with pytest.raises(InvalidInputError, match="'direct' has in model files"):
            qr.register_estimator("other", type("DirectRatio", (), {}))
        with pytest.raises(InvalidInputError, match="expected a word"):
            LOSSES.register("", Halved)
        with pytest.raises(InvalidInputError, match="without a name"):
            qr.register_loss(object)
        with pytest.raises(InvalidInputError, match=r"without \+"):
            qr.register_activation("a+b", torch.sin)

    def test_the_same_once_more_is_no_error(self) -> None:
        qr.register_loss(Halved)
        qr.register_loss(Halved)
        assert "halved" in LOSSES

    def test_an_entry_point_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        offered = {"halved": f"{__name__}:Halved"}
        monkeypatch.setitem(sys.modules, __name__, sys.modules[Halved.__module__])
        monkeypatch.setattr(lookup, "_offered", lambda group: offered if group == "quasiratio.losses" else {})
        assert "halved" in LOSSES
        assert loss_by_name("halved") == Halved()

    def test_an_entry_point_replaces_nothing_of_ours(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Neither by its name nor by the name of its class, which stands in model files."""
        offered = {"direct": "foreign:Other", "other": "foreign:DirectRatio", "third": "foreign:Third"}
        monkeypatch.setattr(lookup, "_offered", lambda group: offered if group == ESTIMATORS.group else {})
        lookup._left_out.cache_clear()
        with pytest.warns(PluginWarning) as told:
            names = list(ESTIMATORS)
        assert names == [*ESTIMATORS.built_in, "third"]
        assert {str(one.message).partition(":")[0] for one in told} == {
            "Left out the method 'direct' that a package offers as 'foreign",
            "Left out the method 'other' that a package offers as 'foreign",
        }
        assert ESTIMATORS["direct"] is ESTIMATORS.of_kind("DirectRatio") is qr.DirectRatio
        assert ESTIMATORS.class_names()["Third"] == "third"
        assert "Other" not in ESTIMATORS.class_names()
        with pytest.raises(
            InvalidInputError, match="'third', which stands for 'foreign:Third' and cannot be imported"
        ):
            ESTIMATORS["third"]

    @pytest.mark.parametrize(
        ("name", "content", "sentence"),
        [
            ("", None, "Got the plugin ''; expected the name of a module"),
            (".x", None, "Got the plugin '.x'; expected the name of a module"),
            ("a plugin", None, "Got the plugin 'a plugin'; expected the name of a module"),
            ("plugin_with_a_slip", "def f(:", r"cannot be imported \(SyntaxError: .*Correct the module"),
            ("plugin_that_raises", "1 / 0", r"cannot be imported \(ZeroDivisionError: division by zero\)"),
            (
                "plugin_of_a_taken_name",
                "import quasiratio as qr\nqr.register_activation('silu', len)",
                "which is taken",
            ),
            (
                "plugin_with_imports",
                "import nothing_like_that",
                "No module named 'nothing_like_that'.*Install it",
            ),
        ],
    )
    def test_plugins_that_fail_are_one_sentence(
        self, name: str, content: str | None, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if content is not None:
            (tmp_path / f"{name}.py").write_text(content, encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        with pytest.raises(InvalidInputError, match=sentence) as error:
            load_plugins([name])
        assert "\n" not in str(error.value)

    def test_plugins_are_imported(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "a_plugin_of_mine.py").write_text(
            "import torch, quasiratio as qr\nqr.register_activation('sine', torch.sin)\n", encoding="utf-8"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        load_plugins(["a_plugin_of_mine"])
        assert ACTIVATIONS["sine"] is torch.sin
        with pytest.raises(InvalidInputError, match="'no_such_plugin', which cannot be imported"):
            load_plugins(["no_such_plugin"])


@dataclass(frozen=True)
class Halved(RatioLoss):
    """A loss of one's own, in one place."""

    factor: float = 0.5

    name: ClassVar[str] = "halved"
    link: ClassVar[ExponentialLink] = ExponentialLink()
    requires_positive: ClassVar[tuple[tuple[float, float], ...]] = ((1.0, 0.0), (0.0, 1.0))

    def reference(self, raw: Tensor) -> Tensor:
        return self.factor * torch.nn.functional.softplus(raw)

    def target(self, raw: Tensor) -> Tensor:
        return self.factor * torch.nn.functional.softplus(-raw)


class PlainDocument(RatioModelDocument):
    kind: Literal["plain"]
    power: float


class PlainModel(RatioModel):
    """A model of one's own: the exponential of the output, to a power."""

    document_type: ClassVar[type[RatioModelDocument]] = PlainDocument

    def __init__(self, scaling: Any, network: Any, n_members: int, power: float) -> None:
        super().__init__(scaling, network, n_members)
        self.power = power

    def member_values(self, outputs: Tensor) -> RatioValues:
        return RatioValues((self.power * outputs[..., 0]).exp(), None)

    def sensitivity(self, outputs: Tensor) -> Tensor:
        return self.member_values(outputs).ratio * (1.0 + outputs[..., 0].abs())

    def average(self, outputs: Tensor) -> Tensor:
        return outputs.mean(dim=0, keepdim=True)

    def document_fields(self) -> dict[str, Any]:
        return {"kind": "plain", "power": self.power}

    @classmethod
    def from_document(cls, document: Any, stored: Any) -> PlainModel:
        return cls(stored.scaling, stored.network, document.n_members, document.power)

    def add_onnx_members(self, graph: Any, outputs: str, *, n_members: int) -> str:  # noqa: ARG002
        return str(
            graph.add("Exp", graph.add("Mul", graph.add("Squeeze", outputs, graph.axes(-1)), self.power))
        )

    def add_onnx_average(self, graph: Any, outputs: str) -> str:
        return str(graph.add("ReduceMean", outputs, graph.axes(0), keepdims=1))


@dataclass(eq=False, repr=False)
class PlainRatio(SingleModelRatio):
    """An estimator of one's own, with a parameter of its own and a loss."""

    power: float = 1.0
    training_loss: str | RatioLoss = "bce"

    model_type: ClassVar[type[RatioModel]] = PlainModel

    def train_model(self, fit: Any, floors: Any) -> TrainedModel:  # noqa: ARG002
        model = PlainModel(fit.scaling, fit.network(1), fit.n_members, self.power)
        training, validation = fit.signed_pools()
        objective = RatioObjective(loss_by_name(self.training_loss))
        history, _ = fit.train(OutputView(model), objective, [training], [validation])
        return TrainedModel(model, (history,))

    def take_from_model(self, model: Any) -> None:
        self.power_ = model.power


@dataclass(eq=False, repr=False)
class RenamedRatio(qr.SignResolvedRatio):
    """A subclass of one of ours that changes a default."""

    tune: Literal["none", "all"] = "all"


@pytest.mark.filterwarnings("ignore::quasiratio.errors.QuasiratioWarning")
class TestOnesOwn:
    """Nothing but a call makes one's own a full member; this file is the one file."""

    def test_loss(self, tmp_path: Path) -> None:
        X, y = events()
        qr.register_loss(Halved)
        model = qr.DirectRatio(loss="halved", n_members=2, **QUICK).fit(X, y)
        self.require_round_trip(model, X, tmp_path)
        given = qr.DirectRatio(loss=Halved(0.25), **QUICK).fit(X, y)
        given.save(tmp_path / "given")
        assert qr.load(tmp_path / "given").loss_ == Halved(0.25)

    @pytest.mark.parametrize("n_members", [1, 3])
    def test_estimator_with_a_model(self, n_members: int, tmp_path: Path) -> None:
        X, y = events()
        qr.register_estimator("plain", PlainRatio)
        assert "plain" in ESTIMATORS.methods()
        model: Any = estimator_by_name("plain", power=1.5, n_members=n_members, **QUICK).fit(X, y)
        self.require_round_trip(model, X, tmp_path)
        assert model.power_ == 1.5
        content = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))
        assert content["estimator"]["kind"] == "PlainRatio"
        assert content["estimator"]["parameters"]["power"] == 1.5
        with pytest.raises(InvalidInputError, match="no such option"):
            estimator_by_name("plain", loss="bce")

    def test_its_parameters_may_be_losses(self, tmp_path: Path) -> None:
        X, y = events()
        qr.register_estimator("plain", PlainRatio)
        qr.register_loss(Halved)
        model = PlainRatio(training_loss=Halved(0.25), **QUICK).fit(X, y)
        model.save(tmp_path / "model")
        assert qr.load(tmp_path / "model", expected=PlainRatio).training_loss == Halved(0.25)

    def test_it_is_a_part_of_others(self, tmp_path: Path) -> None:
        X, y = events()
        qr.register_estimator("plain", PlainRatio)
        own = PlainRatio(**QUICK)
        stack = qr.AutoRatio(candidates={"own": own, "ours": qr.SignResolvedRatio(**QUICK)}, **QUICK).fit(
            X, y
        )
        self.require_round_trip(stack, X, tmp_path)
        folded = qr.Reweighter(own, n_folds=2).fit(X[y == 0], X[y == 1])
        folded.save(tmp_path / "folds")
        again = qr.load(tmp_path / "folds", expected=qr.Reweighter)
        np.testing.assert_array_equal(again.predict_weights(X), folded.predict_weights(X))
        assert isinstance(again.ratio, PlainRatio)

    def test_subclass_of_one_of_ours(self, tmp_path: Path) -> None:
        X, y = events()
        model = RenamedRatio(**QUICK).fit(X, y)
        with pytest.raises(InvalidInputError, match="class RenamedRatio, which model files do not know"):
            model.save(tmp_path / "model")
        qr.register_estimator("renamed", RenamedRatio)
        self.require_round_trip(model, X, tmp_path)
        ESTIMATORS.remove("renamed")
        with pytest.raises(InvalidInputError, match="class RenamedRatio, which model files do not know"):
            qr.load(tmp_path / "model")

    def test_activation(self, tmp_path: Path) -> None:
        X, y = events()
        qr.register_activation("sine", Activation(torch.sin, add_onnx=lambda graph, x: graph.add("Sin", x)))
        qr.register_activation("bare", torch.nn.functional.softsign)
        model = qr.DirectRatio(activation="sine+silu", n_members=2, **QUICK).fit(X, y)
        self.require_round_trip(model, X, tmp_path)
        bare = qr.DirectRatio(activation="bare", **QUICK).fit(X, y)
        with pytest.raises(InvalidInputError, match="activation 'bare', which is your own code"):
            bare.export_onnx(tmp_path / "bare.onnx")

    def test_another_class_than_expected_is_refused(self, tmp_path: Path) -> None:
        X, y = events()
        qr.DirectRatio(**QUICK).fit(X, y).save(tmp_path / "model")
        with pytest.raises(
            InvalidInputError, match="of the class DirectRatio; expected one of the class Reweighter"
        ):
            qr.load(tmp_path / "model", expected=qr.Reweighter)

    @staticmethod
    def require_round_trip(model: Any, X: Any, tmp_path: Path) -> None:
        model.save(tmp_path / "model")
        again: Any = qr.load(tmp_path / "model")
        assert type(again) is type(model)
        assert again.get_params(deep=False).keys() == model.get_params(deep=False).keys()
        np.testing.assert_array_equal(again.predict_members(X), model.predict_members(X))
        model.export_onnx(tmp_path / "model.onnx")
        session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
        np.testing.assert_allclose(
            session.run(["ratio"], {"features": X})[0], model.predict_ratio(X), rtol=2e-6
        )


def test_warnings_carry_no_numbers() -> None:
    """What a caller needs is returned; a warning is read by people."""
    kinds = [QuasiratioWarning, *QuasiratioWarning.__subclasses__()]
    own = {name for kind in kinds for name in vars(kind) if not name.startswith("__")}
    assert own == set()
