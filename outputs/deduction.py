"""From a request to accounts: rules applied, numbers bound, tiles checked against the machine."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from sympy import divisors

from derive.errors import BadValueError, InfeasibleError, PreconditionError, UnboundError
from derive.exact import Number, value
from derive.flops import Convention
from derive.footprint import Place, kernel_footprint_bytes, nested_kernels
from derive.substitution import free
from derive.symbols import MEANINGS, n_s, symbol
from outputs.account import Account
from outputs.bisection import last_that_holds
from outputs.notation import text, tidy
from outputs.quantities import size
from rules.derivations import names, plan

if TYPE_CHECKING:
    from hardware.machine import Machine
    from outputs.request import Request
    from rules.plan import Plan

TILE_STEPS = (64, 16, 1)
"""Tiles are suggested in multiples of the first of these that leaves any choice."""


@dataclass(frozen=True)
class Options:
    """How the question is to be read.

    Attributes:
        convention: how masked pairs count.
        order: grid order, ``head`` or ``query``.
        sawtooth: whether odd waves sweep the keys backwards.
        cache: ``nominal`` or ``effective`` capacity of the L2.
        ctas_an_sm: CTAs that run at once on one SM.
    """

    convention: Convention = Convention.EXACT
    order: str = "head"
    sawtooth: bool = False
    cache: Literal["nominal", "effective"] = "nominal"
    ctas_an_sm: int = 1


def account(request: Request, schedule: str, machine: Machine | None, options: Options) -> Account:
    """The account of *schedule* for *request*.

    Raises:
        UnknownNameError: no schedule has this name.
        InfeasibleError: its tiles do not fit the machine's shared memory.
        PreconditionError: a rule of the schedule does not apply to the variant.
    """
    made = unfitted(request, schedule, machine, options)
    if machine is None or (room := machine.get("shared_mem_per_block_max")) is None:
        return made
    return _fitted(made, request.numbers, int(room.value))


def fitting(request: Request) -> tuple[str, ...]:
    """The variant's own schedules that are legal under the mask asked for; all of them where none is."""
    return legal(request, request.variant.schedules) or request.variant.schedules


def legal(request: Request, asked: tuple[str, ...]) -> tuple[str, ...]:
    """Those of *asked* whose rules all apply to the variant under the mask asked for."""
    graph = request.variant.graph(request.pattern)
    found = []
    for name in asked:
        with suppress(PreconditionError):
            plan(name).derive(graph)
            found.append(name)
    return tuple(found)


def unfitted(request: Request, schedule: str, machine: Machine | None, options: Options) -> Account:
    """The same, whether or not its tiles fit the machine; raises as ``account`` does but for that."""
    chosen = plan(schedule).ordered(
        order=options.order,
        sawtooth=options.sawtooth,
        private_caches=machine is not None and machine.get("l2_size") is not None and machine.l2_count > 1,
    )
    given = {symbol(name) for name in (*request.numbers, *request.open)}
    graph = request.variant.graph(request.pattern, given)
    try:
        derivation = chosen.derive(graph)
    except PreconditionError as error:
        others = legal(request, names())
        under = f" under mask={request.mask}" if request.mask != "full" else ""
        instead = f"; those that fit are {', '.join(others)}" if others else ""
        raise PreconditionError(f"{schedule} does not fit {request.variant.name}{under}: {error}{instead}") from error
    numbers: dict[str, Number] = {**request.widths, **_machine_numbers(machine, options, request), **request.numbers}
    values = {**numbers, **_tiles(chosen, numbers)}
    _check_divisors(chosen, values)
    narrow = request.converted.name if request.converted else ""
    types = {name: t.name for name, t in request.operands.items()}
    made = Account(derivation, values, options.convention, machine, request.multiplied.name, narrow, types)
    return _with_splits(made) if n_s in {s for s, _ in chosen.divides} and n_s.name not in values else made


def _with_splits(made: Account) -> Account:
    """*made* with the number of parts that takes least modelled time, where there are numbers to model it with."""
    from outputs.splits import splits  # few questions wait for it

    found = splits(made)
    return made if found is None else replace(made, values={**made.values, n_s.name: found.best})


def _check_divisors(chosen: Plan, values: Mapping[str, Number]) -> None:
    """Refuse, say, splits that do not divide the keys; the nearest that do are named."""
    for divisor, dividend in chosen.divides:
        small, large = values.get(divisor.name), values.get(dividend.name)
        if small is None or large is None or not large % small:
            continue
        what, of = MEANINGS[divisor.name].key, MEANINGS[dividend.name].key
        dividing = divisors(int(large))
        place = bisect_left(dividing, small)
        near = " and ".join(map(str, dividing[place - 1 : place + 1]))
        raise BadValueError(
            f"{what}={small} does not divide {of}={large}, and {chosen.name} makes {MEANINGS[divisor.name].says.split(',')[0]}"
            f" equal; the nearest that divide are {near}"
        )


def _machine_numbers(machine: Machine | None, options: Options, request: Request) -> dict[str, Number]:
    if machine is None:
        return {}
    found: dict[str, Number] = {}
    if (sms := machine.get("sm_count")) is not None:
        found["C"] = int(sms.value) * options.ctas_an_sm
    if machine.get("l2_size") is not None:
        found["C_L2"] = int(machine.l2(options.cache).value)
        found["n_L2"] = machine.l2_count
    if (rows := machine.get("mma_rows")) is not None and (columns := machine.get("mma_columns")) is not None:
        found["m_I"], found["n_I"] = int(rows.value), int(columns.value)
    if (fast := machine.get("shared_mem_per_sm_max")) is not None:
        found["M"] = int(fast.value / request.operand.width)
    return found


def _tiles(chosen: Plan, numbers: Mapping[str, Number]) -> dict[str, Number]:
    """The plan's usual tiles, where the numbers they are written in are there."""
    found: dict[str, Number] = {}
    for tile, usual in chosen.tiles.items():
        if tile.name in numbers:
            continue
        try:
            found[tile.name] = value(usual, numbers)
        except UnboundError:
            continue
    return found


def _needs(made: Account, values: Mapping[str, Number]) -> int | None:
    """Shared-memory bytes of the largest CTA; ``None`` while a symbol is open."""
    schedule = made.derivation.schedule
    try:
        found = [
            value(kernel_footprint_bytes(schedule, k, Place.SHARED).amount, values) for k in nested_kernels(schedule)
        ]
    except UnboundError:
        return None
    return max((-(-n.numerator // n.denominator) for n in found), default=0)


def _fitted(made: Account, given: Mapping[str, Number], room: int) -> Account:
    """*made*, with tiles that nobody chose shrunk until they fit.

    Raises:
        InfeasibleError: tiles that somebody chose do not fit, or none would.
    """
    needs = _needs(made, made.values)
    if needs is None or needs <= room:
        return made
    free = [name for name in ("B_c", "B_r") if name in made.values and name not in given]
    values = dict(made.values)
    for name in free:
        values[name] = _largest(made, values, name, room) or 1
        if _fits(made, values, room):
            return replace(made, values=values)
    tiles = {name: made.values[name] for name in ("B_r", "B_c") if name in made.values}
    written = " and ".join(f"{name}={number}" for name, number in tiles.items())
    formula = text(tidy(made.footprint)) if made.footprint is not None else ""
    raise InfeasibleError(
        f"{made.name}{' with ' + written if written else ''} needs {formula} = {size(needs)} of shared memory a CTA, and "
        f"{made.machine.id if made.machine else 'the machine'} has {size(room)}; {_way_out(made, tiles, room)}"
    )


def _way_out(made: Account, tiles: Mapping[str, Number], room: int) -> str:
    """The largest tile that fits, the others as they are; or the longest row, when no tile does."""
    for name in ("B_c", "B_r"):
        if name in tiles and (largest := _largest(made, made.values, name, room)):
            return f"the largest {name} that fits is {largest}"
    smallest = {**made.values, **dict.fromkeys(tiles, 1)}
    if _fits(made, smallest, room):
        name = list(tiles)[-1]
        others = {n: 16 for n in tiles if n != name}
        largest = _largest(made, {**made.values, **others}, name, room) or 1
        return f"with 16 rows of the other tile, the largest that fits is {name}={largest}"
    held = set() if made.footprint is None else {s.name for s in free(made.footprint)}
    sizes = {n: made.values[n] for n in held & set(made.values) - set(tiles) if n in MEANINGS and MEANINGS[n].key}
    greatest = max(sizes, key=lambda n: (sizes[n], n), default="d")
    name = next((name for name in ("N_k", "C_k", "d") if name in held), greatest)
    most = last_that_holds(lambda n: _fits(made, {**smallest, name: n}, room), 0, int(made.values[name]))
    other = "; flash2 has no such limit" if name == "N_k" else ""
    if name == "C_k" and most:
        return f"the largest {MEANINGS[name].key} that fits is {most}: give a divisor of N up to it"
    key = name if name == "N_k" else MEANINGS[name].key
    return f"even tiles of one row do not fit: the largest {key} that does is {most}{other}"


def _fits(made: Account, values: Mapping[str, Number], room: int) -> bool:
    return (_needs(made, values) or 0) <= room


def _largest(made: Account, values: Mapping[str, Number], name: str, room: int) -> int | None:
    """The largest tile *name* that fits with the others as they are: a multiple of 64, else of 16, else any."""
    for step in TILE_STEPS:

        def fits(steps: int, step: int = step) -> bool:
            return _fits(made, {**values, name: steps * step}, room)

        if steps := last_that_holds(fits, 0, int(values[name]) // step + 1):
            return steps * step
    return None
