"""Speed of the gg -> hh generator, and its percentile cuts beside the paper's.

    python -m benchmarks.gg_hh_speed                     # everything, about a minute
    python -m benchmarks.gg_hh_speed parton shower pool  # only these
    python -m benchmarks.gg_hh_speed percentiles --events 100000

One process is measured in seconds of its own processor time and its ratio in turns within one run, so
that a busy machine changes little. Two processes need two free cores to show anything. Wanted: at least 75% of pure Pythia's rate kept by jets and selection, two processes at least 1.6
times one, percentiles within 6% of the paper's.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict

import numpy as np

from quasiratio.generators.gg_hh import (
    NO_PT_CUTS,
    PAPER_POINT,
    PAPER_PT_CUTS,
    HardProcess,
    PartonEvents,
    PartonSampler,
    generate,
    load_parton_density,
    reference_pt_cuts,
)
from quasiratio.generators.gg_hh.selection import REFERENCE_PT_CUTS, observables, passes
from quasiratio.generators.gg_hh.shower import BATCH_SIZE, final_particles, pythia_for

ECM = 13000.0


def sampler(name: str = "linear") -> PartonSampler:
    return PartonSampler(HardProcess(name, PAPER_POINT, ECM, load_parton_density()))


def parton_speed(n_events: int = 1_000_000) -> float:
    """Return parton-level events per processor second, without the tables that are built once."""
    source = sampler()
    source.sample(10, np.random.default_rng(0))
    start = time.process_time()
    source.sample(n_events, np.random.default_rng(1))
    return n_events / (time.process_time() - start)


def _timed_batches(events: PartonEvents, *, analyse: bool) -> float:
    """Return processor seconds for all events, with or without our jets and selection; Pythia's start is left out."""
    pythia, source = pythia_for(events, ecm=ECM, seed=11)
    pythia.nextBatch(1)
    start = time.process_time()
    for _ in range(len(events) // BATCH_SIZE):
        batch = pythia.nextBatch(BATCH_SIZE)
        if analyse:
            passes(observables(final_particles(batch)), REFERENCE_PT_CUTS)
    seconds = time.process_time() - start
    del source
    return seconds


def kept_fraction(n_events: int = 2000, n_rounds: int = 3) -> tuple[float, float, float]:
    """Return events/s of pure `nextBatch`, events/s with jets and selection, and their ratio."""
    events = sampler().sample(n_events + 1, np.random.default_rng(2))
    _timed_batches(events, analyse=True)  # imports and first-call costs
    pairs = [
        (_timed_batches(events, analyse=False), _timed_batches(events, analyse=True)) for _ in range(n_rounds)
    ]
    pure, ours = (statistics.median(seconds) for seconds in zip(*pairs, strict=True))
    return n_events / pure, n_events / ours, statistics.median(a / b for a, b in pairs)


def pool_gain(n_events: int = 16_000) -> tuple[float, float, float]:
    """Return events/s of one and of two worker processes that have already started, and their ratio."""
    rates = []
    for n_workers in (1, 2):
        with ProcessPoolExecutor(n_workers) as pool:
            generate("sm", 8, seed=1, executor=pool, chunk_size=1)  # every worker imports and builds tables
            start = time.perf_counter()
            generate("sm", n_events, seed=1, executor=pool, chunk_size=2000)
            rates.append(n_events / (time.perf_counter() - start))
    return rates[0], rates[1], rates[1] / rates[0]


def percentile_table(n_events: int = 60_000, seed: int = 1) -> dict[str, tuple[float, float, float]]:
    """Return (ours, paper's, relative difference) for the five cuts, from a fresh reference."""
    reference = generate("sm", n_events, seed=seed, pt_cuts=NO_PT_CUTS)
    ours, paper = asdict(reference_pt_cuts(reference.columns)), asdict(PAPER_PT_CUTS)
    return {name: (ours[name], paper[name], ours[name] / paper[name] - 1.0) for name in ours}


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed and percentiles of the gg -> hh generator.")
    parts = ("parton", "shower", "pool", "percentiles")
    parser.add_argument("parts", nargs="*", help=f"any of {', '.join(parts)}; the first three by default")
    parser.add_argument("--events", type=int, default=60_000, help="events for the percentiles")
    arguments = parser.parse_args()
    chosen = arguments.parts or parts[:3]
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    if "parton" in chosen:
        print(f"parton level: {parton_speed():,.0f} events per processor second")
    if "shower" in chosen:
        pure, ours, ratio = kept_fraction()
        print(
            f"Pythia alone {pure:.0f} events/s, with jets and selection {ours:.0f}: {ratio:.0%} (wanted 75%)"
        )
    if "pool" in chosen:
        one, two, ratio = pool_gain()
        print(f"one process {one:.0f} events/s, two {two:.0f}: {ratio:.2f} times (wanted 1.6)")
    if "percentiles" in chosen:
        print(
            f"99.8 percentiles of {arguments.events} generated events, in GeV: ours, the paper's, difference"
        )
        for name, (ours, paper, difference) in percentile_table(arguments.events).items():
            print(f"  {name:4s} {ours:6.1f} {paper:6.1f} {difference:+.1%}")


if __name__ == "__main__":
    main()
