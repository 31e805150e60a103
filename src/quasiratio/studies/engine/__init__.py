"""Running the tasks of a study: locally, on a cluster, and after an interruption."""
