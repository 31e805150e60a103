"""Run the toy study in a process of its own: run_toy.py STORE SETTINGS LEASE."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.studies import toy_study

from quasiratio.studies.engine.conduct import run_study
from quasiratio.tasks.executors import local_workers

if __name__ == "__main__":
    with local_workers(1) as pool:
        outcome = run_study(
            toy_study.STUDY, json.loads(sys.argv[2]), Path(sys.argv[1]), pool, lease=float(sys.argv[3])
        )
    print(json.dumps(sorted(row.key for row in outcome.rows)))
