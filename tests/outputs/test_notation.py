from __future__ import annotations

import contextlib
import re
from fractions import Fraction

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.errors import BadValueError, DeriveError, UnknownNameError
from derive.exact import Number, value
from derive.symbols import MEANINGS, B_r, N_k, N_q, d, symbol
from outputs.formula import latex
from outputs.naming import named
from outputs.notation import text
from outputs.reader import MOST_CHARACTERS, read
from outputs.spelling import spelling
from tests.outputs.expressions import engine_forms, forms, values
from tests.outputs.latex_reader import as_text

ODD = {name: 3 + 2 * n for n, name in enumerate(MEANINGS)}
"""A point off every multiple."""


def exact(form: sp.Basic, at: dict[str, int]) -> Number | str:
    """The value, or why there is none: both sides of a round trip must agree on either."""
    try:
        return value(form, at)
    except DeriveError as error:
        return type(error).__name__


@settings(max_examples=600)
@given(forms, values)
def test_text_reads_back_to_the_same_value(form: sp.Basic, at: dict[str, int]) -> None:
    """Random forms of every kind of node, at random points."""
    assert exact(read(text(form)), at) == exact(form, at)


@settings(max_examples=300)
@given(forms, values)
def test_latex_reads_back_to_the_same_value(form: sp.Basic, at: dict[str, int]) -> None:
    """The two printers say the same: macros replaced by words, LaTeX is the text form again."""
    assert exact(read(as_text(latex(form))), at) == exact(form, at)


@pytest.mark.parametrize(
    ("written", "at_seven"),
    [
        ("(2 (N if N <= d else M))^(-1)", Fraction(1, 14)),
        ("3/(2 (N if N <= d else M))", Fraction(3, 14)),
        ("(N if N <= d else M) (N if N <= d else M)", 49),
        ("5 (N (N if N <= d else M)^2)", 980),
        ("((N if N <= d else M) d)/((N if N <= d else M) M)", Fraction(3, 7)),
    ],
)
def test_powers_of_cases_are_read_as_written(written: str, at_seven: Number) -> None:
    """SymPy would raise each case and examine each condition anew, for ever where cases are nested."""
    found = read(written)
    assert found.atoms(sp.Piecewise) == read("(N if N <= d else M)").atoms(sp.Piecewise)
    assert exact(found, {"N": 4, "d": 3, "M": 7}) == at_seven


def test_every_form_of_the_engine_reads_back() -> None:
    """All amounts of the catalogue, from text and from LaTeX."""
    found = engine_forms()
    assert len(found) > 200
    for form in found:
        expected = exact(form, ODD)
        assert isinstance(expected, int | Fraction)
        assert exact(read(text(form)), ODD) == expected, text(form)
        assert exact(read(as_text(latex(form))), ODD) == expected, latex(form)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from((30, 60)), values)
def test_named_parts_put_back_are_the_form(which: int, longest: int, at: dict[str, int]) -> None:
    """Cutting changes no value, and a definition uses only names that stand before it."""
    form = engine_forms()[which % len(engine_forms())]
    cut = named([form], longest)
    assert exact(cut.written_out[0], at) == exact(form, at)
    seen: set[sp.Symbol] = set()
    names = {name for name, _ in cut.definitions}
    for name, part in cut.definitions:
        assert part.free_symbols & names <= seen
        seen.add(name)


def test_named_parts_fit() -> None:
    """Every form of the engine, cut to 40 characters, is in lines of no more; conditions in a case may run further."""
    for form in engine_forms():
        cut = named([form], 40)
        for part in (*cut.forms, *(part for _, part in cut.definitions)):
            assert len(text(part)) <= 40 or part.has(sp.Piecewise) or part.is_Relational or part.is_Boolean, text(part)


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("(1 + ceil(N/B_r)) b d N*2", "2 N d b (1 + ceil(N/B_r))"),
        ("2 d >= N", "N <= 2 d"),
        ("sqrt(C_L2)/d^2", "sqrt(C_L2)/d^2"),
        ("sum(min(i, d), i=0..N - 1)", "sum(min(d, i), i=0..N - 1)"),
        ("N if N <= d else 2 d if d <= M else 0", "(N if N <= d else 2 d if d <= M else 0)"),
        ("N <= d and (d <= M or M <= N)", "(M <= N or d <= M) and N <= d"),
    ],
)
def test_the_house_writes_it_so(written: str, printed: str) -> None:
    """One factor order, small <= big, brackets where they are needed."""
    assert text(read(written)) == printed
    assert text(read(printed)) == printed


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("__import__('os').getpid()", "'_' at character 1"),
        ("().__class__", "'.' at character 3"),
        ("N.subs", "'.' at character 2"),
        ("lambda: 3", "':' at character 7"),
        ("{N}", r"'\{' at character 1"),
        ("[N]", "is no formula"),
        ("[N <= d]", "is no formula"),
        ("[N = d = M]", "is no formula"),
        ("[N = d, M]", "is no formula"),
        ("[[N = d] = (N <= d)]", "is no formula"),
        ("N [N = d", "is no formula"),
        ("N; d", "';' at character 2"),
        ('f("x")', "'\"' at character 3"),
        ("1.5 N", "a fraction instead of decimals"),
        ("9^9^9", "up to 16, not 387420489"),
        ("((9^16)^16)^16", "beyond 4096 bits"),
        ("2^(1/99)", "up to 16"),
        ("N^M", "up to 16, not M"),
        ("9" * 100, "too large a number"),
        ("(" * 100 + "N" + ")" * 100, "deeper than 60"),
        ("-" * 5000 + "1", "is no formula"),
        ("N if d else M", "is no formula"),
        ("N if (d if d <= M else 2) <= M else 3", "no cases of its own"),
        ("(N <= d) + 1", "is no formula"),
        ("N and d", "is no formula"),
        ("-(N <= d)", "is no formula"),
        ("ceil(N <= d)", "is no formula"),
        ("1/0", "divides by zero"),
        ("0^(-1)", "divides by zero"),
        ("ceil", "is no formula"),
        ("ceil(N, d)", "is no formula"),
        ("sum(i, 3, 0, N)", "is no formula"),
        ("min()", "is no formula"),
        ("N = d = M", None),
        ("", "is no formula"),
        ("+N", "is no formula"),
        ("N 2^", "is no formula"),
        ("N" * (MOST_CHARACTERS + 1), "too long"),
    ],
)
def test_what_is_no_formula_is_refused_in_a_sentence(written: str, says: str | None) -> None:
    """No text is run; what is refused is shown, with a way out."""
    if says is None:
        read(written)
        return
    with pytest.raises(BadValueError, match=says):
        read(written)


@settings(max_examples=300)
@given(st.text(alphabet="Nd_B.rk 0123456789+-*/^()=<>,ifelsandmumxc'\"[]{}:;\\%", max_size=60))
def test_any_text_is_read_or_refused(written: str) -> None:
    """Nothing but a ``DeriveError`` comes out, whatever goes in."""
    with contextlib.suppress(DeriveError):
        read(written)


def test_an_unknown_symbol_is_named_with_the_nearest() -> None:
    """As everywhere on the command line."""
    with pytest.raises(UnknownNameError, match="'d_w'; did you mean d_v"):
        read("N d_w")


def test_what_has_no_notation_is_never_guessed() -> None:
    """Neither printer writes a node it does not know."""
    for unknown in (sp.sin(N_q), sp.Float("1.5"), sp.Mod(N_q, N_k), sp.Symbol("HBM%")):
        with pytest.raises(TypeError, match=r"no house notation|no spelling"):
            latex(unknown)
    with pytest.raises(TypeError, match="no house notation"):
        text(sp.sin(N_q))


def test_every_symbol_has_a_spelling_of_its_own() -> None:
    """No two symbols print alike, a word below the line is upright, and the table says what each means."""
    found = [spelling(name) for name in MEANINGS]
    assert len({s.latex for s in found}) == len(MEANINGS)
    assert all(s.says for s in found)
    assert spelling("C_L2").latex == r"C_{\mathrm{L2}}"
    assert spelling("B_r").latex == "B_r"
    assert spelling("beta_HBM").latex == r"\beta_{\mathrm{HBM}}"
    assert all(re.fullmatch(r"\\?[A-Za-z]+(_(\w|\{\\mathrm\{\w+\}\}))?", s.latex) for s in found)


def test_a_closed_form_is_written_as_in_the_paper() -> None:
    """The seed's SM-side count."""
    form = 2 * symbol("b") * d * N_q * (sp.ceiling(N_q / B_r) + 1)
    assert latex(form) == r"2 N_q d b \left(1 + \left\lceil \frac{N_q}{B_r} \right\rceil\right)"
