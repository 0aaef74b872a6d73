"""The same question asked otherwise: under a causal mask, and with one query a head."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import sympy as sp

from derive.coverage import coverage
from derive.flops import Convention, Pipe
from derive.symbols import N_q
from outputs.layout import Section
from outputs.notation import put, text, tidy
from outputs.quantities import grouped, seconds, significant, size

if TYPE_CHECKING:
    from outputs.account import Account
    from outputs.explanation import Explanation


def if_causal(answer: Explanation) -> Section | None:
    """What changes under a causal mask; ``None`` when there is a mask already."""
    masked = [answer.causal(a.name) for a in answer.accounts]
    pairs = [(a, m) for a, m in zip(answer.accounts, masked, strict=True) if m is not None]
    if not pairs:
        return None
    first, causal = pairs[0]
    useful = causal.useful[Pipe.MMA]
    lines = [f"FLOP ({causal.convention.value}): {text(tidy(put(useful, answer.shown)))}"]
    if causal.is_numeric:
        lines[0] += f" = {grouped(causal.exact(useful))}"
    if causal.is_numeric and causal.convention is Convention.EXACT:
        lines[0] += f"; half of dense would be {grouped(Fraction(first.exact(first.useful[Pipe.MMA])) / 2)}"
    lines += [_under_mask(account, masked_account) for account, masked_account in pairs if masked_account.is_numeric]
    return Section("if causal (bottom-right)", lines)


def _under_mask(account: Account, masked: Account) -> str:
    """One schedule's line: what it runs and moves under the mask, and what of that changed."""
    before, after = account.exact(account.dram.total.amount), masked.exact(masked.dram.total.amount)
    tiles = _tiles_met(masked)
    how = "dense: it does not skip" if tiles is None else f"skips emptied tiles: {grouped(tiles)} of"
    if tiles is not None:
        how += f" {masked.values['B_r']}x{masked.values['B_c']} are left a head"
    change = "unchanged" if before == after else f"was {size(before)}"
    return (
        f"{account.name}: runs {grouped(masked.exact(masked.executed[Pipe.MMA]))} FLOP ({how});"
        f" SM-side {size(masked.exact(masked.sm.total.amount))}, DRAM {size(after)} ({change})"
    )


def _tiles_met(account: Account) -> int | None:
    """Tiles a head that a masked, tiled kernel runs; ``None`` when no kernel skips."""
    schedule = account.derivation.schedule
    for kernel in schedule.kernels:
        met = coverage(schedule.mask_of(kernel), kernel.loops) if kernel.skips_masked else None
        if met is not None:
            return account.whole(met.tiles)
    return None


def if_decode(answer: Explanation) -> Section | None:
    """What changes when there is one query a head; ``None`` when there is only one already."""
    steps = [step for step in (answer.decode(a.name) for a in answer.accounts) if step is not None]
    if not steps:
        return None
    lines = [_one_query(answer, step) for step in steps]
    if steps[0].is_numeric:
        lines.append(
            "every key and value is read for one query: bandwidth-bound whatever is fused; a group of G query heads that"
            " shares a KV head has G times the FLOP/B (`derive explain decode h=.. hk=..`)"
        )
    return Section("in decode (one query a head)", lines)


def _one_query(answer: Explanation, step: Account) -> str:
    useful = step.useful[Pipe.MMA]
    if not step.is_numeric:
        shown = {**answer.shown, N_q: sp.Integer(1)}
        least = text(tidy(put(step.compulsory.total.amount, shown)))
        return f"{step.name}: {text(tidy(put(useful, shown)))} FLOP, at least {least} bytes"
    time = f", at least {seconds(step.seconds)} ({step.bound})" if step.seconds else ""
    return (
        f"{step.name}: {grouped(step.exact(useful))} FLOP, DRAM {size(step.exact(step.dram.total.amount))}"
        f" ({_largest_moves(step)}), {significant(step.intensity or 0)} FLOP/B{time}"
    )


def _largest_moves(account: Account) -> str:
    """The two largest tensors of the DRAM count."""
    amounts = {n: account.exact(m.read + m.write) for n, m in account.dram.by_tensor.items()}
    largest = sorted(amounts, key=lambda n: -amounts[n])[:2]
    return ", ".join(f"{n} {size(amounts[n])}" for n in largest)
