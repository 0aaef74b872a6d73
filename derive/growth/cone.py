"""Cones of parameters: regions such as d <= M <= N d, in logarithms, by the double description method.

A region is where every parameter is at least 1 and some monomials are at least 1; in logarithms it is a cone with its corner
at the origin. It is kept both ways, by its bounding forms and by its extreme rays, so that "does this follow from the regime?"
is a sign at every ray, exactly.

Source: Fukuda & Prodon 1996, Double description method revisited, sections 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm
from operator import mul

Form = tuple[int, ...]
"""A linear form, or a ray, by its smallest whole coefficients."""


def primitive(form: Iterable[Fraction | int]) -> Form:
    """*form* scaled by a positive number to its smallest whole coefficients."""
    numbers = list(form)
    scale = lcm(*(x.denominator for x in numbers))
    whole = [x.numerator * (scale // x.denominator) for x in numbers]
    common = gcd(*whole) or 1
    return tuple(x // common for x in whole)


def dot(a: Sequence[int], b: Sequence[int]) -> int:
    """The inner product."""
    return sum(map(mul, a, b))


@dataclass(frozen=True)
class Cone:
    """The points where no form in ``normals`` is negative.

    Attributes:
        normals: bounding forms, in the order in which they were added.
        rays: extreme rays.
        known_tight: of each ray the bounding forms that vanish at it, a bit each, where they are known already.
    """

    normals: tuple[Form, ...]
    rays: tuple[Form, ...]
    known_tight: tuple[int, ...] | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def orthant(size: int) -> Cone:
        """Where every parameter is at least 1 (its logarithm at least 0)."""
        units = tuple(tuple(int(i == n) for i in range(size)) for n in range(size))
        return Cone(units, units)

    def cut(self, normal: Iterable[Fraction | int]) -> Cone:
        """The part where *normal* is not negative."""
        form = primitive(normal)
        signs = [dot(form, ray) for ray in self.rays]
        new = 0 if form in self.normals else 1 << len(self.normals)
        normals = (*self.normals, form) if new else self.normals
        tight = [t if s else t | new for t, s in zip(self._tight, signs, strict=True)]
        if all(s >= 0 for s in signs):
            return Cone(normals, self.rays, tuple(tight))
        kept = {ray: t for ray, t, s in zip(self.rays, tight, signs, strict=True) if s >= 0}
        above = [n for n, s in enumerate(signs) if s > 0]
        below = [n for n, s in enumerate(signs) if s < 0]
        for p in above:
            for q in below:
                common = tight[p] & tight[q]
                if any(common & t == common for n, t in enumerate(tight) if n not in (p, q)):
                    continue  # not neighbours: the segment between them is inside a larger face
                x, y = signs[p], signs[q]
                between = primitive(x * b - y * a for a, b in zip(self.rays[p], self.rays[q], strict=True))
                kept.setdefault(between, common | new)
        return Cone(normals, tuple(kept), tuple(kept.values()))

    def cut_all(self, normals: Iterable[Iterable[Fraction | int]]) -> Cone:
        """The part where none of *normals* is negative."""
        found = self
        for normal in normals:
            found = found.cut(normal)
        return found

    @cached_property
    def _tight(self) -> tuple[int, ...]:
        """The bounding forms that vanish at each ray, a bit each."""
        if self.known_tight is not None:
            return self.known_tight
        return tuple(sum(1 << n for n, form in enumerate(self.normals) if dot(form, ray) == 0) for ray in self.rays)

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
    """How many of *vectors* are independent; whole numbers throughout, each division by the pivot before is exact (Bareiss)."""
    rows = [list(v) for v in vectors]
    found, last = 0, 1
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((r for r in range(found, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        lead = rows[found]
        entry = lead[column]
        for r in range(found + 1, len(rows)):
            factor = rows[r][column]
            rows[r] = [(x * entry - y * factor) // last for x, y in zip(rows[r], lead, strict=True)]
        found, last = found + 1, entry
    return found
