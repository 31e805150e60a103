"""A study without physics, for tests of the runner; workers import it by name."""

from __future__ import annotations

import os
import time
from pathlib import Path

from quasiratio.studies import Presentation, Result, Row, Study, Task


def tasks(settings):
    return [
        Task(
            f"task-{number}",
            {"number": number, "seed": number}
            | {k: settings[k] for k in ("directory", "pause", "fail", "die")},
            rows=[f"square-{number}-{part}" for part in range(settings["parts"])],
        )
        for number in range(settings["n_tasks"])
    ]


def compute(arguments):
    """Write one line to a log for every row that is really computed."""
    number, log = arguments["number"], Path(arguments["directory"]) / "computed.log"
    if arguments["fail"] == number:
        msg = f"no square of {number}"
        raise ValueError(msg)
    if arguments["die"] == number and not (Path(arguments["directory"]) / "died").exists():
        (Path(arguments["directory"]) / "died").touch()
        os._exit(1)
    for part in range(2):
        key = f"square-{number}-{part}"
        if key in arguments["known"]:
            continue
        time.sleep(arguments["pause"])
        with log.open("a") as file:
            file.write(f"{key} {os.getpid()}\n")
        yield Row(key, {"square": number**2, "part": part})


def present(settings, rows):
    total = float(sum(row.values["square"] for row in rows))
    return Presentation(
        f"{len(rows)} of {2 * settings['n_tasks']} squares.",
        results=[Result("sum of squares", total, spread=1.0)],
    )


def settings(directory, *, n_tasks=4, pause=0.0, fail=-1, die=-1):
    return {
        "n_tasks": n_tasks, "parts": 2, "directory": str(directory), "pause": pause, "fail": fail, "die": die,
    }  # fmt: skip


STUDY = Study(
    name="toy",
    question="What are squares?",
    presets={"smoke": {"seeds": 1}},
    tasks=tasks,
    compute=compute,
    present=present,
)
