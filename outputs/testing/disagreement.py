"""What a comparison found: an agreement, or a disagreement that says where, how the counts grow, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from derive.exact import Number
from outputs.testing.closed_form import shown
from outputs.testing.exponents import Exponent

Sizes = Mapping[str, Number]


@dataclass(frozen=True)
class Agreement:
    """What a comparison looked at.

    Attributes:
        tried: points compared.
        outside: points outside the regime of a law, of which it says nothing.
    """

    tried: int
    outside: int = 0

    @property
    def says(self) -> str:
        """In a sentence; where every point lay outside, that nothing was tested."""
        if self.outside and self.outside == self.tried:
            return f"outside the law's regime at all {self.tried} points: nothing was tested"
        inside = self.tried - self.outside
        points = "1 point" if inside == 1 else f"{inside} points"
        return f"agrees at {points}" + (f", {self.outside} outside" if self.outside else "")


@dataclass
class Disagreement(AssertionError):  # noqa: N818  (what a test finds, and no mistake of its call)
    """The smallest sizes at which measured and derived differ, and what is known about why.

    Attributes:
        what: what was compared.
        sizes: the sizes, by key.
        measured, derived: both counts there.
        powers: powers of each size in what was measured and in what is derived, over all points that were drawn.
        explained: slips whose count is the measured one at every point looked at; ``None`` where slips are not looked for.
        tried: points compared.
        wrong: at how many of them they differ.
        pattern: what all points have in common, such as one ratio; empty where nothing.
        unsaid: keys of sizes that nobody gave, such as dv, and that had their usual value.
        parts: what is derived at these sizes, tensor by tensor.
    """

    what: str
    sizes: Sizes
    measured: Number
    derived: Number
    powers: Mapping[str, tuple[Exponent, Exponent]] = field(default_factory=dict)
    explained: Sequence[str] | None = ()
    tried: int = 0
    wrong: int = 0
    pattern: str = ""
    unsaid: Sequence[str] = ()
    parts: str = ""

    @property
    def lines(self) -> list[str]:
        """The report, line by line."""
        at = ", ".join(f"{key}={shown(size)}" for key, size in self.sizes.items())
        found = [f"{self.what}: measured {shown(self.measured)}, derived {shown(self.derived)} at {at}"]
        ratio = f"measured / derived {_ratio(self.measured, self.derived)}, " if self.derived else ""
        many = f"; they differ at {self.wrong} of {self.tried} points" if self.wrong else ""
        found.append(f"{ratio}the smallest case found{many}")
        if self.powers:
            for what, n in (("measured", 0), ("derived ", 1)):
                grown = " ".join(f"{key}^({both[n]})" for key, both in self.powers.items())
                found.append(f"{what} grows with {grown}")
        if self.explained is None:
            return found
        found += [f"diagnosis: {says}" for says in self.explained]
        if not self.explained:
            found += [f"diagnosis: no known slip gives these numbers{self.pattern and f'; {self.pattern}'}"]
            found += [f"derived there: {self.parts}"] if self.parts else []
        if len(self.explained) > 1:
            apart = f"; let {', '.join(self.unsaid)} vary too, to tell them apart" if self.unsaid else ""
            found.append(f"these give the same numbers at every point{apart}")
        return found

    def __str__(self) -> str:
        return "\n".join(self.lines)


def _ratio(measured: Number, derived: Number) -> str:
    ratio = Fraction(measured) / Fraction(derived)
    if ratio.denominator == 1:
        return f"= {ratio}"
    return f"= {ratio} = {float(ratio):.6g}" if ratio.denominator < 1000 else f"= {float(ratio):.6g}"
