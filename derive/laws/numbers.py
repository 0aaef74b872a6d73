"""The numbers at which a law is looked for, and the regime in which they lie.

One symbol takes ``POINTS`` values; the others stay. Tiles divide lengths, the sizes of a mask fit the keys, and what a symbol
cuts is a multiple of all its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import lcm, prod
from random import Random

import sympy as sp

from derive.choice import at_most
from derive.errors import DomainError
from derive.exact import Number, holds, value
from derive.laws.law import Regime
from derive.laws.roles import Roles
from derive.substitution import free
from derive.symbols import is_fraction

_DIVISORS = (1, 2, 3, 4, 6, 12)
"""Multiples of one size that all divide twelve times it: a tile's values, where lengths must be multiples of all of them."""
POINTS = len(_DIVISORS)
"""Values along the symbol."""
_TILES, _OTHERS = (1, 2, 3, 4, 5), (1, 2, 3, 5, 7)
"""What a symbol that stays is drawn from: 5 and 7 divide none of the multiples, so that nothing is whole by luck."""
_WIDE, _SMALL = (1, 4, 6, 12), (1, 2, 3)
"""Tiles where keys have no more room than they must: wider than sizes of the mask, and such as these fill."""
Pairs = tuple[tuple[sp.Symbol, sp.Symbol], ...]


@dataclass(frozen=True)
class Numbers:
    """How numbers are drawn for one symbol.

    Attributes:
        roles: what each symbol is.
        symbol: what takes several values.
        symbols: those of the amount.
        rounding: those of them that something is rounded by.
        where: conditions that the numbers fulfil.
        cut: whether lengths are multiples of what rounds, too.
        roomy: whether the keys, or each part of them, have room for a tile of each kind beside the sizes of the mask.
        nested: tiles that divide other tiles, or sizes of a mask such as chunks, (inner, outer).
        filled: whether sizes of the mask are multiples of whatever lengths are, and a tile that is scaled of what rounds.
        covering: tiles that are no smaller than a length, (tile, length); they are no tiles of *roles*.
    """

    roles: Roles
    symbol: sp.Symbol
    symbols: frozenset[sp.Symbol]
    rounding: frozenset[sp.Symbol] = frozenset()
    where: tuple[sp.Basic, ...] = ()
    cut: bool = False
    roomy: bool = False
    nested: Pairs = ()
    filled: bool = False
    covering: Pairs = ()

    def along(self, trial: int, seed: int = 0) -> list[dict[str, Number]]:
        """Numbers for every symbol, ``POINTS`` times, those of the symbol rising; all lie in ``regime``.

        What a symbol that stays is drawn from is its name, *trial* and *seed* alone. Of three trials one has keys in plenty,
        one as few as there may be, and one as few with sizes of the mask that fill tiles exactly.

        Raises:
            DomainError: a condition of the count holds at none that are tried.
        """
        for further in (0, POINTS, 3 * POINTS) if self.where else (0,):
            points = self._points(_Draw(f"{seed} {trial} {self.symbol}", trial // 3 % 3), further)
            if all(holds(c, at) for c in self.where for at in points):
                return points
        raise DomainError(f"none of the numbers that are tried fulfil {self.where}")

    def without_open_conditions(self) -> Numbers:
        """The same, of its conditions those alone that speak of lengths, tiles and sizes of the mask: no other has numbers."""
        sized = {*self._extents, *self.roles.tiles, *self._sizes, *(tile for tile, _ in self.covering)}
        return replace(self, where=tuple(c for c in self.where if free(c) <= sized))

    @cached_property
    def regime(self) -> Regime:
        """Where the numbers of ``along`` lie."""
        roles, symbol = self.roles, self.symbol
        whole = [symbol / t for t in self._tiles if self._stepped and t not in self._outer]
        cutting = [*self._cutting, *([symbol] if self._cuts and symbol not in roles.tiles else [])]
        for length in self._extents:
            tiles = [
                t for t, cut in roles.tiles.items() if length in cut or (length in roles.lengths and self._long(t))
            ]
            whole += [length / t for t in tiles if length != symbol]
            whole += [length / (t * c) for t in tiles or [sp.Integer(1)] for c in cutting]
        for size in self._sizes if self.filled else []:
            long = [t for t in roles.tiles if self._long(t)]
            whole += [size / t for t in long if size != symbol]
            whole += [size / (t * c) for t in long or [sp.Integer(1)] for c in cutting]
        if self.filled and symbol in roles.tiles:
            whole += [symbol / (t * c) for t in self._tiles if t not in self._outer for c in self._cutting]
        whole += [outer / inner for inner, outer in self.nested]
        for a, b in self._groups:
            whole += [b / a] if symbol in (a, b) and not self._row_tiles else []
            whole += [b / (a * t) for t in self._row_tiles if {a, b, t} & {symbol}]
        where = []
        if self._reach != 0 and self.symbols & set(roles.lengths):
            where.append(at_most(self._reach, roles.lengths[-1]))
        if self._holds_sizes:
            where += [at_most(roles.span, queries) for queries in roles.lengths[:-1]]
        if self._is_wide and self._reach_in_symbol != 0:
            where.append(at_most(self._reach_in_symbol, symbol))
        return Regime().also(tuple(whole), tuple(where))

    # --- what plays which part ----------------------------------------------------------------------------------------

    @cached_property
    def _reach(self) -> sp.Expr:
        """What keys are at least: the sizes of the mask, with the queries where these are fewer, and tiles where roomy."""
        room = [t for t in self.roles.tiles if self._long(t)] if self.roomy else []
        reach = sp.Add(self.roles.span if self._sizes else 0, *self.roles.lengths[:-1], *room)
        return reach * sp.Mul(*self._parts) if self.roomy else reach

    @property
    def _holds_sizes(self) -> bool:
        """Whether the queries, where these are fewer than the keys, have room for the sizes of the mask, too."""
        return self.roomy and bool(self._sizes)

    @property
    def _is_wide(self) -> bool:
        """Whether the symbol has a least value: a tile holds sizes of the mask, and where roomy such a size holds tiles."""
        is_tile = self.symbol in self.roles.tiles and bool(self._sizes) and self._long(self.symbol) and not self.filled
        return is_tile or (self.roomy and self.symbol in self._sizes)

    @cached_property
    def _reach_in_symbol(self) -> sp.Expr:
        """What it is at least: the sizes of the mask, and where roomy other tiles that need not hold it."""
        room = sp.Add(*(t for t in self._tiles if self.roomy and t not in self._outer and self._long(t)))
        return sp.expand(2 * room) if self.symbol in self._sizes else self.roles.span + room

    @cached_property
    def _sizes(self) -> list[sp.Symbol]:
        return [size for size, _ in self.roles.sizes]

    @cached_property
    def _outer(self) -> list[sp.Symbol]:
        """Tiles that the symbol must divide."""
        return [outer for inner, outer in self.nested if inner == self.symbol]

    @cached_property
    def _tiles(self) -> list[sp.Symbol]:
        """Tiles that stay."""
        return [t for t in self.roles.tiles if t != self.symbol]

    @cached_property
    def _extents(self) -> list[sp.Symbol]:
        """Lengths, and what else a tile cuts, sizes of the mask and heads apart."""
        apart = {*self._sizes, *(s for pair in self.roles.divides for s in pair)}
        cut = [s for cut in self.roles.tiles.values() for s in sorted(cut, key=str) if len(cut) == 1 or s not in apart]
        return list(dict.fromkeys((*self.roles.lengths, *cut)))

    @cached_property
    def _groups(self) -> list[tuple[sp.Symbol, sp.Symbol]]:
        """What divides what, lengths apart."""
        return [pair for pair in self.roles.divides if pair[1] not in self.roles.lengths]

    @cached_property
    def _row_tiles(self) -> list[sp.Symbol]:
        """Tiles that cut no length, and the query heads of one group alone: those of one query."""
        shares = [{a, b} for a, b in self._groups]
        return [t for t, cut in self.roles.tiles.items() if any(pair <= cut for pair in shares) and not self._long(t)]

    def _long(self, tile: sp.Symbol) -> bool:
        """Whether a tile cuts a length."""
        return bool(self.roles.tiles[tile] & set(self.roles.lengths))

    @cached_property
    def _parts(self) -> list[sp.Symbol]:
        """Numbers of parts that lengths are cut into."""
        return [a for a, b in self.roles.divides if b in self.roles.lengths]

    @cached_property
    def _apart(self) -> set[sp.Symbol]:
        """What no length must be a multiple of: lengths, sizes of the mask that nothing is cut by, and groups."""
        sizes = (s for s in self._sizes if not (self.cut and s in self.rounding))
        return {*self._extents, *sizes, *(s for pair in self._groups for s in pair)}

    @cached_property
    def _cutting(self) -> list[sp.Symbol]:
        """What lengths are multiples of beside tiles: numbers of parts, and where ``cut`` says so what else rounds."""
        found = [*self._parts, *(sorted(self.rounding, key=str) if self.cut else ())]
        apart = {self.symbol, *self.roles.tiles, *self._apart}
        return [s for s in dict.fromkeys(found) if s not in apart and not is_fraction(s)]

    @cached_property
    def _named(self) -> list[sp.Symbol]:
        pairs = {s for pair in self.roles.divides for s in pair}
        found = {*self.symbols, *self._extents, *self.roles.tiles, *self._sizes, *pairs, self.symbol}
        return sorted(found, key=str)

    @property
    def _stepped(self) -> bool:
        """Whether tiles divide the symbol's values."""
        return self.symbol in (*self._extents, *self.roles.tiles, *self._sizes)

    @property
    def _cuts(self) -> bool:
        """Whether lengths must be multiples of it: a tile, a number of parts, or what else something is rounded by."""
        return self.symbol in (*self.roles.tiles, *self._parts, *self.rounding) and self.symbol not in self._apart

    # --- numbers ------------------------------------------------------------------------------------------------------

    def _points(self, draw: _Draw, further: int) -> list[dict[str, Number]]:
        """The points, lengths *further* multiples longer than they must be."""
        base = {s.name: draw.value(s, s in self.roles.tiles) for s in self._named}
        fixed = dict(base)
        for inner, outer in self.nested:
            if self.symbol not in (inner, outer):
                fixed[outer.name] = int(fixed[outer.name]) * int(fixed[inner.name])
        inner_tiles = [inner for inner, outer in self.nested if outer == self.symbol]
        step = lcm(*(int(fixed[t.name]) for t in (*self._tiles, *inner_tiles) if t not in self._outer))
        if self.filled and self._stepped and self.symbol not in self._extents:
            step *= prod(int(base[c.name]) for c in self._cutting)
        if draw.kind == _FILLED and not self.filled:
            self._fill(fixed, step)
        multiples = self._multiples(fixed, step, draw)
        for outer in self._outer:
            fixed[outer.name] = step * lcm(*multiples) * int(base[outer.name])
        whole = lcm(step, *(int(fixed[t.name]) for t in self._outer)) * prod(int(base[c.name]) for c in self._cutting)
        if self._cuts and not self._outer:
            whole *= lcm(*multiples)
        for size in self._sizes if self.filled else []:
            fixed[size.name] = whole * int(fixed[size.name])
        points = []
        for n in multiples:
            at = {**fixed, self.symbol.name: n * (step if self._stepped else 1)}
            for divisor, dividend in self._groups:
                rows = lcm(*(int(fixed[t.name]) for t in self._row_tiles if t != self.symbol))
                share = rows * (n if dividend == self.symbol else int(base[dividend.name]))
                several = lcm(*multiples) if divisor == self.symbol or self.symbol in self._row_tiles else 1
                at[dividend.name] = several * share * (1 if divisor == self.symbol else int(at[divisor.name]))
            points.append(at)
        for length in self._extents:  # keys behind queries, which they are no fewer than
            least = 1
            if length in self.roles.lengths[-1:] or (length in self.roles.lengths and self._holds_sizes):
                reach = self._reach if length == self.roles.lengths[-1] else self.roles.span
                least = max(-(-int(value(reach, at)) // whole) for at in points)
            more = further + (draw.one_of((1, 2, 5), f"more {length}") if draw.kind == _PLENTY else 0)
            for n, at in enumerate(points):
                moves = n if length == self.symbol else 0
                at[length.name] = whole * (max(least, 1) + more + moves)
        for tile, length in self.covering:
            longest = max(int(at[length.name]) for at in points) + draw.one_of((0, 0, 1, 4), f"over {length}")
            for n, at in enumerate(points):
                at[tile.name] = longest + (n if tile == self.symbol else 0)
        return points

    def _fill(self, numbers: dict[str, Number], step: int) -> None:
        """Make the sizes of the mask reach a multiple of *step* together, one of them larger."""
        for size in [s for s in self._sizes if s != self.symbol][-1:]:
            missing = -int(value(self.roles.span, numbers)) % step
            numbers[size.name] = (
                int(numbers[size.name]) * step if self.roles.spread else int(numbers[size.name]) + missing
            )

    def _multiples(self, numbers: dict[str, Number], step: int, draw: _Draw) -> Sequence[int]:
        """What the symbol's values are multiples by: all that divide one, or one after the other."""
        first = 1
        if self._is_wide:
            least = -(-int(value(self._reach_in_symbol, numbers)) // step)
            first = max(least + draw.one_of((0, 0, 1, 3), "first"), 1)
        if self._cuts:
            return [first * n for n in _DIVISORS]
        if any(self.symbol == divisor for divisor, _ in self._groups):
            return _DIVISORS
        return range(first, first + POINTS)


_PLENTY, _NEAR, _FILLED = range(3)


@dataclass(frozen=True)
class _Draw:
    """One drawing of numbers, each by its name.

    Attributes:
        seed: what they are drawn from.
        kind: keys in plenty, or as few as there may be, or as few and tiles filled.
    """

    seed: str
    kind: int

    def one_of(self, several: Sequence[int], name: str) -> int:
        """One of *several*."""
        return Random(f"{self.seed} {name}").choice(several)

    def value(self, symbol: sp.Symbol, is_tile: bool) -> Number:
        """Of a symbol that stays."""
        tiles = {_PLENTY: _TILES, _NEAR: _WIDE, _FILLED: _SMALL}[self.kind]
        drawn = self.one_of(tiles if is_tile else _OTHERS, symbol.name)
        return Fraction(1, drawn) if is_fraction(symbol) else drawn
