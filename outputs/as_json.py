"""The answer as one JSON object: sizes are whole bytes, times seconds, closed forms text that SymPy reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy as sp
from sympy.printing.str import StrPrinter

from derive.cost import Moves
from derive.flops import Pipe
from derive.symbols import MEANINGS
from hardware.roofline import PIPES
from outputs.account import by_tensor
from outputs.best_sizes import at, best_of
from outputs.latex import step_latex
from outputs.notation import put, regime, text
from outputs.sparsity import levels
from outputs.splits import splits
from outputs.trade import Trade, trades
from rules.derivations import plan

if TYPE_CHECKING:
    from derive.rewrite import Step
    from outputs.account import Account
    from outputs.explanation import Explanation
    from outputs.threshold import Threshold

Json = dict[str, Any]


def as_json(explanation: Explanation) -> Json:
    """The object that ``derive explain --json`` prints; see ``schema/explain.json``."""
    request = explanation.request
    accounts = explanation.accounts
    values = {name: n for a in reversed(accounts) for name, n in a.values.items()}
    used = {s.name for a in accounts for s in _symbols(a)}
    parameters = {name: _plain(values.get(name)) for name in sorted(used | set(request.numbers))}
    return {
        "variant": request.variant.name,
        "machine": explanation.machine.id if explanation.machine else None,
        "mask": request.mask,
        "dtype": {group: t.name for group, t in request.types.items()},
        "parameters": parameters,
        "schedules": {a.name: _schedule(explanation, a) for a in accounts},
        "crossings": [_crossing(accounts[0], trade) for trade in trades(explanation)],
    }


def _crossing(account: Account, trade: Trade) -> Json:
    """Where the dense matmul FLOP of two schedules are equal; ``below`` runs fewer below it."""
    return {
        "quantity": "matmul",
        "below": trade.below,
        "above": trade.above,
        "symbol": trade.symbol.name,
        "symbolic": readable(account, trade.at),
        "value": None if trade.number is None else float(trade.number),
        "many_keys": None if trade.limit is None else readable(account, trade.limit),
    }


def _symbols(account: Account) -> set[sp.Symbol]:
    amounts = [account.sm.total.amount, account.dram.total.amount, *account.executed.values(), *account.useful.values()]
    return {s for amount in amounts for s in amount.atoms(sp.Symbol) if s.name in MEANINGS}  # no variable of a sum


def _schedule(explanation: Explanation, account: Account) -> Json:
    useful, run = account.useful, account.executed
    return {
        "parameters": {name: _plain(number) for name, number in sorted(account.values.items())},
        "flops": {
            "convention": account.convention.value,
            "executed": _amount(account, run[Pipe.MMA]),
            "matmul": _amount(account, useful[Pipe.MMA]),
            "exp": _amount(account, useful[Pipe.SFU]),
            "vector": _amount(account, useful[Pipe.VECTOR]),
            "convert": _amount(account, account.converted),
            "rescaling": {
                "exp": _amount(account, account.rescaling[Pipe.SFU]),
                "vector": _amount(account, account.rescaling[Pipe.VECTOR]),
            },
        },
        "bytes": {
            "compulsory": _moves(account, account.compulsory),
            "sm": _moves(account, account.sm),
            "dram": _moves(account, account.dram),
        },
        "footprint": _known(account, account.footprint),
        "shared_traffic": _known(account, account.shared.total.amount if account.shared else None),
        "memory_peak": _amount(account, account.memory_peak),
        "memory_training": _training(explanation, account),
        "intensity": None if account.intensity is None else float(account.intensity),
        "ridge": None if account.ridge is None else float(account.ridge),
        "time": {
            **{level: account.times.get(level) for level in PIPES},
            "bound": account.bound,
            "seconds": account.seconds,
        },
        "residency": _residency(explanation, account),
        "theta": _theta(explanation, account),
        "splits": _splits(account),
        "sparsity": {
            level.what: {"kept": _amount(account, level.kept), "of": _amount(account, level.of)}
            for level in levels(account)
        },
        "least": [
            {
                "count": what,
                "symbol": found.symbol.name,
                "symbolic": _text(account, found.point),
                "value": at(account, found),
            }
            for what, found in best_of(account)
        ],
        "steps": [_step(step) for step in account.derivation.steps],
    }


def _training(explanation: Explanation, account: Account) -> Json | None:
    peaks = explanation.training(account)
    if peaks is None:
        return None
    alone, accumulated = (_amount(account, peak) for peak in peaks)
    return {"after": plan(account.name).after, "peak": alone, "accumulated": accumulated}


def _text(account: Account, amount: sp.Expr | None) -> str | None:
    return None if amount is None else readable(account, amount)


def _amount(account: Account, amount: sp.Expr) -> Json:
    return {"symbolic": readable(account, amount), "value": account.whole(amount)}


def readable(account: Account, amount: sp.Basic) -> str:
    """*amount* as text that SymPy reads, with the widths of the element types put in as numbers."""
    widths = {s: sp.Rational(account.values[s.name]) for s in amount.atoms(sp.Symbol) if s.name.split("_")[0] == "b"}
    if not amount.has(sp.Min, sp.Max, sp.Piecewise, sp.Sum, sp.floor):
        return str(amount.xreplace(widths))
    return _WidthPrinter(widths).printed(amount)


class _WidthPrinter(StrPrinter):  # type: ignore[misc]
    """Prints widths as numbers: putting them in would rebuild, and re-examine, every minimum of a long count.

    Sums are printed apart from what they stand in: to put terms in order SymPy asks each sum for its value, for seconds.
    """

    def __init__(self, widths: dict[sp.Symbol, sp.Rational]) -> None:
        super().__init__()
        self._widths = widths
        self._sums: dict[sp.Symbol, str] = {}

    def printed(self, amount: sp.Basic) -> str:
        """*amount* as text."""
        places: dict[sp.Basic, sp.Symbol] = {}
        for total in sorted(_outermost_sums(amount), key=text):
            term, *limits = total.args
            ends = ", ".join(f"({', '.join(map(self.printed, limit.args))})" for limit in limits)
            places[total] = sp.Symbol(f"Sum_{len(self._sums)}")
            self._sums[places[total]] = f"Sum({self.printed(term)}, {ends})"
        return str(self.doprint(put(amount, places)))

    def _print_Symbol(self, expr: sp.Symbol) -> str:
        if expr in self._sums:
            return self._sums[expr]
        width = self._widths.get(expr)
        return expr.name if width is None else (str(width) if width.q == 1 else f"({width})")


def _outermost_sums(amount: sp.Basic) -> set[sp.Sum]:
    if isinstance(amount, sp.Sum):
        return {amount}
    return {total for part in amount.args for total in _outermost_sums(part)}


def _known(account: Account, amount: sp.Expr | None) -> Json:
    return {"symbolic": None, "value": None} if amount is None else _amount(account, amount)


def _moves(account: Account, moves: Moves) -> Json:
    tensors = {name: {"read": read, "write": write} for name, (read, write) in by_tensor(account, moves).items()}
    return {**_amount(account, moves.total.amount), "tensors": tensors}


def _residency(explanation: Explanation, account: Account) -> Json:
    shared = account.sharing[1] if account.sharing else None
    capacity = account.values.get("C_L2")
    return {
        "fits": account.fits,
        "live_heads": account.whole(shared.live) if shared else None,
        "live_heads_reading": "peak" if shared else None,
        "live_heads_mean": _float(account.number(shared.mean_live)) if shared else None,
        "live_bytes": account.whole(account.live_bytes) if account.live_bytes is not None else None,
        "exact": account.is_exact,
        "capacity": None if capacity is None else int(capacity),
        "capacity_reading": explanation.options.cache,
        "caches": _plain(account.values.get("n_L2")),
        "waves": account.whole(shared.waves) if shared else None,
        "hit_rate": account.hit_rate,
        "threshold": _threshold(account, explanation.thresholds[account.name]),
    }


def _threshold(account: Account, limit: Threshold | None) -> Json | None:
    if limit is None:
        return None
    return {"symbol": limit.symbol, "symbolic": readable(account, limit.formula), "value": limit.number}


def _theta(explanation: Explanation, account: Account) -> Json | None:
    found = account.growth(explanation.alike)
    if found is None:
        return None
    return {
        "class": " + ".join(map(str, found.monomials)),
        "regime": regime(found, str),
        "unit": "elements across the SM boundary, best tiles that fit M",
        "status": "derived",
    }


def _splits(account: Account) -> Json | None:
    found = splits(account)
    if found is None:
        return None
    seconds = {str(n): float(time) for n, time in found.times.items()}
    return {"best": found.best, "cited": found.cited, "seconds": seconds}


def _step(step: Step) -> Json:
    return {
        "rule": step.rule.name,
        "options": step.rule.options,
        "claim": step.rule.claim,
        "reasons": list(step.reasons),
        "condition": str(step.condition),
        "reference": step.rule.reference,
        "latex": step_latex(step),
    }


def _plain(number: Any) -> int | str | None:
    """A whole number as it is, a fraction as exact text."""
    if number is None:
        return None
    return int(number) if number.denominator == 1 else str(number)


def _float(number: Any) -> float | None:
    return None if number is None else float(number)
