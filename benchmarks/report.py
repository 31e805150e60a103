"""Turn the measured rows into `docs/benchmarks.md`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.gg_hh_accuracy import above as above_hard_process
from benchmarks.mined_tables import mined_tables
from benchmarks.results import EPOCH_SIZE, read_rows
from quasiratio.studies.output.published_tables import SIGNED_GAUSSIANS

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
_PUBLISHED = {
    (case, {"mlp": "mlp-bce"}.get(method, method)): value
    for (case, method, metric), value in SIGNED_GAUSSIANS.items()
    if metric == "chi2"
}


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = [[_escaped(cell) for cell in row] for row in (header, *rows)]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    lines.insert(1, "|" + "---|" * len(cells[0]))
    return "\n".join(lines)


def _escaped(cell: str) -> str:
    """Return a cell whose bars do not end it."""
    return cell.replace("\\|", "|").replace("|", "\\|")


def accuracy() -> str:
    rows = read_rows("accuracy")
    groups: dict[tuple[str, str], list[dict]] = {}
    for row in rows:
        groups.setdefault((row["case"], row["method"]), []).append(row)
    body = []
    for (case, method), group in sorted(
        groups.items(), key=lambda g: (g[0][0], _median(g[1], "chi2_to_exact"))
    ):
        chi2 = [row["chi2"] for row in group]
        published = _PUBLISHED.get((case, method))
        body.append(
            [
                case,
                method,
                f"{len(group)}",
                f"{median(chi2):.3g}",
                f"{min(chi2):.3g} – {max(chi2):.3g}",
                f"{_median(group, 'chi2_to_exact'):.3g}",
                f"{_rms(group):.4f}",
                f"{_median(group, 'entropy'):.2g}",
                "" if published is None else f"{published}",
            ]
        )
    header = [
        "case",
        "method",
        "seeds",
        "chi2/ndof",
        "range",
        "over exact",
        "rms(r − r*)",
        "D_S2",
        "published chi2",
    ]
    return _table(header, body)


def _rms(rows: list[dict]) -> float:
    """Return the median of the errors; a square that fluctuated below zero has none."""
    return median([row["rms"] for row in rows if row["rms"] > 0] or [0.0])


def published() -> str:
    body = [
        [
            row["case"],
            row["method"],
            str(row["seed"]),
            f"{row['chi2']:.3g}",
            f"{_PUBLISHED[row['case'], row['method']]}",
            str(row["epochs"]),
            f"{row.get('epoch_size', EPOCH_SIZE):,}",
        ]
        for row in read_rows("published")
    ]
    columns = ["case", "method", "seed", "chi2/ndof", "published chi2", "epochs", "events of an epoch"]
    return _table(columns, body)


def _median(rows: list[dict], key: str) -> float:
    return median(row[key] for row in rows)


def training_time() -> str:
    rows = read_rows("training_time")
    early_stop = next((row["epochs"] for row in rows if "in memory" in row["what"]), 100)
    dataloader = early_stop * next(row["seconds_per_epoch"] for row in rows if "seconds_per_epoch" in row)
    body = [
        [
            row["what"],
            f"{row['seconds']:.0f}",
            f"{dataloader / row['seconds']:.3g}",
            f"{row['dataloader_over_this']:.3g}" if "dataloader_over_this" in row else "",
        ]
        for row in rows
    ]
    header = ["fit at 2e6 events per class", "seconds", "times faster", "times faster than 100 epochs"]
    return _table(header, body)


def throughput() -> str:
    body = [
        [str(row["n_members"]), f"{row['events_per_second'] / 1e6:.1f}"]
        for row in read_rows("throughput")
        if "events_per_second" in row
    ]
    return _table(["members", "million events per second"], body)


def peers() -> str:
    body = []
    for row in read_rows("peers"):
        result = row.get("refused") or f"{row['chi2']:.3g}"
        rms = f"{row['rms']:.3f}" if "rms" in row else ""
        body.append([row["case"], row["peer"], result, rms, f"{row['seconds']:.0f}"])
    return _table(["case", "method", "chi2/ndof", "rms(r − r*)", "seconds"], body)


def positive() -> str:
    columns = {
        "seed": "seed",
        "chi2_of_signed_weights": "chi2/ndof, signed weights",
        "chi2_without_band": "new weights, without the band",
        "chi2_with_band": "with it",
        "pull_68": "68% quantile of |pull|",
        "gain": "gain without the training error",
        "gain_with_training": "with it",
        "seconds": "seconds",
    }
    rows = [row for row in read_rows("positive") if "chi2_with_band" in row]  # older runs had no band
    body = [[f"{row[key]:.3g}" for key in columns] for row in rows]
    return _table(list(columns.values()), body)


def trusted() -> str:
    groups: dict[tuple[str, int, str], list[dict]] = {}
    for row in sorted(read_rows("trusted"), key=lambda row: (row["size"], row["problem"], row["seed"])):
        groups.setdefault((row["problem"], row["size"], row["method"]), []).append(row)
    body = [
        [
            name,
            f"{size:,}",
            method,
            ", ".join(f"{row['error']:.3g}" for row in rows),
            f"{min(row['effective'] for row in rows):.2g}",
            f"{max(max(row['highest'], -row['lowest']) / row['exact_highest'] for row in rows):.2g}",
        ]
        for (name, size, method), rows in groups.items()
    ]
    header = [
        "problem",
        "events per class",
        "method",
        "error of each seed",
        "smallest effective size",
        "reach",
    ]
    return _table(header, body)


def recipe() -> str:
    groups: dict[str, list[dict]] = {}
    for row in sorted(read_rows("recipe"), key=lambda row: (row["problem"], row["seed"])):
        groups.setdefault(row["problem"], []).append(row)
    body = [
        [
            name,
            ", ".join(f"{row['error']:.3g}" for row in rows),
            f"{min(row['effective'] for row in rows):.2g}",
        ]
        for name, rows in groups.items()
    ]
    return _table(["problem", "error of each seed", "smallest effective size"], body)


def default_fit() -> str:
    body = [[row["what"], f"{row['ratio']:.2f}", row["asked"]] for row in read_rows("default_fit")]
    return _table(["time of", "ratio", "asked"], body)


def coverage() -> str:
    groups: dict[tuple[str, int], list[dict]] = {}
    for row in coverage_rows():
        groups.setdefault((row["problem"], row["size"]), []).append(row)
    body = []
    for (name, size), rows in sorted(groups.items(), key=lambda group: (group[0][1], group[0][0])):
        pooled = np.concatenate([row["abs_pulls"] for row in rows])
        body.append(
            [
                name,
                f"{size:,}",
                str(len(rows)),
                f"{np.quantile(pooled, 0.6827):.2f}",
                ", ".join(f"{row['abs_pulls'][68]:.2f}" for row in rows),
            ]
        )
    header = ["problem", "events per class", "data sets", "68% quantile of |pull|", "each data set alone"]
    return _table(header, body)


def coverage_rows() -> list[dict]:
    """Return a row per data set; those of the published size come from the ensembles of the accuracy."""
    ensembles = [row for row in read_rows("accuracy") if "abs_pulls" in row]
    return read_rows("coverage") + [
        {"problem": row["case"], "size": row["sizes"][0], "abs_pulls": row["abs_pulls"]} for row in ensembles
    ]


def gg_hh_accuracy() -> str:
    """One table per level, size and choice of coordinates; rows without these are of older defaults."""
    groups: dict[tuple, dict[str, list[dict]]] = {}
    for row in read_rows("gg_hh_accuracy"):
        group = (row["level"], row.get("events"), row.get("objects"))
        groups.setdefault(group, {}).setdefault(row["method"], []).append(row)
    tables = []
    for (level, events, objects), chosen in groups.items():
        names = list(next(iter(chosen.values()))[0]["chi2"])
        header = ["method", "seeds", *names, "infinite ratios"]
        if level == "parton":
            header.append("rms(r − r*) / rms(r*)")
        body = []
        for method, rows in chosen.items():
            distances = [one for one in map(above_hard_process, rows) if one is not None]
            middle = {name: median(one[name] for one in distances) for name in names} if distances else None
            values = {name: median(row["chi2"][name] for row in rows) for name in names}
            cells = [
                f"{value:.3g}" + ("" if middle is None else f" ({middle[name]:+.2f})")
                for name, value in values.items()
            ]
            rms = [f"{_median(rows, 'relative_rms'):.3f}"] if level == "parton" else []
            body.append([method, str(len(rows)), *cells, f"{_median(rows, 'infinite'):.0%}", *rms])
        what = (
            "300,000 events per class, older defaults" if events is None else f"{events:,} events per class"
        )
        how = "" if objects in (None, "none") else f", objects ({objects})"
        tables.append(f"### {level.capitalize()} level, {what}{how}\n\n" + _table(header, body))
    return "\n\n".join(tables)


def files() -> str:
    body = [[row["what"], f"{row['ratio']:.2f}"] for row in read_rows("read_root")]
    for row in read_rows("apply_stream"):
        what = f"`apply` over predicting and copying, {row['events'] / 1e6:.0f} million events, {row['extra_bytes'] / 2**20:.0f} MiB"
        body.append([what, f"{row['ratio']:.2f}"])
    return _table(["what", "ratio of times"], body)


def many_files() -> str:
    body = [
        [
            f"{row['files']} of {row['events']:,} events, {row['members']} members",
            f"{row['one_job_seconds']:.0f} s",
            f"{row['speedup']:.2f}",
            f"{row['different_two_jobs']}",
            f"{row['files_at_kill']}",
            f"{row['different_dask']}",
        ]
        for row in read_rows("many_files")
    ]
    headings = [
        "files",
        "one job",
        "two jobs, times faster",
        "other values",
        "done when a worker was killed",
        "missing or other values",
    ]
    return _table(headings, body)


def ranks() -> str:
    found: dict[tuple[str, int, int], dict[int, dict]] = {}
    for row in read_rows("ranks"):
        network = " x ".join(map(str, row["hidden_layers"]))
        found.setdefault((network, row["n_events"], row["seed"]), {})[row["n_ranks"]] = row
    body = [
        [
            network,
            f"{n_events:,}",
            str(seed),
            f"{1e3 * pair[1]['seconds'] / pair[1]['n_steps']:.1f} ms",
            f"{pair[1]['seconds'] / pair[2]['seconds']:.2f}",
            f"{pair[1]['chi2']:.3f}, {pair[2]['chi2']:.3f} ({pair[1]['exact_chi2']:.3f})",
        ]
        for (network, n_events, seed), pair in found.items()
        if len(pair) == 2
    ]
    header = ["hidden layers", "events per class", "seed", "step of one process", "two, times faster"]
    return _table([*header, "chi2 of one, of two (exact)"], body)


def beyond_memory() -> str:
    body = [
        [
            row["part"],
            f"{row['events']:,}",
            f"{row['rss_anon_mib']}",
            f"{row['events_per_second']:,}",
            f"{row['rms_error']:.4f}" if "rms_error" in row else "",
        ]
        for row in read_rows("beyond_memory")
    ]
    return _table(["what", "events", "MiB above the interpreter", "events per second", "rms(r − r*)"], body)


def stay_in_files() -> str:
    body = [
        [
            f"`{row['command']}`",
            row["way"],
            f"{row['events']:,}",
            f"{row['rss_anon_mib']}",
            f"{row['largest_difference']:.1e} of {row['n_numbers']}" if "n_numbers" in row else "",
        ]
        for row in read_rows("stay_in_files")
    ]
    headings = [
        "command",
        "events are in",
        "events",
        "MiB above the interpreter",
        "largest difference of numbers",
    ]
    return _table(headings, body)


def onnx_agreement() -> str:
    body = [
        [
            row["estimator"],
            f"{row['largest_difference']:.1e}",
            f"{row['smallest']:.3g} to {row['largest']:.3g}",
        ]
        for row in read_rows("onnx_agreement")
    ]
    return _table(["estimator", "largest difference / (1 + abs(r))", "ratios"], body)


def kills() -> str:
    names = ("killed", "with a state", "damaged", "lost", "not completed", "different", "left behind")
    body = [[f"`{row['command']}`", *(str(row[name]) for name in names)] for row in read_rows("kills")]
    return _table(["command", *names], body)


def mutations() -> str:
    names = ("mutations", "refused", "other exceptions")
    body = [[row["kind"], *(str(row[name]) for name in names)] for row in read_rows("mutations")]
    return _table(["what", *names], body)


SECTIONS = {
    "trusted": (
        (
            "## Whether the default can be trusted\n\nProblems with a known ratio, seeds 2000 to 2004, of which none served for a "
            "choice of settings (six dimensions and the Signed toy had been looked at before, with other settings). The error is "
            "rms(r − r*) over rms(r* − 1), or over rms(r*) for six dimensions and the toy, weighted by |w| on 200,000 fresh "
            "reference events; one is no reweighting. A ratio is first scaled to a mean of one over these events, whoever made it. "
            "Where the reference density is negative somewhere (`jets negative-reference`) the exact ratio has poles, and all "
            "numbers are of r and r* times the reference's sign asymmetry, errors those of medians; even with the exact ratio the "
            "reweighted sample has an effective size of two events there, and every fit said not to reweight with it. Effective sizes are relative to that of the exact ratio, and the reach is "
            "the largest |r| over the exact maximum. `boosting` is scikit-learn's histogram boosting on absolute weights, "
            "right only where the negative shares of both classes are equal; `hep_ml` its reweighter with 50 trees. Asked at "
            "100,000 events: 0.40 (equal shares), 0.5 (different), 0.05 (six), 0.028 (Signed toy: two seeds miss it by up to 8%; "
            "the recipe below misses it on two as well, by up to 17%); at 10,000: median 0.75 and never above 1 "
            "(equal shares), 0.15 (six: one seed misses it by 8%). At equal shares and 100,000 events one seed of five misses "
            "0.40 (0.41). With different shares the default is better than all others on every seed at 100,000 events; at "
            "10,000 REVERT, which has no bound elsewhere (1.6 at equal shares), is better on one of five. Rows of 100,000 events and "
            "more are older than the edges of features and the bold training, which change none of them but beyond the training events. "
            "At 5,000 events, worth 500 by their weights, nothing was asked; there the last five numbers are of seeds 4100 to 4104, on "
            "which one network instead of the mean of four had errors of 0.59 to 3.0. The worst of them, 1.9, is that of its sample: "
            "its check says that the fit could not be checked, because the "
            "events kept aside are worth 24, and cannot tell the ratio from none."
        ),
        trusted,
    ),
    "recipe": (
        (
            "### How hard the problem is\n\nA fixed recipe on equal shares, 100,000 events per class: the sign-resolved classifier "
            "with six passes in batches of 2048, a smallest asymmetry of 0.1, angles as plain numbers, and nothing tried or "
            "regularised. Of the problem, not of a method, an error between 0.35 and 0.5 was asked. On the Signed toy and in six "
            "dimensions the same recipe, on the same events as the default above, tells what of an error is the sample's."
        ),
        recipe,
    ),
    "default_fit": (
        "## Time of a default fit\n\nRatios of wall-clock times in one run, every fit in a process of its own.",
        default_fit,
    ),
    "accuracy": (
        (
            "## Accuracy\n\nSigned Gaussian toys at the published sizes (2,000,000 / 600,000 / 1,400,000 events per "
            "class), radial chi2 with 99 bins, medians over seeds. `over exact` is the chi2 divided by that of the "
            "exact ratio on the same events. `x8` is an ensemble of eight; everything else is in default settings. Of these "
            "defaults, the averaging of the weights, the choice of the kept state and RoSMM's rate and width were made "
            "while looking at some of the same seeds, and what direct losses have of the decay was mended when REVERT had become worse on "
            "them; RoSMM's hard swish and the small first batches were chosen on seeds "
            "10 to 12, the order of `AutoRatio`'s candidates on seed 10, and the two activations of an ensemble on seeds 10 "
            "to 15, which are not in the table (with SiLU alone `x8` had 1.44 on Nonnegative). `... in auto` are "
            "`AutoRatio`'s own candidates: other random numbers on the same events. What separates them from the rows of the same method is chance, and so is most of what separates `auto` from `sign-resolved`. The mean of the "
            "squares is over signed weights, as at commit 5e654ae, and can fluctuate below zero where a fit has failed; such "
            "a seed is left out of the median."
        ),
        accuracy,
    ),
    "published": ("### With the published networks and schedules", published),
    "training_time": (
        (
            "## Training time\n\n`times faster` is against the published way of training RoSMM: four classifiers fed by "
            "a `DataLoader`, one epoch of which was timed. The same training on tensors in memory, in the same run, tells "
            "how many epochs there are until its early stop; the last column takes 100 instead. The default was measured before large samples tried a bold training as well, which takes as long again."
        ),
        training_time,
    ),
    "throughput": ("## Prediction", throughput),
    "peers": (
        "## Against other packages\n\n200,000 events per class for everybody; the test sample as above.",
        peers,
    ),
    "positive": (
        (
            "## Negative weights made positive\n\nThe Nonnegative toy's target sample, 1,000,000 signed events, eight "
            "members, default settings; all seeds. Chi2 per degree of freedom of the radius (99 bins) against "
            "1,400,000 independent events, without and with the covariance that the members have for the error of the "
            "training; pulls of the bins against the closed form. Gains in effective size are in 20 bins of each feature."
        ),
        positive,
    ),
    "coverage": (
        (
            "## Coverage\n\nPulls of an ensemble against the exact ratio, over the inner 95% of the events, pooled "
            "over independent data sets: eight members, otherwise default settings. One is perfect coverage, less is a band that "
            "is too wide. It holds the noise of the data and of the training, and the difference between the two activations; of "
            "the bias that both share it knows nothing. Asked: 0.8 to 1.25 on the toys and six dimensions; signed jets are "
            "reported. The published size has the ensembles of the table of accuracy that kept their pulls."
        ),
        coverage,
    ),
    "read_root": (
        (
            "## Files\n\nReading into one array of float32 against uproot alone, and `quasiratio apply` against the sum of "
            "predicting the same events from memory and copying the same branches with uproot."
        ),
        files,
    ),
    "many_files": (
        (
            "### Many files\n\n`apply` with one output for each ROOT file, every process with one thread; times are of the "
            "whole command, the start of Python included. The last two columns are of a Dask cluster of two worker processes, "
            "one of which was killed in the middle."
        ),
        many_files,
    ),
    "ranks": (
        (
            "### One training in two processes\n\n`torchrun` on two cores, one thread each, over the same with one process: the "
            "training loop, same global batch of 8192. Every step waits for one message, which takes about a millisecond on this "
            "virtual machine, so that only steps that are long beside it gain."
        ),
        ranks,
    ),
    "beyond_memory": (
        (
            "### Samples beyond memory\n\nSixteen features, 2000 steps (3000 with 100,000,000 events, measured beside other work). `convert` writes the store, `disk` trains from it; the last two "
            "train on a sample that fits, from disk and from memory. Asked: at most 1536 MiB, and 0.7 of the throughput."
        ),
        beyond_memory,
    ),
    "stay_in_files": (
        (
            "### Looking at samples beyond memory\n\nSixteen features, two members; a process that reads, predicts and adds up all by "
            "itself. The last column compares many files with one merged sample in memory: all numbers of `inspect`; closure, "
            "histograms, bands and sums of `evaluate` (relative where a number is above one, else absolute). Asked: 1e-12. Besides sums, `evaluate` holds "
            "at most a million events of each sample."
        ),
        stay_in_files,
    ),
    "onnx_agreement": (
        "## ONNX graphs against PyTorch\n\nA million events of the Signed toy, in onnxruntime.",
        onnx_agreement,
    ),
    "kills": (
        (
            "## Killed at random moments\n\nEach command was started over an older result (a study: in an empty place) and killed "
            "(SIGKILL) after a random part of its time; runs that had ended before are not counted. `with a state`: something to "
            "go on from was there. Afterwards its inputs, other files and the rows that a study had stored must be untouched "
            "(`lost`), the output the old or the new one, whole (`damaged`), and the same command, with `--resume` where there is "
            "one, must complete (`not completed`) with the result of a run that was not killed, to the bit (`different`), and leave no "
            "other file (`left behind`)."
        ),
        kills,
    ),
    "mutations": (
        (
            "## Damaged at random\n\nRandom bytes of model files, states of interrupted fits, stores of studies and configurations "
            "replaced, removed or repeated, and values changed by somebody who knows how to sign the file again. Each is "
            "refused with one sentence or, where nothing that matters was hit, read; any other exception would have "
            "stopped the count."
        ),
        mutations,
    ),
    "mined": (
        (
            "## Mined weights\n\n[What they are](mined-weights.md). `python -m benchmarks.mined`, default settings, medians over seeds. "
            "`parton`: gg → hh with the weights of every event at six points of (C_H, C_uH), in units of 3 at 1 TeV, from the velocity "
            "of the Higgs bosons, the scattering angle, the rapidity and the azimuth; asked at 100,000 events: 2, 2, 9, 8, 4%. "
            "`logarithm of the mass`: with ln m_hh instead of the velocity, which does not resolve the threshold. Information kept is "
            "that of the best linear statistic in the learned functions over that of the hard process, in its two principal directions; "
            "noise is no information. At particle level the errors are those against the coefficients of the hard process, of which "
            "photons hide a part that no method can learn. `sizes`: mined against two samples of as many events each, a toy with smeared "
            "features whose r* is known in closed form, with the range over the seeds. Two samples of n events each are 2 n events, so "
            "that mined ones of 10,000 (0.073) stand against two of 15,000 (0.080) where a third of the events is asked; against two of "
            "30,000, six times the events, they lose by a tenth. `as given` is `normalize=False`, since these joint "
            "ratios are those of unit-normalised densities. `particle sizes`: the same at particle level without photons, for the linear "
            "truncation; r* is the ratio of the hard process, which the muons then determine. It reaches 28 at the threshold, and a "
            "hundred of the 100,000 test events decide about its rms: `bulk` is that without the thousandth where the error is largest. "
            "`labels flipped` is what a classifier "
            "learns where an event of negative weight gets the other label: not the ratio."
        ),
        lambda: mined_tables(_table),
    ),
    "gg_hh_accuracy": (
        (
            "## gg → hh: the Standard Model reweighted to linear SMEFT\n\n[Generated events](gg-hh.md), split 65/15/20, "
            "default settings, chi2/ndof with 99 bins on the test events, medians over seeds (splits and fits); in "
            "brackets the distance to `exact` on the same events. With objects, azimuths are measured from the hardest "
            "muon; `mirror` takes mirror images for the same, `invariants` adds masses and distances of pairs. The published best on the invariant mass of the pair is 3.35, on a sample that differs "
            "from ours. `bce` is the usual classifier, whose risk has no minimum here; events whose ratio is "
            "infinite were left out for its chi2. `exact` is the ratio of the hard process behind each event, which no "
            "detector sees: what is left there are the fluctuations of the test events."
        ),
        gg_hh_accuracy,
    ),
}


def main() -> None:
    """Write the page, with a section for everything that has been measured."""
    parts = [
        "# Benchmarks",
        (
            "Written by `make bench`, or by `python -m benchmarks.report` from the rows stored in "
            "`benchmarks/results/`. Two cores, no GPU; ratios of times come from one run. Of the toys only `exact`, `sign-resolved` and `sign-resolved x8` are of the present defaults; the other methods, other packages and times were measured with those at commit 5e654ae, before length and strength of the training followed from the data, and are not yet repeated."
        ),
    ]
    for name, (introduction, table) in SECTIONS.items():
        if read_rows(name) or (name == "coverage" and coverage_rows()):
            parts += [introduction, table()]
        elif name == "coverage":  # other pages point to it
            parts += [introduction, "No data set has been measured with the present defaults yet."]
    PAGE.write_text("\n\n".join(parts) + "\n")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
