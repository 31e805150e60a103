"""A study from its name to its report: settings, directory, workers, results, files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from quasiratio.errors import InvalidInputError
from quasiratio.progress import ShowTasks, duration_text, study_progress
from quasiratio.provenance import Provenance
from quasiratio.studies.engine.study import Presentation, Settings, Study
from quasiratio.studies.output.study_files import write_study_files
from quasiratio.tasks import LEASE_SECONDS, Outcome, ResultStore, WorkerPool, chosen_workers, run_tasks

__all__ = [
    "STORE_NAME",
    "StudyOptions",
    "conduct_study",
    "require_study_directory",
    "resolved_settings",
    "run_study",
]

STORE_NAME = "results.sqlite"
_MOST_SEEDS = 10_000


@dataclass(frozen=True)
class StudyOptions:
    """How to run a study.

    Args:
        preset: Name of the settings to start from.
        resume: Whether to go on with what the directory holds.
        force: Whether to write among files that are not of a study.
        jobs: Local processes; `None` for one per core.
        scheduler: Address of a Dask scheduler instead.
        seeds: Number of seeds, or `None` for the preset's.
        methods: Methods to run, or none for the preset's.
        published_settings: Whether to use the paper's networks and schedules, for its methods alone unless `methods`
            names others.
        samples: Files of the reference and of the target, where the study can do with given events.

    Example:
        >>> StudyOptions(preset="smoke", jobs=2).scheduler is None
        True
    """

    preset: str = "quick"
    resume: bool = False
    force: bool = False
    jobs: int | None = None
    scheduler: str | None = None
    seeds: int | None = None
    methods: Sequence[str] = ()
    published_settings: bool = False
    samples: tuple[Path, Path] | None = None


def conduct_study(
    study: Study,
    directory: Path,
    options: StudyOptions,
    *,
    command: str,
    say: Callable[[str], None],
    quiet: bool = False,
) -> tuple[Outcome, Presentation]:
    """Run a study, or what is left of it, and write its report, tables and figures.

    Args:
        study: What to run.
        directory: Where everything goes.
        options: How.
        command: The command that repeats it, for the report.
        say: Called with lines for the reader.
        quiet: Whether to show no progress.
    """
    settings = resolved_settings(study, options)
    require_study_directory(directory, resume=options.resume, force=options.force)
    with chosen_workers(options.jobs, options.scheduler) as pool:
        directory.mkdir(parents=True, exist_ok=True)
        say(f"{study.name}, preset {options.preset}, on {pool.description}.")
        if options.preset == "full" and study.projected_seconds is not None:
            seconds = study.projected_seconds(settings) / pool.capacity()
            say(f"Projected time, from a few measured steps: {duration_text(seconds)}.")
        with study_progress(study.name, quiet=quiet) as show:
            outcome = run_study(study, settings, directory, pool, show=show)
        with _drawing_workers(pool) as executor:
            presentation = write_study_files(study, settings, outcome, directory, command, executor)
    say(presentation.verdict)
    for key, sentence in outcome.failures.items():
        say(f"Missing: {key} ({sentence})")
    if outcome.failures:
        say(f"{len(outcome.failures)} of {outcome.n_tasks} tasks failed; `resume=True` tries them again.")
    return outcome, presentation


def run_study(
    study: Study,
    settings: Settings,
    directory: Path,
    pool: WorkerPool,
    *,
    show: ShowTasks | None = None,
    lease: float = LEASE_SECONDS,
) -> Outcome:
    """Compute what is not stored yet.

    Args:
        study: What to run.
        settings: With which settings.
        directory: Where the store is, or will be.
        pool: Who computes.
        show: Called with rows (or tasks) done and in all.
        lease: Seconds after which the claims of a runner that died are taken over.
    """
    tasks = list(study.tasks(settings))
    if study.uses_directory:
        place = {"directory": str(directory.resolve())}
        tasks = [replace(task, arguments={**task.arguments, **place}) for task in tasks]
    with ResultStore(directory / STORE_NAME, study.name, settings, Provenance.here()) as store:
        return run_tasks(study.compute, tasks, store, pool, show=show, lease=lease)


def resolved_settings(study: Study, options: StudyOptions) -> Settings:
    """Return the settings of a preset with the options on top.

    Example:
        >>> study = Study("toy", "Why?", {"smoke": {"seeds": 1}}, tasks=list, compute=list, present=print)
        >>> resolved_settings(study, StudyOptions(preset="smoke", seeds=3))
        {'seeds': 3, 'preset': 'smoke'}
    """
    if options.preset not in study.presets:
        msg = f"Got the preset {options.preset!r}; expected one of {', '.join(study.presets)}."
        raise InvalidInputError(msg)
    settings: dict[str, Any] = {**study.presets[options.preset], "preset": options.preset}
    given: dict[str, Any] = {}
    if options.seeds is not None:
        given["seeds"] = options.seeds
    if options.methods:
        given["methods"] = _checked_methods(study, options.methods)
    if options.published_settings:
        given["published_settings"] = True
        if study.published_methods and not options.methods:
            given["methods"] = [name for name in settings["methods"] if name in study.published_methods]
    if options.samples is not None:
        given["samples"] = [str(path.resolve()) for path in options.samples]
    for name in given:
        if name not in settings:
            advice = f"Got `{name}`, which the study {study.name!r} does not have. Leave it out."
            raise InvalidInputError(advice=advice)
    if options.seeds is not None and not 1 <= options.seeds <= _MOST_SEEDS:
        advice = f"Got `seeds={options.seeds}`; expected at least 1 and at most {_MOST_SEEDS:,}."
        raise InvalidInputError(advice=advice)
    return settings | given


def _checked_methods(study: Study, methods: Sequence[str]) -> list[str]:
    unknown = [method for method in methods if method not in study.methods]
    if study.methods and unknown:
        msg = f"Got the method {unknown[0]!r}; expected some of {', '.join(study.methods)}."
        raise InvalidInputError(msg)
    return list(dict.fromkeys(methods))


@contextmanager
def _drawing_workers(pool: WorkerPool) -> Iterator[Executor | None]:
    """Yield processes that see the output directory, or None; an interruption does not wait for them."""
    if not pool.sees_store:
        yield None
        return
    executor = pool.make_executor()
    try:
        yield executor
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


def require_study_directory(directory: Path, *, resume: bool, force: bool) -> None:
    """Refuse a directory that holds something, unless the run goes on with it."""
    if directory.exists() and not directory.is_dir():
        msg = f"Got the output directory {str(directory)!r}, which is a file; expected a directory or a free name."
        raise InvalidInputError(msg)
    if not directory.is_dir() or not any(directory.iterdir()):
        return
    is_study = (directory / STORE_NAME).exists()
    if (resume and is_study) or (force and not is_study):
        return
    what, way_out = (
        ("results of a study", "Add `resume=True` to go on with it")
        if is_study
        else ("files", "Add `force=True`")
    )
    msg = f"Got the output directory {str(directory)!r}, which holds {what}; expected an empty one or a free name."
    raise InvalidInputError(msg, advice=f"{way_out}, or choose another with `output`.")
