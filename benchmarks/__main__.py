"""Run every benchmark that needs no other files, then write the page: `make bench` (most of a day on two cores).

Rows that are there already are not computed again where a benchmark keeps them one by one: `trusted`, `coverage`,
`accuracy`, `published`, `recipe` and `mined`. `gg_hh_accuracy` takes generated events as arguments, and is run by hand.
"""

from __future__ import annotations

import subprocess
import sys

NAMES = (
    "trusted",
    "recipe",
    "default_fit",
    "accuracy",
    "published",
    "coverage",
    "positive",
    "mined",
    "peers",
    "training_time",
    "throughput",
    "read_root",
    "apply_stream",
    "many_files",
    "ranks",
    "beyond_memory",
    "stay_in_files",
    "onnx_agreement",
    "weight_variance_speed",
    "gg_hh_speed",
    "kills",
    "report",
)

if __name__ == "__main__":
    for name in NAMES:
        print(f"== {name}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)
