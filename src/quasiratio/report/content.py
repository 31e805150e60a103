"""What a report says: plain values, with nothing of HTML in them.

A `Report` has sections, a section has blocks, and a block is prose, a list of facts, a table, a picture or a link. Strings
are taken as they are: they are escaped when the page is written, so that names of features may hold anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from quasiratio.errors import InvalidInputError

if TYPE_CHECKING:
    from quasiratio.plots.figure_files import Figure, FigureImage

__all__ = ["Block", "Cell", "Facts", "Link", "Picture", "Report", "Section", "Status", "Table", "Text"]

Cell = str | float | int | None
Status = Literal["good", "fair", "poor", "info"]


@dataclass(frozen=True)
class Text:
    """Prose; an empty line begins a new paragraph.

    Args:
        paragraph: Plain text.

    Example:
        >>> Text("Weights are signed.").paragraph
        'Weights are signed.'
    """

    paragraph: str


@dataclass(frozen=True)
class Facts:
    """Names and values, shown as a list of definitions.

    Args:
        entries: Values by name. An entry called `seed` is repeated at the foot of the page.

    Example:
        >>> Facts({"seed": 3, "method": "sign-resolved"}).entries["seed"]
        3
    """

    entries: Mapping[str, str | float | int]


@dataclass(frozen=True)
class Table:
    """A table that readers can sort by any column.

    Args:
        columns: Headings.
        rows: One value per column; floats are shown with three significant digits, `None` and NaN stand last
            however the table is sorted.
        caption: Line above the table.

    Example:
        >>> len(Table(["observable", "chi2"], [["pt", 1.2], ["eta", None]]).rows)
        2
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                msg = (
                    f"Got {len(row)} values in row {number} of the table {self.caption!r}; expected one for each of "
                    f"its {len(self.columns)} columns. Fill the gaps with None."
                )
                raise InvalidInputError(msg)


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure with its caption.

    Args:
        figure: The figure, as the functions of `quasiratio.plots` return it.
        caption: What there is to see; also read aloud to those who cannot.
        title: Short name, by which the index lists the picture.
        image: The figure as it was drawn already; by default it is drawn for the page.

    Example:
        >>> from quasiratio.plots import weight_figure
        >>> Picture(weight_figure({"target": [1.0, -0.5]}), "Weights of the target.", "Weights").title
        'Weights'
    """

    figure: Figure
    caption: str
    title: str = ""
    image: FigureImage | None = None


@dataclass(frozen=True)
class Link:
    """A line that leads to a file beside the page.

    Args:
        label: What it says.
        address: Where it leads, relative to the page.

    Example:
        >>> Link("The whole report", "toys/report.html").address
        'toys/report.html'
    """

    label: str
    address: str


Block = Text | Facts | Table | Picture | Link


@dataclass(frozen=True, eq=False)
class Section:
    """Figures and prose of one topic.

    Args:
        title: Heading, listed in the index.
        blocks: What stands under it, in order.

    Example:
        >>> Section("Data", [Facts({"events": 1000})]).title
        'Data'
    """

    title: str
    blocks: Sequence[Block]

    def __post_init__(self) -> None:
        given: Sequence[object] = self.blocks
        for block in given:
            if not isinstance(block, Block):
                msg = f"Got {type(block).__name__} in the section {self.title!r}; expected Text, Facts, Table, Picture or Link."
                raise InvalidInputError(msg)


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that one page shows.

    Args:
        title: Title of the page.
        verdict: The result in words, above everything else; an empty line begins a new paragraph.
        sections: The body.
        command: The command that repeats the work, for a shell.
        subtitle: Line under the title.
        status: How the verdict is marked: `"good"`, `"fair"`, `"poor"`, or `"info"` where nothing can be judged.

    Example:
        >>> report = Report("Closure", "Closes.", [], "quasiratio evaluate model a.npz b.npz -o report", status="good")
        >>> report.status
        'good'
    """

    title: str
    verdict: str
    sections: Sequence[Section]
    command: str
    subtitle: str = ""
    status: Status = "info"

    def __post_init__(self) -> None:
        if self.status not in get_args(Status):
            msg = f"Got the status {self.status!r}; expected one of {list(get_args(Status))}."
            raise InvalidInputError(msg)

    @property
    def facts(self) -> dict[str, Any]:
        """All facts of all sections."""
        blocks = [block for section in self.sections for block in section.blocks]
        return {
            name: value
            for block in blocks
            if isinstance(block, Facts)
            for name, value in block.entries.items()
        }
