"""The reasons behind the byte counts, in sentences that the engine fills: nothing here is a number of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING

import sympy as sp

from derive.errors import DeriveError, PreconditionError
from derive.symbols import C_L2, B_r
from outputs.layout import Section
from outputs.notation import put, regime, text, tidy
from outputs.quantities import grouped, significant, size
from outputs.threshold import longest

if TYPE_CHECKING:
    from derive.exact import Number
    from outputs.account import Account
    from outputs.explanation import Explanation


def why_fewer_bytes(answer: Explanation) -> Section | None:
    """Why the SM-side bytes of the fused schedule become fewer at HBM."""
    found = answer.fused
    if found is None or found.sharing is None or not found.rereads:
        return None
    _, shared = found.sharing
    names = " and ".join(t.name for t in shared.tensors)
    slice_bytes, sharers = put(shared.slice_bytes, answer.shown), shared.sharers * shared.rounds
    lines = [
        f"1. one head's {names} are {text(tidy(slice_bytes))}{_is(found, shared.slice_bytes, size)};"
        f" {text(tidy(put(sharers, answer.shown)))}{_is(found, sharers, grouped)} CTAs stream all of it"
        f"{_is(found, shared.slice_bytes * sharers * shared.slices, size)}{' in all, SM-side' if found.is_numeric else ''}",
        f"2. live together: at most {_plainly(answer, found, shared.live)} slice(s) of {names}"
        f" (mean {_plainly(answer, found, shared.mean_live)}), {text(tidy(put(shared.live_bytes, answer.shown)))}"
        f"{_is(found, shared.live_bytes, size)}, against C_L2{_is(found, C_L2, size)}",
    ]
    if found.fits is not None:
        lines.append(
            "3. that fits: the first CTA to touch a tile brings it from HBM, the others hit the L2"
            if found.fits
            else "3. that does not fit: CTAs of one wave share a tile as they stream it, the next wave reads it again"
        )
    if not found.is_numeric:
        return Section(f"why fewer bytes reach HBM ({found.name})", lines)
    sm, dram = found.exact(found.sm.total.amount), found.exact(found.dram.total.amount)
    hit = significant((found.hit_rate or 0) * 100)
    lines.append(f"4. L2 hit rate {hit} % of the SMs' requests, writes counted as hits")
    return Section(f"why {size(sm)} becomes {size(dram)} at HBM ({found.name})", lines, _two_causes(answer, found))


def _two_causes(answer: Explanation, fused: Account) -> list[str]:
    """What fusion removes and what the cache removes, apart."""
    unfused = next((a for a in answer.accounts if a.handed_on), None)
    if unfused is None or not unfused.is_numeric:
        return []
    inner = (m for name, m in unfused.sm.by_tensor.items() if name not in fused.sm.by_tensor)
    scores = sum(unfused.exact(m.read + m.write) for m in inner)
    cached = fused.exact(fused.sm.total.amount) - fused.exact(fused.dram.total.amount)
    ratio = Fraction(unfused.exact(unfused.dram.total.amount)) / fused.exact(fused.dram.total.amount)
    return [
        f"fusion removes {size(scores)} of score traffic: by the algorithm, on any machine",
        f"L2 reuse removes {size(cached)} of re-reads: by the grid order and the cache's size, while they hold",
        f"HBM bytes, {unfused.name} / {fused.name}: {significant(ratio)}",
    ]


def until_when(answer: Explanation) -> Section | None:
    """At which length residency stops holding."""
    lines = []
    for account in answer.accounts:
        limit = answer.thresholds[account.name]
        if limit is None:
            continue
        what = "re-reads" if account.sharing is not None else "intermediates"
        formula = text(put(limit.formula, answer.shown))
        line = f"{account.name}: {what} stay in the L2 while {limit.symbol} <= {formula}"
        if limit.number is not None:
            line += f" = {grouped(limit.number)}"
        lines.append(line + (_effective(answer, account) if limit.number is not None else ""))
        lines += _in_each_partition(answer, account) if limit.number is not None else []
    return Section("until when", lines) if lines else None


def _effective(answer: Explanation, account: Account) -> str:
    """The same limit at the effective capacity, where one is known."""
    if answer.machine is None or answer.options.cache != "nominal":
        return ""
    try:
        effective = answer.machine.l2("effective")
    except DeriveError:
        return ""
    limit = longest(account, {**account.values, "C_L2": int(effective.value)}, tied=answer.tied)
    if limit is None:
        return ""
    return (
        f" at the nominal {size(account.values['C_L2'])}; at the effective {size(effective.value)}"
        f" ({effective.kind}) {grouped(limit)}"
    )


def _in_each_partition(answer: Explanation, account: Account) -> list[str]:
    """Up to which length every partition of the L2 can hold a copy of what all SMs read, where the machine is known for it."""
    room = answer.machine.get("l2_partition_capacity") if answer.machine is not None else None
    if room is None or account.sharing is None:
        return []
    limit = longest(account, {**account.values, "C_L2": int(room.value)}, tied=answer.tied)
    if limit is None:
        return []
    names = " and ".join(t.name for t in account.sharing[1].tensors)
    return [
        f"{account.name}: each L2 partition of {size(room.value)} holds a copy of {names} while"
        f" {'N' if answer.tied else 'N_k'} <= {grouped(limit)}; beyond, part of the reads cross to the other partition: slower,"
        " and not modelled (cited: RRZE-HPC/gpu-benches)"
    ]


def after_the_threshold(answer: Explanation) -> Section | None:
    """What happens past the threshold: the wave model."""
    found = answer.fused
    if found is None or found.sharing is None or not found.rereads:
        return None
    further = found if found.fits is False else answer.further_out(found)
    if further is None or further.sharing is None or not further.is_numeric:
        return None
    _, shared = further.sharing
    names = [t.name for t in shared.tensors]
    length = int(further.values["N_k"])
    sawtooth = answer.at_length(found.name, length, sawtooth=True)

    def read(account: Account, level: str) -> int:
        moves = account.dram if level == "dram" else account.sm
        return sum(account.whole(moves.by_tensor[n].read) or 0 for n in names)

    lines = [
        f"at {'N' if answer.tied else 'N_k'} = {grouped(length)} a slice of {' and '.join(names)} is"
        f" {size(further.exact(shared.slice_bytes))}, {_plainly(answer, further, shared.live)} live:"
        f" {size(further.exact(shared.live_bytes))} against {size(further.values['C_L2'])}",
        f"{_plainly(answer, further, shared.waves)} waves of {grouped(further.values['C'])} CTAs:"
        f" {size(read(further, 'dram'))} of {', '.join(names)} from HBM, not the {size(read(further, 'sm'))} of the"
        " SM-side count",
        f"sweeping every other wave backwards (sawtooth) keeps the end of the last sweep: {size(read(sawtooth, 'dram'))}",
    ]
    if (further.number(shared.slices) or 1) > 1:
        with suppress(PreconditionError):  # in that order the readers of some tensor may be scattered
            query_order = answer.at_length(found.name, length, order="query")
            lines.append(f"query tiles outermost in the grid instead of heads: {size(read(query_order, 'dram'))}")
    if further.mask_of is not None:
        lines.append("under a mask these are upper bounds unless one head runs alone")
    return Section("and after", lines)


def tile_constant(answer: Explanation) -> Section | None:
    """How far the row tile is from one that fills fast memory: where the constant in front of N^2 d^2/M comes from."""
    found = answer.fused
    if found is None or not found.rereads or not {"M", "d", "B_r", "N_q", "N_k"} <= set(found.values):
        return None
    if found.sharing is None or not found.sharing[1].sharers.has(
        B_r
    ):  # what row tiles do not read again is no matter of theirs
        return None
    fast, head, rows = (int(found.values[n]) for n in ("M", "d", "B_r"))
    filling = fast // head
    if filling <= rows or not found.is_numeric:
        return None
    wide = answer.with_row_tile(found.name, filling)
    growth = Fraction(found.values["N_q"]) * found.values["N_k"] * head**2 / fast * found.values["b"]
    here, there = found.exact(found.sm.total.amount), wide.exact(wide.sm.total.amount)
    passes = wide.exact(wide.sharing[1].sharers) if wide.sharing else 0
    derived = found.growth(answer.alike)
    grows = (
        []
        if derived is None
        else [
            f"derived from the graph: {found.name} moves Theta({' + '.join(map(text, derived.monomials))}) elements for"
            f" {regime(derived)}, over all tiles that fit M"
        ]
    )
    return Section(
        "the paper's N^2 d^2/M and the tile's constant",
        [
            *grows,
            f"M = {grouped(fast)} elements ({size(fast * found.values['b'])}), d^2/M ="
            f" {significant(Fraction(head**2, fast), 3)}: N^2 d^2/M is {size(growth)}, a growth class and no byte count",
            f"{found.name} moves {size(here)}, {significant(here / growth, 3)}x that: {rows} rows of Q use"
            f" {significant(Fraction(100 * rows * head, fast), 3)} % of M; it is the tile's constant, not d^2/M",
            f"a Q tile that filled M (B_r = M/d = {grouped(filling)} rows) would make {grouped(passes)} passes:"
            f" {size(there)}",
        ],
    )


def _is(account: Account, amount: sp.Expr, shown: Callable[[Number], str]) -> str:
    """`` = value`` when *amount* has one."""
    number = account.number(amount)
    return "" if number is None else f" = {shown(number)}"


def _plainly(answer: Explanation, account: Account, amount: sp.Expr) -> str:
    """The value of *amount*, or its closed form."""
    number = account.number(amount)
    return text(tidy(put(amount, answer.shown))) if number is None else significant(number)
