"""Known slips of byte and FLOP counters, each as what the derived count becomes when it is made.

Nothing here is a formula of attention: every wrong count is the derived one changed, a tensor read twice or left out, a symbol
or an extent taken for another, a rounding turned round, a mask dropped. A slip is a diagnosis where its count is the measured
one at every point looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

import sympy as sp

from derive.cost import Move
from derive.errors import DeriveError
from derive.exact import Number, value
from derive.flops import Convention, Pipe, flops
from derive.substitution import free, put
from derive.symbols import N_k, N_q, d, d_v, h, h_k
from outputs.testing.closed_form import ClosedForm

_CLOSE = Fraction(1, 10**9)
_UNITS = (("kB", "KiB", 1), ("MB", "MiB", 2), ("GB", "GiB", 3))
_TAKEN = ((h, h_k), (d, d_v), (N_q, N_k))
"""Symbols that are taken for each other."""
_WORK = {"flops": Pipe.MMA, "executed": Pipe.MMA, "exp": Pipe.SFU}


@dataclass(frozen=True)
class Slip:
    """One way to be wrong.

    Attributes:
        says: what was done, in a sentence without an end.
        predicts: the count it gives, from values by symbol name.
    """

    says: str
    predicts: Callable[[Mapping[str, Number]], Number]

    def explains(self, points: Sequence[tuple[Mapping[str, Number], Number]]) -> bool:
        """Whether it predicts what was measured at all of *points*, each (values, measured), one of which is wrong."""
        for values, measured in points:
            try:
                predicted = self.predicts(values)
            except DeriveError:
                return False
            if abs(Fraction(predicted) - Fraction(measured)) > _CLOSE * abs(Fraction(measured)):
                return False
        return True


def slips(form: ClosedForm) -> Iterator[Slip]:
    """Every known slip of *form*, the plainest first."""
    yield from _of_units(form)
    yield from _of_masks(form)
    yield from _of_tensors(form)
    yield from _of_symbols(form)


def diagnoses(form: ClosedForm, points: Sequence[tuple[Mapping[str, Number], Number]]) -> list[str]:
    """What explains *points*, as sentences; empty where nothing known does."""
    return list(dict.fromkeys(slip.says for slip in slips(form) if slip.explains(points)))


def _at(amount: sp.Expr) -> Callable[[Mapping[str, Number]], Number]:
    return lambda values: value(amount, values)


def _scaled(amount: sp.Expr, by: Fraction) -> Callable[[Mapping[str, Number]], Number]:
    return lambda values: value(amount, values) * by


def _of_units(form: ClosedForm) -> Iterator[Slip]:
    amount = form.amount
    if form.quantity in _WORK:
        yield Slip("a multiply-add is counted as one FLOP, not two", _scaled(amount, Fraction(1, 2)))
    else:
        widths = {s for s in free(amount) if s.name == "b" or s.name.startswith("b_")}
        yield Slip("elements are reported as bytes", _at(put(amount, dict.fromkeys(widths, sp.Integer(1)))))
        for size in (1, 2, 4, 8):
            yield Slip(
                f"every element is counted as {size} B wide", _at(put(amount, dict.fromkeys(widths, sp.Integer(size))))
            )
        for decimal, binary, power in _UNITS:
            ratio = Fraction(2 ** (10 * power), 10 ** (3 * power))
            note = f"2^{10 * power}/10^{3 * power}"
            yield Slip(
                f"{binary} are read as {decimal}, or divided by one and multiplied by the other: x {note}",
                _scaled(amount, ratio),
            )
            yield Slip(f"{decimal} are read as {binary}: measured is derived / ({note})", _scaled(amount, 1 / ratio))

    def wrapped(values: Mapping[str, Number]) -> Number:
        return (value(amount, values) + 2**31) % 2**32 - 2**31

    yield Slip("a 32-bit signed integer overflows", wrapped)
    yield Slip("a 32-bit unsigned integer overflows", lambda values: value(amount, values) % 2**32)


def _of_masks(form: ClosedForm) -> Iterator[Slip]:
    graph = form.account.derivation.schedule.graph
    if graph.mask is None or form.request.variant.own_mask is not None:
        return
    plain = form.masked("full").amount
    yield Slip("the mask is ignored: dense pairs are counted", _at(plain))
    yield Slip("half of dense stands for the exact count", _scaled(plain, Fraction(1, 2)))
    if form.quantity in _WORK:
        pairs, rows = graph.mask.pairs, graph.mask.rows_touched
        useful = flops(graph, Convention.EXACT)[_WORK[form.quantity]].amount
        whole = form.account.executed[_WORK[form.quantity]]
        if form.quantity != "executed":
            yield Slip("the diagonal is forgotten: each query misses one pair", _at(useful * (pairs - rows) / pairs))
            yield Slip("whole tiles are counted as pairs", _at(whole))
        else:
            yield Slip("pairs are counted, and whole tiles are run", _at(useful))


def _of_tensors(form: ClosedForm) -> Iterator[Slip]:
    moves = form.moves
    if moves is None:
        return
    total = form.amount
    tensors = form.account.derivation.schedule.graph.tensors
    for name, move in moves.by_tensor.items():
        if move.read != 0:
            yield Slip(f"{name} is read twice as often as it is", _at(total + move.read))
        if move.write != 0:
            yield Slip(f"{name} is written twice", _at(total + move.write))
        yield Slip(f"{name} is forgotten", _at(total - move.read - move.write))
        yield from _of_extents(name, move, total, tensors[name].indices, tensors)


def _of_extents(name: str, move: Move, total: sp.Expr, indices: tuple, tensors: Mapping) -> Iterator[Slip]:  # type: ignore[type-arg]
    """One extent of a tensor taken for that of another index."""
    known = {i.extent for t in tensors.values() for i in t.indices if i.extent != 1}
    for index in indices:
        for extent in sorted(known - {index.extent}, key=str):
            wrong = total + (move.read + move.write) * (extent / index.extent - 1)
            yield Slip(f"{name} is counted with {extent} where it has {index.extent}", _at(wrong))


def _of_symbols(form: ClosedForm) -> Iterator[Slip]:
    amount = form.amount
    if amount.has(sp.ceiling):
        yield Slip(
            "a division rounds down (floor) where it must round up (ceil)", _at(amount.replace(sp.ceiling, sp.floor))
        )
    names = {s.name for s in free(amount)}
    for pair in _TAKEN:
        for right, wrong in permutations(pair):
            if right.name in names:
                yield Slip(f"{wrong} stands where {right} belongs", _swapped(amount, right.name, wrong.name))


def _swapped(amount: sp.Expr, right: str, wrong: str) -> Callable[[Mapping[str, Number]], Number]:
    return lambda values: value(amount, {**values, right: values[wrong]}) if wrong in values else value(amount, values)
