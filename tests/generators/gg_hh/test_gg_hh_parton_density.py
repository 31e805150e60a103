"""The grid reader: against Pythia's own, sum rules, and what it refuses."""

from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from quasiratio.errors import InvalidInputError, MissingExtraError
from quasiratio.generators.gg_hh import PartonDensity, load_parton_density, parton_density


@pytest.fixture(scope="module")
def density() -> PartonDensity:
    return load_parton_density()


def test_gluon_agrees_with_pythias_reader(density: PartonDensity) -> None:
    import pythia8mc

    pythia = pythia8mc.Pythia("", False)
    grid = f"LHAGrid1:{parton_density.BUNDLED_GRID}"
    for line in ("Print:quiet = on", "HardQCD:all = on", "PhaseSpace:pTHatMin = 100", f"PDF:pSet = {grid}"):
        assert pythia.readString(line)
    assert pythia.init()
    reader = pythia.getPDFPtr(2212)
    rng = np.random.default_rng(3)
    x = np.exp(rng.uniform(np.log(3e-4), np.log(0.4), 2000))
    q = np.exp(rng.uniform(np.log(125.0), np.log(1500.0), 2000))
    theirs = np.array([reader.xf(21, float(a), float(b * b)) for a, b in zip(x, q, strict=True)])
    difference = np.abs(density.gluon(x, q) / theirs - 1.0)
    assert np.mean(difference) < 2e-5
    assert np.max(difference) < 1e-4  # a smooth spline against Pythia's piecewise polynomials


def test_nodes_are_reproduced_and_momentum_is_conserved(density: PartonDensity) -> None:
    block = density.blocks[-1]
    column = block.flavours.index(2)
    np.testing.assert_allclose(
        density.xf(2, block.x[40:120], block.q[12]), block.values[40:120, 12, column], rtol=1e-10
    )
    v, w = np.polynomial.legendre.leggauss(400)
    log_x = 0.5 * (v - 1.0) * np.log(1e9)
    total = sum(density.xf(flavour, np.exp(log_x), 100.0) for flavour in block.flavours)
    momentum = np.sum(0.5 * w * np.log(1e9) * np.exp(log_x) * total)
    assert momentum == pytest.approx(1.0, abs=5e-3)


def test_gluon_is_never_negative_and_the_edges_are_frozen(density: PartonDensity) -> None:
    x = np.linspace(0.3, 1.0, 500)
    assert np.all(density.gluon(x, 600.0) >= 0.0)
    assert density.gluon(1.0, 600.0) == 0.0
    assert density.gluon(0.1, 1e7) == density.gluon(0.1, density.blocks[-1].q[-1])
    assert density.gluon(1e-12, 50.0) == density.gluon(density.blocks[-1].x[0], 50.0)


def test_scales_of_both_blocks_are_served_in_one_call(density: PartonDensity) -> None:
    q = np.array([2.0, 4.0, 10.0, 300.0])
    np.testing.assert_allclose(density.gluon(0.01, q), [float(density.gluon(0.01, one)) for one in q])


def test_unknown_flavour_is_refused(density: PartonDensity) -> None:
    with pytest.raises(InvalidInputError, match="flavour 6"):
        density.xf(6, 0.1, 100.0)


def write_grid(
    path: Path, rows: list[str], *, header: str = "PdfType: central\nFormat: lhagrid1\n", end: str = "---\n"
) -> Path:
    table = "\n".join(rows)
    path.write_text(
        f"{header}---\n1e-3 1e-2 1e-1 0.5 1.0\n1.0 10.0 100.0\n0 1\n{table}\n{end}", encoding="ascii"
    )
    return path


def test_a_users_grid_is_read_and_zero_means_gluon(tmp_path: Path) -> None:
    rows = [f"{1.0 / (1 + i)} {0.5}" for i in range(5) for _ in range(3)]
    small = PartonDensity.from_file(write_grid(tmp_path / "mine.dat", rows))
    assert small.name == "mine"
    assert float(small.gluon(1e-2, 10.0)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda p: p / "absent.dat", "does not exist"),
        (lambda p: p, "does not exist"),
        (lambda p: write_grid(p / "a", ["1 1"] * 14), "its nodes ask for"),
        (lambda p: write_grid(p / "b", ["1 1"] * 15, end=""), "ends before its last block"),
        (lambda p: write_grid(p / "c", ["1 x"] * 15), "table of numbers"),
        (lambda p: write_grid(p / "d", ["1 nan"] * 15), "not finite"),
        (lambda p: write_grid(p / "e", ["1 1"] * 15, header="hello\n"), "lhagrid1"),
    ],
    ids=["absent", "directory", "rows", "cut", "words", "nan", "header"],
)
def test_bad_files_are_refused_with_the_reason(
    tmp_path: Path, make: Callable[[Path], Path], reason: str
) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        load_parton_density(make(tmp_path))


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"], ids=["long", "null"])
def test_a_name_that_no_file_can_have_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="which does not exist; expected a grid"):
        load_parton_density(Path(name))


def test_truncated_and_binary_copies_of_the_bundled_grid_are_refused(tmp_path: Path) -> None:
    text = parton_density.bundled_grid_path().read_bytes()
    (tmp_path / "cut.dat").write_bytes(text[: len(text) // 2])
    (tmp_path / "binary.dat").write_bytes(bytes(range(256)) * 10)
    for name in ("cut.dat", "binary.dat"):
        with pytest.raises(InvalidInputError, match="cannot be read as a parton density"):
            load_parton_density(tmp_path / name)


def test_no_grid_and_no_pythia_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_name: str) -> None:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "distribution", absent)
    with pytest.raises(MissingExtraError, match=r"quasiratio\[gghh\]"):
        load_parton_density()
