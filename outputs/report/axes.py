"""Logarithmic axes of a small SVG: where a number stands, and ticks with words that do not meet."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

from outputs.report.markup import Markup, element

WIDTH, HEIGHT = 360, 250
LEFT, RIGHT, TOP, BOTTOM = 72, 338, 12, 206
"""The frame inside the picture."""


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis.

    Attributes:
        low, high: the numbers at its ends.
        start, end: where those stand.
        label: what it measures, with the unit.
    """

    low: float
    high: float
    start: float
    end: float
    label: str

    def at(self, number: float) -> float:
        """Where *number* stands, kept within a tenth of the axis beyond its ends; nothing at all stands at its start."""
        if number <= 0:
            return self.start
        share = (log2(number) - log2(self.low)) / (log2(self.high) - log2(self.low))
        return round(self.start + min(max(share, -0.1), 1.1) * (self.end - self.start), 2)

    @property
    def as_data(self) -> list[float]:
        """What the script needs to place a number."""
        return [self.low, self.high, self.start, self.end]


def horizontal(low: float, high: float, label: str) -> Axis:
    """An axis along the bottom."""
    return Axis(low, high, LEFT, RIGHT, label)


def vertical(low: float, high: float, label: str) -> Axis:
    """An axis up the left side."""
    return Axis(low, high, BOTTOM, TOP, label)


def powers(low: float, high: float, most: int, base: int = 2) -> list[int]:
    """Exponents of ticks from *low* to *high*, evenly spaced, at most *most* of them."""
    first, last = (round(log2(x) / log2(base)) for x in (low, high))
    step = max(1, -(-(last - first) // max(1, most - 1)))
    if base == 2 and step > 1:
        step = -(-step // 2) * 2
    return list(range(first, last + 1, step))


def frame(x: Axis, y: Axis, x_ticks: dict[float, str], y_ticks: dict[float, str]) -> Markup:
    """The frame with its ticks and labels."""
    parts = [
        element("rect", x=LEFT, y=TOP, width=RIGHT - LEFT, height=BOTTOM - TOP, class_="frame"),
    ]
    for number, words in x_ticks.items():
        at = x.at(number)
        parts.append(element("line", x1=at, x2=at, y1=TOP, y2=BOTTOM, class_="grid"))
        parts.append(element("text", words, x=at, y=BOTTOM + 14, text_anchor="middle"))
    for number, words in y_ticks.items():
        at = y.at(number)
        parts.append(element("line", x1=LEFT, x2=RIGHT, y1=at, y2=at, class_="grid"))
        parts.append(element("text", words, x=LEFT - 5, y=round(at + 3.5, 2), text_anchor="end"))
    middle = (TOP + BOTTOM) / 2
    parts.append(element("text", x.label, x=(LEFT + RIGHT) / 2, y=BOTTOM + 31, text_anchor="middle", class_="label"))
    turned = f"rotate(-90 11 {middle})"
    parts.append(element("text", y.label, x=11, y=middle, text_anchor="middle", transform=turned, class_="label"))
    return Markup("".join(parts))


def picture(
    name: str, title: str, describes: str, *content: Markup, height: float = HEIGHT, width: float = WIDTH
) -> Markup:
    """An SVG with a title and a description for those who do not see it."""
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", describes, id=f"{name}-desc"),
        *content,
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        id=name,
    )
