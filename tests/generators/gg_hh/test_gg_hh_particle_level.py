"""Showered events: structure, jets against a direct implementation, selection and percentile cuts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from quasiratio.errors import InvalidInputError, MissingExtraError
from quasiratio.generators.gg_hh import (
    FEATURES,
    NO_PT_CUTS,
    OBSERVABLES,
    PAPER_PT_CUTS,
    REFERENCE_PT_CUTS,
    GeneratedSample,
    PartonEvents,
    PtCuts,
    generate,
    jets,
    reference_pt_cuts,
    shower,
)
from quasiratio.generators.gg_hh.couplings import PAPER_POINT
from quasiratio.generators.gg_hh.parton_density import bundled_grid_path
from quasiratio.generators.gg_hh.production import parton_sampler
from quasiratio.generators.gg_hh.selection import observables, passes

N_EVENTS = 1500
Batch = tuple[PartonEvents, shower.FinalParticles]


@pytest.fixture(scope="module")
def linear() -> GeneratedSample:
    return generate("linear", N_EVENTS, seed=5)


@pytest.fixture(scope="module")
def batch() -> Batch:
    """A parton-level sample and the final particles of its shower, before jets and selection."""
    events = parton_sampler("sm", PAPER_POINT, 13000.0, str(bundled_grid_path())).sample(
        60, np.random.default_rng(9)
    )
    (particles,) = shower.shower(events, ecm=13000.0, seed=17)
    return events, particles


def test_columns_are_complete_finite_and_of_one_length(linear: GeneratedSample) -> None:
    assert len(FEATURES) == 16
    assert set(FEATURES) | set(OBSERVABLES) | {"weight"} <= set(linear.columns)
    assert {"truth_m_hh", "truth_cos_theta", "truth_ratio_linear", "truth_raw_ratio_linear"} <= set(
        linear.columns
    )
    for name, values in linear.columns.items():
        assert values.shape == (len(linear),), name
        assert np.isfinite(values).all(), name
    assert linear.to_sample().names == FEATURES


def test_selection_and_order(linear: GeneratedSample) -> None:
    c = linear.columns
    muon_pt = np.stack([c[f"mu{i}_pt"] for i in range(1, 5)])
    assert np.all(np.diff(muon_pt, axis=0) <= 0)
    assert c["jet_pt"].min() > 20.0
    assert c["jet_m"].min() > 0.0
    for name in ("jet", "mu1", "mu2", "mu3", "mu4"):
        assert np.abs(c[f"{name}_eta"]).max() < 5.0
        assert np.abs(c[f"{name}_phi"]).max() <= np.pi
        assert c[f"{name}_pt"].max() < getattr(REFERENCE_PT_CUTS, name)


def test_most_events_pass_and_keep_their_signs(linear: GeneratedSample) -> None:
    assert 0.68 < len(linear) / N_EVENTS < 0.84
    assert set(np.unique(linear.columns["weight"])) == {-1.0, 1.0}
    np.testing.assert_array_equal(np.sign(linear.columns["truth_ratio_linear"]), linear.columns["weight"])
    assert 0.12 < np.mean(linear.columns["weight"] < 0) < 0.24


def test_muons_rebuild_the_pair_of_the_truth(linear: GeneratedSample) -> None:
    """Most muon pairs radiate little; the truth of each event must belong to that very event."""
    ratio = linear.columns["m_hh"] / linear.columns["truth_m_hh"]
    assert np.median(ratio) == pytest.approx(1.0, abs=0.01)
    assert np.mean(np.abs(ratio - 1) < 0.03) > 0.6
    recoil = linear.columns["hh_pt"] / linear.columns["jet_pt"]
    assert 0.7 < np.median(recoil) < 1.5


def test_metadata_has_settings_cross_sections_and_versions(linear: GeneratedSample) -> None:
    meta = linear.metadata
    assert meta["settings"]["seed"] == 5
    assert meta["versions"]["pythia8mc"] == "8.317.2"
    assert meta["n_generated"] + meta["n_failed"] == N_EVENTS
    assert meta["n_selected"] == len(linear)
    assert meta["cross_section_fb"] == pytest.approx(16.07, rel=0.01)
    signed = linear.columns["weight"].sum() * meta["fb_per_event"]
    assert meta["selected_cross_section_fb"] == pytest.approx(signed)
    efficiency = meta["selected_cross_section_fb"] / meta["cross_section_fb"]
    assert 0.65 < efficiency < 0.9


def test_every_event_conserves_momentum_and_has_four_muons(batch: Batch) -> None:
    events, particles = batch
    ends = np.cumsum(particles.counts)
    total = np.add.reduceat(particles.momenta, ends - particles.counts, axis=1)
    np.testing.assert_allclose(total[3], 13000.0, rtol=1e-5)
    np.testing.assert_allclose(total[:3], 0.0, atol=1e-2)
    event = np.repeat(np.arange(len(ends)), particles.counts)
    n_muons = np.bincount(event[np.abs(particles.pid) == 13], minlength=len(ends))
    assert np.all(n_muons >= 4)
    assert np.all(np.diff(particles.source) > 0)
    assert len(particles.source) <= len(events)


def anti_kt(px: Any, py: Any, pz: Any, energy: Any) -> Any:
    """Textbook anti-kT by repeated search over all pairs: slow, and independent of fastjet."""
    pseudo = [np.array(p) for p in zip(px, py, pz, energy, strict=True)]
    found = []
    while pseudo:
        p = np.array(pseudo)
        pt2 = p[:, 0] ** 2 + p[:, 1] ** 2
        y = 0.5 * np.log((p[:, 3] + p[:, 2]) / (p[:, 3] - p[:, 2]))
        phi = np.arctan2(p[:, 1], p[:, 0])
        d_phi = np.abs(phi[:, None] - phi[None, :])
        d_phi = np.minimum(d_phi, 2 * np.pi - d_phi)
        r2 = (y[:, None] - y[None, :]) ** 2 + d_phi**2
        pair = np.minimum(1 / pt2[:, None], 1 / pt2[None, :]) * r2 / jets.RADIUS**2
        pair[np.tril_indices(len(p))] = np.inf
        if pair.min() < (1 / pt2).min():
            i, j = np.unravel_index(np.argmin(pair), pair.shape)
            merged = pseudo[i] + pseudo[j]
            pseudo = [q for k, q in enumerate(pseudo) if k not in (i, j)] + [merged]
        else:
            found.append(pseudo.pop(int(np.argmin(1 / pt2))))
    return np.array(found)


def test_leading_jet_agrees_with_textbook_clustering(batch: Batch) -> None:
    _, particles = batch
    measured = observables(particles)
    starts = np.cumsum(particles.counts) - particles.counts
    checked = 0
    for event in range(len(starts)):
        part = slice(starts[event], starts[event] + particles.counts[event])
        pid, momenta = np.abs(particles.pid[part]), particles.momenta[:, part]
        pt = np.hypot(momenta[0], momenta[1])
        muons = np.flatnonzero(pid == 13)
        four = muons[np.argsort(-pt[muons])[:4]]
        use = ~np.isin(pid, (12, 14, 16)) & (pt > 1e-3) & (np.abs(np.arcsinh(momenta[2] / pt)) < 7)
        use[four] = False
        if use.sum() > 130:
            continue  # the search over all pairs is cubic
        found = anti_kt(*momenta[:, use])
        jet_pt = np.hypot(found[:, 0], found[:, 1])
        good = (jet_pt > 20.0) & (np.abs(np.arcsinh(found[:, 2] / jet_pt)) < 5.0)
        if not good.any():
            assert np.isnan(measured["jet_pt"][event])
        else:
            assert measured["jet_pt"][event] == pytest.approx(jet_pt[good].max(), rel=1e-6)
        checked += 1
    assert checked >= 10


def test_events_without_a_jet_are_kept_out_but_not_confused(batch: Batch) -> None:
    _, particles = batch
    measured = observables(particles)
    without = np.isnan(measured["jet_pt"])
    assert without.any()
    assert not passes(measured, NO_PT_CUTS)[without].any()
    np.testing.assert_array_equal(measured["mu1_pt"] > 0, True)


def test_massless_jets_have_mass_zero() -> None:
    pz = np.array([3.0, -120.0, 0.1])
    one = jets.cylindrical(np.array([25.0] * 3), np.array([10.0] * 3), pz, np.sqrt(25.0**2 + 10.0**2 + pz**2))
    np.testing.assert_array_equal(one.mass, 0.0)
    heavy = jets.cylindrical(np.array([3.0]), np.array([0.0]), np.array([0.0]), np.array([5.0]))
    assert heavy.mass[0] == 4.0


def test_percentile_cuts() -> None:
    rng = np.random.default_rng(0)
    columns = {
        f"{name}_pt": rng.exponential(60.0, 20_000) + 20.0 for name in ("jet", "mu1", "mu2", "mu3", "mu4")
    }
    columns |= {name.replace("_pt", "_eta"): np.zeros(20_000) for name in list(columns)} | {
        "jet_m": np.ones(20_000)
    }
    cuts = reference_pt_cuts(columns)
    assert np.mean(columns["mu3_pt"] < cuts.mu3) == pytest.approx(0.998, abs=1e-4)
    assert passes(columns, cuts).mean() == pytest.approx(0.998**5, abs=2e-3)
    with pytest.raises(InvalidInputError, match="larger reference"):
        reference_pt_cuts({name: values[:500] for name, values in columns.items()})
    with pytest.raises(InvalidInputError, match="positive"):
        PtCuts(300.0, -1.0, 1.0, 1.0, 1.0)


def test_stored_cuts_are_within_six_percent_of_the_papers() -> None:
    for name in ("jet", "mu1", "mu2", "mu3", "mu4"):
        assert getattr(REFERENCE_PT_CUTS, name) == pytest.approx(getattr(PAPER_PT_CUTS, name), rel=0.06)


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    generate("sm", 20, seed=1)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ""


def test_banner_stays_off_in_a_fresh_process() -> None:
    import subprocess
    import sys

    code = "from quasiratio.generators.gg_hh import generate; generate('sm', 5, seed=1)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == ""
    assert result.stderr == ""


def test_multiparton_interactions_make_more_particles() -> None:
    events = parton_sampler("sm", PAPER_POINT, 13000.0, str(bundled_grid_path())).sample(
        40, np.random.default_rng(9)
    )
    off, on = (
        sum(p.counts.sum() for p in shower.shower(events, ecm=13000.0, seed=3, mpi=mpi))
        for mpi in (False, True)
    )
    assert on > 1.5 * off


@pytest.mark.parametrize(
    ("module", "load"), [("pythia8mc", shower.import_pythia), ("fastjet", jets.import_fastjet)]
)
def test_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, module: str, load: Callable[[], Any]
) -> None:
    import sys

    jets.import_fastjet.cache_clear()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"quasiratio\[gghh\]"):
        load()
    with pytest.raises(MissingExtraError, match=module):
        generate("sm", 10, seed=1)
    assert len(generate("sm", 10, seed=1, parton_level=True)) == 10
    jets.import_fastjet.cache_clear()
