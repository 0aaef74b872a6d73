"""Regions of M against the length or the head dimension by the least growth class, as ``derive bound`` derives them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log2
from typing import TYPE_CHECKING

import sympy as sp

from derive.symbols import M, N_k, d
from outputs.formula import latex
from outputs.notation import chain, text
from outputs.pictures.regimes import Region, regions
from outputs.quantities import grouped
from outputs.report.axes import frame, horizontal, picture, powers, vertical
from outputs.report.markup import Markup, element, formula

if TYPE_CHECKING:
    from derive.exact import Number
    from outputs.bounds import Bounds
    from outputs.report.page import Page

_APART = 16
"""Units between two numbers."""
_REACH = 8
"""Powers of two on both sides of the question's numbers."""


@dataclass(frozen=True)
class Map:
    """One map.

    Attributes:
        name: its identifier.
        other: the symbol of the upright axis.
        regions: what it shows.
        box: its ends, in powers of two.
        values: the numbers everything else has.
    """

    name: str
    other: sp.Symbol
    regions: tuple[Region, ...]
    box: tuple[int, int, int, int]
    values: dict[str, Number]


def maps(page: Page, bounds: Bounds) -> tuple[Map, ...]:
    """M against the length and against d, as far as the classes speak of them."""
    values: dict[str, Number] = {}
    for account in page.accounts:
        values |= page.values[account.name]
    known = {s.name for s in bounds.symbols}
    if not known <= set(values):
        return ()
    made = []
    for other in (bounds.alike.get(N_k, N_k), d):
        if other not in bounds.symbols:
            continue
        m, y = (log2(values[s.name]) for s in (M, other))
        box = (max(0, floor(m) - _REACH), ceil(m) + _REACH, max(0, floor(y) - _REACH), ceil(y) + _REACH)
        made.append(Map(f"map-{other.name}", other, regions(bounds, other), box, values))
    return tuple(made)


def drawn(found: Map) -> Markup:
    """The map: numbered regions, a mark where the question stands, and what each number means below it."""
    left, right, low, high = found.box
    unit = "tokens" if found.other != d else "elements"
    x = horizontal(2.0**left, 2.0**right, "M (elements of fast memory)")
    y = vertical(2.0**low, 2.0**high, f"{found.other.name} ({unit})")
    shapes, numbers, rows = [], [], []
    placed: list[tuple[float, float]] = []
    for n, region in enumerate(found.regions, 1):
        corners = [(x.at(2**a), y.at(2**b)) for a, b in region.corners((left, right, low, high), found.values)]
        points = " ".join(f"{a},{b}" for a, b in corners)
        shapes.append(element("polygon", points=points, class_=f"region hue{(n - 1) % 6}", data_region=n - 1))
        at = inside(corners, placed)
        placed += [at] if at else []
        across, up = at or (0.0, 0.0)
        numbers.append(
            element("text", str(n), x=across, y=round(up + 4, 2), text_anchor="middle", class_="label halo",
                    data_middle=n - 1, visibility=None if at else "hidden")
        )  # fmt: skip
        where = chain(region.conditions) or "everywhere"
        theta = formula(rf"\Theta\left({latex(region.monomial)}\right)")
        rows.append(element("li", theta, f" by {', '.join(region.schedules)}, where {where}"))
    memory, length = found.values[M.name], found.values[found.other.name]
    moved = f"translate({x.at(float(memory))} {y.at(float(length))})"
    here = element("path", d="M-5,0h10M0,-5v10", class_="here", transform=moved, data_here=found.name)
    x_ticks = {2.0**e: f"2^{e}" for e in powers(x.low, x.high, 7)}
    y_ticks = {2.0**e: f"2^{e}" for e in powers(y.low, y.high, 7)}
    says = "; ".join(
        f"region {n}: Theta({text(r.monomial)}) by {', '.join(r.schedules)}" for n, r in enumerate(found.regions, 1)
    )
    svg = picture(
        found.name, f"Least growth class by M and {found.other.name}", says, frame(x, y, x_ticks, y_ticks), *shapes, *numbers,
        here,
    )  # fmt: skip
    caption = f"least class of elements moved, by M and {found.other.name}"
    caption += f"; the cross: M = {grouped(memory)}, {found.other.name} = {grouped(length)}"
    return element(
        "figure",
        element("figcaption", caption, data_caption=found.name),
        svg,
        element("ol", *rows, class_="notes"),
    )


def inside(corners: list[tuple[float, float]], taken: list[tuple[float, float]]) -> tuple[float, float] | None:
    """A point of a convex region for its number, away from those that are *taken*: its middle, else towards a corner."""
    if not corners:
        return None
    middle = (sum(a for a, _ in corners) / len(corners), sum(b for _, b in corners) / len(corners))
    tried = [middle, *(((a + middle[0]) / 2, (b + middle[1]) / 2) for a, b in corners)]
    free = (p for p in tried if all(abs(p[0] - q[0]) >= _APART or abs(p[1] - q[1]) >= _APART for q in taken))
    found = next(free, None)
    return None if found is None else (round(found[0], 2), round(found[1], 2))


def data(found: Map) -> dict[str, object]:
    """The regions' sides, for the script."""
    return {
        "name": found.name,
        "other": found.other.name,
        "box": found.box,
        "memory": str(found.values[M.name]),
        "regions": [
            [[float(s.across), float(s.up), {n: float(e) for n, e in s.others}] for s in region.sides]
            for region in found.regions
        ],
    }
