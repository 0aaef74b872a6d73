"""Cones of parameters: regions such as d <= M <= N d, in logarithms, by the double description method.

A region is where every parameter is at least 1 and some monomials are at least 1; in logarithms it is a cone with its corner
at the origin. It is kept both ways, by its bounding forms and by its extreme rays, so that "does this follow from the regime?"
is a sign at every ray, exactly.

Source: Fukuda & Prodon 1996, Double description method revisited, sections 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm

Form = tuple[int, ...]
"""A linear form, or a ray, by its smallest whole coefficients."""


def primitive(form: Iterable[Fraction | int]) -> Form:
    """*form* scaled by a positive number to its smallest whole coefficients."""
    fractions = [Fraction(x) for x in form]
    scale = lcm(*(x.denominator for x in fractions)) if fractions else 1
    whole = [int(x * scale) for x in fractions]
    common = gcd(*whole) or 1
    return tuple(x // common for x in whole)


def dot(a: Sequence[int], b: Sequence[int]) -> int:
    """The inner product."""
    return sum(x * y for x, y in zip(a, b, strict=True))


@dataclass(frozen=True)
class Cone:
    """The points where no form in ``normals`` is negative.

    Attributes:
        normals: bounding forms, in the order in which they were added.
        rays: extreme rays.
    """

    normals: tuple[Form, ...]
    rays: tuple[Form, ...]

    @staticmethod
    def orthant(size: int) -> Cone:
        """Where every parameter is at least 1 (its logarithm at least 0)."""
        units = tuple(tuple(int(i == n) for i in range(size)) for n in range(size))
        return Cone(units, units)

    def cut(self, normal: Iterable[Fraction | int]) -> Cone:
        """The part where *normal* is not negative."""
        form = primitive(normal)
        signs = [dot(form, ray) for ray in self.rays]
        normals = self.normals if form in self.normals else (*self.normals, form)
        if all(s >= 0 for s in signs):
            return Cone(normals, self.rays)
        tight = self._tight
        kept = [ray for ray, s in zip(self.rays, signs, strict=True) if s >= 0]
        above = [n for n, s in enumerate(signs) if s > 0]
        below = [n for n, s in enumerate(signs) if s < 0]
        for p in above:
            for q in below:
                common = tight[p] & tight[q]
                if any(common <= t for n, t in enumerate(tight) if n not in (p, q)):
                    continue  # not neighbours: the segment between them is inside a larger face
                between = [signs[p] * y - signs[q] * x for x, y in zip(self.rays[p], self.rays[q], strict=True)]
                kept.append(primitive(between))
        return Cone(normals, tuple(dict.fromkeys(kept)))

    def cut_all(self, normals: Iterable[Iterable[Fraction | int]]) -> Cone:
        """The part where none of *normals* is negative."""
        found = self
        for normal in normals:
            found = found.cut(normal)
        return found

    @cached_property
    def _tight(self) -> list[frozenset[int]]:
        """The bounding forms that vanish at each ray."""
        return [frozenset(n for n, form in enumerate(self.normals) if dot(form, ray) == 0) for ray in self.rays]

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return len(self.normals[0])

    @cached_property
    def has_interior(self) -> bool:
        """Whether it is a region, and not only a boundary between regions."""
        return rank(self.rays) == self.size

    @property
    def middle(self) -> Form:
        """A point inside; off every hyperplane that its rays do not force it on, as far as unequal steps can see to it."""
        steps = range(len(self.rays), 2 * len(self.rays))
        return tuple(sum(w * ray[i] for w, ray in zip(steps, self.rays, strict=True)) for i in range(self.size))

    def implies(self, form: Iterable[Fraction | int]) -> bool:
        """Whether *form* is nowhere negative."""
        whole = primitive(form)
        return all(dot(whole, ray) >= 0 for ray in self.rays)

    def is_facet(self, form: Form) -> bool:
        """Whether *form* bounds the cone along a whole side."""
        return rank([ray for ray in self.rays if dot(form, ray) == 0]) == self.size - 1

    @cached_property
    def facets(self) -> tuple[Form, ...]:
        """Bounding forms of which none follows from the others; that a parameter is at least 1 goes without saying."""
        return tuple(n for n in self.normals if self.is_facet(n) and sum(map(abs, n)) > 1)


def rank(vectors: Sequence[Form]) -> int:
    """How many of *vectors* are independent."""
    rows = [[Fraction(x) for x in v] for v in vectors]
    found = 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((r for r in range(found, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        lead = rows[found]
        for r in range(found + 1, len(rows)):
            if factor := rows[r][column]:
                rows[r] = [x - y * factor / lead[column] for x, y in zip(rows[r], lead, strict=True)]
        found += 1
    return found
