"""Files of events: ROOT trees, Parquet and NPZ, by suffix, in bounded memory.

What to use when:

- `read_sample`: features and weights of a file as a `WeightedSample`, to fit or to evaluate.
- `open_table`, then `Table.chunks`: events in chunks, for files larger than memory.
- `create_store`: convert two samples that are too large for memory to an `EventStore`, shuffled on disk.
- `create_table`: write a new file chunk by chunk; `read_metadata` returns what was stored with it.
- `default_features`, `parse_features`, `resolve_features`, `weight_columns`: which columns and formulas are features, and
  which columns look like weights.
- `read_points`, `read_weight_vectors`: the weights of one sample at several parameter points.
- `parse_weights`, `read_weights`: several weights of the same events by name, such as variations of the nominal one.
- `parse_expression`: arithmetic of columns, for weights and selections.
"""

from quasiratio.io.column import Column
from quasiratio.io.creating import TableWriter, create_table
from quasiratio.io.event_store import EventStore, StoredRows, StoredSample
from quasiratio.io.expression.evaluation import Expression, parse_expression
from quasiratio.io.features import default_features, resolve_features
from quasiratio.io.file_format import FileFormat, Location, NewFile, TableFile, TableSink
from quasiratio.io.formulas import Feature, parse_features
from quasiratio.io.samples import read_sample
from quasiratio.io.store_conversion import create_store
from quasiratio.io.table import Table, open_table, read_metadata
from quasiratio.io.weight_names import weight_columns
from quasiratio.io.weight_points import WeightPoints, point_of_name, points_of_names, read_points
from quasiratio.io.weight_variations import parse_weights, read_weights
from quasiratio.io.weight_vectors import read_weight_vectors

__all__ = [
    "Column",
    "EventStore",
    "Expression",
    "Feature",
    "FileFormat",
    "Location",
    "NewFile",
    "StoredRows",
    "StoredSample",
    "Table",
    "TableFile",
    "TableSink",
    "TableWriter",
    "WeightPoints",
    "create_store",
    "create_table",
    "default_features",
    "open_table",
    "parse_expression",
    "parse_features",
    "parse_weights",
    "point_of_name",
    "points_of_names",
    "read_metadata",
    "read_points",
    "read_sample",
    "read_weight_vectors",
    "read_weights",
    "resolve_features",
    "weight_columns",
]
