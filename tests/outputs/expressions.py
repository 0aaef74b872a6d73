"""Closed forms to print and read back: all that the engine makes, and random ones of every kind of node it uses."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sympy as sp
from hypothesis import strategies as st

from derive.attention import variant as find_variant
from derive.choice import at_most, cases
from derive.errors import DeriveError
from derive.exact import Gcd
from derive.extremes import down, least, most, up
from derive.same import Same
from derive.symbols import MEANINGS, dummy, symbol
from outputs.account import Account
from outputs.notation import tidy
from rules.derivations import plan
from tests.strategies import ATTENTION, PAIRS

MASKS = ("full", "causal", "causal-tl")
"""Masks with every kind of bound; the others' forms are longer and no different."""
INDEX = dummy("i")
SYMBOLS = tuple(symbol(name) for name in MEANINGS)
values = st.fixed_dictionaries({name: st.integers(1, 40) for name in MEANINGS})


@lru_cache(maxsize=1)
def engine_forms() -> tuple[sp.Basic, ...]:
    """Amounts of every variant by its own schedules, of plain attention by all and under masks, and conditions' parts."""
    found: dict[sp.Basic, None] = {}
    for variant, schedule in PAIRS:
        plain = variant in ATTENTION
        if not plain and schedule not in find_variant(variant).schedules:
            continue  # what the schedules of one variant add to those of another is tested by its own
        for mask in MASKS if plain else MASKS[:1]:
            try:
                chosen = plan(schedule).ordered(sawtooth=mask == "full")
                account = Account(chosen.derive(find_variant(variant).graph(mask)), {})
                found |= dict.fromkeys(_amounts(account))
            except DeriveError:  # a mask that is refused, or tiles that are not counted
                continue
    return tuple(form for form in found if len(str(form)) <= LONGEST)


LONGEST = 1500
"""Characters of a form that is read back: longer ones are sums of parts that are read back by themselves."""


def _amounts(account: Account) -> list[sp.Basic]:
    amounts: list[Any] = [account.footprint, account.live_bytes, *account.executed.values(), *account.useful.values()]
    for moves in (account.compulsory, account.sm, account.dram):
        amounts += [moves.total.amount, tidy(moves.total.amount)]
        amounts += [x for m in moves.by_tensor.values() for x in (m.read, m.write)]
    conditions = [step.condition for step in account.derivation.steps if step.condition != sp.true]
    return [amount for amount in (*amounts, *conditions) if amount is not None]


_LEAVES = (
    st.sampled_from(SYMBOLS)
    | st.integers(-9, 9).map(sp.Integer)
    | st.fractions(-3, 3, max_denominator=7).map(sp.Rational)
)


def _plain(*sides: Any) -> tuple[Any, ...]:
    """*sides* of a comparison, without cases of their own: SymPy folds those, which takes for ever."""
    return tuple(symbol("M") if side.has(sp.Piecewise) else side for side in sides)


def _power(x: Any, n: int) -> Any:
    """*x* to the *n*; of a case distinction SymPy would examine every condition anew."""
    return sp.Pow(x, n, evaluate=not x.has(sp.Piecewise))


def _times(x: Any, y: Any) -> Any:
    """Their product, as written where SymPy would raise a case distinction to find the powers in it."""
    cased = [side for side in (x, y) if side.has(sp.Piecewise)]
    return sp.Mul(x, y, evaluate=len(cased) < 2 and not any(side.is_Pow or side.is_Mul for side in cased))


def _either(x: Any, y: Any, z: Any) -> Any:
    return sp.Or(at_most(*_plain(z, x)), at_most(*_plain(y, z)), evaluate=False)


_NODES: dict[str, Any] = {
    "sum": lambda x, y, _: x + y,
    "difference": lambda x, y, _: x - y,
    "product": lambda x, y, _: _times(x, y),
    "bracket": lambda x, y, z: _times(x, y + z),
    "product as written": lambda x, y, _: sp.Mul(x, y, evaluate=False),
    "taken out": lambda x, y, z: tidy(x * y + 2 * x * z),
    "fraction": lambda x, y, _: _times(x, _power(y, -1)),
    "fraction of a sum": lambda x, y, z: _times(x, sp.Pow(1 + _times(_power(y, 2), _power(z, 2)), -1)),
    "minimum": lambda x, y, z: least(x, least(y, z)),
    "maximum": lambda x, y, _: most(x, y),
    "rounded up": lambda x, y, _: up(_times(x, _power(y, -1))),
    "rounded down": lambda x, _y, z: down(_times(x, _power(z, -1))),
    "power": lambda x, _y, _z: _power(x, 2),
    "divisor": lambda x, y, _: Gcd(up(1 + _power(x, 2)), up(1 + _power(y, 2))),
    "case": lambda x, y, z: cases((x, at_most(*_plain(y, z))), (z, sp.true)),
    "cases": lambda x, y, z: cases(
        (x, sp.Lt(*_plain(y, z), evaluate=False)),
        (y, sp.Or(at_most(*_plain(z, x)), at_most(*_plain(x, y)), evaluate=False)),
        (z, sp.true),
    ),
    "both": lambda x, y, z: cases((x, sp.And(at_most(*_plain(x, y)), _either(x, y, z), evaluate=False)), (z, sp.true)),
    "equal": lambda x, y, z: z * Same(x, y),
    "sum over i": lambda x, y, _: sp.Sum(x * INDEX + least(y, INDEX), (INDEX, 0, 3)),
}
"""Every kind of node that the engine makes, over three smaller forms."""


@st.composite
def _forms(draw: st.DrawFn) -> sp.Basic:
    """A pool of leaves, to which nodes over its members are added; the last one is the form."""
    pool: list[Any] = draw(st.lists(_LEAVES, min_size=3, max_size=4))
    for kind in draw(st.lists(st.sampled_from(sorted(_NODES)), min_size=2, max_size=4)):
        newest = draw(st.permutations([pool[-1], *draw(st.tuples(st.sampled_from(pool), st.sampled_from(pool)))]))
        try:
            made = _NODES[kind](*newest)
        except TypeError:  # SymPy itself compares with nan when it tidies some conditions
            continue
        if not made.has(sp.nan, sp.zoo, sp.oo, sp.ITE):
            pool.append(made)
    return pool[-1]


forms = _forms()
"""Random closed forms."""
