"""The configuration of a fit: files with line numbers, options on top, and anything at all as input."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st

import quasiratio as qr
from quasiratio.cli.configuration import fit_configuration, partial_configuration
from quasiratio.cli.fit_schema import OLD_NAMES, FitConfiguration, configuration_text
from quasiratio.errors import InvalidInputError
from quasiratio.estimators import SignResolvedRatio
from quasiratio.estimators.loading import estimator_by_name
from quasiratio.registry import ESTIMATORS, LOSSES

SAMPLES = "reference: a.root:events\ntarget: [b.root, c.root]\noutput: model\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "fit.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_holds_everything_and_options_override_it(tmp_path: Path) -> None:
    path = written(tmp_path, SAMPLES + "members: 4\nlearning-rate: 1e-3\nfeatures: pt\nseed:\n")
    configuration = fit_configuration(path, {"members": 8})
    assert configuration.reference == ["a.root:events"]
    assert configuration.target == ["b.root", "c.root"]
    assert (configuration.n_members, configuration.learning_rate, configuration.random_state) == (8, 1e-3, 0)
    assert configuration.features == ["pt"]


@pytest.mark.parametrize("method", ESTIMATORS.methods())
def test_every_method_takes_the_parameters_of_its_configuration(method: str) -> None:
    options = {
        "reference": "a.npz",
        "target": "b.npz",
        "output": "m",
        "method": method,
        "steps": 7,
        "members": 3,
    }
    configuration = fit_configuration(None, options)
    estimator = estimator_by_name(method, **configuration.estimator_parameters())
    parameters = estimator.get_params()
    assert (parameters["max_steps"], parameters["n_members"], parameters["random_state"]) == (7, 3, 0)
    assert type(estimator)(random_state=0, max_steps=7, n_members=3).get_params() == parameters


def test_the_defaults_shown_are_those_of_the_estimator() -> None:
    own = estimator_by_name("sign-resolved").get_params()
    for key in FitConfiguration.model_fields:
        if key in own and key != "random_state":
            assert FitConfiguration.model_fields[key].default == own[key], key


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("membrs: 3", "unknown key 'membrs' in line 4 of"),
        ("membrs: 3", "the nearest is 'n_members'"),
        ("\n# comment\nmembers: many", "Got members = 'many' in line 6 of"),
        ("members: many", "expected a whole number of at least 1"),
        ("members: true", "Got members = True in line 4"),
        ("members: 2.5", "Got members = 2.5 in line 4"),
        ("seed: -1", "expected a whole number from 0"),
        ("learning_rate: .inf", "expected a positive number"),
        ("learning_rate: fast", "expected a positive number"),
        ("validation_fraction: 1", "expected a number between 0 and 1"),
        ("hidden_layers: [64, wide]", "expected a list of widths"),
        ("method: magic", "expected one of sign-resolved, rosmm, direct, auto"),
        ("weight: 3", "expected an expression of columns"),
        ("weight: [w]", "expected an expression of columns"),
        ("features: {}", "expected names or patterns"),
        ("normalize: 1", "expected true or false"),
        ("loss: bce", "Got loss = 'bce' in line 4"),
        ("loss: bce", "expected the method 'direct'"),
        ("tune: coefficients", "expected one of none, all with this method"),
        ("output: again", "line 4 the key 'output' stands for the second time"),
        ("members: [", "line 4"),
        ("members: : 3", "line 4"),
        ("\tmembers: 3", "line 4"),
        ("features: [*_pt]", "patterns in quotes"),
        ("features: &a [*a, *a]", "an anchor (&), an alias (*)"),
        ("features: !!python/object/apply:os.system [ls]", "a tag (!)"),
        ("features: " + "[" * 40, "nested too deeply"),
        ("seed: 0x" + "f" * 9999, "Got seed = a very large number"),
        ("seed: 2024-99-99", "the value of 'seed' cannot be read"),
        ("? [a]\n: 1", "line 4 a key is no plain word"),
        ("null: 1", "unknown key 'null' in line 4"),
        ("---\nseed: 1", "line 4"),
        ("seed: \x01", "a character that YAML does not allow"),
    ],
)
def test_says_which_line_is_wrong(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        fit_configuration(written(tmp_path, SAMPLES + text), {})
    assert sentence in str(error.value)


def test_a_list_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="line 1 the file is no mapping"):
        fit_configuration(written(tmp_path, "- 1\n- 2\n"), {})


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\xff\xfe\x00", "no UTF-8 text"),
        (b"a" * 1_000_001, "more than a megabyte"),
        (None, "cannot be read"),
    ],
)
def test_refuses_what_is_no_text_file(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    path = tmp_path / "fit.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=sentence):
        fit_configuration(path, {})


def test_a_wrong_option_is_named_as_an_option(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"Got --batch-size 0; expected"):
        fit_configuration(written(tmp_path, SAMPLES + "batch_size: 100"), {"batch_size": 0})


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "Got no REFERENCE; expected a file"),
        ({"reference": "a.npz"}, "Got no TARGET; expected a file"),
        ({"reference": "a.npz", "target": "b.npz"}, "Got no -o OUTPUT; expected a path"),
    ],
)
def test_says_what_is_missing(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidInputError, match=sentence):
        fit_configuration(None, options)


def test_the_printed_configuration_is_valid_and_keeps_what_was_given(tmp_path: Path) -> None:
    given = {"features": ["pt", "jet_*"], "weight": "w * 2", "n_members": 8, "target": ["a.root", "b.root"]}
    text = configuration_text(partial_configuration(None, given))
    configuration = fit_configuration(written(tmp_path, text), {})
    assert {key: getattr(configuration, key) for key in given} == given
    for key in FitConfiguration.model_fields:
        assert f"\n{key}: " in text or f"\n# {key}: " in text


def test_every_suggestion_of_the_printed_configuration_is_valid(tmp_path: Path) -> None:
    keys = tuple(FitConfiguration.model_fields)
    lines = configuration_text({"method": "direct"}).splitlines()
    uncommented = [
        line.removeprefix("# ") if line.removeprefix("# ").startswith(keys) else line for line in lines
    ]
    text = "\n".join(line for line in uncommented if not line.startswith("sign-resolved, rosmm"))
    values = yaml.safe_load(text)
    assert set(values) == set(FitConfiguration.model_fields)
    text = text.replace("my_losses", "json")  # a module that is there
    fit_configuration(written(tmp_path, text), {})


@pytest.mark.parametrize(("old", "name"), OLD_NAMES.items())
def test_old_names_mean_those_of_python_and_both_are_refused(tmp_path: Path, old: str, name: str) -> None:
    for key in (old, name, name.replace("_", "-")):
        configuration = fit_configuration(written(tmp_path, f"{SAMPLES}{key}: 7"), {})
        assert getattr(configuration, name) == 7
        assert getattr(fit_configuration(written(tmp_path, SAMPLES), {key.replace("-", "_"): 7}), name) == 7
    assert getattr(fit_configuration(written(tmp_path, f"{SAMPLES}{old}: 7"), {name: 8}), name) == 8
    with pytest.raises(InvalidInputError, match=f"Got both '{old}' and '{name}' in lines 4 and 5 of"):
        fit_configuration(written(tmp_path, f"{SAMPLES}{old}: 7\n{name}: 7"), {})


def test_what_a_plugin_registers_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the plugin gives a loss of ours a second name."""
    (tmp_path / "plugin_of_a_test.py").write_text(
        "from quasiratio.registry import LOSSES\nLOSSES.register('mine', 'quasiratio.losses.bce:Bce')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    lines = SAMPLES + "method: direct\nloss: mine\n"
    with pytest.raises(InvalidInputError, match=r"Got loss = 'mine' in line 5 .* expected one of bce"):
        fit_configuration(written(tmp_path, lines), {})
    try:
        configuration = fit_configuration(written(tmp_path, lines + "plugins: plugin_of_a_test\n"), {})
        assert configuration.estimator_parameters()["loss"] == "mine"
        with pytest.raises(InvalidInputError, match=r"expected one of bce, .*, mine"):
            fit_configuration(written(tmp_path, SAMPLES + "method: direct\nloss: other\n"), {})
    finally:
        LOSSES.remove("mine")
    with pytest.raises(InvalidInputError, match="Got the plugin 'nowhere_to_be_found'"):
        fit_configuration(None, {"plugins": ["nowhere_to_be_found"]})


def test_a_wrong_value_is_not_printed() -> None:
    with pytest.raises(InvalidInputError, match="Got --members 0"):
        partial_configuration(None, {"members": 0})


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
TREES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
KEYS = st.sampled_from([*FitConfiguration.model_fields, "learning-rate", "membrs", "", "<<"]) | st.text(
    max_size=10
)


@given(st.dictionaries(KEYS, TREES, max_size=6))
def test_any_values_give_a_configuration_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, object]
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "fit.yaml"
    path.write_text(SAMPLES + yaml.safe_dump(values, allow_unicode=True), encoding="utf-8")
    message = ""
    try:
        configuration = fit_configuration(path, {})
        estimator_by_name(configuration.method, **configuration.estimator_parameters())
    except InvalidInputError as error:
        message = str(error)
    assert message == "" or "; expected" in message or " line " in message


@given(
    st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: (SAMPLES + text).encode("utf-8", "replace"))
)
def test_any_bytes_give_a_configuration_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "fit.yaml"
    path.write_bytes(content)
    message = "Got no error"
    try:
        fit_configuration(path, {})
    except InvalidInputError as error:
        message = str(error)
    assert message.startswith("Got ")


@dataclass(eq=False, repr=False)
class MineRatio(SignResolvedRatio):
    """An estimator of one's own; its annotations cannot all be resolved when the program runs."""

    largest: float = 1.0
    kept: OnlyForTypeCheckers | None = None  # type: ignore[name-defined]  # noqa: F821


class TestOnesOwn:
    @pytest.fixture(autouse=True)
    def registered(self) -> None:
        qr.register_estimator("mine", MineRatio)
        qr.register_activation("sine", torch.sin)

    def test_parameters_are_keys(self, tmp_path: Path) -> None:
        path = written(tmp_path, SAMPLES + "method: mine\nlargest: 2.5\ntune: all\n")
        parameters = fit_configuration(path, {}).estimator_parameters()
        assert (parameters["largest"], parameters["tune"]) == (2.5, "all")
        assert estimator_by_name("mine", **parameters).get_params()["largest"] == 2.5
        assert "\nlargest: 2.5" in configuration_text(partial_configuration(path, {}))

    @pytest.mark.parametrize(
        "text", ["method: direct\nlargest: 2.5", "largest: 2.5", "method: mine\nverbose: true"]
    )
    def test_of_others_they_are_unknown(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(InvalidInputError, match=r"unknown key '(largest|verbose)' in line"):
            fit_configuration(written(tmp_path, SAMPLES + text), {})

    def test_what_is_near_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInputError, match=r"unknown key 'largets'.*the nearest are 'largest'"):
            fit_configuration(written(tmp_path, SAMPLES + "method: mine\nlargets: 2.5"), {})

    def test_activations_are_joined_as_in_python(self, tmp_path: Path) -> None:
        path = written(tmp_path, SAMPLES + "activation: sine+relu\nn_members: 2\n")
        assert fit_configuration(path, {}).activation == "sine+relu"
        with pytest.raises(InvalidInputError, match="sine, or several joined by"):
            fit_configuration(written(tmp_path, SAMPLES + "activation: sine+magic"), {})


def test_a_tuning_loss_is_judged_by_the_estimator(tmp_path: Path) -> None:
    configuration = fit_configuration(written(tmp_path, SAMPLES + "tune: all\ntune_loss: revert\n"), {})
    assert configuration.estimator_parameters()["tune_loss"] == "revert"
    with pytest.raises(InvalidInputError, match="expected one of bce, mse"):
        fit_configuration(written(tmp_path, SAMPLES + "tune_loss: magic"), {})
