"""Points and weights of EFT samples: names, cards, YAML; vectors that are missing, empty or inconsistent."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from quasiratio.errors import AssumedValueWarning, InvalidInputError
from quasiratio.io import open_table
from quasiratio.io.weight_points import point_of_name, points_of_names, read_points
from quasiratio.io.weight_vectors import read_weight_vectors


@pytest.mark.parametrize(
    ("name", "point"),
    [
        ("EFTrwgt5_ctG_0.1_cQe1_-3.2e-1", {"ctG": 0.1, "cQe1": -0.32}),
        ("cHW_0p_cHB_m1p5", {"cHW": 0.0, "cHB": -1.5}),
        ("rwgt3_C_H_3p0_C_uH_m3p0", {"C_H": 3.0, "C_uH": -3.0}),
        ("rwgt0_sm", {}),
        ("EFTrwgt183_SM", {}),
        ("w_c3_2", {"c3": 2.0}),
        ("LHEWeight_SM", {}),
        ("LHEWeight_cHW_0p1", {"cHW": 0.1}),
        ("mg_reweight_3_cHW_m2", {"cHW": -2.0}),
    ],
)
def test_names_tell_their_points(name: str, point: dict[str, float]) -> None:
    assert point_of_name(name) == point
    assert point_of_name(name, ["ctG", "cQe1", "cHW", "cHB", "C_H", "C_uH", "c3"]) == point


@pytest.mark.parametrize(
    "name", ["pt", "EFTrwgt5_ctG", "EFTrwgt5_ctG_abc", "cHW_1_2_3x", "a_1_a_2", "rwgt_1", "mg_reweight_1"]
)
def test_names_that_tell_nothing_are_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"names and values|a parameter twice"):
        point_of_name(name)


def test_the_order_of_the_columns_is_kept() -> None:
    names = ["eta", "EFTrwgt2_b_1_a_2", "EFTrwgt1_a_3", "EFTrwgt0_SM"]
    found = points_of_names(names, "EFTrwgt*", ["a", "b"])
    assert found.columns == tuple(names[1:])
    np.testing.assert_array_equal(found.points, [[2, 1], [3, 0], [0, 0]])
    with pytest.raises(InvalidInputError, match="fits none"):
        points_of_names(names, "LHE*")


def test_a_reweight_card(tmp_path: Path) -> None:
    card = tmp_path / "reweight_card.dat"
    card.write_text(
        "change rwgt_dir rwgt\n# comment\nlaunch --rwgt_name=EFTrwgt0\n set ctG 0.5 # two\n set param_card cpt -1\n"
        "launch --rwgt_name=EFTrwgt1\n  set param_card DIM6 7 2.5\n"
    )
    with pytest.warns(
        AssumedValueWarning, match=r"ctG, cpt, DIM6_7 in 2 of its 2 points; they are taken for zero"
    ):
        found = read_points(card)
    assert found.parameters == ("ctG", "cpt", "DIM6_7")
    np.testing.assert_array_equal(found.points, [[0.5, -1, 0], [0, 0, 2.5]])
    card.write_text("launch\n set ctG many\n")
    with pytest.raises(InvalidInputError, match="line 2"):
        read_points(card)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("launch\n set 5\n", "line 2 is 'set 5'; expected 'set NAME VALUE'"),
        ("set ctG 1\nlaunch\n set ctG 2\n", "line 1, 'set ctG 1', stands before the first 'launch'"),
        ("launch\n set ctG 1\n set ctG 2\n", "line 3 sets 'ctG' again"),
        ("launch\n set ctG nan\n", "finite number"),
        ("# nothing\n", "without a line 'launch'"),
        ("launch\n set ctG 1\n set CTG 2\n", "line 3 sets 'ctG' again"),
        ("launch\n ./cards/param_card.dat\n", "line 2 takes its values from another card"),
    ],
)
def test_bad_cards(text: str, complaint: str, tmp_path: Path) -> None:
    card = tmp_path / "reweight_card.dat"
    card.write_text(text)
    with pytest.raises(InvalidInputError, match=complaint):
        read_points(card)


def test_names_in_a_card_are_the_same_in_capitals_as_madgraph_takes_them(tmp_path: Path) -> None:
    card = tmp_path / "reweight_card.dat"
    card.write_text("launch\n set ctG 1\nlaunch\n set CTG 2\n")
    found = read_points(card)
    assert found.parameters == ("ctG",)
    np.testing.assert_array_equal(found.points, [[1], [2]])


def test_what_has_one_value_at_all_points_is_left_out_and_said(tmp_path: Path) -> None:
    card = tmp_path / "reweight_card.dat"
    card.write_text("launch\n set MT 172.5\n set ctG 1\nlaunch\n set MT 172.5\n set ctG 2\n")
    with pytest.warns(AssumedValueWarning, match=r"all have MT = 172\.5; .* holds at that value"):
        found = read_points(card, drop_fixed=True)
    assert found.parameters == ("ctG",)
    np.testing.assert_array_equal(found.points, [[1], [2]])
    assert read_points(card).parameters == ("MT", "ctG")
    names = ["rwgt0_a_0_b_3", "rwgt1_a_1_b_3"]
    with pytest.warns(AssumedValueWarning, match="all have b = 3"):
        assert points_of_names(names, "rwgt*").parameters == ("a",)
    assert points_of_names(names, "rwgt*", ["a", "b"]).parameters == ("a", "b")
    (tmp_path / "points.yaml").write_text("- {a: 0, b: 3}\n- {a: 1, b: 3}\n")
    assert read_points(tmp_path / "points.yaml", drop_fixed=True).parameters == ("a", "b")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("points: []", "no list of points"),
        ("points: [[1, 2]]", "without names"),
        ("parameters: [a]\npoints: [[1, 2]]", "expected 1 numbers"),
        ("- {a: x}", "expected finite numbers"),
        ("points: [{a: 1}]\nextra: 3", "entries extra"),
        ("points: [{a: 1}]\ncolumns: [u, v]", "not one for each"),
        ("points: [", "no YAML"),
        ("points: [{a: 1}]\nreference: 3", "expected names and values"),
        ("points: [{a: 1}]\nreference: {b: 3}", "finite numbers of the parameters a"),
        ("points: [{a: 1}]\nbranch: [x]", "expected the name of one column"),
        ("points: [{a: 1}]\nbranch: x\ncolumns: [y]", "expected one of them"),
        ("- {a: .nan}", "expected finite numbers"),
        ("- {a: .inf}", "expected finite numbers"),
        ("- {a: true}", "expected finite numbers"),
        ("- {a: 1, a: 2}", "'a' twice in line 1"),
        ("parameters: [a, a]\npoints: [[1, 2]]", "'a' twice among the parameters"),
        ("points: [{a: 1}, {a: 2}]\ncolumns: [u, u]", "'u' twice among the columns"),
        ("parameters: [a, 3]\npoints: [[1, 2]]", "expected a list of names"),
    ],
)
def test_bad_yaml(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "points.yaml"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=complaint):
        read_points(path)


def test_yaml_in_both_forms(tmp_path: Path) -> None:
    path = tmp_path / "points.yaml"
    path.write_text("- {}\n- {a: 1}\n- {a: -1, b: 2}\n")
    np.testing.assert_array_equal(read_points(path).points, [[0, 0], [1, 0], [-1, 2]])
    path.write_text(
        "parameters: [b, a]\npoints: [[0, 0], {a: 3}]\nbranch: LHEReweightingWeight\nreference: {a: 1}\n"
    )
    found = read_points(path)
    np.testing.assert_array_equal(found.points, [[0, 0], [0, 3]])
    assert found.branch == "LHEReweightingWeight"
    assert found.reference == {"a": 1}


def test_vectors_that_are_empty_or_too_short_are_counted(tmp_path: Path) -> None:
    uproot, ak = pytest.importorskip("uproot"), pytest.importorskip("awkward")
    with uproot.recreate(tmp_path / "nano.root") as file:
        file["Events"] = {
            "pt": np.arange(4.0),
            "W": ak.Array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]),
        }
        file["Bad"] = {"pt": np.arange(4.0), "W": ak.Array([[1.0, 2.0], [], [5.0], [7.0, 8.0]])}
    good = open_table(f"{tmp_path}/nano.root:Events")
    np.testing.assert_array_equal(read_weight_vectors(good, 2, branch="W"), np.arange(1.0, 9.0).reshape(4, 2))
    with pytest.raises(InvalidInputError, match=r"4 of 4 events .* other than 3 weights"):
        read_weight_vectors(good, 3, branch="W")
    with pytest.raises(InvalidInputError, match=r"2 of 4 events .* \(1 with none\), such as number 1, 2"):
        read_weight_vectors(open_table(f"{tmp_path}/nano.root:Bad"), 2, branch="W")
    with pytest.raises(InvalidInputError, match="does not exist"):
        read_weight_vectors(good, 2, branch="V")
    with pytest.raises(InvalidInputError, match="expected a vector"):
        read_weight_vectors(good, 2, branch="pt")


def test_weights_with_a_dot_in_an_rntuple(tmp_path: Path) -> None:
    uproot, ak = pytest.importorskip("uproot"), pytest.importorskip("awkward")
    names = ["EFTrwgt0_SM", "EFTrwgt5_ctG_0.1", "EFTrwgt6_ctG_0.15"]
    columns = {name: np.arange(3.0) + number for number, name in enumerate(names)}
    with uproot.recreate(tmp_path / "a.root") as file:
        file.mkrntuple("Events", ak.Array({**columns, "pt": np.ones(3)}))
    table = open_table(f"{tmp_path}/a.root:Events")
    found = points_of_names(table.numeric_columns(), "EFTrwgt*")
    np.testing.assert_array_equal(found.points[:, 0], [0.0, 0.1, 0.15])
    weights = read_weight_vectors(table, 3, columns=found.columns)
    np.testing.assert_array_equal(weights, np.column_stack(list(columns.values())))


BOMB = "a: &a [x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        f"- {{a: {'9' * 400}}}",
        f"- {{a: {'9' * 5000}}}",
        f"- {{a: 0x{'f' * 5000}}}",
        "- {a: 2020-99-99}",
        "!!python/object/apply:os.system [touch pwned]",
        "[" * 3000,
        BOMB + "points: [*i]",
        BOMB + "parameters: *i\npoints: [[1]]",
    ],
    ids=["large", "huge", "hexadecimal", "a date", "code", "deep", "a bomb of points", "a bomb of names"],
)
def test_hostile_points_are_one_short_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "points.yaml").write_text(text)
    with pytest.raises(InvalidInputError, match=r"points\.yaml'.*expected") as caught:
        read_points(tmp_path / "points.yaml")
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


def test_points_are_not_read_from_pipes_and_devices(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for path in (tmp_path / "pipe.yaml", Path("/dev/zero"), tmp_path):
        with pytest.raises(
            InvalidInputError, match="which is no regular file; expected a YAML file or a reweight card"
        ):
            read_points(path)
    with pytest.raises(InvalidInputError, match="no file can have this name"):
        read_points("a\0.yaml")
