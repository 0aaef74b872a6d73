"""Vertices and extreme rays by trying every basis, in exact rationals: the witness of the pivoting methods.

It shares no code with ``derive.growth``; it is only fast enough for programs of a few rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import gcd, lcm

Row = Sequence[Fraction | int]
Point = tuple[Fraction, ...]


def inner(a: Row, b: Row) -> Fraction:
    """The inner product."""
    return Fraction(sum(x * y for x, y in zip(a, b, strict=True)))


def only_solution(rows: Sequence[Row], right: Row) -> Point | None:
    """The solution of a square system, or ``None`` when it is singular."""
    size = len(rows)
    work = [[*map(Fraction, row), Fraction(b)] for row, b in zip(rows, right, strict=True)]
    for n in range(size):
        pivot = next((r for r in range(n, size) if work[r][n]), None)
        if pivot is None:
            return None
        work[n], work[pivot] = work[pivot], work[n]
        for r in range(size):
            if r != n and work[r][n]:
                factor = work[r][n] / work[n][n]
                work[r] = [x - factor * y for x, y in zip(work[r], work[n], strict=True)]
    return tuple(row[-1] / row[n] for n, row in enumerate(work))


def vertices(rows: Sequence[Row], right: Row) -> set[Point]:
    """The vertices of ``rows x >= right, x >= 0``."""
    size = len(rows[0])
    every = [*rows, *[[int(i == n) for i in range(size)] for n in range(size)]]
    bounds = [*right, *[0] * size]
    found = set()
    for chosen in combinations(range(len(every)), size):
        point = only_solution([every[c] for c in chosen], [bounds[c] for c in chosen])
        if point is not None and all(inner(row, point) >= b for row, b in zip(every, bounds, strict=True)):
            found.add(point)
    return found


def basic_solutions(rows: Sequence[Row], right: Row) -> set[Point]:
    """The vertices of ``rows x = right, x >= 0``, for independent *rows*."""
    size, count = len(rows[0]), len(rows)
    found = set()
    for chosen in combinations(range(size), count):
        part = only_solution([[row[c] for c in chosen] for row in rows], right)
        if part is not None and min(part) >= 0:
            values = dict(zip(chosen, part, strict=True))
            found.add(tuple(values.get(n, Fraction(0)) for n in range(size)))
    return found


def extreme_rays(normals: Sequence[Row]) -> set[tuple[int, ...]]:
    """The extreme rays of ``normals x >= 0, x >= 0``, each by its smallest whole coordinates.

    A cone in the orthant is cut by the plane where its coordinates sum to 1 in a polytope, whose vertices its rays meet.
    """
    size = len(normals[0])
    every = [*normals, *[[int(i == n) for i in range(size)] for n in range(size)]]
    found = set()
    for chosen in combinations(every, size - 1):
        point = only_solution([*chosen, [1] * size], [*[0] * (size - 1), 1])
        if point is not None and all(inner(row, point) >= 0 for row in every):
            found.add(whole(point))
    return found


def whole(point: Row) -> tuple[int, ...]:
    """*point* scaled to its smallest whole coordinates."""
    exact = [Fraction(x) for x in point]
    scale = lcm(*(x.denominator for x in exact))
    numbers = [int(x * scale) for x in exact]
    common = gcd(*numbers) or 1
    return tuple(n // common for n in numbers)


def is_combination(point: Row, rays: Sequence[Row]) -> bool:
    """Whether *point* is a non-negative combination of *rays*; by Caratheodory, of independent ones."""
    return not any(point) or any(
        len(chosen) and _spans(point, chosen) for n in range(1, len(point) + 1) for chosen in combinations(rays, n)
    )


def _spans(point: Row, chosen: Sequence[Row]) -> bool:
    """Whether *point* is a non-negative combination of *chosen*, when those are independent."""
    size = len(chosen)
    for lines in combinations(range(len(point)), size):
        weights = only_solution([[ray[i] for ray in chosen] for i in lines], [point[i] for i in lines])
        if weights is not None:
            back = [inner([ray[i] for ray in chosen], weights) for i in range(len(point))]
            return min(weights) >= 0 and all(x == y for x, y in zip(back, point, strict=True))
    return False


def feasible_points(rows: Sequence[Row], points: Sequence[Row]) -> Iterator[Row]:
    """Those of *points* at which no row is negative."""
    return (p for p in points if all(inner(row, p) >= 0 for row in rows))
