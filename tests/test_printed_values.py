"""What closed form says of the printed numbers is what the committed rows and the page say."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.printed_values import Binned, deformations, least_chi2_of_nonnegative, quotient_rows
from benchmarks.results import read_rows

STATED = 1_400_000


def test_the_committed_rows_are_those_of_the_script() -> None:
    committed = read_rows("printed_values")
    for row in quotient_rows():
        names = {name: value for name, value in row.items() if isinstance(value, str | int)}
        numbers = {name: value for name, value in row.items() if name not in names}
        (same,) = [one for one in committed if names.items() <= one.items()]
        assert {name: same[name] for name in numbers} == pytest.approx(numbers, rel=1e-9)


def test_small_deformations_lie_within_the_bounds_and_the_printed_values_do_not() -> None:
    binned = Binned("nonnegative")
    r_max = binned.ratio.max()
    for shape in deformations(binned).values():
        deformed = binned.ratio + 1e-5 * shape
        quotient = 98 * binned.chi2(deformed, STATED) / binned.entropy(deformed)
        assert STATED / (1 + r_max) < quotient < STATED
    printed = [row["value"] for row in quotient_rows() if row["what"] == "98 chi2 / D_S2 as printed"]
    assert len(printed) == 4
    assert max(printed) < STATED / (1 + r_max)


def test_nonnegative_ratios_do_not_come_below_their_bound() -> None:
    binned = Binned("signed")
    least = least_chi2_of_nonnegative(binned, STATED)
    assert least > 11.7  # printed
    rng = np.random.default_rng(0)
    for _ in range(100):
        ratio = np.maximum(
            binned.ratio + 0.3 * rng.random() * np.cos(rng.random() * 4 * binned.radii + rng.random()), 0
        )
        assert binned.chi2(ratio, STATED) > least
    assert binned.chi2(binned.ratio, STATED) == pytest.approx(0, abs=1e-20)


def test_samples_agree_with_the_closed_form() -> None:
    rows = [
        row for row in read_rows("printed_values") if row["what"] == "nonnegative ratios on the Signed case"
    ]
    assert [row["n_test"] for row in rows] == [350_000, 500_000, 700_000, STATED]
    for row in rows:  # the statistical part is one
        assert row["clipped"] == pytest.approx(row["expected_clipped"] + 1, rel=0.1)
