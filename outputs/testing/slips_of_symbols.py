"""Slips of sizes: one taken for another or left out, a rounding turned round, ragged tiles dropped or counted whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import permutations

import sympy as sp

from derive.exact import Number, value
from derive.substitution import free
from derive.symbols import MEANINGS, B, B_c, B_r, N_k, N_q, d, d_v, h, h_k
from outputs.testing.closed_form import ClosedForm
from outputs.testing.slip import Slip, Values, amount_at

_TAKEN = ((h, h_k), (d, d_v), (N_q, N_k), (B_r, B_c))
"""Symbols that are taken for each other."""
_LEFT_OUT = (B, h, h_k)
"""Symbols of what is done several times over."""
_TILED = ((N_q, B_r, "query"), (N_k, B_c, "key"))


def slips_of_symbols(form: ClosedForm) -> Iterator[Slip]:
    """Every one of *form*."""
    amount = form.amount
    names = {s.name for s in free(amount)}
    if amount.has(sp.ceiling):
        down = amount.replace(sp.ceiling, sp.floor)
        yield Slip("a division rounds down (floor) where it must round up (ceil)", amount_at(down))
        above = amount.replace(sp.ceiling, lambda x: sp.floor(x) + 1)
        yield Slip("floor + 1 stands where ceil belongs: a tile too many where it divides", amount_at(above))
        yield Slip(
            "a division is not rounded: a ragged tile counts as a part of one",
            amount_at(amount.replace(sp.ceiling, lambda x: x)),
        )
    for pair in _TAKEN:
        for right, wrong in permutations(pair):
            if right.name in names:
                yield Slip(f"{wrong} stands where {right} belongs", _swapped(amount, right.name, wrong.name))
    for symbol in _LEFT_OUT:
        if symbol.name in names:
            says = MEANINGS[symbol.name].says.partition(" (")[0]
            yield Slip(f"{symbol} is left out, as if it were 1: {says}", _changed(amount, {symbol.name: lambda _: 1}))
    yield from _of_ragged(amount)


def _of_ragged(amount: sp.Expr) -> Iterator[Slip]:
    """The last tile along queries, keys or both."""
    whole = {
        length.name: (lambda values, n=length.name, t=tile.name: -(-values[n] // values[t]) * values[t])
        for length, tile, _ in _TILED
    }
    cut = {
        length.name: (lambda values, n=length.name, t=tile.name: values[n] // values[t] * values[t])
        for length, tile, _ in _TILED
    }
    for length, tile, what in _TILED:
        one = length.name
        yield Slip(f"a ragged {what} tile is counted as {tile} rows", _changed(amount, {one: whole[one]}))
        yield Slip(f"a ragged {what} tile, the last, is dropped", _changed(amount, {one: cut[one]}))
    yield Slip("ragged tiles are counted as whole ones", _changed(amount, whole))
    yield Slip("ragged tiles, the last along queries and keys, are dropped", _changed(amount, cut))


def _swapped(amount: sp.Expr, right: str, wrong: str) -> Callable[[Values], Number]:
    return lambda values: value(amount, {**values, right: values[wrong]}) if wrong in values else value(amount, values)


def _changed(amount: sp.Expr, by: Mapping[str, Callable[[Values], Number]]) -> Callable[[Values], Number]:
    """*amount* with some of its symbols at other values; a symbol without one stays as it is."""

    def predicted(values: Values) -> Number:
        changed = {}
        for name, to in by.items():
            try:
                changed[name] = to(values)
            except KeyError:
                continue
        return value(amount, {**values, **changed})

    return predicted
