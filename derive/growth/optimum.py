r"""The best tiles exactly, and the least traffic over all real tiles that fit M elements.

    minimise  T(tiles)   subject to   F(tiles) <= M,   1 <= tile <= extent,

T the count with many trips (ceilings dropped), F the working set, both posynomials. Three steps, each exact:

    1. A tile that no term of T falls with is as small as it can be, 1: a larger one moves no less and takes more room.
    2. Two tiles that may change places without changing T or F are equal at an optimum: in logarithms the problem is convex,
       so the geometric mean of an optimum and its mirror image is no worse and fits.
    3. One tile is left, T falls with it, F rises with it: it solves F = M, or is the whole extent.

Where more than one tile is left the problem is a geometric program and is solved numerically.

Source: Boyd, Kim, Vandenberghe & Hassibi 2007, A tutorial on geometric programming, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

import sympy as sp

from derive.errors import DomainError
from derive.growth.parameters import split
from derive.symbols import M

_NO_DESCENT = 8
"""SLSQP found no direction that descends: at an optimum to within rounding, when the constraint holds."""
_SLACK = 1e-8


@dataclass(frozen=True)
class Problem:
    """What is minimised.

    Attributes:
        traffic: elements moved, a posynomial in the tiles.
        footprint: elements held, a posynomial in the tiles.
        extents: the largest value of each tile.
    """

    traffic: sp.Expr
    footprint: sp.Expr
    extents: Mapping[sp.Symbol, sp.Expr]


@dataclass(frozen=True)
class Best:
    """An optimum in closed form.

    Attributes:
        tiles: each tile where fast memory is what limits it; as far as that is at most its extent.
        traffic: the least traffic there.
        smallest: tiles that are 1, since no term of the count falls as they grow, and they take room.
        equal: pairs of tiles that may change places: equal at the optimum, the problem being convex in logarithms.
        fills: what the last tile makes equal to M.
    """

    tiles: Mapping[sp.Symbol, sp.Expr]
    traffic: sp.Expr
    smallest: tuple[sp.Symbol, ...]
    equal: tuple[tuple[sp.Symbol, sp.Symbol], ...]
    fills: sp.Expr


def best(problem: Problem) -> Best | None:
    """The optimum in closed form; ``None`` where more than one tile is left, or none is limited by M."""
    chosen: dict[sp.Symbol, sp.Expr] = {}
    equal: list[tuple[sp.Symbol, sp.Symbol]] = []
    traffic, footprint = sp.expand(problem.traffic), sp.expand(problem.footprint)
    left = [t for t in problem.extents if traffic.has(t) or footprint.has(t)]
    for tile in tuple(left):
        if not _falls_with(traffic, tile):
            chosen[tile] = sp.Integer(1)
            left.remove(tile)
    traffic, footprint = sp.expand(traffic.subs(chosen)), sp.expand(footprint.subs(chosen))
    for one in tuple(left):
        for other in tuple(t for t in left if str(t) > str(one)):
            mirror = {one: other, other: one}
            if one in left and all(sp.expand(e.xreplace(mirror) - e) == 0 for e in (traffic, footprint)):
                chosen[other] = one
                left.remove(other)
                traffic, footprint = (sp.expand(e.subs(other, one)) for e in (traffic, footprint))
                equal.append((one, other))
    if len(left) != 1:
        return None
    (tile,) = left
    root = _largest(footprint - M, tile)
    if root is None:
        return None
    solved = {t: e.subs(tile, root) if isinstance(e, sp.Expr) else e for t, e in chosen.items()} | {tile: root}
    smallest = tuple(t for t, e in chosen.items() if e == 1)
    tiles = {t: solved[t] for t in problem.extents if t in solved}
    return Best(tiles, traffic.subs(tile, root), smallest, tuple(equal), footprint)


def _falls_with(traffic: sp.Expr, tile: sp.Symbol) -> bool:
    """Whether some term has a negative power of *tile*."""
    return any(split(term)[1].get(tile, 0) < 0 for term in sp.Add.make_args(traffic))


def _largest(excess: sp.Expr, tile: sp.Symbol) -> sp.Expr | None:
    """The positive root of *excess* in *tile*, of degree 1 or 2, with excess rising in it."""
    polynomial = sp.Poly(excess, tile)
    if polynomial.degree() == 1:
        a, c = polynomial.all_coeffs()
        return sp.expand(-c) / a
    if polynomial.degree() == 2:
        a, b, c = polynomial.all_coeffs()
        half = sp.expand(b / (2 * a))
        return sp.sqrt(sp.expand(half**2 - c / a)) - half
    return None


def best_numerically(problem: Problem, numbers: Mapping[str, float]) -> dict[sp.Symbol, float]:
    """The best real tiles at *numbers*, by a convex solver in the tiles' logarithms.

    Raises:
        DomainError: no tiles fit, or the solver, an optional library, is not installed.
    """
    try:
        from scipy.optimize import minimize
    except ImportError:
        raise DomainError(
            "the best tiles of a geometric program need SciPy: pip install 'attn-derive[optimise]'"
        ) from None
    tiles = tuple(problem.extents)
    amounts = (problem.traffic, problem.footprint, *problem.extents.values(), M)
    values = {s: numbers[s.name] for e in amounts for s in e.free_symbols if s not in tiles}
    count = _logarithmic(problem.traffic, tiles, values)
    held = _logarithmic(problem.footprint / M, tiles, values)
    top = [log(float(problem.extents[t].subs(values))) for t in tiles]
    if held([0.0] * len(tiles))[0] > 0:
        raise DomainError(f"no tiles fit: even tiles of one row need more than M = {numbers['M']} elements")
    found = minimize(
        lambda x: count(x),
        [0.0] * len(tiles),
        jac=True,
        bounds=[(0.0, t) for t in top],
        constraints={"type": "ineq", "fun": lambda x: -held(x)[0], "jac": lambda x: [-g for g in held(x)[1]]},
        method="SLSQP",
        options={"ftol": 1e-10, "maxiter": 500},
    )
    at_the_optimum = found.status == _NO_DESCENT and held(found.x)[0] <= _SLACK
    if not (found.success or at_the_optimum):
        raise DomainError(f"the solver found no best tiles: {found.message}")
    return {t: exp(x) for t, x in zip(tiles, found.x, strict=True)}


def _logarithmic(
    posynomial: sp.Expr, tiles: tuple[sp.Symbol, ...], values: Mapping[sp.Symbol, float]
) -> Callable[[Sequence[float]], tuple[float, list[float]]]:
    """Log of *posynomial* and its gradient, at the tiles' logarithms."""
    rows = []
    for term in sp.Add.make_args(sp.expand(posynomial)):
        coefficient, exponents = split(term)
        if coefficient <= 0:
            raise DomainError(f"{posynomial} is no posynomial: {term} is not positive")
        fixed = (float(e) * log(values[s]) for s, e in exponents.items() if s not in tiles)
        constant = log(float(coefficient)) + sum(fixed)
        rows.append((constant, [float(exponents.get(t, 0)) for t in tiles]))

    def evaluated(x: Sequence[float]) -> tuple[float, list[float]]:
        sizes = [c + sum(e * v for e, v in zip(powers, x, strict=True)) for c, powers in rows]
        largest = max(sizes)
        shares = [exp(s - largest) for s in sizes]
        total = sum(shares)
        gradient = [
            sum(w * powers[n] for w, (_, powers) in zip(shares, rows, strict=True)) / total for n in range(len(tiles))
        ]
        return largest + log(total), gradient

    return evaluated
