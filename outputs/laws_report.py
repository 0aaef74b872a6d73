"""Scaling laws as text, as JSON and as a LaTeX table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy as sp

from derive.errors import UnboundError, clipped
from derive.exact import value
from derive.laws import POINTS, TRIALS, Evidence, Law, Regime
from outputs import laws_open
from outputs.layout import Section, Table
from outputs.notation import text
from outputs.quantities import grouped, significant, size
from outputs.regimes import Marks, number, regime_in_words

if TYPE_CHECKING:
    from outputs.explanation import Explanation
    from outputs.laws import Count, Growths

_LONGEST = 110
_PLAIN = frozenset({"b", "d", "d_v", "B"})
"""Symbols whose doubling is in the table of exponents and surprises nobody."""
_READING = (
    "a cell is the power of the symbol that the count is; several are those of its terms: 1, 2 is c_1 N + c_2 N^2",
    "one power e: scaling the symbol by t multiplies the count by t^e, exactly; several: by a factor between the outer two,"
    " where no term is taken off",
    "proved: the count less its powers expands to zero, all symbols open",
    f"~ checked: exact values lie on such a sum, {POINTS} along the symbol at each of {TRIALS} drawings of the others",
    ".: undecided, the count is no such sum in any regime that was looked at; what speaks against one stands below",
)


def report(found: tuple[Growths, ...]) -> list[Section]:
    """Exponents, factors and jumps, schedule by schedule."""
    answer = found[0].answer
    numbers = "  ".join(f"{name} = {number(n)}" for name, n in found[0].values.items() if name in _asked(answer))
    title = f"{answer.request.variant.name}, mask {answer.request.pattern}: how its counts grow"
    listed = [
        "the mask is a list for this one length, which stays as it is: tiles are looked at where they divide all that it packs"
    ]
    sections = [Section("", [title, *([numbers] if numbers else []), *(listed if found[0].is_listed else [])])]
    for one in found:
        marks = Marks()
        powers, doubled = _powers(one, marks), _doubled(one, marks)
        sections.append(Section(f"{one.account.name}: exponents", powers, marks.notes))
        sections += [Section(f"{one.account.name}: doubling", doubled)] if doubled.rows else []
        sections += laws_open.section(one)
        sections += [*_classes(one), *_jump(one)]
    return [*sections, Section("how to read this", list(_READING))]


def _powers(found: Growths, marks: Marks) -> Table:
    """The table of exponents: a row a count and case, a column a symbol."""
    table = Table(("count", *(text(s) for s in found.symbols)))
    for count in found.counts:
        cells = []
        for symbol in found.symbols:
            laws = [f.law for f in found.findings if f.count is count and f.symbol == symbol]
            cells.append(" or ".join(dict.fromkeys("." if law is None else _cell(law, count, marks) for law in laws)))
        table.add(count.name + marks.of(Regime(where=count.where)), *cells)
    return table


def _cell(law: Law, count: Count, marks: Marks) -> str:
    """Exponents, whether checked only, and the regime beyond the count's own case."""
    seen = "~" if law.evidence is Evidence.CHECKED else ""
    return seen + _exponents(law) + marks.of(_own(law, count))


def _own(law: Law, count: Count) -> Regime:
    return Regime(law.regime.whole, tuple(c for c in law.regime.where if c not in count.where))


def _exponents(law: Law) -> str:
    return ", ".join(map(str, law.exponents))


def _doubled(found: Growths, marks: Marks) -> Table:
    """What doubling a symbol does, where the law says it and it is not plain."""
    table = Table(("doubling", "count", "multiplies it by", "here", "where", ""))
    for one in found.findings:
        law = one.law
        if law is None or law.is_independent or one.symbol.name in _PLAIN:
            continue
        factor = law.factor()
        if factor is None:
            continue
        said = f"exactly {text(factor)}" if factor.is_number else f"{text(factor)}{_between(law)}"
        where = (marks.of(Regime(where=one.count.where)) + marks.of(_own(law, one.count))).strip() or "always"
        table.add(text(one.symbol), one.count.name, said, _here(found, law, factor), where, law.evidence.value)
    return table


def _between(law: Law) -> str:
    ends = law.bounds()
    return "" if ends is None else f", between {text(ends[0])} and {text(ends[1])}"


def _here(found: Growths, law: Law, factor: sp.Expr) -> str:
    """The factor at the numbers given; where they lie outside the regime, that."""
    if found.here(law.regime) is False:
        return "outside"
    number = _at(found, factor)
    return "" if number is None or factor.is_number else significant(number)


def _at(found: Growths, amount: sp.Expr) -> Any:
    try:
        return value(amount, found.values)
    except UnboundError:
        return None


def _classes(found: Growths) -> list[Section]:
    """How the SM-side count grows at the best tiles, monomial by monomial."""
    table = Table(("leading term", "powers", "where"))
    seen: dict[sp.Expr, list[Law]] = {}
    for law in found.classes:
        seen.setdefault(law.amount, []).append(law)
    for monomial, laws in seen.items():
        powers = "  ".join(f"{text(x.symbol)}: {_exponents(x)}" for x in laws if not x.is_independent)
        table.add(text(monomial), powers, regime_in_words(laws[0].regime) or "always")
    notes = ["in elements, over all tiles that fit M, up to a constant; both certificates: `derive bound`"]
    return [Section(f"{found.account.name}: SM-side at the best tiles", table, notes)] if table.rows else []


def _jump(found: Growths) -> list[Section]:
    jump = found.jump
    if jump is None:
        return []
    title = f"{found.account.name}: where DRAM bytes jump"
    formula = clipped(text(jump.formula), _LONGEST)
    if jump.at is None:
        return [Section(title, [f"re-reads stay in the L2 while {jump.length} <= {formula}"])]
    line = f"re-reads stay in the L2 while {jump.length} <= {formula} = {grouped(jump.at)}"
    if jump.before is None or jump.after is None:
        return [Section(title, [line])]
    ratio = f", {significant(sp.Rational(jump.after) / sp.Rational(jump.before))}x" if jump.before else ""
    step = f"from {size(jump.before)} at {grouped(jump.at)} to {size(jump.after)} at {grouped(jump.at + 1)}{ratio}"
    return [Section(title, [line, step])]


def _asked(answer: Explanation) -> set[str]:
    names = {*answer.request.numbers, "B_r", "B_c", "C", "C_L2", "M", "n_s", "C_t"}
    return (names - {"N_q", "N_k"}) | {"N"} if answer.tied else names


# --- JSON -------------------------------------------------------------------------------------------------------------


def as_json(found: tuple[Growths, ...]) -> dict[str, Any]:
    """The object that ``derive laws --json`` prints."""
    answer = found[0].answer
    numbers = {n: v for n, v in found[0].values.items() if n in _asked(answer)}
    return {
        "variant": answer.request.variant.name,
        "machine": None if answer.machine is None else answer.machine.id,
        "mask": str(answer.request.pattern),
        "parameters": {n: int(v) if v == int(v) else str(v) for n, v in numbers.items()},
        "schedules": {one.account.name: _schedule(one) for one in found},
    }


def _schedule(found: Growths) -> dict[str, Any]:
    jump = found.jump
    return {
        "laws": [_law(found, f.count, f.law) for f in found.findings if f.law is not None],
        "open": [laws_open.as_json(f.count.name, f.against) for f in found.findings if f.against is not None],
        "classes": [
            {
                "term": text(x.amount),
                "symbol": x.symbol.name,
                "exponent": str(x.exponent),
                "where": regime_in_words(x.regime),
            }
            for x in found.classes
        ],
        "jump": None
        if jump is None
        else {
            "symbol": jump.length,
            "symbolic": text(jump.formula),
            "at": jump.at,
            "before": None if jump.before is None else _whole(jump.before),
            "after": None if jump.after is None else _whole(jump.after),
        },
    }


def _law(found: Growths, count: Count, law: Law) -> dict[str, Any]:
    factor, ends = law.factor(), law.bounds()
    number = None if factor is None else _at(found, factor)
    return {
        "count": count.name,
        "unit": count.unit,
        "symbol": law.symbol.name,
        "exponents": [str(e) for e in law.exponents],
        "coefficients": {str(e): text(c) for e, c in law.coefficients.items()},
        "doubling": None if factor is None else text(factor),
        "doubling_here": None if number is None or found.here(law.regime) is False else str(number),
        "between": None if ends is None else [text(e) for e in ends],
        "whole": [text(q) for q in law.regime.whole],
        "where": [text(c) for c in law.regime.where],
        "holds_here": found.here(law.regime),
        "evidence": law.evidence.value,
        "trials": law.trials,
    }


def _whole(number: Any) -> int:
    return int(-(-number.numerator // number.denominator))


# --- LaTeX ------------------------------------------------------------------------------------------------------------


def as_latex(found: tuple[Growths, ...], command: str) -> str:
    r"""One table a schedule, to ``\input``; needs amsmath and booktabs."""
    from outputs.formula import latex

    lines = [
        f"% {' '.join(command.split()).encode('ascii', 'replace').decode('ascii')}",
        "% Needs amsmath and booktabs.",
    ]
    for one in found:
        heads = " & ".join(f"${latex(s)}$" for s in one.symbols)
        lines += [
            rf"\begin{{tabular}}{{l{'r' * len(one.symbols)}}}",
            r"\toprule",
            rf"{one.account.name} & {heads} \\",
            r"\midrule",
        ]
        for count in one.counts:
            cells = []
            for symbol in one.symbols:
                laws = [f.law for f in one.findings if f.count is count and f.symbol == symbol]
                said = dict.fromkeys("--" if x is None else f"${_exponents(x)}$" + _dagger(x) for x in laws)
                cells.append(" or ".join(said))
            where = r" \text{ and } ".join(latex(c) for c in count.where)
            lines.append(" & ".join([count.name + (f" (${where}$)" if where else ""), *cells]) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join([*lines, r"% $^{\ast}$: checked on random numbers; all others are proved.", ""])


def _dagger(law: Law) -> str:
    return r"$^{\ast}$" if law.evidence is Evidence.CHECKED else ""
