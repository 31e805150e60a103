"""Lets the documentation read `Example:` in a docstring as the section `Examples:`, whose code it highlights."""

from typing import Any

from griffe import Extension, Object


class ExampleSections(Extension):
    """Renames the section in every docstring."""

    def on_object(self, *, obj: Object, **_: Any) -> None:  # noqa: ANN401
        """Edit the docstring before it is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
