"""Studies: the results of arXiv:2410.10216 and ours beside them, by one command each.

A `Study` cuts its question into independent tasks, computes them anywhere, and presents what is stored. The
runner knows nothing of physics: it sends tasks to workers, keeps every row in SQLite as soon as it is known,
and goes on where it was interrupted.
"""

from quasiratio.studies.engine.study import Presentation, Result, Row, Settings, Study, Task

__all__ = ["Presentation", "Result", "Row", "Settings", "Study", "Task"]
