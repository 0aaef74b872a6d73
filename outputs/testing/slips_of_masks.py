"""Slips of masks: ignored, halved, a diagonal or a tile too few, an interval that begins or ends one key beside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import sympy as sp

from derive.cost import Move, Moves
from derive.errors import DeriveError
from derive.flops import Convention, flops
from derive.graph import Graph
from derive.interval import Interval
from derive.mask import Mask
from derive.symbols import ROW
from outputs.account import Account
from outputs.testing.closed_form import WORK, ClosedForm
from outputs.testing.slip import Slip, amount_at, scaled

_SHIFTS = (
    ("last", -1, "each query misses its last key, which on the diagonal is its own"),
    ("last", 1, "each query sees one key too many at the end"),
    ("first", -1, "each query sees one key too many at the start, as where a window of W keys does not count its own"),
    ("first", 1, "each query misses its first key, as where a window of W keys counts its own twice"),
)
"""End of an interval, by what it is shifted, and what was done."""


def slips_of_masks(form: ClosedForm) -> Iterator[Slip]:
    """Every one of *form*; none without a mask, or where the variant has it by itself."""
    graph = form.account.derivation.schedule.graph
    if graph.mask is None or form.request.variant.own_mask is not None:
        return
    full = form.masked("full")
    yield Slip("the mask is ignored: dense pairs are counted", amount_at(full.amount))
    yield Slip("half of dense stands for the exact count", scaled(full.amount, Fraction(1, 2)))
    if form.quantity in WORK:
        yield from _of_work(form, graph, graph.mask)
    elif form.moves is not None and full.moves is not None:
        yield from _of_moves(form, full)


def _of_work(form: ClosedForm, graph: Graph, mask: Mask) -> Iterator[Slip]:
    pairs, rows = mask.pairs, mask.rows_touched
    useful = flops(graph, Convention.EXACT)[WORK[form.quantity]].amount
    if form.quantity == "executed":
        yield Slip("pairs are counted, and whole tiles are run", amount_at(useful))
        return
    yield Slip("the diagonal is forgotten: each query misses one pair", amount_at(useful * (pairs - rows) / pairs))
    yield Slip("both triangles are counted, the diagonal twice", amount_at(2 * useful))
    yield Slip("whole tiles are counted as pairs", amount_at(form.account.executed[WORK[form.quantity]]))
    for words, account in _shifted(form):
        yield Slip(words, amount_at(account.useful[WORK[form.quantity]]))


def _of_moves(form: ClosedForm, full: ClosedForm) -> Iterator[Slip]:
    """Of tensors that are read again and again, and that the mask spares some reads of."""
    assert form.moves is not None
    assert full.moves is not None
    dense, once = full.moves.by_tensor, full.account.compulsory.by_tensor
    names = [
        name
        for name, move in form.moves.by_tensor.items()
        if move != dense.get(name, move) and dense[name].read != once.get(name, Move()).read
    ]
    if not names:
        return
    thinned = _both(form.moves, names)
    rest, says = form.amount - thinned, " and ".join(names)
    yield Slip(
        f"half of what {says} would be without a mask stands for the tiles that are met",
        amount_at(rest + _both(full.moves, names) / 2),
    )
    one_pass = sp.Add(*(once.get(name, Move()).read for name in names))
    yield Slip(f"the tiles on the diagonal are skipped: {says} are read once less", amount_at(form.amount - one_pass))
    for rounded, how in ((sp.ceiling, "the tile that its first query is in"), (sp.floor, "whole tiles below it")):
        early = thinned.replace(sp.Sum, lambda *args, to=rounded: _one_row_tile_early(sp.Sum(*args), to))
        if early != thinned:
            yield Slip(f"each row tile stops at its first query, not its last: at {how}", amount_at(rest + early))
    for words, account in _shifted(form):
        moves = getattr(account, form.quantity)
        yield Slip(words, amount_at(rest + _both(moves, names)))


def _both(moves: Moves, names: list[str]) -> sp.Expr:
    """Bytes of *names* in both directions."""
    found = (moves.by_tensor.get(name, Move()) for name in names)
    return sp.Add(*(move.read + move.write for move in found))


def _one_row_tile_early(total: sp.Sum, rounded: type[sp.Function]) -> sp.Expr:
    """*total* over row tiles with the keys of each tile counted for the one before it."""
    summand, (tile, first, last) = total.args
    return sp.Sum(summand.replace(sp.ceiling, rounded).xreplace({tile: tile - 1}), (tile, first, last))


def _shifted(form: ClosedForm) -> Iterator[tuple[str, Account]]:
    """The same under a mask that begins or ends one key beside; derived anew."""
    graph = form.request.variant.graph(form.request.pattern)
    for end, by, says in _SHIFTS:
        moved = {e: _shift(e.domain, end, by) for e in graph.einsums if e.domain is not None}
        if not moved or None in moved.values():
            continue
        nodes = tuple(replace(e, domain=moved.get(e, e.domain)) for e in graph.einsums)
        try:
            yield says, form.account_of(replace(graph, einsums=nodes))
        except DeriveError:
            continue


def _shift(mask: Mask, end: str, by: int) -> Mask | None:
    """*mask* with one end of its intervals shifted; ``None`` where no query decides where they end."""

    def moved(interval: Interval | Mask) -> sp.Expr | None:
        bound = getattr(interval, end)
        return bound + by if bound is not None and bound.has(ROW) else bound

    others = tuple(replace(i, **{end: moved(i)}) for i in mask.others)
    shifted = replace(mask, others=others, **{end: moved(mask)})  # type: ignore[arg-type]
    return shifted if shifted != mask else None
