"""What a study is: a question, settings, tasks that need nothing of each other, and a presentation.

To add one: make a folder in `studies/` whose `__init__.py` has a `Study` as `STUDY`. The registry finds it by the
folder's name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, stdev
from typing import TYPE_CHECKING, Any

from quasiratio.tasks.task import Row, Settings, Task

if TYPE_CHECKING:
    from quasiratio.report import Picture, Table

__all__ = ["Presentation", "Result", "Row", "Settings", "Study", "Task", "over_seeds"]


@dataclass(frozen=True)
class Result:
    """One number of the study, with its noise: what is compared with the paper and with other runs.

    Args:
        name: What it is, such as `"nonnegative / RoSMM / chi2"`.
        value: Median over seeds, or the result of a fit.
        spread: Standard deviation over seeds; for a fit, its standard error, with `n_seeds=1`. `None` where
            one seed gives no spread.
        n_seeds: How many values the value is the median of.
        published: The paper's number, if it has one.

    Example:
        >>> result = Result("toy / RoSMM / chi2", 1.2, spread=0.1, n_seeds=4, published=1.5)
        >>> round(result.pull_of_published, 1)
        -3.0
        >>> result.error
        0.05
    """

    name: str
    value: float
    spread: float | None = None
    n_seeds: int = 1
    published: float | None = None

    @property
    def error(self) -> float | None:
        """Standard error of the value."""
        return None if self.spread is None else self.spread / self.n_seeds**0.5

    @property
    def pull_of_published(self) -> float | None:
        """Ours minus published in units of the spread over seeds."""
        if self.published is None or not self.spread:
            return None
        return (self.value - self.published) / self.spread


def over_seeds(name: str, values: Iterable[float], published: float | None = None) -> Result | None:
    """Return the median over seeds with their standard deviation, or `None` where there is no value.

    The median, since a fit that failed on one seed must show in the spread and not in the number. Values that
    are NaN or infinite are left out, and do not count as seeds.

    Args:
        name: What the number is.
        values: One per seed.
        published: The paper's number, if it has one.

    Example:
        >>> result = over_seeds("toy / RoSMM / chi2", [1.0, 1.2, 2.6], published=4.22)
        >>> result.value, round(result.spread, 3), round(result.pull_of_published, 2)
        (1.2, 0.872, -3.46)
    """
    finite = [float(value) for value in values if math.isfinite(value)]
    if not finite:
        return None
    spread = stdev(finite) if len(finite) > 1 else None
    return Result(name, median(finite), spread, len(finite), published)


@dataclass(frozen=True)
class Presentation:
    """What a study says, made from its stored rows alone.

    Args:
        verdict: A sentence or two.
        tables: Tables of the report by the stem of their files.
        pictures: Figures of the report by the stem of their files.
        notes: Paragraphs: differences to the paper, choices, what is missing.
        results: The numbers to compare with other runs; written to `results.json`.

    Example:
        >>> Presentation("All is well.").notes
        ()
    """

    verdict: str
    tables: Mapping[str, Table] = field(default_factory=dict)
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    notes: Sequence[str] = ()
    results: Sequence[Result] = ()


@dataclass(frozen=True)
class Study:
    """A question and how to answer it.

    Args:
        name: Name on the command line.
        question: One sentence.
        presets: Settings by the name of the preset: `smoke`, `quick`, `full`.
        tasks: Cuts the work into pieces.
        compute: Does one piece in a worker and yields its rows one after the other; a function of a module,
            so that other processes find it. It makes its data from the seeds in the arguments.
        present: Turns stored rows, perhaps not all, into tables and figures.
        methods: Names of the methods it knows; the setting `methods` is a list of them.
        published_methods: Those of the paper, to which published settings restrict the methods of a preset.
        projected_seconds: Measures a few steps and returns the seconds that one worker would take for these
            settings; shown before `full` begins.
        uses_directory: Whether `compute` keeps files beside the store; `arguments["directory"]` then names the
            output directory, which exists where workers share the file system and else is to be made.

    Example:
        >>> study = Study(
        ...     name="squares",
        ...     question="What are squares?",
        ...     presets={"smoke": {"seeds": 2}},
        ...     tasks=lambda settings: [Task(f"seed-{s}", {"seed": s}) for s in range(settings["seeds"])],
        ...     compute=lambda arguments: [Row(f"square-{arguments['seed']}", {"value": arguments["seed"] ** 2})],
        ...     present=lambda settings, rows: Presentation(f"{len(rows)} of {settings['seeds']} squares."),
        ... )
        >>> study.present({"seeds": 2}, list(study.compute({"seed": 1}))).verdict
        '1 of 2 squares.'
    """

    name: str
    question: str
    presets: Mapping[str, Settings]
    tasks: Callable[[Settings], Sequence[Task]]
    compute: Callable[[dict[str, Any]], Iterable[Row]]
    present: Callable[[Settings, Sequence[Row]], Presentation]
    methods: Sequence[str] = ()
    published_methods: Sequence[str] = ()
    projected_seconds: Callable[[Settings], float] | None = None
    uses_directory: bool = False
