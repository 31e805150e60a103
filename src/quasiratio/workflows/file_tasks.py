"""Many files, one output for each: where outputs go, what is done already, and who does the rest.

Each file is a task of `quasiratio.tasks`; what is known of it is kept in a store beside the outputs. A run that was
killed goes on with `resume=True`: files whose input, model and options are the same, and whose output is there, are not
done again. An output appears when it is whole, so that nothing half-written is ever taken for done.
"""

from __future__ import annotations

import hashlib
import os
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quasiratio.atomic_files import remove_stale
from quasiratio.errors import InvalidInputError, QuasiratioError, RunInterrupted
from quasiratio.io import read_metadata
from quasiratio.io.file_format import Location
from quasiratio.io.remote import RemotePath
from quasiratio.outputs import create_output_directory, require_output_directory, require_output_name
from quasiratio.progress import ShowTasks
from quasiratio.provenance import Provenance
from quasiratio.registry import FORMATS
from quasiratio.tasks import Outcome, ResultStore, Row, Task, WorkerPool, run_tasks

__all__ = ["FileTask", "FileTasks", "input_fingerprint", "planned_files"]

_ENDS_BYTES = 1 << 16
_FIELDS = ("stem", "suffix", "parent", "number")


@dataclass(frozen=True)
class FileTask:
    """One input and its output.

    Attributes:
        location: The input.
        output: The file to be written.
    """

    location: Location
    output: Path


def planned_files(
    locations: Sequence[Location], directory: Path, pattern: str, *, overwrite: bool = False
) -> list[FileTask]:
    """Name the output of each input, or say why it cannot have that name; nothing is written yet.

    Args:
        locations: The inputs.
        directory: Where outputs go.
        pattern: Their names, out of `{stem}`, `{suffix}`, `{parent}` (the directory of the input) and `{number}` (from 1).
        overwrite: Whether outputs that are there may be replaced.

    Example:
        >>> inputs = [Location(Path("a/events.root")), Location(Path("b/events.root"))]
        >>> [str(one.output) for one in planned_files(inputs, Path("new"), "{parent}_{stem}{suffix}")]
        ['new/a_events.root', 'new/b_events.root']
        >>> planned_files(inputs, Path("new"), "{stem}{suffix}")
        Traceback (most recent call last):
        ...
        quasiratio.errors.InvalidInputError: Got 'a/events.root' and 'b/events.root', whose outputs would both be 'new/events.root'; ...
    """
    _require_pattern(pattern)
    planned: dict[Path, FileTask] = {}
    for number, location in enumerate(locations, start=1):
        output = directory / _name(location, pattern, number)
        if output in planned:
            msg = (
                f"Got {str(planned[output].location.path)!r} and {str(location.path)!r}, whose outputs would both be "
                f"{str(output)!r}; expected one output for each."
            )
            raise InvalidInputError(
                msg, advice="Tell them apart with `name_pattern='{parent}_{stem}{suffix}'`."
            )
        planned[output] = FileTask(location, output)
    inputs = {one.path.resolve() for one in locations if isinstance(one.path, Path)}
    for task in planned.values():
        if task.output.resolve() in inputs:
            msg = f"Got {str(task.output)!r} as output and as input; expected different files."
            raise InvalidInputError(msg, advice="Choose another `output_dir` or `name_pattern`.")
        if not overwrite and os.path.lexists(task.output):
            msg = f"Got the output {str(task.output)!r}, which exists; expected new files."
            raise InvalidInputError(msg, advice="Choose another `output_dir`, or add `overwrite=True`.")
    return list(planned.values())


def _require_pattern(pattern: str) -> None:
    try:
        fields = [field for _, field, _, _ in string.Formatter().parse(pattern) if field is not None]
    except ValueError as error:
        raise _unusable(pattern, str(error)) from error
    unknown = [field for field in fields if field not in _FIELDS]
    if unknown:
        raise _unusable(pattern, f"{{{unknown[0]}}} is not known")


def _unusable(pattern: str, why: str) -> InvalidInputError:
    known = ", ".join(f"{{{field}}}" for field in _FIELDS)
    msg = f"Got the pattern {pattern!r} for names of outputs ({why}); expected text with {known}."
    return InvalidInputError(msg, advice="Write `name_pattern='{stem}_new{suffix}'`.")


def _name(location: Location, pattern: str, number: int) -> Path:
    path = location.path
    parent = path.parent_name if isinstance(path, RemotePath) else path.absolute().parent.name
    try:
        text = pattern.format(stem=path.stem, suffix=path.suffix, parent=parent, number=number)
    except (ValueError, TypeError) as error:
        raise _unusable(pattern, str(error)) from error
    name = Path(text)
    if name.is_absolute() or ".." in name.parts or "\0" in text:
        raise _unusable(pattern, "outputs stay in their directory")
    if name.suffix.lower() not in FORMATS:
        raise _unusable(
            pattern, f"{text!r} with the suffix {name.suffix!r} is none of {FORMATS.suffix_names()}"
        )
    return require_output_name(name, "file", option="name_pattern")


def input_fingerprint(location: Location) -> dict[str, Any]:
    """Return what tells whether a file is still the same: size, time of change, and a hash of its beginning and end.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     place = Location(Path(directory) / "a.npz")
        ...     _ = place.path.write_bytes(b"events")
        ...     input_fingerprint(place)["size"]
        6
    """
    path = location.path
    if isinstance(path, RemotePath):
        return path.described()
    try:
        status = path.stat()
        with path.open("rb") as file:
            ends = hashlib.sha256(file.read(_ENDS_BYTES))
            file.seek(max(0, status.st_size - _ENDS_BYTES))
            ends.update(file.read(_ENDS_BYTES))
    except OSError as error:
        msg = f"Got {str(path)!r}, which cannot be read ({error.strerror}); expected a readable file. Check its mode."
        raise InvalidInputError(msg) from error
    return {"size": status.st_size, "changed": status.st_mtime_ns, "ends": ends.hexdigest()}


@dataclass(frozen=True)
class FileTasks:
    """A directory of outputs in the making.

    Args:
        command: Who writes it, for the store and for messages.
        directory: Where outputs go.
        settings: Plain values that decide every output, such as the model and the options; a store that was made with
            others is refused.
        arguments: What the function of a task gets besides `source`, `output` and `allow_large`.
    """

    command: str
    directory: Path
    settings: Mapping[str, Any]
    arguments: Mapping[str, Any]

    @property
    def store_path(self) -> Path:
        """The store of what is done."""
        return self.directory / f"quasiratio-{self.command}.sqlite"

    def planned(
        self, locations: Sequence[Location], pattern: str, *, resume: bool, overwrite: bool
    ) -> list[FileTask]:
        """Name all outputs before anything starts; see `planned_files`."""
        require_output_directory(self.directory, option="output_dir")
        known = self.store_path.exists()
        if known and not (resume or overwrite):
            msg = f"Got the output directory {str(self.directory)!r}, in which files of an earlier run are; expected a free name."
            raise InvalidInputError(
                msg, advice="Add `resume=True` to go on with it, or `overwrite=True` to begin again."
            )
        tasks = planned_files(locations, self.directory, pattern, overwrite=overwrite or (resume and known))
        if resume and known and not overwrite:
            self._require_own(tasks)
        return tasks

    def _require_own(self, tasks: Sequence[FileTask]) -> None:
        """Raise where an output is there that no run of this store has begun."""
        with self._store() as store:
            known = set(store.states())
        for task in tasks:
            if os.path.lexists(task.output) and self.key(task) not in known and not _is_ours(task.output):
                msg = f"Got the output {str(task.output)!r}, which exists and is of no earlier run; expected a new file."
                raise InvalidInputError(msg, advice="Choose another `output_dir`, or add `overwrite=True`.")

    def run(
        self,
        compute: Callable[[dict[str, Any]], Iterable[Row]],
        tasks: Sequence[FileTask],
        pool: WorkerPool,
        *,
        own: Mapping[str, Mapping[str, Any]] | None = None,
        show: ShowTasks | None = None,
    ) -> Outcome:
        """Do what is not done, and return the rows and failures of these files alone.

        Args:
            compute: Writes one output, and yields one row named after it (`arguments["output"]`).
            tasks: What to do.
            pool: Who does it.
            own: What a task gets besides the arguments of all, by its key.
            show: Called with files done and in all.
        """
        for parent in {task.output.parent for task in tasks}:
            create_output_directory(parent, option="output_dir")
        with self._store() as store:
            outcome = run_tasks(
                compute, [self._task(task, own or {}) for task in tasks], store, pool, show=show, n_ahead=1
            )
        wanted = {self.key(task) for task in tasks}
        rows = [row for row in outcome.rows if row.key in wanted]
        return Outcome(rows, outcome.failures, len(tasks), outcome.seconds, outcome.sources)

    @contextmanager
    def tidied(self, tasks: Sequence[FileTask]) -> Iterator[None]:
        """Remove what workers were writing when an interruption ended them, and say how to go on.

        Args:
            tasks: What they do; the workers live within this block.
        """
        try:
            yield
        except (KeyboardInterrupt, SystemExit) as error:
            for directory in {task.output.parent for task in tasks}:
                remove_stale(directory)
            if isinstance(error, SystemExit) or not self.store_path.exists():
                raise
            msg = f"Interrupted; what is done is kept in {str(self.directory)!r}."
            raise RunInterrupted(msg, advice="Repeat the command with `resume=True` to go on.") from None

    def _store(self) -> ResultStore:
        create_output_directory(self.directory, option="output_dir")
        return ResultStore(self.store_path, self.command, self.settings, Provenance.here())

    def key(self, task: FileTask) -> str:
        """Name of a task: that of its output in the directory."""
        return task.output.relative_to(self.directory).as_posix()

    def _task(self, task: FileTask, own: Mapping[str, Mapping[str, Any]]) -> Task:
        key = self.key(task)
        place = {
            "key": key,
            "source": task.location.text,
            "output": str(task.output.absolute()),
            "allow_large": task.location.allow_large,
        }
        return Task(key, {**self.arguments, **own.get(key, {}), **place}, rows=[key])

    def forget_changed(self, tasks: Sequence[FileTask], *, afresh: bool = False) -> int:
        """Forget what was done with an input that has changed since, or whose output is gone; count what remains done.

        Args:
            tasks: What is to be done.
            afresh: Forget everything, and what it was done with: the last thing before work begins, so that a command that is
                refused has changed nothing.
        """
        if afresh:
            self.store_path.unlink(missing_ok=True)
        n_done = 0
        with self._store() as store:
            known = {row.key: row.values for row in store.rows()}
            for task in tasks:
                done = known.get(self.key(task))
                if done is None:
                    continue
                if done.get("source") == task.location.text and _is_same(done, task):
                    n_done += 1
                else:
                    store.forget(self.key(task))
        return n_done


def _is_same(done: Mapping[str, Any], task: FileTask) -> bool:
    try:
        is_there = task.output.is_file() or not done.get("is_written", True)
        return is_there and done.get("fingerprint") == input_fingerprint(task.location)
    except QuasiratioError:  # its task will say what is wrong
        return False


def _is_ours(path: Path) -> bool:
    """Whether a file was written by us, in a run that was killed before it could note that."""
    try:
        return "quasiratio" in read_metadata(path)
    except QuasiratioError:
        return False
