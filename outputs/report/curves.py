"""Bytes against the length as a small SVG, and the roofline: lines whose places a script can compute again."""

from __future__ import annotations

from math import ceil, floor, log2, log10

from outputs.pictures.amounts import COUNTS
from outputs.pictures.lengths import LENGTHS, ByLength
from outputs.pictures.roof import LEVELS, Roof
from outputs.quantities import decimal, grouped, significant, size
from outputs.report.axes import BOTTOM, LEFT, RIGHT, TOP, Axis, frame, horizontal, picture, powers, vertical
from outputs.report.bars import SAYS
from outputs.report.markup import Markup, element
from outputs.report.page import Page

_CLIP = Markup(
    f'<clipPath id="inside"><rect x="{LEFT}" y="{TOP}" width="{RIGHT - LEFT}" height="{BOTTOM - TOP}"></rect></clipPath>'
)
_SHAPES = (
    "M-4.5,0a4.5,4.5 0 1 0 9,0a4.5,4.5 0 1 0 -9,0z",
    "M-4,-4h8v8h-8z",
    "M0,-5.5L5,4h-10z",
    "M0,-5.5L5.5,0L0,5.5L-5.5,0z",
    "M0,5.5L5,-4h-10z",
    "M-5,-2h3v-3h4v3h3v4h-3v3h-4v-3h-3z",
)
"""A marker for each schedule: circle, square, triangle, diamond, triangle down, cross."""


def marker(place: int, x: float, y: float, kind: str, **attributes: object) -> Markup:
    """The marker of the schedule at *place*; full or hollow by *kind*."""
    return element(
        "path",
        d=_SHAPES[place % len(_SHAPES)],
        transform=f"translate({x} {y})",
        class_=f"dot {kind} hue{place % 6}",
        **attributes,
    )


def swatch(place: int, kind: str = "full") -> Markup:
    """A marker in a line of text."""
    return element("svg", marker(place, 7, 7, kind), viewBox="0 0 14 14", class_="mark", aria_hidden="true")


def length_axes(found: ByLength) -> tuple[Axis, Axis]:
    """Axes that hold every point, with room for larger numbers."""
    numbers = [float(n) for series in found.series for _, n in series.points if n > 0] or [1.0]
    low, high = 2.0 ** floor(log2(min(numbers))), 2.0 ** (ceil(log2(max(numbers))) + 1)
    return (
        horizontal(LENGTHS[0], LENGTHS[-1], f"{found.symbol} (tokens)"),
        vertical(low, high, "bytes"),
    )


def length_picture(page: Page, found: ByLength) -> Markup:
    """Every count of every schedule against the length."""
    x, y = length_axes(found)
    x_ticks = {2.0**e: _tokens(2**e) for e in powers(x.low, x.high, 7)}
    y_ticks = {2.0**e: size(2**e) for e in powers(y.low, y.high, 7)}
    lines = []
    for series in found.series:
        if series.count == COUNTS[0] and series.schedule != page.accounts[0].name and _same_floor(page):
            continue
        points = " ".join(f"{x.at(n)},{y.at(float(b))}" for n, b in series.points)
        hue = "" if series.count == COUNTS[0] else f" hue{page.place(series.schedule) % 6}"
        of = f"{series.schedule}|{series.count}"
        lines.append(element("polyline", points=points, class_=f"line {series.count}{hue}", data_line=of))
        if series.count == COUNTS[-1]:
            dots = [(n, b) for n, b in series.points if n in LENGTHS][page.place(series.schedule) % 2 :: 3]
            lines += [
                marker(page.place(series.schedule), x.at(n), y.at(float(b)), "full", data_mark=of, data_at=n)
                for n, b in dots
            ]
    limits = [_limit(page, name, n, row, x) for row, (name, n) in enumerate(found.thresholds.items())]
    describes = "; ".join(
        f"{s.schedule} {SAYS[s.count]}: {size(s.points[0][1])} at {grouped(s.points[0][0])},"
        f" {size(s.points[-1][1])} at {grouped(s.points[-1][0])}"
        for s in found.series
        if s.points
    )
    inside = element("g", *lines, clip_path="url(#inside)")
    svg = picture(
        "lengths", f"Bytes against {found.symbol}", describes, element("defs", _CLIP), frame(x, y, x_ticks, y_ticks),
        *limits, inside,
    )  # fmt: skip
    caption = f"bytes against {found.symbol}; upright: the last length at which the cache serves what is read again"
    return element("figure", element("figcaption", caption), svg, _key(page))


def _same_floor(page: Page) -> bool:
    """Whether all schedules have one compulsory count."""
    return len({page.amounts[a.name][COUNTS[0]] for a in page.accounts}) == 1


def _key(page: Page) -> Markup:
    schedules = [element("span", swatch(page.place(a.name)), f" {a.name} ", class_="key") for a in page.accounts]
    styles = [
        element(
            "span",
            element(
                "svg",
                element("path", d="M0,5h28", class_=f"line {c}"),
                viewBox="0 0 28 10",
                class_="dash",
                aria_hidden="true",
            ),
            f" {SAYS[c]} ",
            class_="key",
        )
        for c in COUNTS
    ]  # fmt: skip
    return element("p", *schedules, *styles, class_="keys")


def _limit(page: Page, schedule: str, number: int, row: int, x: Axis) -> Markup:
    """The upright line of a threshold with its number."""
    inside = x.low <= number <= x.high
    at = x.at(min(max(number, x.low), x.high))
    ends = {"text_anchor": "start", "x": at + 3} if at < (LEFT + RIGHT) / 2 else {"text_anchor": "end", "x": at - 3}
    where = "" if inside else (" (beyond)" if number > x.high else " (before)")
    return element(
        "g",
        element("line", x1=at, x2=at, y1=TOP, y2=BOTTOM, class_=f"limit hue{page.place(schedule) % 6}"),
        element("text", f"{schedule}: {grouped(number)}{where}", y=TOP + 12 + 13 * row, class_="small halo", **ends),
        data_limit=schedule,
    )


def _tokens(n: int) -> str:
    return str(n) if n < 1024 else f"{n // 1024}K" if n < 2**20 else f"{n // 2**20}M"


def roof_axes(found: Roof) -> tuple[Axis, Axis]:
    """Axes that hold the ridges and every dot."""
    intensities = [float(dot.intensity) for dot in found.dots] + [float(found.ridge(level)) for level in found.levels]
    low, high = 10.0 ** floor(log10(min(intensities)) - 0.3), 10.0 ** ceil(log10(max(intensities)) + 0.3)
    slowest = min([float(r.value) * low for r in found.levels.values()] + [float(dot.attained) for dot in found.dots])
    return (
        horizontal(low, high, "useful matrix FLOP a byte of the level"),
        vertical(10.0 ** floor(log10(slowest)), 10.0 ** ceil(log10(float(found.peak.value)) + 0.2), "FLOP/s"),
    )


def roof_picture(page: Page, found: Roof) -> Markup:
    """The machine's roofs, and every schedule under them at each level."""
    x, y = roof_axes(found)
    peak = float(found.peak.value)
    lines, words = [], []
    for level, rate in found.levels.items():
        ridge, speed = float(found.ridge(level)), float(rate.value)
        points = [(x.low, speed * x.low), (min(ridge, x.high), min(peak, speed * x.high)), (x.high, peak)]
        corners = " ".join(f"{x.at(a)},{y.at(b)}" for a, b in points)
        lines.append(element("polyline", points=corners, class_=f"roof {level}"))
        lines.append(element("line", x1=x.at(ridge), x2=x.at(ridge), y1=y.at(peak), y2=BOTTOM, class_=f"ridge {level}"))
        words.append(
            element("li", f"{LEVELS[level]}: {decimal(rate.value, 'B/s')} ({rate.how}),"
                    f" ridge at {significant(found.ridge(level))} FLOP/B")
        )  # fmt: skip
    dots = [
        marker(
            page.place(dot.schedule),
            x.at(float(dot.intensity)),
            y.at(float(dot.attained)),
            "full" if dot.level == "dram" else "hollow",
            data_dot=f"{dot.schedule}|{'intensity' if dot.level == 'dram' else 'intensity.sm'}|attained",
        )
        for dot in found.dots
    ]
    x_ticks = {10.0**e: _power_of_ten(e) for e in powers(x.low, x.high, 7, 10)}
    y_ticks = {10.0**e: decimal(10**e, "") if e >= 0 else f"1e{e}" for e in powers(y.low, y.high, 7, 10)}
    describes = "; ".join(
        f"{dot.schedule} at {LEVELS[dot.level]}: {significant(dot.intensity)} FLOP/B, at most"
        f" {decimal(dot.attained, 'FLOP/s')}"
        for dot in found.dots
    )
    machine = page.start.answer.machine
    name = machine.id if machine else ""
    svg = picture(
        "roofline", f"Roofline of {name}", describes, frame(x, y, x_ticks, y_ticks),
        element("g", *lines, *dots, clip_path="url(#roofed)"),
        element("defs", Markup(_CLIP.replace('"inside"', '"roofed"'))),
    )  # fmt: skip
    levels = "; full at HBM's bytes, hollow at the L2's" if "l2" in found.levels else ""
    keys = element(
        "p",
        *(element("span", swatch(page.place(a.name)), f" {a.name} ", class_="key") for a in page.accounts),
        class_="keys",
    )
    peak_words = element("li", f"matrix pipe: {decimal(found.peak.value, 'FLOP/s')} ({found.peak.how})")
    return element(
        "figure",
        element("figcaption", f"roofline of {name}: height is what the slowest pipe or level allows{levels}"),
        svg,
        keys,
        element("ul", peak_words, *words, class_="notes"),
    )


def _power_of_ten(e: int) -> str:
    return significant(10**e) if 0 <= e < 4 else f"1e{e}"


def data(lengths: ByLength | None, roof: Roof | None) -> dict[str, object]:
    """Axes and lengths, for the script."""
    found: dict[str, object] = {}
    if lengths is not None:
        axes = length_axes(lengths)
        found["lengths"] = {
            "symbol": lengths.symbol,
            "at": [str(n) for n in LENGTHS],
            "longest": {f"{s.schedule}|{s.count}": str(s.longest) for s in lengths.series},
            "x": axes[0].as_data,
            "y": axes[1].as_data,
            "middle": (LEFT + RIGHT) / 2,
        }
    if roof is not None:
        found["roof"] = {axis: made.as_data for axis, made in zip("xy", roof_axes(roof), strict=True)}
    return found
