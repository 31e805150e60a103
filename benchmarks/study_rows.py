"""The rows of a study as one small file, so that a long run can go on in another place.

The store of a study is a SQLite file that git would keep whole for every commit; its rows are a few hundred bytes each.

    python -m benchmarks.study_rows save DIR FILE.jsonl.gz     # what is computed so far
    python -m benchmarks.study_rows load FILE.jsonl.gz DIR     # a store again, in a free directory
    quasiratio study weight-variance --preset full --resume -o DIR
    python -m benchmarks.study_rows show DIR                   # report and results.json of what there is

A row keeps its task, seed, seconds, versions, commit and machine. Loading adds to a store what it lacks; two files of one
study with the same settings can be loaded into one directory.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

from quasiratio.atomic_files import write_file
from quasiratio.provenance import Provenance
from quasiratio.studies.engine.conduct import STORE_NAME
from quasiratio.studies.engine.registry import study_by_name
from quasiratio.studies.engine.study import Row
from quasiratio.studies.output.study_files import write_study_files
from quasiratio.tasks import Outcome, ResultStore

_LEFT_OUT = {("weight-variance", "rosmm_r"): ("validation_loss",)}
"""Values that nothing is drawn or computed from, by study and model: curves are most of a row."""
_FIRST_LINE = ("study", "settings", "sources")


def save_rows(directory: Path, file: Path) -> int:
    """Write the rows of a study's directory, in the order of their keys, and return how many there are."""
    path = directory / STORE_NAME
    if not path.exists():
        msg = f"Got the directory {str(directory)!r} without {STORE_NAME}; expected one that a study has written."
        raise SystemExit(msg)
    with ResultStore.joined(path, run=0) as store:
        study, records = store.study_name(), store.records()
    sources: list[dict[str, Any]] = []
    lines = []
    for record in records:
        source = {name: record[name] for name in ("versions", "commit", "machine")}
        if source not in sources:
            sources.append(source)
        left_out = _LEFT_OUT.get((study, record["result"].get("model")), ())
        values = {name: value for name, value in record["result"].items() if name not in left_out}
        row = [
            record["key"],
            record["task"],
            record["seed"],
            round(record["seconds"], 2),
            sources.index(source),
        ]
        lines.append([*row, values])
    settings = records[0]["settings"] if records else {}
    head = dict(zip(_FIRST_LINE, (study, settings, sources), strict=True))
    text = "\n".join(json.dumps(line, separators=(",", ":")) for line in (head, *lines)) + "\n"
    # Without the time of day in its header, so that the same rows are the same file.
    write_file(file, gzip.compress(text.encode(), compresslevel=9, mtime=0))
    return len(lines)


def rows_of_file(file: Path) -> tuple[dict[str, Any], list[list[Any]]]:
    """Return the first line of a file, and its rows: key, task, seed, seconds, number of the source, values."""
    first, *lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).decode().splitlines()]
    return first, lines


def load_rows(file: Path, directory: Path) -> int:
    """Add the rows of a file to the store of a directory, which is made where it is missing; return how many were added."""
    first, lines = rows_of_file(file)
    study, settings, sources = (first[name] for name in _FIRST_LINE)
    directory.mkdir(parents=True, exist_ok=True)
    n_added = 0
    for index, source in enumerate(sources):
        with ResultStore(directory / STORE_NAME, study, settings, Provenance(**source)) as store:
            for key, task, seed, seconds, of_source, values in lines:
                if of_source == index:
                    n_added += store.add(task, Row(key, values), seconds=seconds, seed=seed)
    return n_added


def show_rows(directory: Path) -> int:
    """Write report, tables, figures and `results.json` of a run that is not complete, and return its number of rows."""
    with ResultStore.joined(directory / STORE_NAME, run=0) as store:
        study, rows = study_by_name(store.study_name()), store.rows()
        settings, seconds, sources = store.records()[0]["settings"], store.seconds(), store.sources()
    known = {row.key for row in rows}
    tasks = study.tasks(settings)
    missing = {
        task.key: f"{len(left)} of {len(task.rows)} rows are not computed yet"
        for task in tasks
        if (left := set(task.rows) - known)
    }
    outcome = Outcome(rows, missing, len(tasks), seconds, sources)
    write_study_files(study, settings, outcome, directory, f"quasiratio study {study.name} --resume")
    return len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["save", "load", "show"])
    parser.add_argument("source", type=Path)
    parser.add_argument("goal", type=Path, nargs="?")
    arguments = parser.parse_args()
    if (arguments.goal is None) != (arguments.what == "show"):
        parser.error("save and load need two paths, show needs one")
    if arguments.what == "show":
        print(f"{show_rows(arguments.source)} rows shown in {arguments.source / 'report.html'}.")
    elif arguments.what == "save":
        n_rows = save_rows(arguments.source, arguments.goal)
        print(f"{n_rows} rows in {arguments.goal} ({arguments.goal.stat().st_size / 1e3:.0f} kB).")
    else:
        print(f"{load_rows(arguments.source, arguments.goal)} rows added to {arguments.goal}.")


if __name__ == "__main__":
    main()
