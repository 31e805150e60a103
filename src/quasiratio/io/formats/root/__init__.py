"""ROOT files through uproot: TTrees and RNTuples are read, TTrees are written. Together they exceed one file."""

from quasiratio.io.file_format import FileFormat
from quasiratio.io.formats.root.reading import open_root_file
from quasiratio.io.formats.root.writing import RootSink

__all__ = ["ROOT"]

ROOT = FileFormat(open_root_file, RootSink, has_trees=True)
