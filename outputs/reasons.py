"""The reasons behind the byte counts, in sentences that the engine fills: nothing here is a number of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from derive.flops import Pipe
from derive.symbols import C_L2
from outputs.layout import Section
from outputs.notation import text, tidy
from outputs.quantities import grouped, seconds, significant, size

if TYPE_CHECKING:
    from outputs.account import Account
    from outputs.explanation import Explanation

_SECTOR = 32
"""Bytes of an L2 sector, the unit of the profiler's counters (NVIDIA Nsight Compute documentation)."""
_SHORTEST_PROFILE = 20e-6
"""Below this a kernel's counters, gathered in several replays, do not agree with each other (seconds)."""


def why_fewer_bytes(answer: Explanation) -> Section | None:
    """Why the SM-side bytes of the fused schedule become fewer at HBM."""
    found = answer.fused
    if found is None or found.sharing is None or not found.rereads:
        return None
    _, shared = found.sharing
    names = " and ".join(t.name for t in shared.tensors)
    slice_bytes, sharers = shared.slice_bytes.xreplace(answer.shown), shared.sharers * shared.rounds
    sm, dram = found.number(found.sm.total.amount), found.number(found.dram.total.amount)
    lines = [
        f"1. one head's {names} are {text(tidy(slice_bytes))}{_is(found, shared.slice_bytes, size)};"
        f" {text(tidy(sharers.xreplace(answer.shown)))}{_is(found, sharers, grouped)} CTAs stream all of it"
        f"{_is(found, shared.slice_bytes * sharers * shared.slices, lambda n: size(n) + ' in all, SM-side')}",
        f"2. live together: at most {_plainly(answer, found, shared.live)} slice(s) of {names}"
        f" (mean {_plainly(answer, found, shared.mean_live)}), {text(tidy(shared.live_bytes.xreplace(answer.shown)))}"
        f"{_is(found, shared.live_bytes, size)}, against C_L2{_is(found, C_L2, size)}",
    ]
    if found.fits is not None:
        lines.append(
            "3. that fits: the first CTA to touch a tile brings it from HBM, the others hit the L2"
            if found.fits
            else "3. that does not fit: CTAs of one wave share a tile as they stream it, the next wave reads it again"
        )
    if sm is not None and dram is not None:
        title = f"why {size(sm)} becomes {size(dram)} at HBM ({found.name})"
        hit = found.hit_rate
        if hit is not None:
            lines.append(f"4. L2 hit rate {significant(sp.Rational(hit) * 100)} % of the SMs' requests, writes as hits")
    else:
        title = f"why fewer bytes reach HBM ({found.name})"
    return Section(title, lines, _two_causes(answer, found))


def _two_causes(answer: Explanation, fused: Account) -> list[str]:
    """What fusion removes and what the cache removes, apart."""
    unfused = next((a for a in answer.accounts if a.handed_on), None)
    numbers = [a and a.number(a.sm.total.amount) for a in (unfused, fused)]
    if unfused is None or None in numbers or fused.number(fused.dram.total.amount) is None:
        return []
    scores = sum(
        (unfused.number(m.read + m.write) or 0)
        for name, m in unfused.sm.by_tensor.items()
        if name not in fused.sm.by_tensor
    )
    cached = (fused.number(fused.sm.total.amount) or 0) - (fused.number(fused.dram.total.amount) or 0)
    ratio = sp.Rational(unfused.number(unfused.dram.total.amount)) / sp.Rational(fused.number(fused.dram.total.amount))
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
        formula = text(limit.formula.xreplace(answer.shown))
        line = f"{account.name}: {what} stay in the L2 while {limit.symbol} <= {formula}"
        if limit.number is not None:
            line += f" = {grouped(limit.number)}"
        lines.append(line + _effective(answer, account))
    return Section("until when", lines) if lines else None


def _effective(answer: Explanation, account: Account) -> str:
    """The same limit at the effective capacity, where one is known."""
    from dataclasses import replace

    from derive.errors import DeriveError
    from outputs.threshold import threshold

    if answer.machine is None or answer.options.cache != "nominal":
        return ""
    try:
        effective = answer.machine.l2("effective")
    except DeriveError:
        return ""
    values = {**account.values, "C_L2": int(effective.value)}
    limit = threshold(replace(account, values=values), tied=answer.tied)
    if limit is None or limit.number is None:
        return ""
    return (
        f" at the nominal {size(account.values['C_L2'])}; at the effective {size(effective.value)}"
        f" ({effective.kind}) {grouped(limit.number)}"
    )


def after_the_threshold(answer: Explanation) -> Section | None:
    """What happens past the threshold: the wave model."""
    found = answer.fused
    if found is None or found.sharing is None or not found.rereads:
        return None
    further = found if found.fits is False else answer.further_out(found)
    if further is None or further.sharing is None:
        return None
    _, shared = further.sharing
    names = [t.name for t in shared.tensors]
    length = int(further.values["N_k"])
    sawtooth = answer.at_length(found.name, length, sawtooth=True)
    query_order = answer.at_length(found.name, length, order="query")

    def read(account: Account, level: str) -> int:
        moves = account.dram if level == "dram" else account.sm
        return sum(account.whole(moves.by_tensor[n].read) or 0 for n in names)

    lines = [
        f"at {'N' if answer.tied else 'N_k'} = {grouped(length)} a slice of {' and '.join(names)} is"
        f" {size(further.number(shared.slice_bytes) or 0)}, {_plainly(answer, further, shared.live)} live:"
        f" {size(further.number(shared.live_bytes) or 0)} against {size(further.values['C_L2'])}",
        f"{_plainly(answer, further, shared.waves)} waves of {grouped(further.values['C'])} CTAs:"
        f" {size(read(further, 'dram'))} of {', '.join(names)} from HBM, not the {size(read(further, 'sm'))} of the"
        " SM-side count",
        f"sweeping every other wave backwards (sawtooth) keeps the end of the last sweep: {size(read(sawtooth, 'dram'))}",
    ]
    if (further.number(shared.slices) or 1) > 1:
        lines.append(f"query tiles outermost in the grid instead of heads: {size(read(query_order, 'dram'))}")
    if further.mask_of is not None:
        lines.append("under a mask these are upper bounds unless one head runs alone")
    return Section("and after", lines)


def tile_constant(answer: Explanation) -> Section | None:
    """How far the row tile is from one that fills fast memory: where the constant in front of N^2 d^2/M comes from."""
    found = answer.fused
    if found is None or not found.rereads or not {"M", "d", "B_r", "N_q", "N_k"} <= set(found.values):
        return None
    fast, head, rows = (int(found.values[n]) for n in ("M", "d", "B_r"))
    filling = fast // head
    if filling <= rows:
        return None
    wide = answer.with_row_tile(found.name, filling)
    class_bytes = sp.Rational(found.values["N_q"]) * found.values["N_k"] * head**2 / fast * found.values["b"]
    here, there = found.number(found.sm.total.amount), wide.number(wide.sm.total.amount)
    if here is None or there is None:
        return None
    passes = wide.number(wide.sharing[1].sharers) if wide.sharing else None
    ratio = sp.Rational(head**2, fast)
    lines = [
        f"M = {grouped(fast)} elements ({size(fast * found.values['b'])}), d^2/M = {significant(ratio, 3)}:"
        f" N^2 d^2/M is {size(class_bytes)}, a growth class and no byte count",
        f"{found.name} moves {size(here)}, {significant(sp.Rational(here) / class_bytes, 3)}x that: {rows} rows of Q use"
        f" {significant(sp.Rational(100 * rows * head, fast), 3)} % of M; it is the tile's constant, not d^2/M",
        f"a Q tile that filled M (B_r = M/d = {grouped(filling)} rows) would make {grouped(passes or 0)} passes:"
        f" {size(there)}",
    ]
    return Section("the paper's N^2 d^2/M and the tile's constant", lines)


def if_causal(answer: Explanation) -> Section | None:
    """What changes under a causal mask."""
    lines = []
    for account in answer.accounts:
        masked = answer.causal(account.name)
        if masked is None:
            return None
        useful, run = masked.useful[Pipe.MMA], masked.executed[Pipe.MMA]
        sm, dram = masked.sm.total.amount, masked.dram.total.amount
        if masked.number(sm) is None:
            if account is answer.accounts[0]:
                lines.append(f"FLOP (exact): {text(tidy(sp.factor_terms(useful.xreplace(answer.shown))))}")
            continue
        if account is answer.accounts[0]:
            half = sp.Rational(masked.number(account.useful[Pipe.MMA])) / 2
            lines.append(
                f"FLOP: {grouped(masked.number(useful))} exact, {grouped(half)} by the half convention"
                if masked.convention.value == "exact"
                else f"FLOP: {grouped(masked.number(useful))} ({masked.convention.value})"
            )
        skips = any(k.skips_masked for k in masked.derivation.schedule.kernels)
        tiles = f", {grouped(_tiles_met(masked))} tiles of {masked.values['B_r']}x{masked.values['B_c']}" if skips else ""
        lines.append(
            f"{account.name}: runs {grouped(masked.number(run))} FLOP"
            f" ({'skips emptied tiles' if skips else 'dense: it does not skip'}{tiles});"
            f" SM-side {size(masked.number(sm))}, DRAM {size(masked.number(dram))}"
            f" ({'was' if masked.number(dram) != account.number(account.dram.total.amount) else 'unchanged from'}"
            f" {size(account.number(account.dram.total.amount))})"
        )
    return Section("if causal (bottom-right)", lines)


def _tiles_met(account: Account) -> int:
    """Tiles a head that a masked, tiled kernel runs."""
    from derive.coverage import coverage

    schedule = account.derivation.schedule
    kernel = next(k for k in schedule.kernels if k.skips_masked)
    met = coverage(schedule.graph.mask, kernel.loops)
    return 0 if met is None else account.whole(met.tiles) or 0


def if_decode(answer: Explanation) -> Section | None:
    """What changes when there is one query a head."""
    lines = []
    for account in answer.accounts:
        step = answer.decode(account.name)
        if step is None:
            return None
        useful, dram = step.useful[Pipe.MMA], step.dram.total.amount
        if step.number(dram) is None:
            lines.append(f"{account.name}: {text(tidy(useful.xreplace(answer.shown)))} FLOP")
            continue
        time = f", at least {seconds(sp.Rational(step.seconds))} ({step.bound})" if step.seconds else ""
        intensity = significant(step.intensity or 0)
        lines.append(
            f"{account.name}: {grouped(step.number(useful))} FLOP, DRAM {size(step.number(dram))}"
            f" ({_main_reads(step)}), {intensity} FLOP/B{time}"
        )
    if any("FLOP/B" in line for line in lines):
        lines.append(
            "every key and value is read for one query: bandwidth-bound whatever is fused; a group of G query heads that"
            " shares a KV head has G times the FLOP/B (`derive explain decode h=.. hk=..`)"
        )
    return Section("in decode (one query a head)", lines)


def _main_reads(account: Account) -> str:
    """The two largest tensors of the DRAM count."""
    amounts = {n: account.number(m.read + m.write) or 0 for n, m in account.dram.by_tensor.items()}
    largest = sorted(amounts, key=lambda n: -amounts[n])[:2]
    return ", ".join(f"{n} {size(amounts[n])}" for n in largest)


def profile(answer: Explanation) -> Section | None:
    """How to confirm the counts with profiler counters."""
    lines = []
    for account in answer.accounts:
        dram_read, dram_write = account.number(account.dram.read.amount), account.number(account.dram.write.amount)
        sm_read, hit = account.number(account.sm.read.amount), account.hit_rate
        if dram_read is None or dram_write is None or sm_read is None or hit is None:
            continue
        lines.append(
            f"{account.name}: dram__bytes_read.sum {size(dram_read)}, dram__bytes_write.sum at most {size(dram_write)},"
            f" lts__t_sectors_op_read.sum about {grouped(sp.Rational(sm_read) / _SECTOR)},"
            f" lts__t_sector_hit_rate.pct about {significant(sp.Rational(hit) * 100)}"
        )
        if account.seconds is not None and account.seconds < _SHORTEST_PROFILE:
            lines.append(
                f"  {account.name} may run under {seconds(sp.Rational(_SHORTEST_PROFILE))}: then trust DRAM bytes, not"
                " hit rates, whose counters come from different replays"
            )
    if not lines:
        return None
    fused = answer.fused
    if fused is not None and fused.fits:
        sm, dram = fused.number(fused.sm.total.amount), fused.number(fused.dram.total.amount)
        if sm is not None and dram is not None and sm != dram:
            lines.append(
                f"DRAM bytes near {size(dram)} confirm the reuse; near {size(sm)} the grid order defeats the L2"
            )
    lines.append("flush the L2 between runs (ncu does by default); last writes may still sit in the L2 when it counts")
    return Section("confirm with ncu (lts counters include traffic between L2 partitions)", lines)


def _is(account: Account, amount: sp.Expr, shown: object) -> str:
    """`` = value`` when *amount* has one."""
    number = account.number(amount)
    return "" if number is None else f" = {shown(number)}"  # type: ignore[operator]


def _plainly(answer: Explanation, account: Account, amount: sp.Expr) -> str:
    """The value of *amount*, or its closed form."""
    number = account.number(amount)
    return text(tidy(amount.xreplace(answer.shown))) if number is None else significant(number)
