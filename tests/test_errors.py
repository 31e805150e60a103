"""Every error and warning can be caught by one base class, and by the builtin users expect."""

import pytest

from quasiratio import errors


@pytest.mark.parametrize("name", [n for n in errors.__all__ if n.endswith("Error")])
def test_errors_share_a_base(name: str) -> None:
    assert issubclass(getattr(errors, name), errors.QuasiratioError)


@pytest.mark.parametrize("name", [n for n in errors.__all__ if n.endswith("Warning")])
def test_warnings_share_a_base(name: str) -> None:
    assert issubclass(getattr(errors, name), errors.QuasiratioWarning)
    assert issubclass(getattr(errors, name), UserWarning)


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("InvalidInputError", ValueError),
        ("DivergenceError", RuntimeError),
        ("MissingExtraError", ImportError),
    ],
)
def test_builtin_bases(name: str, builtin: type[Exception]) -> None:
    assert issubclass(getattr(errors, name), builtin)


def test_everything_public_is_listed() -> None:
    public = {n for n, value in vars(errors).items() if isinstance(value, type) and not n.startswith("_")}
    assert public == set(errors.__all__)
