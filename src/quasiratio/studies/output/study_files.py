"""What a study leaves in its directory: report.html, tables, figures, and its numbers for later comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quasiratio.atomic_files import write_file
from quasiratio.provenance import Provenance
from quasiratio.report import Facts, Report, Section, Table, Text, write_report
from quasiratio.studies.engine.study import Result
from quasiratio.wording import plain_json

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from quasiratio.plots.figure_files import Figure, FigureImage
    from quasiratio.report import Picture
    from quasiratio.studies.engine.study import Presentation, Settings, Study
    from quasiratio.tasks import Outcome

__all__ = ["RESULTS_NAME", "draw_pictures", "markdown_table", "results_table", "write_study_files"]


def draw_pictures(
    pictures: Mapping[str, Picture], directory: Path, executor: Executor | None
) -> dict[str, Picture]:
    """Write every figure as PDF and PNG, and return the pictures with the images for the page.

    Args:
        pictures: Figures by the stem of their files.
        directory: Where the files go; it must exist.
        executor: Processes that share this machine's files, or `None` to draw here.
    """
    images: dict[str, FigureImage] = {}
    if executor is not None:
        with suppress(BrokenExecutor):  # a process was killed; this one is still here
            largest_first = sorted(pictures, key=lambda name: -len(pictures[name].figure.axes))
            futures = {
                name: executor.submit(_drawn, pictures[name].figure, directory / name)
                for name in largest_first
            }
            images = {name: future.result() for name, future in futures.items()}
    return {
        name: replace(picture, image=images.get(name) or _drawn(picture.figure, directory / name))
        for name, picture in pictures.items()
    }


def _drawn(figure: Figure, stem: Path) -> FigureImage:
    from quasiratio.plots import save_figure, settled_layout  # noqa: PLC0415 - loads Matplotlib
    from quasiratio.plots.figure_files import figure_image  # noqa: PLC0415

    with settled_layout(figure):
        image = figure_image(figure)
        if image.media_type == "image/png":  # sharp enough for a file, too
            write_file(stem.with_name(f"{stem.name}.png"), image.content)
            save_figure(figure, stem, formats=("pdf",))
        else:
            save_figure(figure, stem, formats=("pdf", "png"))
    return image


RESULTS_NAME = "results.json"


def write_study_files(
    study: Study,
    settings: Settings,
    outcome: Outcome,
    directory: Path,
    command: str,
    executor: Executor | None = None,
) -> Presentation:
    """Present what is stored, write it, and return it with its figures as images.

    Args:
        study: The study that was run.
        settings: Its settings.
        outcome: What is stored.
        directory: Where the files go; it must exist.
        command: The command that repeats the run.
        executor: Processes of this machine that draw the figures; `None` to draw them here.
    """
    presentation = study.present(settings, outcome.rows)
    tables = dict(presentation.tables)
    if presentation.results:
        tables = {"results": results_table(presentation.results)} | tables
    for name, table in tables.items():
        write_file(directory / f"{name}.md", markdown_table(table).encode())
        if name != "results":
            content = {"caption": table.caption, "columns": list(table.columns), "rows": list(table.rows)}
            write_file(directory / f"{name}.json", (plain_json(content) + "\n").encode())
    _write_results(study, settings, outcome, presentation.results, directory)
    pictures = draw_pictures(presentation.pictures, directory, executor)
    drawn = replace(presentation, pictures=pictures)
    write_report(_report(study, settings, outcome, drawn, tables, command), directory / "report.html")
    return drawn


def results_table(results: Sequence[Result]) -> Table:
    """Return ours beside the published numbers.

    Example:
        >>> table = results_table([Result("slope ratio", 3.4, spread=0.2, published=3.6)])
        >>> [round(cell, 2) if isinstance(cell, float) else cell for cell in table.rows[0]]
        ['slope ratio', 3.6, 3.4, 0.2, 1, -1.0]
    """
    columns = [
        "quantity",
        "published",
        "ours",
        "spread",
        "seeds",
        "(ours - published) / spread",
    ]
    rows = [
        [one.name, one.published, one.value, one.spread, one.n_seeds, one.pull_of_published]
        for one in results
    ]
    return Table(columns, rows, caption="Results beside the published ones")


def markdown_table(table: Table) -> str:
    r"""Return a table as Markdown, numbers with four significant digits.

    Example:
        >>> print(markdown_table(Table(["a|b", "c"], [["x", 1.23456], ["y", None]])), end="")
        | a\|b | c |
        |---|---|
        | x | 1.235 |
        | y |  |
    """
    lines = [list(table.columns), *[[_cell(value) for value in row] for row in table.rows]]
    written = ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines]
    caption = [f"{table.caption}\n"] if table.caption else []
    return "\n".join([*caption, written[0], "|" + "---|" * len(table.columns), *written[1:]]) + "\n"


def _cell(value: str | float | None) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _write_results(
    study: Study, settings: Settings, outcome: Outcome, results: Sequence[Result], directory: Path
) -> None:
    content = {
        "study": study.name,
        "settings": dict(settings),
        "complete": outcome.is_complete,
        "seconds": round(outcome.seconds, 1),
        **_origin(outcome),
        "results": [
            {
                "name": one.name,
                "value": one.value,
                "spread": one.spread,
                "n_seeds": one.n_seeds,
                "published": one.published,
            }
            for one in results
        ],
    }
    write_file(directory / RESULTS_NAME, (plain_json(content) + "\n").encode())


def _origin(outcome: Outcome) -> dict[str, Any]:
    """Return versions, commit and machine; all that rows were computed with, where a store was filled in several runs."""
    sources = outcome.sources or [Provenance.here()]
    return {
        "versions": sources[-1].versions,
        **{
            name: ", ".join(dict.fromkeys(str(getattr(one, name)) for one in sources))
            for name in ("commit", "machine")
        },
    }


def _report(
    study: Study,
    settings: Settings,
    outcome: Outcome,
    presentation: Presentation,
    tables: Mapping[str, Table],
    command: str,
) -> Report:
    sections = [Section("Results", [*tables.values()])] if tables else []
    if presentation.pictures:
        sections.append(Section("Figures", [*presentation.pictures.values()]))
    if presentation.notes:
        sections.append(Section("Notes", [Text(note) for note in presentation.notes]))
    if outcome.failures:
        missing = Table(["task", "what went wrong"], [list(item) for item in outcome.failures.items()])
        sections.insert(0, Section("What is missing", [missing]))
    origin = _origin(outcome)
    facts = {name: json.dumps(value) for name, value in settings.items()}
    facts |= {"rows": str(len(outcome.rows)), "commit": origin["commit"], "machine": origin["machine"]}
    sections.append(Section("Settings", [Facts(facts)]))
    verdict = presentation.verdict
    if outcome.failures:
        verdict = f"{len(outcome.failures)} of {outcome.n_tasks} tasks failed. {verdict}"
    return Report(
        title=f"Study: {study.name}",
        verdict=verdict,
        sections=sections,
        command=command,
        subtitle=study.question,
        status="poor" if outcome.failures else "info",
    )
