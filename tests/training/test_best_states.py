"""The state to go back to: the lowest risk, or the latest that validation cannot tell from it."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from quasiratio.losses import Lsif
from quasiratio.training import Batch, RatioObjective
from quasiratio.training.validation import BestStates, Verdict

N_EVENTS = 2000
"""Of which a tie may take 1e-4 of the risk."""


def verdict(*levels: float, noise: float = 0.0, seed: int = 0, n_events: int = N_EVENTS) -> Verdict:
    """Losses around one level per network; `noise` is the spread of the events' losses."""
    generator = torch.Generator().manual_seed(seed)
    spread = torch.randn(len(levels), n_events, generator=generator)
    spread = spread - spread.mean(dim=1, keepdim=True)
    losses = torch.tensor(levels)[:, None] + noise * spread
    return Verdict(losses, losses.double().mean(dim=1), torch.zeros(len(levels), dtype=torch.bool))


class Run:
    """A parameter that holds the number of the epoch, and the states kept of it."""

    def __init__(
        self, initial: Verdict, *, keep_initial: bool = False, prefer_latest: bool = True, rows: int = 1
    ) -> None:
        n_networks = len(initial.risk)
        self.parameter = nn.Parameter(torch.full((n_networks * rows, 2), -1.0))
        self.best = BestStates(
            [self.parameter], initial, keep_initial=keep_initial, prefer_latest=prefer_latest
        )
        self.n_epochs = 0

    def add(self, judged: Verdict, *, patience: float = math.inf) -> None:
        self.parameter.data.fill_(float(self.n_epochs))
        self.best.update(judged, epoch=self.n_epochs, patience=patience)
        self.n_epochs += 1

    def restored(self) -> list[float]:
        self.best.restore()
        values = self.parameter.detach()
        assert torch.equal(values[:, 0], values[:, 1])
        return [float(value) for value in values[:, 0]]


def kept_after(
    *risks: float, noise: float = 0.0, prefer_latest: bool = True, n_events: int = N_EVENTS
) -> float:
    run = Run(verdict(5.0, n_events=n_events), prefer_latest=prefer_latest)
    for epoch, risk in enumerate(risks):
        run.add(verdict(risk, noise=noise, seed=epoch, n_events=n_events))
    epoch = int(run.best.epoch[0])
    assert run.restored() == [epoch]
    return epoch


@pytest.mark.parametrize("prefer_latest", [False, True])
def test_the_lowest_risk_wins(prefer_latest: bool) -> None:
    assert kept_after(3.0, 1.0, 2.0, prefer_latest=prefer_latest) == 1


def test_a_tie_keeps_the_latest_where_asked() -> None:
    # Losses scatter by 1 between events: the error of a paired difference is about sqrt(2) / 45.
    risks = (1.0, 0.7, 0.70005, 0.70002)
    assert kept_after(*risks, noise=1.0, prefer_latest=True) == 3
    assert kept_after(*risks, noise=1.0, prefer_latest=False) == 1


def test_a_rise_beyond_a_ten_thousandth_keeps_the_earlier() -> None:
    """However large the statistical error: a rise of 1e-4 of the risk is not given away."""
    assert kept_after(0.7, 0.70008, noise=1.0) == 1
    assert kept_after(0.7, 0.70012, noise=1.0) == 0
    # The scale of small risks is one, that of large ones the risk.
    assert kept_after(7.0, 7.0005, noise=1.0) == 1
    assert kept_after(7.0, 7.0009, noise=1.0) == 0


@pytest.mark.parametrize(("n_events", "tie"), [(600, 3e-5), (10_000, 5e-4), (20_000, 5e-4)])
def test_a_tie_grows_with_the_validation_sample(n_events: int, tie: float) -> None:
    assert kept_after(0.7, 0.7 + 0.9 * tie, noise=1.0, n_events=n_events) == 1
    assert kept_after(0.7, 0.7 + 1.1 * tie, noise=1.0, n_events=n_events) == 0


def test_a_significant_rise_keeps_the_earlier() -> None:
    """The same rise of 5e-5: two standard errors of the paired difference decide."""
    error = 5e-5
    # The paired spread is sqrt(2) noise, and its error sqrt(2) noise / 45.
    for ratio, expected in ((1.5, 1), (3.0, 0)):
        noise = error / ratio * N_EVENTS**0.5 / 2**0.5
        assert kept_after(0.7, 0.7 + error, noise=noise) == expected


def test_the_error_is_that_of_the_paired_difference() -> None:
    """Losses that scatter, but alike in both states, tell a small rise."""
    run = Run(verdict(5.0))
    run.add(verdict(0.7, noise=1.0, seed=1))
    run.add(verdict(0.70005, noise=1.0, seed=1))
    assert run.restored() == [0.0]


def test_ties_do_not_add_up() -> None:
    """Each state is compared with the lowest, not with the one before: a slow rise ends."""
    risks = [0.7 + 0.00004 * epoch for epoch in range(10)]
    assert kept_after(*risks, noise=1.0) == 2


def test_after_a_tie_the_lowest_risk_stays_the_yardstick() -> None:
    run = Run(verdict(5.0))
    for epoch, risk in enumerate((0.7, 0.70008, 0.70016)):
        run.add(verdict(risk, noise=1.0, seed=epoch))
    assert float(run.best.risk[0]) == pytest.approx(0.7, abs=1e-6)
    assert (int(run.best.epoch[0]), int(run.best.lowest_epoch[0])) == (1, 0)


def test_the_initial_state_counts_only_where_asked() -> None:
    for keep_initial, expected in ((False, 0.0), (True, -1.0)):
        run = Run(verdict(1.0), keep_initial=keep_initial, prefer_latest=False)
        run.add(verdict(2.0))
        assert run.restored() == [expected]


def test_with_the_initial_state_only_a_strictly_lower_risk_replaces_it() -> None:
    for level, expected in ((1.0, -1.0), (1.0 + 1e-6, -1.0), (1.0 - 1e-6, 0.0)):
        run = Run(verdict(1.0, noise=1.0), keep_initial=True, prefer_latest=False)
        run.add(verdict(level, noise=1.0))
        assert run.restored() == [expected]


def test_patience_counts_from_the_lowest_risk_and_freezes_the_state() -> None:
    run = Run(verdict(5.0), prefer_latest=False)
    for epoch, risk in enumerate((1.0, 1.5, 1.5)):
        run.add(verdict(risk), patience=3)
        assert not run.best.done.any(), epoch
    run.add(verdict(1.5), patience=3)
    assert run.best.done.all()
    run.add(verdict(0.1), patience=3)  # too late
    assert run.restored() == [0.0]
    assert float(run.best.risk[0]) == pytest.approx(1.0)


def test_a_tie_does_not_renew_the_patience() -> None:
    run = Run(verdict(5.0))
    run.add(verdict(0.7, noise=1.0, seed=1), patience=2)
    run.add(verdict(0.70001, noise=1.0, seed=2), patience=2)
    assert not run.best.done.any()
    run.add(verdict(0.70001, noise=1.0, seed=3), patience=2)
    assert run.best.done.all()
    assert run.restored() == [2.0]


def test_a_lower_risk_renews_the_patience() -> None:
    run = Run(verdict(5.0), prefer_latest=False)
    for risk in (1.0, 1.5, 0.9, 1.5):
        run.add(verdict(risk), patience=2)
    assert not run.best.done.any()


@pytest.mark.parametrize("rows", [1, 3])
def test_networks_are_independent(rows: int) -> None:
    """Each network has its own best epoch; a member of several networks is kept or left as a whole."""
    run = Run(verdict(5.0, 5.0, 5.0), prefer_latest=False, rows=rows)
    for levels in ((1.0, 3.0, 2.0), (2.0, 2.0, 1.0), (3.0, 1.0, 1.5)):
        run.add(verdict(*levels))
    assert run.best.epoch.tolist() == [0, 2, 1]
    assert run.restored() == [value for value in (0.0, 2.0, 1.0) for _ in range(rows)]


def test_patience_ends_one_network_and_not_the_others() -> None:
    run = Run(verdict(5.0, 5.0), prefer_latest=False)
    for levels in ((1.0, 3.0), (2.0, 2.0), (0.1, 1.0)):
        run.add(verdict(*levels), patience=1)
    assert run.best.done.tolist() == [True, False]
    assert run.restored() == [0.0, 2.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("prefer_latest", [False, True])
def test_a_risk_that_is_not_finite_is_never_kept(bad: float, prefer_latest: bool) -> None:
    run = Run(verdict(1.0), prefer_latest=prefer_latest)
    run.add(verdict(bad))
    assert not torch.isfinite(run.best.risk).any()
    run.add(verdict(0.9))
    run.add(verdict(bad))
    assert run.restored() == [1.0]
    assert float(run.best.risk[0]) == pytest.approx(0.9)


def test_the_kept_state_does_not_follow_the_parameters() -> None:
    run = Run(verdict(5.0))
    run.add(verdict(1.0))
    run.parameter.data.fill_(99.0)
    assert run.restored() == [0.0]


class Linear(nn.Module):
    """Two networks, `z = a x` with a = 1 and 2, that count their calls."""

    def __init__(self) -> None:
        super().__init__()
        self.slopes = nn.Parameter(torch.tensor([1.0, 2.0])[:, None, None])
        self.n_calls = 0

    def forward(self, features: Tensor) -> Tensor:
        self.n_calls += 1
        return self.slopes * features


def test_a_verdict_is_the_weighted_mean_loss_in_chunks() -> None:
    generator, n = torch.Generator().manual_seed(0), 50_001
    features = torch.randn(n, 1, generator=generator)
    classes = (torch.rand(1, n, generator=generator) < 0.5).float()
    weights = torch.randn(1, n, generator=generator)
    model = Linear()
    judged = Verdict.of(model, RatioObjective(Lsif()), Batch(features, classes, weights))
    assert model.n_calls > 1
    ratio = torch.tensor([[1.0], [2.0]]) * features[:, 0]
    expected = weights * torch.where(classes > 0, -ratio, ratio**2 / 2)
    torch.testing.assert_close(judged.losses, expected)
    torch.testing.assert_close(judged.risk, expected.double().mean(dim=1))
