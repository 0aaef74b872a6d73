"""Where a count is least in a size that was left open: falling terms against rising ones, solved in closed form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import sympy as sp

from derive.flops import Pipe
from derive.stationary import Least, least
from derive.symbols import MEANINGS, I_m
from outputs.layout import Section
from outputs.notation import put, text, tidy
from outputs.quantities import significant

if TYPE_CHECKING:
    from derive.exact import Number
    from outputs.account import Account
    from outputs.explanation import Explanation


def best_sizes(answer: Explanation) -> Section | None:
    """For each schedule and count, the open sizes in which it first falls and then rises, and where it is least."""
    lines = [
        f"{account.name}, {what}: least at {_where(answer, account, found)}"
        for account in answer.accounts
        for what, found in best_of(account)
    ]
    if not lines:
        return None
    notes = [f"with I_m: {MEANINGS[I_m.name].says}"] if any("I_m" in line for line in lines) else []
    return Section("where an open size is best", [*lines, *notes])


def best_of(account: Account) -> Iterator[tuple[str, Least]]:
    """What is least at some size inside, and where."""
    for what, amount in counts(account):
        yield from ((what, found) for found in turning_points(account, amount))


def counts(account: Account) -> Iterator[tuple[str, sp.Expr]]:
    """What is asked about, in words and as a closed form."""
    yield "matmul FLOP run", account.executed[Pipe.MMA]
    yield "vector operations run", account.executed[Pipe.VECTOR]
    yield "exponentials run", account.executed[Pipe.SFU]
    yield "SM-side bytes", account.sm.total.amount
    yield (
        "time of matmuls and SM-side bytes, one after another",
        account.sm.total.amount + account.executed[Pipe.MMA] / I_m,
    )


def turning_points(account: Account, amount: sp.Expr) -> Iterator[Least]:
    """The sizes without a number in which *amount* is least somewhere inside."""
    bound = {s for total in amount.atoms(sp.Sum) for s in total.variables}  # free_symbols would rebuild every sum
    for symbol in sorted(amount.atoms(sp.Symbol) - bound, key=str):
        if symbol.name in account.values or symbol == I_m:
            continue
        found = least(amount, symbol)
        if found is not None and found.point != 1:  # at 1 it is least at the end of its range
            yield found


def _where(answer: Explanation, account: Account, found: Least) -> str:
    if found.point is None:
        balance = (text(tidy(put(side, answer.shown))) for side in (found.falls, found.rises))
        closed = f"the {found.symbol} at which {' = '.join(balance)}"
    else:
        closed = f"{found.symbol} = {text(put(found.point, answer.shown))}"
    number = at(account, found)
    return closed if number is None else f"{closed}, {significant(number)}"


def at(account: Account, found: Least) -> float | None:
    """The size as a number; ``None`` while a symbol that it depends on has none."""
    known = {s: sp.Rational(v.numerator, v.denominator) for s in _free(found) if (v := _value(account, s)) is not None}
    return found.number(known)


def _free(found: Least) -> set[sp.Symbol]:
    symbols: set[sp.Symbol] = (found.falls + found.rises).free_symbols
    return symbols


def _value(account: Account, symbol: sp.Symbol) -> Number | None:
    """The number that *symbol* has; for I_m, the FLOP a byte that the machine's matmul rate allows at its L2 rate."""
    if symbol != I_m:
        return account.values.get(symbol.name)
    matmul, bytes_ = account.rate("mma"), account.rate("l2")
    return None if matmul is None or bytes_ is None else matmul.value / bytes_.value
