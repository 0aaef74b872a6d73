"""The integer tiles that a machine can hold for a schedule, ranked by the bytes they move.

A tile fits when, for every tiled kernel, the staged operands fit the shared memory of a CTA and what the kernel makes fits the
registers of an SM. Both grow with every tile size, so the search stops in a direction at the first size that does not fit.

What is not modelled: instruction latency, how much of the exponentials hides behind the matrix pipe, and the allocation of
registers to threads (a thread has at most 255, and addresses and second copies need some of them).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from math import lcm
from typing import TYPE_CHECKING

import sympy as sp

from derive.buffers import register_bytes
from derive.errors import BadValueError, InfeasibleError, UnboundError
from derive.exact import value
from derive.footprint import tiled_kernels
from derive.staging import register_reads, staged_bytes
from derive.substitution import free
from derive.symbols import MEANINGS, B_r, symbol
from outputs.bisection import last_that_holds
from outputs.deduction import Options, unfitted
from outputs.notation import put
from outputs.quantities import size

if TYPE_CHECKING:
    from derive.exact import Number
    from hardware.machine import Machine
    from outputs.account import Account
    from outputs.request import Request

Sizes = Mapping[str, int]
"""Tile size by symbol name."""

_ROWS = 64
"""Of a warp group, where no machine file says what an instruction takes."""
MOST = 20_000
"""No more tiles than this are ranked; a larger step leaves fewer."""


class Limit(Enum):
    """What keeps a tile from being larger."""

    SHARED = "shared memory"
    REGISTERS = "registers"
    EXTENT = "extent"


@dataclass(frozen=True)
class Choices:
    """What a kernel's author may choose, and how.

    Attributes:
        stages: buffers of an operand that streams.
        step: tile sizes are multiples of this; rows also of what the machine's matrix instruction takes at once.
        rows: rows that one warp group, or one matrix instruction, takes operands for; ``None`` for the machine's instruction,
            and 64 where that is not known.
        results_shared: whether probabilities, or whatever a second product reads, pass through shared memory.
        registers: bytes of an SM's registers that accumulators may take; ``None`` for all of them.
    """

    stages: int = 2
    step: int = 16
    rows: int | None = None
    results_shared: bool = False
    registers: int | None = None


@dataclass(frozen=True)
class Tile:
    """One tile and what it costs, in whole bytes.

    Attributes:
        sizes: by symbol name.
        compulsory, sm, dram: bytes at the three levels; DRAM is ``None`` where the machine's cache is not known.
        shared: bytes of shared memory of the largest CTA.
        registers: bytes of registers of the largest CTA.
    """

    sizes: Sizes
    compulsory: int
    sm: int
    dram: int | None
    shared: int
    registers: int

    @property
    def order(self) -> tuple[int, ...]:
        """Fewer bytes first: SM-side, then DRAM, then shared memory; the sizes only make the order total."""
        return (self.sm, self.dram or 0, self.shared, *self.sizes.values())

    def __str__(self) -> str:
        return " x ".join(map(str, self.sizes.values()))


@dataclass(frozen=True)
class Tiling:
    """A schedule whose tiles are to be chosen for a machine.

    Attributes:
        request: what was asked.
        account: the schedule at its numbers, tiles open.
        machine: the machine that must hold the tiles.
        choices: how they may be chosen.
        given: tile sizes that somebody has fixed.
        ctas_an_sm: CTAs that share an SM.
    """

    request: Request
    account: Account
    machine: Machine
    choices: Choices
    given: Sizes
    ctas_an_sm: int = 1

    # --- what there is to choose --------------------------------------------------------------------------------------

    @cached_property
    def extents(self) -> dict[str, int]:
        """What each tile runs over, by tile symbol, the longest loop counting."""
        schedule = self.account.derivation.schedule
        found: dict[str, int] = {}
        for loop in (loop for kernel in tiled_kernels(schedule) for loop in kernel.loops):
            if loop.tile.is_Symbol:
                found[loop.tile.name] = max(found.get(loop.tile.name, 0), int(self.account.exact(loop.extent)))
        names = list(MEANINGS)
        return dict(sorted(found.items(), key=lambda item: names.index(item[0])))

    @property
    def rows(self) -> int:
        """Rows that one reading of an operand from shared memory serves."""
        instruction = self.machine.get("mma_rows")
        return self.choices.rows or (int(instruction.value) if instruction else _ROWS)

    @cached_property
    def steps(self) -> dict[str, int]:
        """By tile symbol, what its sizes are multiples of."""
        instruction = self.machine.get("mma_rows")
        rows = lcm(self.choices.step, int(instruction.value)) if instruction else self.choices.step
        return {name: rows if name == B_r.name else self.choices.step for name in self.extents}

    # --- limits -------------------------------------------------------------------------------------------------------

    @cached_property
    def rooms(self) -> dict[Limit, int]:
        """Bytes a CTA may take of each memory.

        Raises:
            UnknownNameError: the machine's file states no such size.
        """
        shared = int(self.machine["shared_mem_per_block_max"].value)
        if self.ctas_an_sm > 1:
            shared = min(shared, int(self.machine["shared_mem_per_sm_max"].value) // self.ctas_an_sm)
        registers = self.choices.registers or int(self.machine["registers_per_sm"].value)
        return {Limit.SHARED: shared, Limit.REGISTERS: registers // self.ctas_an_sm}

    @cached_property
    def needs(self) -> dict[Limit, tuple[sp.Expr, ...]]:
        """Bytes that each tiled kernel needs of each memory."""
        schedule, chosen = self.account.derivation.schedule, self.choices
        kernels = tiled_kernels(schedule)
        staged = [staged_bytes(schedule, k, chosen.stages, results=chosen.results_shared) for k in kernels]
        made = [register_bytes(schedule, k) for k in kernels]
        return {Limit.SHARED: tuple(c.amount for c in staged), Limit.REGISTERS: tuple(c.amount for c in made)}

    def needed(self, limit: Limit, sizes: Mapping[str, Number]) -> int:
        """Bytes of that memory that the largest CTA needs."""
        return max(_whole(value(form, {**self.account.values, **sizes})) for form in self.needs[limit])

    def broken(self, sizes: Mapping[str, Number]) -> tuple[Limit, ...]:
        """The limits that a tile of these sizes breaks."""
        return tuple(limit for limit, room in self.rooms.items() if self.needed(limit, sizes) > room)

    def neighbours(self, tile: Tile) -> dict[str, tuple[int, tuple[Limit, ...]]]:
        """One step up in each direction: the size, and which limits it breaks; none when it fits too."""
        found = {}
        for name in (n for n in tile.sizes if n not in self.given):
            step, extent = self.steps[name], self.extents[name]
            more = (tile.sizes[name] // step + 1) * step
            covered = (Limit.EXTENT,) if tile.sizes[name] >= extent else ()
            found[name] = (more, covered or self.broken({**tile.sizes, name: more}))
        return found

    # --- tiles --------------------------------------------------------------------------------------------------------

    @cached_property
    def fitting(self) -> tuple[Tile, ...]:
        """Every tile that fits, the best first.

        Raises:
            InfeasibleError: none does.
            BadValueError: more than can be ranked do.
        """
        found = []
        for sizes in self._enumerated({}, tuple(self.extents)):
            found.append(sizes)
            if len(found) > MOST:
                raise BadValueError(f"--step {self.choices.step} leaves more than {MOST:,} tiles; take a larger step")
        if not found:
            raise self._nothing_fits()
        return tuple(sorted(map(self.at, found), key=lambda tile: tile.order))

    def at(self, sizes: Sizes) -> Tile:
        """The tile of these sizes, whether it fits or not."""
        try:
            dram: int | None = _whole(value(self._dram, sizes))
        except UnboundError:
            dram = None
        return Tile(
            dict(sizes),
            compulsory=_whole(value(self._compulsory, sizes)),
            sm=_whole(value(self._sm, sizes)),
            dram=dram,
            shared=self.needed(Limit.SHARED, sizes),
            registers=self.needed(Limit.REGISTERS, sizes),
        )

    def to_registers(self, sizes: Sizes) -> int:
        """Bytes from shared memory into registers: a tile's rows are dealt evenly to as few warp groups as can hold them."""
        held = dict(sizes)
        if B_r.name in held:
            groups = -(-held[B_r.name] // self.rows)
            held[B_r.name] = -(-held[B_r.name] // groups)
        return _whole(value(self._register_reads, held))

    @cached_property
    def _compulsory(self) -> sp.Expr:
        return self._at_numbers(self.account.compulsory.total.amount)

    @cached_property
    def _sm(self) -> sp.Expr:
        return self._at_numbers(self.account.sm.total.amount)

    @cached_property
    def _dram(self) -> sp.Expr:
        return self._at_numbers(self.account.dram.total.amount)

    @cached_property
    def _register_reads(self) -> sp.Expr:
        schedule = self.account.derivation.schedule
        return self._at_numbers(sp.Add(*(register_reads(schedule, k, B_r).amount for k in tiled_kernels(schedule))))

    def _at_numbers(self, amount: sp.Expr) -> sp.Expr:
        """*amount* in the tile sizes alone: hundreds of tiles are then quickly evaluated."""
        return put(amount, {symbol(name): sp.Rational(n) for name, n in self.account.values.items()})

    def _enumerated(self, chosen: Sizes, names: tuple[str, ...]) -> Iterator[Sizes]:
        if not names:
            yield chosen
            return
        name, *later = names
        for tile in self._sizes(name):
            sizes = {**chosen, name: tile}
            if self.broken({**sizes, **{n: next(self._sizes(n)) for n in later}}):
                return
            yield from self._enumerated(sizes, tuple(later))

    def _sizes(self, name: str) -> Iterator[int]:
        """Sizes to try: multiples of the step up to the first that covers the extent, or the one that is given."""
        if name in self.given:
            yield self.given[name]
            return
        step, tile = self.steps[name], 0
        while tile < self.extents[name]:
            tile += step
            yield tile

    def _nothing_fits(self) -> InfeasibleError:
        """Why, and the largest size of the problem at which the smallest tile would fit."""
        smallest = {name: next(self._sizes(name)) for name in self.extents}
        words = " x ".join(map(str, smallest.values()))
        broken = self.broken(smallest)
        needs = " and ".join(f"{size(self.needed(limit, smallest))} of {limit.value}" for limit in broken)
        has = " and ".join(size(self.rooms[limit]) for limit in broken)
        what = (
            f"no tile of {self.account.name} fits {self.machine.id}: even {' x '.join(smallest)} = {words} needs {needs}, "
            f"and there is {has}"
        )
        used = {s.name for forms in self.needs.values() for form in forms for s in free(form)} - set(smallest)
        for name in (n for n in ("d", *MEANINGS) if n in used and MEANINGS[n].key):
            numbers = self.account.values

            def fits(n: int, name: str = name) -> bool:
                return not self.broken({**smallest, name: n})

            if most := last_that_holds(fits, 0, int(numbers[name])):
                return InfeasibleError(f"{what}; the largest {MEANINGS[name].key} that would fit is {most}")
        return InfeasibleError(f"{what}; fewer stages or a smaller step may")


def tiling(
    request: Request, schedule: str, machine: Machine, options: Options | None = None, choices: Choices | None = None
) -> Tiling:
    """The tiles of *schedule* for *request* on *machine*; tile sizes among the request's numbers are kept.

    Raises:
        UnknownNameError: no schedule has this name.
        PreconditionError: a rule of the schedule does not apply to the variant.
        BadValueError: the schedule chooses no tile, or the size of a loop is not given.
    """
    options, choices = options or Options(), choices or Choices()
    account = unfitted(request, schedule, machine, options)
    schedule_ = account.derivation.schedule
    tiles = {loop.tile.name for k in tiled_kernels(schedule_) for loop in k.loops if loop.tile.is_Symbol}
    if not tiles:
        raise BadValueError(f"{account.name} has no tile to choose; flash2 has (`derive schedules` lists them all)")
    values = {name: number for name, number in account.values.items() if name not in tiles}
    needed = free(account.sm.total.amount) | free(account.compulsory.total.amount)
    missing = [n for n in MEANINGS if n in {s.name for s in needed} - tiles and n not in values and MEANINGS[n].key]
    if missing:
        words = " and ".join(f"{MEANINGS[n].key} ({MEANINGS[n].says})" for n in missing)
        raise BadValueError(
            f"tiles are ranked at numbers, and there is none for {words}; write for instance N=8192 d=128"
        )
    given = {name: int(request.numbers[name]) for name in tiles if name in request.numbers}
    return Tiling(request, replace(account, values=values), machine, choices, given, options.ctas_an_sm)


def _whole(number: Number) -> int:
    """Half a byte of a narrow type counts as a whole one."""
    return -(-number.numerator // number.denominator)
