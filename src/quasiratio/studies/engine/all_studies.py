"""All studies by one command, each in a folder of its own, and one page that shows what they found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quasiratio.errors import InvalidInputError, QuasiratioError
from quasiratio.provenance import Provenance
from quasiratio.report import Facts, Link, Report, Section, Text, write_report
from quasiratio.studies.engine.conduct import (
    StudyOptions,
    conduct_study,
    require_study_directory,
    resolved_settings,
)
from quasiratio.studies.engine.registry import study_by_name, study_names
from quasiratio.studies.engine.study import Presentation, Study
from quasiratio.studies.output.study_files import results_table
from quasiratio.tasks import Outcome

__all__ = ["INDEX_NAME", "conduct_all_studies"]

INDEX_NAME = "index.html"


@dataclass(frozen=True)
class _Conducted:
    """A study of which something is there: what it found, or the sentence that says why it found nothing."""

    study: Study
    outcome: Outcome | None = None
    presentation: Presentation | None = None
    problem: str = ""

    @property
    def is_complete(self) -> bool:
        return self.outcome is not None and self.outcome.is_complete


def conduct_all_studies(
    directory: Path,
    options: StudyOptions,
    *,
    command: str,
    say: Callable[[str], None],
    quiet: bool = False,
    names: Sequence[str] | None = None,
) -> bool:
    """Run all studies, or what is left of them, and write `index.html`; return whether nothing is missing.

    The page is written anew after each study, so that an interrupted run has one, too. A study that cannot run (an extra
    is not installed, say) is named there, and the others go on. Options that a study does not have are left out for it.

    Args:
        directory: Where everything goes, each study in a folder of its name.
        options: How; `methods` and `samples` belong to single studies and are refused.
        command: The command that repeats it, for the page.
        say: Called with lines for the reader.
        quiet: Whether to show no progress.
        names: Studies to run, by default all.
    """
    if options.methods or options.samples is not None:
        what = "methods" if options.methods else "samples"
        msg = f"Got {what} for all studies; expected them with one. Leave them out, or name the study."
        raise InvalidInputError(msg)
    studies = [study_by_name(name) for name in names or study_names()]
    for study in studies:  # before hours of work, not between
        resolved_settings(study, _options_for(study, options))
        require_study_directory(directory / study.name, resume=options.resume, force=options.force)
    done: list[_Conducted] = []
    for study in studies:
        try:
            found = conduct_study(
                study,
                directory / study.name,
                _options_for(study, options),
                command=command,
                say=say,
                quiet=quiet,
            )
            done.append(_Conducted(study, *found))
        except QuasiratioError as error:
            say(f"{study.name}: {error}")
            done.append(_Conducted(study, problem=str(error)))
        directory.mkdir(parents=True, exist_ok=True)
        write_report(_index(done, studies, options, directory, command), directory / INDEX_NAME)
    return all(one.is_complete for one in done)


def _options_for(study: Study, options: StudyOptions) -> StudyOptions:
    """Leave out what the study does not have."""
    has = study.presets.get(options.preset, {})
    return replace(
        options,
        seeds=options.seeds if "seeds" in has else None,
        published_settings=options.published_settings and "published_settings" in has,
    )


def _index(
    done: Sequence[_Conducted],
    studies: Sequence[Study],
    options: StudyOptions,
    directory: Path,
    command: str,
) -> Report:
    sections = [_section(one, directory) for one in done]
    here = Provenance.here()
    facts = {"preset": options.preset, "commit": here.commit, "machine": here.machine}
    sections.append(Section("Settings", [Facts(facts)]))
    waiting = [study.name for study in studies[len(done) :]]
    missing = [one.study.name for one in done if not one.is_complete]
    sentences = [f"{len(done) - len(missing)} of {len(studies)} studies are complete."]
    if missing:
        sentences.append(f"Something is missing in {', '.join(missing)}; resume to try again.")
    if waiting:
        sentences.append(f"Not yet run: {', '.join(waiting)}.")
    if options.preset != "full":
        sentences.append(
            f"The preset {options.preset} has fewer events than the paper: do not compare its chi2 with the published ones."
        )
    return Report(
        title="All studies of arXiv:2410.10216",
        verdict=" ".join(sentences),
        sections=sections,
        command=command,
        subtitle="The results of the paper and ours beside them.",
        status="poor" if missing else "info",
    )


def _section(one: _Conducted, directory: Path) -> Section:
    title = f"{one.study.name}: {one.study.question}"
    if one.presentation is None:
        return Section(title, [Text(one.problem)])
    found = one.presentation
    blocks: list[Text | Link] = [Text(found.verdict)]
    if (directory / one.study.name / "report.html").exists():
        blocks.append(Link("Report with all tables and notes", f"{one.study.name}/report.html"))
    tables = [results_table(found.results)] if found.results else []
    return Section(title, [*blocks, *tables, *found.pictures.values()])
