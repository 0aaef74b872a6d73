"""Known slips of byte and FLOP counters, each as what the derived count becomes when it is made.

Nothing here is a formula of attention: every wrong count is the derived one changed, a tensor read twice or left out, a symbol
or an extent taken for another, a rounding turned round, a mask dropped, another schedule meant. A slip is a diagnosis where its
count is the measured one at every point looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

import sympy as sp

from derive.errors import DeriveError
from derive.exact import Number, value
from outputs.testing.closed_form import MOVING, ClosedForm, shown, with_usual
from outputs.testing.slip import CLOSE, Points, Slip, Values, amount_at
from outputs.testing.slips_of_masks import slips_of_masks
from outputs.testing.slips_of_products import slips_of_products
from outputs.testing.slips_of_symbols import slips_of_symbols
from outputs.testing.slips_of_tensors import slips_of_tensors
from outputs.testing.slips_of_units import slips_of_units
from rules.derivations import names, plan

_MOST = 6
"""Diagnoses that are told; points that so many slips explain tell nothing apart."""
_TELLING = 8
"""Points at which changes are compared, before all are looked at."""
_MOST_TERMS = 1000
"""A ratio with a longer denominator is no count of anything."""


def slips(form: ClosedForm) -> Iterator[Slip]:
    """Every known slip of *form*, the plainest first."""
    yield from slips_of_units(form)
    yield from slips_of_masks(form)
    yield from slips_of_products(form)
    yield from slips_of_tensors(form)
    yield from slips_of_symbols(form)


def slips_of_names(form: ClosedForm) -> Iterator[Slip]:
    """Another quantity of the schedule, or another schedule, is counted."""
    for quantity in MOVING if form.quantity in MOVING else ():
        if quantity != form.quantity:
            other = form.named(quantity=quantity)
            yield Slip(f"{other.says} are counted, not {form.says}", amount_at(other.amount))
    for schedule in names():
        if schedule == form.schedule:
            continue
        try:
            amount = form.named(schedule=schedule).amount
        except DeriveError:  # its rules do not apply here, or it has no such quantity
            continue
        usual = {tile.name: size for tile, size in plan(schedule).tiles.items()}
        says = f"the numbers are those of the schedule {schedule}, not of {form.schedule}"
        yield Slip(says, _with_usual(amount, usual))


def _with_usual(amount: sp.Expr, usual: Mapping[str, sp.Expr]) -> Callable[[Values], Number]:
    return lambda values: value(amount, with_usual(values, usual))


def diagnoses(form: ClosedForm, points: Points, within: Fraction = CLOSE) -> list[str]:
    """What explains *points*, as sentences; empty where nothing known does.

    Args:
        form: what should have been measured.
        points: values by symbol name, and what was measured there.
        within: relative gap that passes.
    """
    for known in (slips, slips_of_names):
        if found := list(dict.fromkeys(slip.says for slip in known(form) if slip.explains(points, within))):
            return found[:_MOST]
    return _pairs(form, points)[:_MOST]


def _pairs(form: ClosedForm, points: Points) -> list[str]:
    """Two slips at once, each of which adds to what is derived or takes from it, and together what was measured."""
    asked = [*points[:: -(-len(points) // _TELLING)]]
    right = [Fraction(value(form.amount, values)) for values, _ in asked]
    gap = tuple(Fraction(measured) - amount for (_, measured), amount in zip(asked, right, strict=True))
    by_change: dict[tuple[Fraction, ...], Slip] = {}
    for slip in slips(form):
        try:
            change = tuple(Fraction(slip.predicts(v)) - amount for (v, _), amount in zip(asked, right, strict=True))
        except DeriveError:
            continue
        if any(change):
            by_change.setdefault(change, slip)
    found: dict[frozenset[str], str] = {}
    for change, slip in by_change.items():
        other = by_change.get(tuple(all_ - one for all_, one in zip(gap, change, strict=True)))
        if other is not None and other is not slip and _both(form, slip, other).explains(points):
            found.setdefault(frozenset((slip.says, other.says)), f"two slips: {slip.says}; {other.says}")
    return list(found.values())


def _both(form: ClosedForm, one: Slip, other: Slip) -> Slip:
    def predicts(values: Values) -> Number:
        return one.predicts(values) + other.predicts(values) - value(form.amount, values)

    return Slip(f"{one.says}; {other.says}", predicts)


def pattern(form: ClosedForm, points: Points) -> str:
    """What all of *points* have in common: one ratio to the derived count, or one difference; empty where neither."""
    both = [(Fraction(measured), Fraction(value(form.amount, values))) for values, measured in points]
    if len({derived for _, derived in both}) < 2:
        return ""
    if len({measured for measured, _ in both}) == 1:
        return f"it is {shown(both[0][0])} at every point, whatever the sizes"
    differences = {measured - derived for measured, derived in both}
    if len(differences) == 1:
        (gap,) = differences
        return f"at every point it is {shown(abs(gap))} {'more' if gap > 0 else 'less'} than derived"
    ratios = [measured / derived for measured, derived in both if derived]
    nearest = ratios[0].limit_denominator(_MOST_TERMS)
    if nearest and all(abs(ratio - nearest) <= CLOSE * abs(nearest) for ratio in ratios):
        return f"at every point it is {shown(nearest)} of what is derived: a count of products, SMs, devices or runs?"
    return ""
