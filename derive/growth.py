r"""How fast a schedule's SM-side traffic must grow: its Theta class over all tile sizes that fit, by tropical duality.

Traffic and footprint are sums of monomials in the tile sizes. With every quantity replaced by its exponent (its logarithm),
the best tiles solve a linear program:

    minimise z   with   z >= (exponent of each traffic monomial),   (exponent of each footprint monomial) <= log M,
                        0 <= log tile <= log extent.

Its dual's feasible set does not depend on N, d or M, so the optimum is the largest of finitely many linear forms, one a
vertex of the dual: a finite set of monomials. That set is the class: a dual vertex shows that no choice of tiles does better,
and the primal optimum reaches it. The dual's rays are the conditions under which any tiles fit at all (d <= M).

All arithmetic is on rationals. Monomials that another one dominates wherever the conditions hold are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, gcd, lcm

import sympy as sp

from derive.errors import DomainError
from derive.footprint import kernel_footprint
from derive.schedule import Kernel, Schedule
from derive.symbols import M
from derive.traffic import kernel_traffic

Exponents = dict[sp.Symbol, Fraction]
"""A monomial without its coefficient: the exponent of each symbol."""
_NONE = Fraction(0)
_WEIGHT = sp.Symbol("weight")
"""Stands for the weight of a monomial in a mean; weights sum to 1."""
_MOST_BASES = 20_000
"""Bases tried to show that a monomial is dominated; past this it is kept, which leaves the class right and longer."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A Theta class: never a byte count.

    Attributes:
        monomials: what the traffic grows with; the class is Theta of their sum.
        conditions: ``(small, big)`` pairs, the regime in which it holds: tiles fit, and the last monomial leads.
    """

    monomials: tuple[sp.Expr, ...]
    conditions: tuple[tuple[sp.Expr, sp.Expr], ...]

    @property
    def total(self) -> sp.Expr:
        """The sum of the monomials."""
        return sp.Add(*self.monomials)


def growth(schedule: Schedule, alike: Mapping[sp.Symbol, sp.Expr] | None = None) -> Growth:
    """The Theta class of the elements that cross into the SMs, over all tiles that fit M elements.

    Args:
        schedule: its tile sizes are those symbols that stand in its loops.
        alike: symbols to count as one, e.g. N_q and N_k as N.

    Raises:
        DomainError: a count that is no sum of monomials, such as one under a mask.
    """
    alike = alike or {}
    found: list[Exponents] = []
    needed: list[Exponents] = []
    for kernel in schedule.kernels:
        best, rays = _kernel(schedule, kernel, alike)
        found += best
        needed += rays
    conditions = _independent(_distinct(needed))
    kept = sorted(_undominated(_distinct(found), conditions), key=_degree)
    if len(kept) == 2:  # where the one that shrinks as M grows is the larger
        lead = {s: e for s in {*kept[0], *kept[1]} if (e := kept[1].get(s, _NONE) - kept[0].get(s, _NONE))}
        if lead.get(M, _NONE) < 0:
            conditions.append(lead)
    plain = (_whole(c) for c in conditions)
    return Growth(tuple(map(_monomial, kept)), tuple((_monomial(_side(c, -1)), _monomial(_side(c, 1))) for c in plain))


def _kernel(
    schedule: Schedule, kernel: Kernel, alike: Mapping[sp.Symbol, sp.Expr]
) -> tuple[list[Exponents], list[Exponents]]:
    """The monomials at the dual's vertices, and the forms that must not be negative for tiles to fit (rays)."""
    traffic = _exponents(kernel_traffic(schedule, kernel).total.amount, alike)
    tiles = {s: loop.extent for loop in kernel.loops for s in loop.tile.free_symbols}
    if not tiles:
        return traffic, []
    footprint = _undominated(_exponents(kernel_footprint(schedule, kernel).amount, alike), [])
    names = list(tiles)
    traffic_columns = [_column(m, tiles) for m in traffic]
    other_columns = [_column({**m, M: m.get(M, _NONE) - 1}, tiles) for m in footprint]
    for n, t in enumerate(names):
        unit = [Fraction(int(i == n)) for i in range(len(names))]
        extent = _exponents(tiles[t], alike)[0]
        other_columns += [(unit, {}), ([-u for u in unit], {s: -e for s, e in extent.items()})]
    weights = [Fraction(1)] * len(traffic_columns) + [_NONE] * len(other_columns)
    vertices = _corners(traffic_columns + other_columns, weights)
    rays = _corners(other_columns, [Fraction(1)] * len(other_columns))  # a ray is fixed up to its length
    return list(vertices), [{s: -e for s, e in ray.items()} for ray in rays if ray]


Column = tuple[list[Fraction], Exponents]
"""A dual variable: what it adds to each tile's balance, and the form it weighs."""


def _column(monomial: Exponents, tiles: Mapping[sp.Symbol, sp.Expr]) -> Column:
    balance = [-monomial.get(t, _NONE) for t in tiles]
    return balance, {s: e for s, e in monomial.items() if s not in tiles}


def _corners(columns: list[Column], weights: list[Fraction]) -> Iterator[Exponents]:
    """The forms at non-negative solutions with as few columns as equations: balanced in each tile, *weights* summing to 1."""
    equations = len(columns[0][0])
    for chosen in combinations(zip(columns, weights, strict=True), equations + 1):
        matrix = [[column[0][t] for column, _ in chosen] for t in range(equations)]
        matrix.append([weight for _, weight in chosen])
        solved = _solve(matrix, [_NONE] * equations + [Fraction(1)])
        if solved is not None and all(x >= 0 for x in solved):
            yield _combined([form for (_, form), _ in chosen], solved)


def _solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """The solution of a square system by elimination; ``None`` when it is singular."""
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    size = len(rows)
    for column in range(size):
        pivot = next((r for r in range(column, size) if rows[r][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [x / rows[column][column] for x in rows[column]]
        for r in range(size):
            if r != column and rows[r][column]:
                rows[r] = [x - rows[r][column] * y for x, y in zip(rows[r], rows[column], strict=True)]
    return [row[-1] for row in rows]


def _combined(forms: list[Exponents], weights: list[Fraction]) -> Exponents:
    """The weighted sum of *forms*."""
    total: Exponents = {}
    for form, weight in zip(forms, weights, strict=True):
        for s, e in form.items():
            total[s] = total.get(s, _NONE) + weight * e
    return {s: e for s, e in total.items() if e}


def _exponents(amount: sp.Expr, alike: Mapping[sp.Symbol, sp.Expr]) -> list[Exponents]:
    """The monomials of *amount*: rounding up is dropped, and of cases the one with more than one trip is taken.

    A tile is at most its extent, so ceil(N/B) lies between N/B and 2 N/B: the class is the same.
    """
    plain = amount.replace(lambda e: isinstance(e, sp.Piecewise), lambda e: e.args[0][0])
    plain = plain.replace(lambda e: isinstance(e, sp.ceiling), lambda e: e.args[0])
    found = []
    for term in sp.Add.make_args(sp.expand(plain.xreplace(dict(alike)))):
        _, monomial = term.as_coeff_Mul()
        powers = monomial.as_powers_dict()
        if any(not s.is_Symbol or not e.is_Rational for s, e in powers.items() if s != 1):
            raise DomainError(f"{amount} is no sum of monomials: {term} has no exponents")
        if term.could_extract_minus_sign():
            continue  # a count never falls below zero, so what is taken off does not raise its class
        found.append({s: Fraction(int(e.p), int(e.q)) for s, e in powers.items() if s != 1})
    return _distinct(found)


def _distinct(monomials: list[Exponents]) -> list[Exponents]:
    return [m for n, m in enumerate(monomials) if m not in monomials[:n]]


def _undominated(monomials: list[Exponents], conditions: list[Exponents]) -> list[Exponents]:
    """Monomials that nothing else exceeds wherever all symbols are at least 1 and *conditions* hold.

    A monomial is exceeded by another one, or by a weighted geometric mean of others, which is never above their sum.
    """
    kept = list(monomials)
    for m in monomials:
        rivals = [other for other in kept if other != m]
        if rivals and _exceeded(m, rivals, conditions):
            kept.remove(m)
    return kept


def _exceeded(m: Exponents, rivals: list[Exponents], conditions: list[Exponents]) -> bool:
    """Whether m <= product of rivals^w with weights that sum to 1, by the conditions and by symbols being at least 1."""
    # What makes up the difference is at least 1: the conditions, and every symbol.
    columns = [({**r, _WEIGHT: Fraction(1)}) for r in rivals] + [{s: -e for s, e in c.items()} for c in conditions]
    return _combines({**m, _WEIGHT: Fraction(1)}, columns, units=-1)


def _independent(conditions: list[Exponents]) -> list[Exponents]:
    """Conditions that do not follow from the others and from every symbol being at least 1."""
    kept = list(conditions)
    for c in conditions:
        others = [other for other in kept if other != c]
        if _combines(c, others, units=1):
            kept.remove(c)
    return kept


def _combines(target: Exponents, columns: list[Exponents], *, units: int) -> bool:
    """Whether *target* is a non-negative combination of *columns* and of each symbol to the power *units*."""
    symbols = sorted({s for form in (target, *columns) for s in form}, key=str)
    columns = columns + [{s: Fraction(units)} for s in symbols if s != _WEIGHT]
    if comb(len(columns), len(symbols)) > _MOST_BASES:
        return False
    right = [target.get(s, _NONE) for s in symbols]
    for chosen in combinations(columns, len(symbols)):
        solved = _solve([[form.get(s, _NONE) for form in chosen] for s in symbols], right)
        if solved is not None and all(x >= 0 for x in solved):
            return True
    return False


def _degree(monomial: Exponents) -> tuple[Fraction, int]:
    """Its degree in everything but M, products before powers: the order in which a paper writes a class."""
    return sum((e for s, e in monomial.items() if s != M), _NONE), -len(monomial)


def _whole(form: Exponents) -> Exponents:
    """The same condition with whole exponents: d^(1/2) <= M^(1/2) is d <= M."""
    scale = lcm(*(e.denominator for e in form.values()))
    common = gcd(*(int(e * scale) for e in form.values()))
    return {s: e * scale / common for s, e in form.items()}


def _monomial(form: Exponents) -> sp.Expr:
    return sp.Mul(*(s ** sp.Rational(e.numerator, e.denominator) for s, e in form.items()))


def _side(form: Exponents, sign: int) -> Exponents:
    """The factors of one side of ``1 <= form`` written as small <= big: -1 for the small one."""
    return {s: abs(e) for s, e in form.items() if e * sign > 0}
