from __future__ import annotations

import random
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import log2
from typing import Any

import pytest

from derive.attention import names as variant_names
from derive.attention import variant
from derive.exact import holds, value
from derive.symbols import B_r, M, N, d
from hardware import load
from outputs.bounds import Bounds
from outputs.explanation import Explanation
from outputs.pictures.amounts import amounts
from outputs.pictures.lengths import by_length
from outputs.pictures.regimes import along_memory, regions
from outputs.pictures.roof import roof
from outputs.pictures.row_tiles import row_tiles
from outputs.pictures.start import Start, start
from outputs.request import read_request
from tests.strategies import PAIRS


@lru_cache(maxsize=16)
def begun(*words: str, name: str = "mha", schedules: tuple[str, ...] = ("naive", "flash2"), machine: str = "") -> Start:
    """A question at numbers."""
    return start(Explanation(read_request(variant(name), words), schedules, load(machine) if machine else None))


@pytest.mark.parametrize("name", variant_names())
def test_every_question_begins_somewhere(name: str) -> None:
    """With nothing given every amount has a value; what was given is kept, and sizes that must divide do."""
    symbols = {s.name for s in variant(name).symbols}
    words = ("h=6", "hk=?") if "h_k" in symbols else ("h=6",) if "h" in symbols else ()
    schedules = tuple(schedule for schedule in variant(name).schedules if (name, schedule) in PAIRS)
    found = begun(*words, name=name, schedules=schedules)
    for account in found.answer.accounts:
        assert account.is_numeric
        assert account.values.get("h", 6) == 6
        for small, large in variant(name).divides:
            if {small.name, large.name} <= set(account.values):
                assert account.values[large.name] % account.values[small.name] == 0
    assert not set(found.chosen) & {"h"}


def test_the_parts_of_a_schedule_divide_a_length_that_was_given() -> None:
    """300 keys are not cut into the 64 equal parts that one would begin with."""
    found = begun("Nk=300", name="decode", schedules=("split-kv",))
    assert found.chosen["n_s"] == 4


def test_a_tile_that_differs_between_schedules_has_a_slider_each() -> None:
    """flash1 chooses its tiles by M; the number of flash2 is another."""
    found = begun(schedules=("flash1", "flash2"))
    used = {a.name: frozenset({"B_r", "N"}) for a in found.answer.accounts}
    keys = [s.key for s in found.sliders(used)]
    assert keys == ["N", "flash1:B_r", "flash2:B_r"] or len({a.values["B_r"] for a in found.answer.accounts}) == 1
    for slider in found.sliders(used):
        assert slider.value in slider.steps
        assert all(a < b for a, b in pairwise(slider.steps))


def test_a_schedule_that_converts_has_the_time_of_it() -> None:
    """Times are the engine's, and conversions are among them: they may be what binds."""
    found = begun("N=8192", "d=128", "kv=fp8", schedules=("flash2",), machine="h100-sxm")
    (account,) = found.answer.accounts
    shown, at = amounts(found.answer, account), found.values(account)
    assert account.bound == "convert"
    assert float(value(shown["seconds"], at)) == pytest.approx(account.seconds, rel=1e-12)
    assert float(value(shown["time.convert"], at)) == pytest.approx(account.times["convert"], rel=1e-12)


def test_a_schedule_without_products_is_under_no_roof() -> None:
    """It has no place on a logarithmic scale, and the others keep theirs."""
    found = roof(begun("N=256", "d=64", name="delta", schedules=("naive",), machine="h100-sxm"))
    assert found is not None
    assert found.dots == ()


def test_lines_against_the_length_pass_through_the_answer() -> None:
    """At each length a line has the bytes that the engine counts there, on both sides of the threshold too."""
    found = begun("N=8192", "d=128", machine="h100-sxm")
    drawn = by_length(found)
    assert drawn is not None
    assert drawn.thresholds == {"naive": 3556, "flash2": 102400}
    for series in drawn.series:
        lengths = [n for n, _ in series.points]
        assert {102400, 102401, 8192} <= set(lengths)
        for length, moved in series.points[::5]:
            account = found.answer.at_length(series.schedule, length)
            moves = {"compulsory": account.compulsory, "sm": account.sm, "dram": account.dram}[series.count]
            assert moved == account.exact(moves.total.amount)
    dram = next(dict(s.points) for s in drawn.series if (s.schedule, s.count) == ("flash2", "dram"))
    assert dram[102401] > 1.9 * dram[102400]


def test_the_roofline_is_the_engines() -> None:
    """Intensities, ridge and time are those of the account; no dot is above a roof."""
    found = begun("N=8192", "d=128", machine="h100-sxm")
    drawn = roof(found)
    assert drawn is not None
    for account in found.answer.accounts:
        dot = next(d for d in drawn.dots if (d.schedule, d.level) == (account.name, "dram"))
        assert dot.intensity == account.intensity
        assert float(dot.attained) == pytest.approx(34359738368 / account.seconds, rel=1e-12)
    assert drawn.ridge("dram") == found.answer.accounts[0].ridge
    for dot in drawn.dots:
        assert dot.attained <= drawn.peak.value
        assert dot.attained <= dot.intensity * Fraction(drawn.levels[dot.level].value)
    assert roof(begun()) is None


def test_row_tiles_stop_where_the_engine_refuses() -> None:
    """The largest row tile is accepted by the engine, and one row more is refused."""
    found = begun("N=8192", "d=128", schedules=("flash2",), machine="h100-sxm")
    (tiles,) = row_tiles(found.answer)
    assert tiles.largest is not None
    account = found.answer.accounts[0]
    for size, moved, held in tiles.points:
        assert moved == value(account.sm.total.amount, {**account.values, B_r.name: size})
        assert held == value(account.footprint, {**account.values, B_r.name: size})
        assert (held <= tiles.room) == (size <= tiles.largest)
    for size, fits in ((tiles.largest, True), (tiles.largest + 1, False)):
        assert (value(account.footprint, {**account.values, B_r.name: size}) <= tiles.room) is fits


def least(bounds: Bounds, at: dict[str, Any]) -> float:
    """The smallest class of any schedule that keeps all it holds within M, at numbers."""
    found = []
    for name, growth in bounds.classes.items():
        if bounds.granted(name) or not all(holds(small <= big, at) for small, big in growth.needs):
            continue
        found.append(max(float(m.subs({s: at[s.name] for s in m.free_symbols})) for m in growth.monomials))
    return min(found)


@pytest.mark.parametrize("other", [N, d])
def test_every_point_of_the_map_has_the_least_class(other: Any) -> None:
    """At random points a region's monomial is the least class of all schedules, and some region covers each point."""
    bounds = Bounds(read_request(variant("mha"), ("N=8192", "d=128")))
    values: dict[str, Any] = {"N": 8192, "d": 128}
    drawn = random.Random(11)
    for _ in range(60):
        at = {**values, "M": 2 ** drawn.randint(8, 26), other.name: 2 ** drawn.randint(3, 20)}
        point = (log2(at["M"]), log2(at[other.name]))
        inside = [r for r in regions(bounds, other) if all(side.at(point, values) >= -1e-9 for side in r.sides)]
        assert inside
        for region in inside:
            expected = float(region.monomial.subs({s: at[s.name] for s in region.monomial.free_symbols}))
            assert expected == pytest.approx(least(bounds, at), rel=1e-9)
            corners = region.corners((0, 30, 0, 24), values)
            assert len(corners) >= 3


def test_the_axis_of_memory_has_the_crossovers_of_bound() -> None:
    """At N = 8192, d = 128: square below d^2, then N^2 d^2/M up to N d."""
    bounds = Bounds(read_request(variant("mha"), ("N=8192", "d=128")))
    found = along_memory(bounds, {"N": 8192, "d": 128, "M": 2**16}, 2.0**6, 2.0**28)
    ends = [(round(log2(i.low), 9), round(log2(i.high), 9)) for i in found]
    assert ends == [(6, 14), (14, 20), (20, 28)]
    assert [str(i.monomial) for i in found] == ["N**2*d/sqrt(M)", "N**2*d**2/M", "N*d"]
    assert found[1].schedules == ("flash1", "flash2")
    assert found[0].monomial.has(M)
