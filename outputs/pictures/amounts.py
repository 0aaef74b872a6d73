"""Every amount of a schedule by a name, in the symbols that are printed: what tables show, pictures draw and sliders change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import sympy as sp

from derive.flops import Pipe
from derive.symbols import MEANINGS, N, m_I, n_I
from hardware.roofline import PIPES
from outputs.notation import put

if TYPE_CHECKING:
    from derive.cost import Moves
    from hardware.roofline import Pipe as Level
    from outputs.account import Account
    from outputs.explanation import Explanation

COUNTS = ("compulsory", "sm", "dram")
"""The three byte counts."""


def counts(account: Account) -> dict[str, Moves]:
    """The three byte counts of a schedule."""
    return dict(zip(COUNTS, (account.compulsory, account.sm, account.dram), strict=True))


def amounts(answer: Explanation, account: Account) -> dict[str, sp.Expr]:
    """Amounts by name: ``sm``, ``sm.K`` (both directions), ``flop``, ``time.dram``, ..."""
    found: dict[str, sp.Expr] = {}
    for count, moves in counts(account).items():
        found[count] = moves.total.amount
        found |= {f"{count}.{name}": move.read + move.write for name, move in moves.by_tensor.items()}
    found["flop"], found["useful"] = account.executed[Pipe.MMA], account.useful[Pipe.MMA]
    found["exp"], found["vector"] = account.executed[Pipe.SFU], account.executed[Pipe.VECTOR]
    if account.converted != 0:
        found["converted"] = account.converted
    found["peak"] = account.memory_peak
    if account.footprint is not None:
        found["footprint"] = account.footprint
    if account.live_bytes is not None:
        found["live"] = account.live_bytes
        found["readers"] = sp.Integer(2)
    if account.sharing is not None:
        found["readers"] = account.sharing[1].sharers * account.sharing[1].rounds
    found["intensity"], found["intensity.sm"] = (found["useful"] / found[count] for count in ("dram", "sm"))
    found |= _times(account, found)
    return {name: put(amount, answer.shown) for name, amount in found.items()}


def _times(account: Account, found: Mapping[str, sp.Expr]) -> dict[str, sp.Expr]:
    """Seconds of each pipe and level whose rate is known, and of the slowest; useful matrix FLOP/s at that."""
    of: dict[Level, str] = {
        "mma": "flop",
        "exp": "exp",
        "vector": "vector",
        "convert": "converted",
        "shared": "shared",
        "l2": "sm",
        "dram": "dram",
    }
    known = dict(found)
    if account.shared is not None and account.rate("shared") is not None:
        instruction = {
            size: sp.Integer(account.values[size.name]) for size in (m_I, n_I)
        }  # the machine's own, not set by hand
        known["shared"] = sp.factor_terms(account.shared.total.amount.xreplace(instruction))
    rates = {level: account.rate(level) for level in PIPES if of[level] in known}
    times = {
        f"time.{level}": known[of[level]] * sp.Rational(r.value.denominator, r.value.numerator)
        for level, r in rates.items()
        if r is not None
    }
    if account.matmul_seconds is not None:
        times["time.mma"] = account.matmul_seconds
    if not times:
        return {}
    seconds = sp.Max(*times.values(), evaluate=False)
    return {**times, "seconds": seconds, "attained": found["useful"] / seconds}


def symbols_of(forms: Iterable[sp.Basic]) -> frozenset[sp.Symbol]:
    """The symbols with a meaning in *forms*, every part looked at once: SymPy would walk shared parts again and again."""
    seen: set[sp.Basic] = set()
    left = list(forms)
    while left:
        form = left.pop()
        if form not in seen:
            seen.add(form)
            left += form.args
    return frozenset(s for s in seen if isinstance(s, sp.Symbol) and (s.name in MEANINGS or s == N))
