"""Run a study on a batch system: study_on_cluster.py SITE WORKERS -- STUDY [OPTIONS of quasiratio study].

SITE is condor or slurm (both need dask-jobqueue), or local for a trial on this machine. The scheduler runs here,
workers are jobs of the batch system. Everything that was computed stays in the output directory: the same
command with --resume goes on after this process, or the whole cluster, was ended.
"""

from __future__ import annotations

import subprocess
import sys


def cluster_of(site: str):
    """Return a Dask cluster; adapt memory, time and queue to the site."""
    if site == "local":
        from distributed import LocalCluster  # noqa: PLC0415

        return LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
        )
    # One core per worker: small networks gain nothing from more threads.
    job = {
        "cores": 1,
        "processes": 1,
        "memory": "4 GB",
        "death_timeout": 300,
        "job_script_prologue": ["export OMP_NUM_THREADS=1"],
    }
    if site == "slurm":
        from dask_jobqueue import SLURMCluster  # noqa: PLC0415

        # Add queue="...", account="..." as your site needs.
        return SLURMCluster(walltime="04:00:00", **job)
    if site == "condor":
        from dask_jobqueue import HTCondorCluster  # noqa: PLC0415

        # Add job_extra_directives={"+JobFlavour": '"workday"'} as your site needs.
        return HTCondorCluster(disk="2 GB", **job)
    sys.exit(f"Got the site {site!r}; expected condor, slurm or local.")


def main() -> int:
    if len(sys.argv) < 5 or sys.argv[3] != "--":
        sys.exit(__doc__)
    site, n_workers, study = sys.argv[1], int(sys.argv[2]), sys.argv[4:]
    with cluster_of(site) as cluster:
        cluster.scale(n_workers)
        # Begins with the first worker; those that start later, or again, join in.
        cluster.wait_for_workers(1)
        command = [sys.executable, "-m", "quasiratio", "study", *study]
        return subprocess.run(  # noqa: S603
            [*command, "--scheduler", cluster.scheduler_address], check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
