"""Matrix products by the type they multiply: each runs at the rate of its own operands' type, one after another.

Two operands of different types meet in the wider, to which the other is converted. A type that the machine has no rate for is
converted to that of Q, K and V.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

import sympy as sp

from derive.dtype import dtype
from derive.flops import ONE, products
from hardware.roofline import Rate, rate

if TYPE_CHECKING:
    from derive.einsum import Einsum
    from derive.schedule import Kernel
    from outputs.account import Account


def type_of(account: Account) -> Callable[[Einsum], str]:
    """The name of the type that a matrix product of *account* multiplies."""
    machine = account.machine

    def chosen(e: Einsum) -> str:
        names = [account.types.get(str(t.width), account.operand) for t in e.inputs]
        widest = max(dtype(name).width for name in names)
        wide = [name for name in names if dtype(name).width == widest]
        name = account.operand if account.operand in wide else wide[0]
        known = machine is None or dtype(name).multiplies_as in machine.dtypes
        return name if known else account.operand

    return chosen


def flop_by_type(account: Account, kernels: tuple[Kernel, ...], pad: sp.Expr = ONE) -> dict[str, sp.Expr]:
    """FLOP that *kernels* run, by the name of the type they multiply."""
    chosen, found = type_of(account), dict[str, sp.Expr]()
    for kernel in kernels:
        for e, cost in products(account.derivation.schedule, kernel, pad):
            found[chosen(e)] = found.get(chosen(e), sp.Integer(0)) + cost.amount
    return found


def matmul_rate(account: Account, name: str) -> Rate | None:
    """The machine's dense rate of products of the type *name*; ``None`` without a machine.

    Raises:
        UnknownNameError: the machine has none.
    """
    return None if account.machine is None else rate(account.machine, "mma", dtype(name).multiplies_as)


def matmul_seconds(account: Account, by_type: Mapping[str, sp.Expr]) -> sp.Expr | None:
    """The time of products of several types at their own rates, one after another; ``None`` where a rate is unknown."""
    if account.machine is None:
        return None
    total: sp.Expr = sp.Integer(0)
    for name, amount in by_type.items():
        found = matmul_rate(account, name)
        if found is None:
            return None
        total += amount * sp.Rational(Fraction(1) / found.value)
    return total
