"""The kinds of plot: each draws numbers that ``outputs.pictures`` has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log2
from typing import TYPE_CHECKING, Any

from derive.errors import BadValueError
from derive.exact import Number
from derive.symbols import M
from outputs.notation import as_asked, text
from outputs.pictures.amounts import COUNTS
from outputs.pictures.lengths import by_length
from outputs.pictures.regimes import along_memory
from outputs.pictures.roof import LEVELS, roof
from outputs.pictures.row_tiles import row_tiles
from outputs.plots.sheet import DASHES, Sheet, colour, marker, sheet
from outputs.quantities import decimal, grouped, significant, size

if TYPE_CHECKING:
    from outputs.pictures.start import Start

SAYS = {"compulsory": "compulsory", "sm": "SM-side", "dram": "DRAM"}


def plot(kind: str, start: Start, written_as: str) -> bytes:
    """The plot *kind* of a question, as ``png``, ``svg`` or ``pdf``.

    Raises:
        BadValueError: matplotlib is missing, or the question has nothing of that kind to draw.
    """
    with sheet(**_SIZES.get(kind, {})) as drawn:
        _KINDS[kind](start, drawn)
        return drawn.written(written_as)


def _title(start: Start, *left_out: str) -> str:
    """The question in a line: variant, machine and the numbers it is drawn at."""
    request = start.answer.request
    words = [request.variant.name]
    words += [f"mask {request.pattern.name}"] if request.pattern.name != "full" else []
    words += [start.answer.machine.id] if start.answer.machine else []
    numbers = as_asked(request.numbers, start.answer.tied)
    words += [f"{n} = {significant(v)}" for n, v in numbers.items() if n not in left_out and n not in _MACHINES]
    return ", ".join(words)


_MACHINES = frozenset({"C", "C_L2", "M", "n_L2"})
"""Numbers of a machine, which stand for it where none is named."""


def _roofline(start: Start, drawn: Sheet) -> None:
    found = roof(start)
    if found is None:
        raise BadValueError("a roofline needs a machine whose rates are known; name one with --on, e.g. --on h100-sxm")
    peak = float(found.peak.value)
    intensities = [float(dot.intensity) for dot in found.dots] + [float(found.ridge(level)) for level in found.levels]
    low, high = min(intensities) / 4, max(intensities) * 8
    drawn.logarithmic("useful matrix FLOP / byte of the level", "FLOP / s", _title(start))
    words = []
    for level, rate in found.levels.items():
        ridge = float(found.ridge(level))
        style = "-" if level == "dram" else DASHES["sm"]
        drawn.axes.plot([low, ridge, high], [low * float(rate.value), peak, peak], color="black", linestyle=style)
        drawn.axes.plot([ridge], [peak], marker="|", color="black", markersize=9)
        words.append((ridge, peak, f"{LEVELS[level]} ridge {significant(found.ridge(level))}", "black"))
    names = list(dict.fromkeys(dot.schedule for dot in found.dots))
    for dot in found.dots:
        place, full = names.index(dot.schedule), dot.level == "dram"
        x, y = float(dot.intensity), float(dot.attained)
        drawn.axes.plot(
            [x],
            [y],
            marker=marker(place),
            color=colour(place),
            markerfacecolor=colour(place) if full else "white",
            linestyle="",
        )
        words.append((x, y, f"{dot.schedule}, {LEVELS[dot.level]}", colour(place)))
    drawn.axes.set_xlim(low, high)
    slowest = min([float(dot.attained) for dot in found.dots] + [low * float(r.value) for r in found.levels.values()])
    drawn.axes.set_ylim(slowest / 2, peak * 4)
    _decimal_ticks(drawn.axes.yaxis, "FLOP/s")
    drawn.label_points(words)


def _traffic(start: Start, drawn: Sheet) -> None:
    found = by_length(start)
    if found is None:
        raise BadValueError(
            "this question has one length; traffic is drawn against a length that grows: leave docs= out"
        )
    drawn.logarithmic(f"{found.symbol} (tokens)", "bytes moved", _title(start, "N", "N_q", "N_k"))
    names = list(dict.fromkeys(series.schedule for series in found.series))
    ends = []
    floors: set[object] = set()
    for series in found.series:
        if not series.points or (series.count == COUNTS[0] and series.points in floors):
            continue
        floors.add(series.points)
        place = names.index(series.schedule)
        shade = "#555555" if series.count == COUNTS[0] else colour(place)
        x, y = [n for n, _ in series.points], [float(b) for _, b in series.points]
        how = {"marker": marker(place), "markevery": (place % 2, 3)} if series.count == COUNTS[-1] else {}
        drawn.axes.plot(x, y, color=shade, linestyle=DASHES[series.count], **how)
        whose = "" if series.count == COUNTS[0] else f"{series.schedule} "
        ends.append((x[-1], y[-1], f"{whose}{SAYS[series.count]}", shade))
    _token_ticks(drawn.axes.xaxis)
    _size_ticks(drawn.axes.yaxis)
    low, high = drawn.axes.get_xlim()
    together: dict[int, list[str]] = {}
    for name, n in found.thresholds.items():
        if low <= n <= high:
            together.setdefault(n, []).append(name)
    for row, (n, whose_limit) in enumerate(together.items()):
        shade = colour(names.index(whose_limit[0]))
        drawn.axes.axvline(n, color=shade, linestyle=(0, (2, 2)), linewidth=0.9)
        words = f"{', '.join(whose_limit)}: L2 holds to {grouped(n)}"
        drawn.note(n, row, words, shade, left=log2(n) >= (log2(low) + log2(high)) / 2)
    drawn.label_ends(ends)


def _tiles(start: Start, drawn: Sheet) -> None:
    found = row_tiles(start.answer)
    drawn.logarithmic("B_r (query rows of a tile)", "SM-side bytes", _title(start))
    ends = []
    for place, tiles in enumerate(found):
        shade = colour(place)
        fitting = [p for p in tiles.points if tiles.largest is None or p[0] <= tiles.largest]
        beyond = [p for p in tiles.points if tiles.largest is not None and p[0] > tiles.largest]
        drawn.axes.plot([p[0] for p in fitting], [float(p[1]) for p in fitting], color=shade, marker=marker(place))
        drawn.axes.plot(
            [p[0] for p in beyond], [float(p[1]) for p in beyond], color=shade, marker=marker(place), markerfacecolor="white",
            linestyle=(0, (1, 2)),
        )  # fmt: skip
        chosen = next(p for p in tiles.points if p[0] == tiles.chosen)
        drawn.axes.plot([chosen[0]], [float(chosen[1])], marker="o", markersize=10, markerfacecolor="none", color=shade)
        ends.append((tiles.points[-1][0], float(tiles.points[-1][1]), tiles.schedule, shade))
        if tiles.largest is not None and tiles.room is not None and tiles.largest > 0:
            drawn.axes.axvline(tiles.largest, color=shade, linestyle=(0, (2, 2)), linewidth=0.9)
            words = f"{tiles.schedule}: fits {size(tiles.room)} to B_r = {grouped(tiles.largest)}"
            drawn.note(tiles.largest, place, words, shade, left=True)
    low, high = drawn.axes.get_ylim()
    drawn.axes.set_ylim(low, high * 2)
    _token_ticks(drawn.axes.xaxis)
    _size_ticks(drawn.axes.yaxis)
    drawn.label_ends(ends)


def _regimes(start: Start, drawn: Sheet) -> None:
    from outputs.bounds import Bounds

    asked = start.asked
    bounds = Bounds(asked.request, (), asked.machine, asked.options)
    values: dict[str, Number] = {}
    for account in start.answer.accounts:
        values |= start.values(account)
    missing = [s.name for s in bounds.symbols if s.name not in values]
    if missing:
        raise BadValueError(
            f"regimes are drawn at numbers, and there is none for {', '.join(missing)}; give it as KEY=VALUE"
        )
    here = float(values[M.name])
    intervals = along_memory(bounds, values, max(1.0, here / 2**12), here * 2**12)
    if not intervals:
        raise BadValueError("no schedule has a growth class at these numbers; see `derive bound` for the regimes")
    numbers = {s: float(values[s.name]) for s in bounds.symbols if s != M}
    drawn.logarithmic("M (elements of fast memory)", "elements moved, constants left out", _title(start))
    hatches = ("", "///", "...", "\\\\\\", "xxx", "++")
    edges: dict[float, str] = {}
    least = []
    for n, interval in enumerate(intervals):
        ends = [float(interval.monomial.subs({**numbers, M: m})) for m in (interval.low, interval.high)]
        drawn.axes.plot([interval.low, interval.high], ends, color=colour(n), linewidth=2)
        least += ends
    floor = min(least) / 8
    for n, interval in enumerate(intervals):
        ends = [float(interval.monomial.subs({**numbers, M: m})) for m in (interval.low, interval.high)]
        drawn.axes.fill_between(
            [interval.low, interval.high], ends, floor, facecolor="none", edgecolor=colour(n), hatch=hatches[n % len(hatches)],
            linewidth=0, alpha=0.35,
        )  # fmt: skip
        for m in (interval.low, interval.high):
            for small, big in (pair for regime in bounds.best for pair in bounds.parameters.conditions(regime.region)):
                other = big if small == M else small if big == M else None
                if other is not None and abs(log2(float(other.subs(numbers))) - log2(m)) < 1e-9:
                    edges[m] = text(other)
    drawn.axes.set_ylim(floor, max(least) * 64)
    drawn.axes.set_xlim(intervals[0].low, max(i.high for i in intervals))
    drawn.axes.axvline(here, color="#555555", linewidth=0.9)
    for row, (m, words) in enumerate([*edges.items(), (here, "")]):
        says = f"M = {words} = {grouped(round(m))}" if words else f"here: M = {grouped(here)}"
        if words:
            drawn.axes.axvline(m, color="black", linestyle=(0, (2, 2)), linewidth=0.9)
        drawn.note(m, row, says, "black", left=False)
    words_at = []
    for n, interval in enumerate(intervals):
        m = 2 ** ((log2(interval.low) + log2(interval.high)) / 2)
        moved = float(interval.monomial.subs({**numbers, M: m}))
        words_at.append((m, moved, f"{text(interval.monomial)}: {', '.join(interval.schedules)}", colour(n)))
    drawn.label_points(words_at)


def _token_ticks(axis: Any) -> None:
    axis.set_major_formatter(
        lambda n, _: f"{n:.0f}" if n < 1024 else f"{n / 1024:.0f}K" if n < 2**20 else f"{n / 2**20:.0f}M"
    )


def _size_ticks(axis: Any) -> None:
    axis.set_major_formatter(lambda n, _: size(round(n)) if n >= 1 else "")


def _decimal_ticks(axis: Any, unit: str) -> None:
    from matplotlib.ticker import LogLocator

    axis.set_major_locator(LogLocator(10))
    axis.set_major_formatter(lambda n, _: decimal(round(n), unit))


_KINDS: Mapping[str, Callable[[Start, Sheet], None]] = {
    "roofline": _roofline,
    "traffic": _traffic,
    "regimes": _regimes,
    "tiles": _tiles,
}
_SIZES: Mapping[str, Mapping[str, float]] = {"traffic": {"width": 5.6}, "tiles": {"width": 5.2}}
