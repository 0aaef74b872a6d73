"""Slips of work: a matrix product left out, or one counted twice, as where a backward pass makes the scores again."""

from __future__ import annotations

from collections.abc import Iterator

from derive.flops import FLOPS_PER_MULTIPLY_ADD, is_contraction, products
from outputs.testing.closed_form import ClosedForm
from outputs.testing.slip import Slip, amount_at


def slips_of_products(form: ClosedForm) -> Iterator[Slip]:
    """Every one of *form*; none but of matrix FLOP."""
    schedule = form.account.derivation.schedule
    if form.quantity == "flops":
        found = [(e, FLOPS_PER_MULTIPLY_ADD * e.points) for e in schedule.graph.einsums if is_contraction(e)]
    elif form.quantity == "executed":
        found = [(e, cost.amount) for kernel in schedule.kernels for e, cost in products(schedule, kernel)]
    else:
        return
    for einsum, work in found:
        yield Slip(f"the product {einsum.output.name} is left out", amount_at(form.amount - work))
        yield Slip(f"the product {einsum.output.name} is counted twice", amount_at(form.amount + work))
