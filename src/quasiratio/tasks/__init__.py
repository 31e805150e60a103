"""Work that is cut into tasks, done by many processes or machines, and kept: what studies and files share.

What to use when:

- `chosen_workers`: this process, local processes or a Dask cluster, behind `concurrent.futures.Executor`.
- `import_early`: local processes soon, which then need not import anything.
- `run_tasks`: tasks whose rows are kept in a `ResultStore` as soon as they are known. Killed at any moment, the next run
  goes on; several runs may share a store.
- `ordered_results`: the results of one function for many arguments, in their order, nothing kept.

Both try again where a worker died (`Submissions`).
"""

from quasiratio.tasks.early_imports import import_early
from quasiratio.tasks.executors import WorkerPool, chosen_workers, dask_workers, local_workers, own_process
from quasiratio.tasks.runner import Outcome, run_tasks
from quasiratio.tasks.store import LEASE_SECONDS, ResultStore
from quasiratio.tasks.submissions import Submissions, ordered_results
from quasiratio.tasks.task import Row, Settings, Task

__all__ = [
    "LEASE_SECONDS",
    "Outcome",
    "ResultStore",
    "Row",
    "Settings",
    "Submissions",
    "Task",
    "WorkerPool",
    "chosen_workers",
    "dask_workers",
    "import_early",
    "local_workers",
    "ordered_results",
    "own_process",
    "run_tasks",
]
