"""JSON with one reading: what Python's reader lets pass is refused here."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quasiratio.errors import InvalidInputError
from quasiratio.model_files.document import json_checksum, parse_object

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"a": NaN}', "NaN is no JSON number"),
        (b'{"a": -Infinity}', "-Infinity is no JSON number"),
        (b'{"a": 1, "a": 2}', "a key occurs twice"),
        (b'{"a": {"b": 1, "b": 1}}', "a key occurs twice"),
        (b'{"a": 1', "truncated or damaged"),
        (b"", "truncated or damaged"),
        (b"\xff\xfe{}", "truncated or damaged"),
        ("{}".encode("utf-16"), "truncated or damaged"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"[" * 1_000_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "truncated or damaged"),
        (b"[1]", "JSON list"),
        (b'"text"', "JSON str"),
        (b"null", "JSON NoneType"),
    ],
)
def test_what_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason) as caught:
        parse_object(content, "model.json")
    assert "\n" not in str(caught.value)
    assert "model.json" in str(caught.value)


@given(st.dictionaries(st.text(), VALUES))
def test_the_checksum_does_not_depend_on_the_layout(document: dict[str, object]) -> None:
    for options in ({"indent": 2}, {"ensure_ascii": False}, {"sort_keys": True}):
        text = json.dumps(document, **options)
        again = parse_object(text.encode("utf-8", "surrogatepass"), "it") if _is_utf8(text) else document
        assert json_checksum(again) == json_checksum(document)


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@given(st.dictionaries(st.text(), VALUES), st.text(), st.integers())
def test_the_checksum_changes_with_the_content(document: dict[str, object], key: str, value: int) -> None:
    changed = {**document, key: value}
    same = key in document and type(document[key]) is int and document[key] == value
    assert (json_checksum(changed) == json_checksum(document)) is same


def test_numbers_that_json_lacks_have_no_checksum() -> None:
    with pytest.raises(InvalidInputError, match="JSON cannot hold"):
        json_checksum({"a": float("inf")})
    with pytest.raises(InvalidInputError, match="JSON cannot hold"):
        json_checksum(parse_object(b'{"a": 1e999}', "it"))
