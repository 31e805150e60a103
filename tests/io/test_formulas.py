"""Features as formulas: names, functions, jagged columns and fills, from every format that has lists."""

from __future__ import annotations

from pathlib import Path

import awkward as ak
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import uproot

from quasiratio.errors import InvalidInputError
from quasiratio.io import open_table, parse_expression, parse_features, read_sample
from quasiratio.io.formulas import split_name

JETS = [[50.0, 20.0], [], [30.0], [70.0, 60.0, 25.0]]
PHI = np.array([3.0, -3.0, 0.5, 1.0])
ETA = np.array([0.5, -1.0, 2.0, 0.0])


@pytest.fixture(params=[".root", ".parquet"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a file with four events, of which the second has no jet."""
    target = str(tmp_path / f"events{request.param}")
    if request.param == ".root":
        with uproot.recreate(target) as file:
            file.mktree("events", {"jet_pt": "var * float64", "phi": "f8", "eta": "f8"})
            file["events"].extend({"jet_pt": ak.Array(JETS), "phi": PHI, "eta": ETA})
    else:
        pq.write_table(pa.table({"jet_pt": JETS, "phi": PHI, "eta": ETA}), target)
    return target


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fill(jet_pt[0], 0)", [50, 0, 30, 70]),
        ("fill(jet_pt[1], -1)", [20, -1, -1, 60]),
        ("len(jet_pt)", [2, 0, 1, 3]),
        ("sum(jet_pt)", [70, 0, 30, 155]),
        ("fill(max(jet_pt), 0)", [50, 0, 30, 70]),
        ("fill(min(jet_pt), 0)", [20, 0, 30, 25]),
        ("ht=sum(jet_pt) / 1000", [0.07, 0, 0.03, 0.155]),
        ("fill(jet_pt[0] + jet_pt[1], 0)", [70, 0, 0, 130]),
        ("fill(jet_pt[0], 0) + fill(jet_pt[1], 0)", [70, 0, 30, 130]),
        ("max(len(jet_pt), 1)", [2, 1, 1, 3]),
    ],
)
def test_elements_and_reductions(path: str, text: str, expected: list[float]) -> None:
    sample = read_sample(path, features=["eta", text])
    np.testing.assert_allclose(sample.features[:, 1], expected, rtol=1e-6)


def test_a_fill_is_noted_with_the_sample(path: str) -> None:
    sample = read_sample(path, features=["j1=fill(jet_pt[0], -5)", "n=len(jet_pt)"])
    assert sample.names == ("j1", "n")
    assert sample.fill == {"j1": -5.0}
    assert sample[:2].fill == {"j1": -5.0}


def test_reductions_in_weights_and_selections(path: str) -> None:
    sample = read_sample(path, features=["eta"], weight="1 + len(jet_pt)", selection="len(jet_pt) > 0")
    assert sample.weights.tolist() == [3.0, 2.0, 4.0]


def test_a_missing_element_without_a_fill_is_refused_with_the_count(path: str) -> None:
    for text in ("jet_pt[0]", "x=jet_pt[0]/1000", "x=fill(jet_pt[0], 0)*jet_pt[0]", "x=2*max(jet_pt)"):
        with pytest.raises(InvalidInputError, match=r"1 of 4 events .*'fill\("):
            read_sample(path, features=[text])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("deltaphi(phi, -phi)", (2 * PHI + np.pi) % (2 * np.pi) - np.pi),
        ("deltar(eta, phi, 0, 0)", np.hypot(ETA, PHI)),
        ("atan2(sin(phi), cos(phi))", PHI),
        ("sinh(eta) + cosh(eta) - exp(eta) + tanh(eta)", np.tanh(ETA)),
        ("where((eta > 0) & ~(phi > 5), eta, -eta)", np.abs(ETA)),
    ],
)
def test_functions(text: str, expected: list[float]) -> None:
    np.testing.assert_allclose(
        parse_expression(text).evaluate({"phi": PHI, "eta": ETA}),
        expected,
        atol=1e-12,
    )


def test_names_patterns_columns_and_formulas(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=[1.0, 2.0], b=[3.0, 4.0], **{"odd name": [1.0, 1.0]})  # type: ignore[arg-type]
    table = open_table(tmp_path / "a.npz")
    entries = ["a*b", "x=a/b", "odd*", "`odd name` + a", "b"]
    features = parse_features(entries, [table])
    assert [feature.name for feature in features] == ["a*b", "x", "odd name", "`odd name` + a", "b"]
    assert read_sample(table, features=entries).features[0].tolist() == [
        3.0,
        np.float32(1 / 3),
        1.0,
        2.0,
        3.0,
    ]
    with pytest.raises(InvalidInputError, match="more than once"):
        parse_features(["x=a", "x=b"], [table])


def test_the_name_is_split_off_before_parsing() -> None:
    assert split_name("m = a == b") == ("m", "a == b")
    assert split_name("a >= b") == (None, "a >= b")
    assert split_name("`m [GeV]`=a") == ("m [GeV]", "a")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x=fill(a, b)", "no number"),
        ("x=fill(a, True)", "no number"),
        ("x=fill(a)", "1 arguments instead of 2"),
        ("x=", "without a formula"),
        ("x=3", "uses no column"),
        ("x=sum(a + 1)", "jagged column"),
        ("x=len(a)", "without elements"),
        ("x=a +", "error"),
        ("x=nosuch*2", "'nosuch', which does not exist"),
        ("x=nosuch(a)", "no function"),
    ],
)
def test_bad_formulas_are_refused_in_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    np.savez(tmp_path / "a.npz", a=[1.0, 2.0], b=[3.0, 4.0])
    with pytest.raises(InvalidInputError, match=message) as caught:
        read_sample(tmp_path / "a.npz", features=[text])
    assert "\n" not in str(caught.value)


def test_a_single_value_beyond_float32_is_still_a_mistake(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.append(np.linspace(0.0, 1.0, 1000), 1e39))
    with pytest.raises(InvalidInputError, match=r"beyond float32 in 'x' \(1 events\)"):
        read_sample(tmp_path / "a.npz")


def test_large_offsets_keep_their_digits(tmp_path: Path) -> None:
    seconds = np.linspace(0.0, 60.0, 1000)
    np.savez(tmp_path / "a.npz", t=1.7e9 + seconds, tiny=1e-300 * (1 + seconds), usual=seconds)
    sample = read_sample(tmp_path / "a.npz", features=["t", "usual"])
    assert sample.features.dtype == np.float64
    np.testing.assert_allclose(sample.features[:, 0] - 1.7e9, seconds, atol=1e-6)
    assert read_sample(tmp_path / "a.npz", features=["tiny"]).features.min() > 0
    assert read_sample(tmp_path / "a.npz", features=["usual"]).features.dtype == np.float32


def test_inverse_functions_are_known() -> None:
    columns = {"x": np.array([0.3])}
    names = ("asin", "acos", "atan", "asinh", "atanh")
    for name in names:
        expected = getattr(np, f"arc{name[1:]}")(0.3)
        assert parse_expression(f"{name}(x)").evaluate(columns)[0] == expected
    assert parse_expression("acosh(1 + x)").evaluate(columns)[0] == np.arccosh(1.3)


def test_a_fill_beyond_all_numbers_is_the_formulas_fault(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", pt=[1.0, np.nan])
    with pytest.raises(InvalidInputError, match="the number is beyond the range of floats"):
        read_sample(tmp_path / "a.npz", features=["fill(pt, 1e400)"])


def test_elements_from_the_end_are_called_by_their_name(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", pt=[1.0])
    with pytest.raises(InvalidInputError, match=r"Got the element 'jet_pt\[-1\]'"):
        read_sample(tmp_path / "a.npz", features=["jet_pt[-1]"])
