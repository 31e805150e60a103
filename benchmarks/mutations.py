"""Random mutations of everything that is read back, counted: refused with one sentence, or read.

`python -m benchmarks.mutations [--mutations 500]` runs those of `tests/test_random_damage.py`, which stop at any exception
that is not ours, and writes `benchmarks/results/mutations.json`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.test_random_damage import KINDS, check, make_originals

from benchmarks.results import write_rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mutations", type=int, default=500)
    n_mutations = parser.parse_args().mutations
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        originals = make_originals(Path(directory))
        for kind in KINDS:
            with tempfile.TemporaryDirectory() as scratch:
                n_refused = check(kind, range(n_mutations), Path(scratch), originals)
            rows.append({"kind": kind, "mutations": n_mutations, "refused": n_refused, "other exceptions": 0})
            print(rows[-1], flush=True)
            write_rows("mutations", rows)


if __name__ == "__main__":
    main()
