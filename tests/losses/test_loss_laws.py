"""Laws that every loss obeys: the seven of the registry, PARE at several poles, and a user's own."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq
from torch import Tensor

from quasiratio.errors import InvalidInputError
from quasiratio.losses import LOSSES, ExponentialLink, Pare, RatioLoss, SinhLink, loss_by_name


class TangentLink:
    """As in the documentation of `losses.ratio_loss`."""

    ratio_range = (-math.inf, math.inf)

    def ratio(self, raw: Tensor) -> Tensor:
        return torch.tan(raw)

    def raw(self, ratio: Tensor) -> Tensor:
        return torch.atan(ratio)


@dataclass(frozen=True)
class Angle(RatioLoss):
    name, link, requires_positive = "angle", TangentLink(), ()

    def reference(self, raw: Tensor) -> Tensor:
        return -torch.cos(raw)

    def target(self, raw: Tensor) -> Tensor:
        return -torch.sin(raw)


ALL_LOSSES: dict[str, RatioLoss] = {
    **{name: make() for name, make in LOSSES.items()},
    **{f"pare-{eps}": Pare(eps=eps) for eps in (0.0, 0.05, 0.7, 1.0, 1.5)},
    "angle": Angle(),
}
# Small enough for e^z, and not so small that finite differences drown in rounding.
raw_values = st.floats(-6.0, 6.0, allow_subnormal=False)
densities = st.floats(-10.0, 10.0, allow_subnormal=False)
events = st.lists(
    st.tuples(st.booleans(), st.floats(-4.0, 6.0).map(lambda w: round(w, 3))), min_size=2, max_size=12
)
every_loss = pytest.mark.parametrize("loss", list(ALL_LOSSES.values()), ids=list(ALL_LOSSES))


def number(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def risk(loss: RatioLoss, raw: Tensor, weighted: list[tuple[bool, float]]) -> Tensor:
    """Sum of w * loss over events (is_target, w) that all have the output `raw` (a scalar or a grid)."""
    labels = torch.tensor([float(is_target) for is_target, _ in weighted], dtype=torch.float64)
    weights = torch.tensor([w for _, w in weighted], dtype=torch.float64)
    return (loss.per_event(raw[..., None].expand(*raw.shape, len(labels)), labels) * weights).sum(dim=-1)


def slope(loss: RatioLoss, raw: float, w0: float, w1: float) -> float:
    z = number(raw).requires_grad_(True)
    (gradient,) = torch.autograd.grad(w0 * loss.reference(z) + w1 * loss.target(z), z)
    return float(gradient)


@every_loss
@given(raw=raw_values)
def test_the_link_inverts_from_the_raw_output(loss: RatioLoss, raw: float) -> None:
    if isinstance(loss.link, TangentLink):
        raw *= 0.25  # tan is one to one on (-pi/2, pi/2)
    else:
        pole = getattr(loss.link, "eps", 0.0) ** 2 * raw
        assume(abs(1.0 - pole) > 1e-3)
    assert float(loss.link.raw(loss.link.ratio(number(raw)))) == pytest.approx(raw, rel=1e-9, abs=1e-12)


@every_loss
@given(ratio=st.floats(-1e3, 1e3, allow_subnormal=False))
def test_the_link_inverts_from_the_ratio(loss: RatioLoss, ratio: float) -> None:
    lower, _ = loss.ratio_range
    assume(ratio > lower + 1e-3)
    raw = loss.link.raw(number(ratio))
    assert math.isfinite(float(raw))
    assert float(loss.link.ratio(raw)) == pytest.approx(ratio, rel=1e-9, abs=1e-12)


@every_loss
@given(raw=raw_values)
@pytest.mark.parametrize("branch", ["reference", "target"])
def test_gradients_match_finite_differences(loss: RatioLoss, branch: str, raw: float) -> None:
    step = 1e-5
    of = getattr(loss, branch)
    difference = (of(number(raw + step)) - of(number(raw - step))) / (2 * step)
    exact = slope(loss, raw, 1.0 - (branch == "target"), float(branch == "target"))
    assert exact == pytest.approx(float(difference), rel=1e-6, abs=1e-6)


@every_loss
@given(raw=raw_values)
def test_per_event_is_the_branch_of_the_label(loss: RatioLoss, raw: float) -> None:
    z = number(raw).repeat(2)
    both = loss.per_event(z, torch.tensor([0.0, 1.0], dtype=torch.float64))
    expected = torch.stack([loss.reference(z[0]), loss.target(z[1])])
    torch.testing.assert_close(both, expected, rtol=1e-12, atol=1e-12)


@every_loss
@given(weighted=events)
def test_the_best_constant_is_the_ratio_of_the_sums(
    loss: RatioLoss, weighted: list[tuple[bool, float]]
) -> None:
    w0 = sum(w for is_target, w in weighted if not is_target)
    w1 = sum(w for is_target, w in weighted if is_target)
    assume(abs(w0) > 0.2)
    assume(all(a0 * w0 + a1 * w1 > 0.2 for a0, a1 in loss.requires_positive))
    # The sums reach 72 and are at least 0.2: |u| = |W1 / (W0 + eps^2 W1)| < 400, |log r| < 7.
    extent = math.pi if isinstance(loss, Angle) else 400.0 if hasattr(loss.link, "eps") else 8.0
    grid = torch.linspace(-extent, extent, 401, dtype=torch.float64)
    best = float(grid[int(risk(loss, grid, weighted).argmin())])
    width = float(grid[1] - grid[0])
    minimum = brentq(lambda z: slope(loss, z, w0, w1), best - width, best + width, xtol=1e-14)
    assert float(loss.link.ratio(number(minimum))) == pytest.approx(w1 / w0, rel=1e-7, abs=1e-9)


@every_loss
@given(weighted=events, raw=raw_values)
def test_weight_two_is_a_duplicate_and_weight_zero_is_absent(
    loss: RatioLoss, weighted: list[tuple[bool, float]], raw: float
) -> None:
    z = number(raw)
    label, weight = weighted[0]
    doubled = risk(loss, z, [(label, 2 * weight), *weighted[1:]])
    duplicated = risk(loss, z, [weighted[0], *weighted])
    zeroed = risk(loss, z, [(label, 0.0), *weighted[1:]])
    absent = risk(loss, z, weighted[1:])
    torch.testing.assert_close(doubled, duplicated, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(zeroed, absent, rtol=1e-10, atol=1e-10)


@every_loss
@given(q_reference=densities, q_target=densities)
def test_is_bounded_tells_the_truth(loss: RatioLoss, q_reference: float, q_target: float) -> None:
    # Away from the edges, where a scan of finite length could not tell.
    combinations = [
        a0 * q_reference + a1 * q_target for a0, a1 in (*loss.requires_positive, (1.0, 0.0), (0.0, 1.0))
    ]
    assume(all(abs(value) > 0.05 for value in combinations))
    grid = torch.linspace(-630.0, 630.0, 6301, dtype=torch.float64)
    values = q_reference * loss.reference(grid) + q_target * loss.target(grid)
    keeps_falling = float(values.min()) < float(values[grid.abs() <= 250].min()) - 1.0
    assert loss.is_bounded(q_reference, q_target) is not keeps_falling


@every_loss
def test_the_ratio_range_is_what_continuous_outputs_reach(loss: RatioLoss) -> None:
    lower, upper = loss.ratio_range
    assert lower < 1.0 < upper == math.inf
    # Every ratio of the range has a finite output, and outputs vary monotonically and without a jump.
    first = lower + 1e-6 if math.isfinite(lower) else -1e6
    low = torch.linspace(first, 3.0, 5001, dtype=torch.float64)
    ratios = torch.cat([low, torch.logspace(0.5, 6.0, 500, dtype=torch.float64)])
    raw = loss.link.raw(ratios)
    assert bool(torch.isfinite(raw).all())
    steps = raw.diff()
    assert bool((steps > 0).all()) or bool((steps < 0).all())
    # Nothing outside is reached on the way: ratios of outputs between the extremes stay inside.
    between = torch.linspace(float(raw.min()), float(raw.max()), 2001, dtype=torch.float64)[1:-1]
    reached = loss.link.ratio(between)
    assert bool(torch.isfinite(reached).all())
    assert bool((reached > lower).all())
    # Just beyond a finite bound there is no such output: NaN, or the far side of the pole.
    if math.isfinite(lower):
        beyond = float(loss.link.raw(number(lower - 1e-6)))
        assert math.isnan(beyond) or beyond > float(raw.max())
    assert loss.expresses_negative_ratios is (lower < 0)


@every_loss
@given(members=st.lists(raw_values, min_size=2, max_size=6), q_target=st.floats(0.0, 5.0))
def test_the_average_is_no_worse_than_the_members_are_on_average(
    loss: RatioLoss, members: list[float], q_target: float
) -> None:
    if isinstance(loss, Angle):  # convex within a quarter turn of its minimum only
        members = [0.1 * raw + math.atan(q_target) for raw in members]
    raw = torch.tensor(members, dtype=torch.float64)

    def risk_of(z: Tensor) -> Tensor:
        return loss.reference(z) + q_target * loss.target(z)

    average, mean = float(risk_of(loss.average(raw[:, None])[0])), float(risk_of(raw).mean())
    assert average <= mean + 1e-9 * (1.0 + abs(mean))


def test_revert_averages_scores_because_its_risk_is_not_convex_in_the_raw_output() -> None:
    loss = loss_by_name("revert")
    raw = torch.tensor([[-9.0], [-3.0]], dtype=torch.float64)

    def risk_of(z: Tensor) -> float:
        return float((loss.reference(z) + 50.0 * loss.target(z)).mean())

    assert risk_of(raw.mean(dim=0)) <= risk_of(raw)  # here either works ...
    far = torch.tensor([[-2.0], [8.0]], dtype=torch.float64)
    assert risk_of(loss.average(far)) <= risk_of(far)
    expected = torch.logit(torch.sigmoid(far).mean(dim=0))
    torch.testing.assert_close(loss.average(far), expected)


def test_published_optima() -> None:
    """Links of the table of losses, at one value each."""
    z = number(0.3)
    s = torch.sigmoid(z)
    assert float(ExponentialLink().ratio(z)) == pytest.approx(math.exp(0.3))
    assert float(SinhLink().ratio(z)) == pytest.approx(float(1 / s - 1 / (1 - s)))
    assert float(loss_by_name("mse").link.ratio(z)) == pytest.approx(0.3 / 0.7)
    assert float(loss_by_name("lsif").link.ratio(z)) == pytest.approx(0.3)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_come_by_name(name: str) -> None:
    loss = loss_by_name(name)
    assert loss.name == name
    assert loss_by_name(loss) is loss
    assert loss == LOSSES[name]()
    assert loss.resolved([1.0, -2.0]) is loss


@pytest.mark.parametrize("bad", ["hinge", "BCE", ""])
def test_an_unknown_name_lists_the_known_ones(bad: str) -> None:
    with pytest.raises(
        InvalidInputError, match=f"{bad!r}; expected one of bce, mse, mlc, sqr, pare, revert, lsif"
    ):
        loss_by_name(bad)


def test_large_outputs_keep_losses_finite() -> None:
    """Losses built on softplus neither overflow nor lose their slope at |z| = 500 in float32."""
    z = torch.tensor([-500.0, 500.0])
    for name in ("bce", "revert"):
        loss = loss_by_name(name)
        for label in (0.0, 1.0):
            assert bool(torch.isfinite(loss.per_event(z, torch.full_like(z, label))).all())
    np.testing.assert_allclose(loss_by_name("bce").per_event(z, torch.zeros(2)), [0.0, 500.0], atol=1e-6)
