"""Expressions: what they compute, and that nothing but arithmetic of columns gets in."""

import contextlib
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quasiratio.errors import InvalidInputError
from quasiratio.io import parse_expression

A = np.array([1.0, -2.0, 3.5, 0.0])
B = np.array([2, 5, -1, 4], dtype=np.int32)
C = np.array([True, False, True, True])
COLUMNS = {
    "a": A,
    "b": B,
    "c": C,
    "jet.pt": A + 1,
    "jet_pt[0]": A + 2,
    "weird name": A + 3,
    "jet.pt[1]": A + 4,
    "µ": B,
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a*b", A * B),
        ("a + b - 2", A + B - 2),
        ("-a ** 2", -(A**2)),
        ("+a", A),
        ("a / 4", A / 4),
        ("b % 2 == 0", B % 2 == 0),
        ("2 ** 3 ** 2", np.full(4, 512.0)),
        ("a > 0", A > 0),
        ("-1 < a < 3", (A > -1) & (A < 3)),
        ("a != 0", A != 0),
        ("c and a > 0", C & (A > 0)),
        ("c & (a > 0) | ~c", C & (A > 0) | ~C),
        ("not c or a >= 0", ~C | (A >= 0)),
        ("c * a", C * A),
        ("True", np.full(4, True)),
        ("3", np.full(4, 3.0)),
        ("abs(a)", np.abs(A)),
        (
            "sqrt(abs(a)) + exp(a) + sin(a) + cos(a) + tan(a)",
            np.sqrt(abs(A)) + np.exp(A) + np.sin(A) + np.cos(A) + np.tan(A),
        ),
        ("log(a + 3) + log10(a + 3)", np.log(A + 3) + np.log10(A + 3)),
        ("min(a, b, 1)", np.minimum(np.minimum(A, B), 1)),
        ("max(a, b)", np.maximum(A, B)),
        ("where(a > 0, a, -b)", np.where(A > 0, A, -B)),
        ("jet.pt", A + 1),
        ("jet_pt[0] * 2", 2 * (A + 2)),
        ("jet.pt[1]", A + 4),
        ("`weird name` + `a`", 2 * A + 3),
        ("`jet.pt`[1] > 0", A + 4 > 0),
        ("µ*2", 2.0 * B),
        ("  a\n  + b ", A + B),
    ],
)
def test_values_are_those_of_numpy(text, expected):
    values = parse_expression(text).evaluate(COLUMNS)
    assert values.dtype == expected.dtype if expected.dtype == bool else values.dtype == np.float64
    np.testing.assert_allclose(values, expected, rtol=1e-15)


def test_names_come_in_order_and_once():
    assert parse_expression("w_pu * w_gen + w_pu * jets.pt[0] + abs(`x-y`)").names == (
        "w_pu",
        "w_gen",
        "jets.pt[0]",
        "x-y",
    )


def test_single_precision_columns_are_multiplied_in_double_precision():
    w = np.array([16777217.0, 3.0]).astype(np.float32)
    assert parse_expression("w * w + 1").evaluate({"w": w})[0] == np.float64(w[0]) ** 2 + 1


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "empty expression"),
        ("a +", "at the end"),
        ("a b", "at character"),
        ("a && b", "character 3 ('&& b'): '&&' is not known here; write 'and'"),
        ("a || b", "write 'or'"),
        ("!a", "write 'not'"),
        ("a ^ 2", "write '**'"),
        ("a = 2", "write '=='"),
        ("(a", "was never closed"),
        ("gamma(a)", "'gamma' is called"),
        ("sqrt()", "0 arguments instead of 1"),
        ("where(a > 0, 1)", "2 arguments instead of 3"),
        ("min()", "0 arguments instead of 1 to 50"),
        ("max(a, *b)", "not arithmetic of columns"),
        ("'a'", "not arithmetic of columns"),
        ("a if b else c", "not arithmetic of columns"),
        ("[x for x in a]", "not arithmetic of columns"),
        ("lambda: a", "not arithmetic of columns"),
        ("a is b", "not arithmetic of columns"),
        ("a in b", "not arithmetic of columns"),
        ("a @ b", "not arithmetic of columns"),
        ("a << 3", "not arithmetic of columns"),
        ("1j * a", "not arithmetic of columns"),
        ("None", "not arithmetic of columns"),
        ("a[b]", "not arithmetic of columns"),
        ("a[0][1]", "not arithmetic of columns"),
        ("a[-1]", "not arithmetic of columns"),
        ("(a + b).real", "not arithmetic of columns"),
        ("abs.__globals__['x']", "not arithmetic of columns"),
        ("__import__('os').system('touch /tmp/owned')", "not arithmetic of columns"),
        ("a.__class__()", "not arithmetic of columns"),
        ("``", "at character"),
        ("`a", "at character"),
        ("a\0b", "null bytes"),
        ("1" * 400, "beyond the range"),
        ("(" * 300 + "a" + ")" * 300, "too many nested"),
        ("-" * 300 + "a", "levels deep"),
        ("a" + "+a" * 1500, "levels deep"),
        ("a" * 5000, "5000 characters"),
    ],
)
def test_anything_else_is_refused_with_its_position(text, part):
    with pytest.raises(InvalidInputError) as raised:
        parse_expression(text)
    assert part in str(raised.value)


def test_positions_count_characters_also_after_quoted_and_foreign_letters():
    with pytest.raises(InvalidInputError, match=r"at character 9 \('gamma"):
        parse_expression("`ä-é` + gamma(a)")


def test_huge_powers_are_floats_and_end_at_once():
    start = time.perf_counter()
    values = parse_expression("9**9**9**9 * a").evaluate(COLUMNS)
    assert np.isinf(values[0])
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize("text", ["a > 0 & b < 3", "a and c", "~b", "not a", "where(a, 1, 2)"])
def test_numbers_are_not_conditions(text):
    with pytest.raises(InvalidInputError, match="put comparisons in parentheses"):
        parse_expression(text).evaluate(COLUMNS)


def test_a_selection_must_be_a_condition():
    with pytest.raises(InvalidInputError, match=r"the selection 'a \+ b', which is a number"):
        parse_expression("a + b").evaluate_mask(COLUMNS)


def test_unknown_columns_come_with_the_nearest_names():
    with pytest.raises(InvalidInputError, match="'w_gne', which does not exist; the nearest is 'w_gen'"):
        parse_expression("w_gne").evaluate({"w_gen": A, "pt": A})


def test_text_columns_are_refused():
    with pytest.raises(InvalidInputError, match="the column 'a' of type <U1 is used"):
        parse_expression("a * 2").evaluate({"a": np.array(["x", "y"])})


def test_an_expression_does_not_change_its_columns():
    a = A.copy()
    values = parse_expression("a").evaluate({"a": a})
    parse_expression("-a + a * 2").evaluate({"a": a})
    assert np.array_equal(a, A)
    assert np.array_equal(values, A)


@st.composite
def arithmetic(draw, depth=4):
    """Return the text of an expression, and its value computed beside it."""
    if depth == 0 or draw(st.booleans()):
        name, values = draw(st.sampled_from([("a", A), ("b", B.astype(float)), ("`weird name`", A + 3)]))
        number = draw(st.floats(-100, 100).map(lambda x: round(x, 3)))
        return draw(st.sampled_from([(name, values), (repr(abs(number)), np.full(4, abs(number)))]))
    left, x = draw(arithmetic(depth - 1))
    right, y = draw(arithmetic(depth - 1))
    template, value = draw(
        st.sampled_from(
            [
                ("({} + {})", x + y),
                ("({} - {})", x - y),
                ("{} * -{}", x * -y) if left[0] != "-" else ("({} * {})", x * y),
                ("max({}, {})", np.maximum(x, y)),
                ("where({} <= {}, 1, 0)", np.where(x <= y, 1.0, 0.0)),
            ]
        )
    )
    return f"({template.format(left, right)})", value


@settings(max_examples=60, deadline=None)
@given(arithmetic())
def test_random_arithmetic_agrees_with_numpy(case):
    text, expected = case
    np.testing.assert_allclose(parse_expression(text).evaluate(COLUMNS), expected, rtol=1e-12, atol=1e-9)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.sampled_from("ab(){}[].`'\"\\+-*/%&|~!<>=:;,#@ \n\0\ud800µé09eE_")) | st.text())
def test_any_text_is_parsed_or_refused_with_a_sentence(text):
    with contextlib.suppress(InvalidInputError):
        assert parse_expression(text).text
