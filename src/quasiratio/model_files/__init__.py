"""Models on disk: tensors and JSON in a directory, and ONNX graphs."""

from quasiratio.model_files.bundle import FORMAT_VERSION, read_bundle, read_document, write_bundle

__all__ = ["FORMAT_VERSION", "read_bundle", "read_document", "write_bundle"]
