"""Run a matrix product in tiles of all its loops, the sum innermost.

    C[i,j] = sum_k A[i,k] B[k,j]   =   for tiles of i, of j, of k:  C[tile i, tile j] += A[tile i, tile k] B[tile k, tile j]

Precondition  the sum is not rescaled as a maximum rises: its parts may be added up as they are; the factors are two tensors,
              since a tile of rows of one tensor does not hold its tile of columns.
Proof         a sum may be taken in parts; each tile of C is finished before the next one starts.
Effect        the tiles of A, B and C are what fast memory must hold, whatever the extents; A is read once for each tile of j, B
              once for each tile of i, C is written once.
Reference     Hong & Kung 1981; Saha & Ye 2024, arXiv:2402.07443, theorem 3.5 (SquareTilingAttention).
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from derive.flops import is_contraction
from derive.notation import cascade
from derive.rewrite import Precondition, Rule
from derive.schedule import Kernel, Loop, Schedule, lift
from derive.symbols import B_c, B_d, B_r, N_q, b, d
from rules.schedule.examples import streaming, three_pass


def shape(schedule: Schedule) -> Iterator[Kernel]:
    """Untiled kernels that run one matrix product and nothing else."""
    for kernel in schedule.kernels:
        nodes = schedule.nodes(kernel)
        if len(nodes) == 1 and is_contraction(nodes[0]) and not kernel.loops:
            yield kernel


def rewrite(schedule: Schedule, kernel: Kernel) -> Schedule:
    """The kernel with a loop over each group of indices: shared by all three tensors, rows, columns, summed over.

    Rows are those of the factor whose own indices the result has first, in whichever order the factors are written.
    """
    (product,) = schedule.nodes(kernel)
    output = product.output.indices
    both = [i for i in output if all(i in t.indices for t in product.inputs)]
    one, other = (tuple(i for i in output if i in t.indices and i not in both) for t in product.inputs)
    rows, columns = (other, one) if other and other[0] == next(i for i in output if i not in both) else (one, other)
    loops = [Loop((i,), sp.Integer(1), grid=True) for i in both]
    loops += [Loop(rows, B_r), Loop(columns, B_c), Loop(tuple(product.reduced), B_d)]
    return schedule.replace((kernel,), kernel.with_(loops=tuple(loops)))


def _plain_sum(schedule: Schedule, kernel: Kernel) -> bool:
    return all(e.rescale is None for e in schedule.nodes(kernel))


def _two_tensors(schedule: Schedule, kernel: Kernel) -> bool:
    (product,) = schedule.nodes(kernel)
    return len({t.name for t in product.inputs}) == 2


def _of_one_tensor() -> Schedule:
    """Keys with keys: K K^T."""
    extents = {"q": N_q, "k": N_q, "d": d}
    return lift(cascade("Y[q,k] = sum[d] K[q,d] * K[k,d]", extents, outputs=("Y",), width=b))


def _rescaled() -> Schedule:
    """The online softmax op by op, its first product tiled: the second is repaired as a maximum of another kernel rises."""
    schedule = lift(streaming())
    kernel = schedule.kernel_of["S"]
    return rewrite(schedule, kernel)


RULE: Rule[Schedule] = Rule(
    name="tile-product",
    claim=f"each matrix product runs in tiles of {B_r} rows by {B_c} columns, {B_d} of the sum at a time",
    reference="Hong & Kung 1981; arXiv:2402.07443, theorem 3.5",
    shape=shape,
    preconditions=(
        Precondition(
            says="its sum is not rescaled, so that parts of it may be added up as they are",
            holds=_plain_sum,
            counterexample=_rescaled,
        ),
        Precondition(
            says="its factors are two tensors, so that no loop cuts one under two names",
            holds=_two_tensors,
            counterexample=_of_one_tensor,
        ),
    ),
    rewrite=rewrite,
    example=lambda: lift(three_pass()),
)
