"""Run every benchmark, then write the page: `make bench` (about two hours on two cores)."""

from __future__ import annotations

import subprocess
import sys

for name in (
    "accuracy",
    "published",
    "training_time",
    "throughput",
    "read_root",
    "apply_stream",
    "onnx_agreement",
    "peers",
    "positive",
    "coverage",
    "kills",
    "report",
):
    print(f"== {name}", flush=True)
    subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)
