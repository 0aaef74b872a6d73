"""The two parsers: house notation read back, and Einsums. Neither runs what it reads, and both end."""

from __future__ import annotations

import time

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.errors import DeriveError
from derive.growth.reading import read_condition
from derive.notation import cascade
from derive.symbols import MEANINGS, N, d
from outputs.notation import text
from outputs.reader import read
from tests.hostile.junk import JUNK, with_junk
from tests.hostile.world import examples, harmless

SECONDS = 10
"""One formula may take no longer, on a busy machine."""
_NAMES = st.sampled_from(["N", "d", "b", "B_r", "M", "i", *sorted(MEANINGS)])
_ATOMS = st.one_of(_NAMES, st.integers(0, 300).map(str), st.sampled_from(["true", "false", "2^255", "0", "1/2"]))


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(
        inner, st.sampled_from([" ", " + ", " - ", "/", "^", " <= ", " < ", " = ", " and ", " or ", ", "]), inner
    )
    return st.one_of(
        pair.map("".join),
        inner.map("({})".format),
        inner.map("-{}".format),
        st.tuples(st.sampled_from(["ceil", "floor", "min", "max", "gcd", "sqrt"]), inner).map(
            lambda p: f"{p[0]}({p[1]})"
        ),
        st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} if {p[1]} else {p[2]})"),
        st.tuples(inner, _NAMES, inner, inner).map(lambda p: f"sum({p[0]}, {p[1]}={p[2]}..{p[3]})"),
    )


formulas = st.recursive(with_junk(_ATOMS), _grown, max_leaves=12)
DEEP = {
    "brackets": "(" * 500 + "N" + ")" * 500,
    "brackets within the bound": "(" * 60 + "N" + ")" * 60,
    "open brackets": "(" * 10_000,
    "signs": "-" * 20_000 + "N",
    "powers": "^".join(["2"] * 500),
    "a power of a power": "((((((2^16)^16)^16)^16)^16)^16)^16",
    "ten to the ten to the ten": "10^10^10",
    "a power of a sum": "(" * 30 + "N + d" + ")^16" * 30,
    "roots of roots": "sqrt(" * 55 + "N + d" + ")" * 55,
    "the root of a large number": "sqrt(" + str(2**255 - 19) + ")",
    "a long product": "N " * 19_000,
    "a long sum": " + ".join(["N d"] * 6_000),
    "a long sum of different terms": " + ".join(f"N^{n % 16}/(d + {n})" for n in range(2_000)),
    "many cases": " + ".join(f"({n} if N <= {n} else d)" for n in range(300)),
    "cases of cases": "(" * 55 + "N" + " if N <= d else 1)" * 55,
    "conditions of conditions": " and ".join(f"N <= {n}" for n in range(2_000)),
    "the least of many": f"min({', '.join(f'N + {n}' for n in range(2_000))})",
    "rounding of rounding": "ceil(" * 55 + "N/3" + " + 1/7)" * 55,
    "sums of sums": "sum(" * 50 + "N" + ", i=0..i)" * 50,
    "sums of sums of other things": "".join("sum(" for _ in range(40)) + "i" + "".join(f", i=0..d + {n})" for n in range(40)),
    "a function of itself": "ceil" * 5_000,
    "function names": "ceil ceil",
    "a function as a symbol": "min + max",
    "an index that is a function": "sum(N, ceil=0..d)",
    "an index that is true": "sum(N, true=0..d)",
    "an imaginary root": "sqrt(-1) + ceil(sqrt(-2)) + min(sqrt(-1), N)",
    "an imaginary comparison": "1 if sqrt(-1) <= N else 2",
    "zero to nothing": "0^0 + 0^(-1)",
    "zero in disguise": "1/(N - N)",
    "rounded zero in disguise": "1/(ceil(N) - ceil(N))",
    "a root that is nearly whole": "floor(sqrt(2) sqrt(3) - sqrt(6))",
    "the greatest divisor of nothing": "gcd(0, 0) + gcd(1/2, 3) + gcd(-4, 6)",
    "one argument": "min(N) + max(d)",
    "a name of ten thousand": "N" * 10_000,
    "another of ten thousand": "N_" * 5_000,
    "a placeholder": "v0 + v1",
    "a sum of truths": "sum(true, i=0..N)",
    "a sum up to a truth": "sum(N, i=0..true)",
    "a choice between truths": "(true if N <= d else 1) + 1",
}  # fmt: skip


def _read(written: str) -> None:
    found = read(written)
    assert isinstance(found, sp.Basic)


@settings(max_examples=examples(150))
@given(formulas)
def test_any_formula_is_read_or_refused(written: str) -> None:
    """Grammar's own words in any order, junk between."""
    harmless(lambda: _read(written), (DeriveError,))


@settings(max_examples=examples(100))
@given(formulas)
def test_what_is_read_can_be_printed(written: str) -> None:
    """A formula that was accepted has a notation again, or is refused for what it is; neither ends in a traceback."""
    harmless(lambda: text(read(written)), (DeriveError, TypeError))


@pytest.mark.parametrize("written", DEEP.values(), ids=DEEP)
def test_deep_long_and_large_formulas_end(written: str) -> None:
    """Nesting, powers, sums and cases have bounds, and what is within them takes seconds."""
    begun = time.monotonic()
    harmless(lambda: _read(written), (DeriveError,))
    assert time.monotonic() - begun < SECONDS


def test_junk_is_no_formula() -> None:
    """Each junk word, alone and inside a formula."""
    for word in JUNK:
        for written in (word, f"N {word}", f"2 N + {word} d", f"ceil({word})"):
            harmless(lambda written=written: _read(written), (DeriveError,))


@settings(max_examples=examples(60))
@given(st.lists(with_junk(_ATOMS), min_size=1, max_size=5), st.sampled_from(["<=", "<", "=", ">=", "<= <=", " "]))
def test_a_regime_is_read_or_refused(words: list[str], sign: str) -> None:
    """``derive bound --where``."""
    harmless(lambda: read_condition(f" {sign} ".join(words)), (DeriveError,))


_TENSORS = st.sampled_from(
    ["Q[q,d]", "K[k,d]", "S[q,k]", "P[q,k]", "l[q]", "V[k,d]", "c", "Q[q,q]", "S[k,q]", "Q[]", "Q[,]", "T[z]"]
)
_SIDES = st.one_of(
    _TENSORS,
    st.tuples(_TENSORS, st.sampled_from([" * ", " + ", " - ", " / ", " ** ", ""]), _TENSORS).map("".join),
    st.tuples(st.sampled_from(["exp", "softmax", "view", "top", "keep", "position", "gather", "eval"]), _TENSORS).map(
        lambda p: f"{p[0]}({p[1]})"
    ),
)
_REDUCED = st.sampled_from(["", "", "sum[d] ", "max[k] ", "sum[k] ", "previous[q] ", "sum[q,k] ", "sum[] ", "min[d] "])
lines = st.tuples(with_junk(_TENSORS), st.just(" = "), _REDUCED, with_junk(_SIDES)).map("".join)


@settings(max_examples=examples(150))
@given(st.lists(with_junk(lines), max_size=5).map("\n".join), st.sampled_from(["S", "P", "O", "", "Q"]))
def test_any_cascade_is_a_graph_or_refused(written: str, output: str) -> None:
    """Einsums with any tensor, index, operator and junk."""
    extents = {"q": N, "k": N, "d": d}
    harmless(lambda: cascade(written, extents, outputs=(output,), width=sp.Integer(2)), (DeriveError,))


@pytest.mark.parametrize(
    "line", ["S[q,k] = " * 10_000, "S[" + "q," * 50_000 + "] = A", "A" * 100_000, "S[q] = sum[" + " " * 100_000]
)
def test_long_cascades_end(line: str) -> None:
    """No line makes the patterns look back for ever."""
    begun = time.monotonic()
    harmless(lambda: cascade(line, {"q": N, "k": N}, outputs=("S",), width=sp.Integer(2)), (DeriveError,))
    assert time.monotonic() - begun < SECONDS
