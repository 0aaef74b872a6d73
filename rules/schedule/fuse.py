"""Put consecutive kernels into one, so that what passes between them stays on chip.

    kernel A writes T; kernel B reads T   =   kernel A, B: T never leaves the SM unless something else reads it

Precondition  no kernel of the run has loops yet: merging then changes no order of points; nothing that the run makes is
              gathered from in it.
Proof         the merged kernel runs the same Einsums in the same order; a tensor read elsewhere is still written.
Effect        each intermediate private to the run saves one write and one read of itself.
Reference     Dao et al. 2022, arXiv:2205.14135, section 3.1 (kernel fusion).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from derive.einsum import Einsum, Map
from derive.flops import is_contraction
from derive.graph import Graph
from derive.notation import cascade
from derive.rewrite import Precondition, Rule
from derive.schedule import Kernel, Schedule, lift
from derive.symbols import N_k, N_q, b, d, d_v
from rules.schedule.examples import backward_saved, streaming, three_pass, with_loops

Match = tuple[Kernel, ...]


def rewrite(schedule: Schedule, match: Match) -> Schedule:
    """One kernel for the whole run."""
    names = tuple(name for kernel in match for name in kernel.einsums)
    return schedule.replace(match, Kernel(names))


def _everything(schedule: Schedule) -> Iterator[Match]:
    if len(schedule.kernels) > 1:
        yield schedule.kernels


def _around_contractions(schedule: Schedule) -> Iterator[Match]:
    """Runs of two or more kernels without a matrix product, longest first."""
    run: list[Kernel] = []
    for kernel in (*schedule.kernels, None):
        if kernel is not None and not any(is_contraction(e) for e in schedule.nodes(kernel)):
            run.append(kernel)
            continue
        if len(run) > 1:
            yield tuple(run)
        run = []


def _prologues(schedule: Schedule) -> Iterator[Match]:
    """A pointwise kernel on an input, and the matrix product right after it that alone reads its result."""
    for first, second in zip(schedule.kernels, schedule.kernels[1:], strict=False):
        node, product = schedule.nodes(first)[-1], schedule.nodes(second)[0]
        reads_inputs_only = all(t in schedule.graph.inputs for t in node.inputs if t.indices)
        alone = schedule.graph.readers.get(node.output.name) == (product,)
        if len(first.einsums) == 1 and _pointwise(node) and is_contraction(product) and reads_inputs_only and alone:
            yield first, second


def _epilogues(schedule: Schedule) -> Iterator[Match]:
    """A matrix product, and the pointwise kernel that alone reads its result, beside it scalars at most."""
    for kernel in schedule.kernels:
        product = schedule.nodes(kernel)[-1]
        readers = schedule.graph.readers.get(product.output.name, ())
        if not is_contraction(product) or len(readers) != 1 or product.output.name in schedule.graph.outputs:
            continue
        node, after = readers[0], schedule.kernel_of[readers[0].output.name]
        reads_it_alone = all(t == product.output for t in node.inputs if t.indices)
        if after is not kernel and len(after.einsums) == 1 and _pointwise(node) and reads_it_alone:
            yield kernel, after


def _pointwise(einsum: Einsum) -> bool:
    return not einsum.reduced


def fusion(
    name: str,
    claim: str,
    shape: Callable[[Schedule], Iterator[Match]],
    graph: Callable[[], Graph],
    tiled: tuple[str, ...],
    *more: Precondition[Schedule],
    rewrite: Callable[[Schedule, Match], Schedule] = rewrite,
    reference: str = "arXiv:2205.14135, section 3.1",
) -> Rule[Schedule]:
    """A rule that puts a run of kernels into one, as long as none of them has loops.

    Args:
        name: what a person calls it.
        claim: what it does.
        shape: runs that might be merged.
        graph: makes a graph that it applies to once lifted.
        tiled: what a kernel of each run of *graph* defines; tiled over q, none is legal any more.
        more: what else it needs.
        rewrite: how the run is merged.
        reference: where it is proved.
    """
    without_loops = Precondition(
        says="no kernel of the run has loops yet, so merging changes no order of points",
        holds=lambda _, match: not any(kernel.loops for kernel in match),
        counterexample=lambda: with_loops(lift(graph()), tiled, "q"),
    )
    return Rule(
        name=name,
        claim=claim,
        reference=reference,
        shape=shape,
        preconditions=(without_loops, *more),
        rewrite=rewrite,
        example=lambda: lift(graph()),
    )


def _gathers_from_outside(schedule: Schedule, match: Match) -> bool:
    made = {name for kernel in match for name in kernel.einsums}
    gathers = (e for kernel in match for e in schedule.nodes(kernel) if e.map is Map.GATHER)
    return not any(e.inputs[0].name in made for e in gathers)


def rows_in_memory(torn: Callable[[], Graph]) -> Precondition[Schedule]:
    """The clause that what the run gathers from is in memory before it; *torn* breaks it."""
    return Precondition(
        says="nothing that the run makes is gathered from in it, since any row may be the next one",
        holds=_gathers_from_outside,
        counterexample=lambda: lift(torn()),
    )


def _rows_of_its_own() -> Graph:
    """Rows that are made, and gathered at positions that are given."""
    text = "E[j,d] = exp(K[j,d])\nG[q,k,d] = gather(E[j,d], T[q,k])"
    return cascade(text, {"q": N_q, "k": d_v, "j": N_k, "d": d}, outputs=("G",), width=b)


ALL = fusion(
    "fuse",
    "everything runs in one kernel, so no intermediate leaves the SM",
    _everything,
    streaming,
    ("S",),
    rows_in_memory(_rows_of_its_own),
)
BETWEEN_PRODUCTS = fusion(
    "fuse-between-products",
    "the operations between two matrix products run in one kernel that holds a row of scores",
    _around_contractions,
    three_pass,
    ("X",),
)
PROLOGUE = fusion(
    "fuse-prologue",
    "a pointwise operation on an input runs inside the matrix product that reads it",
    _prologues,
    three_pass,
    ("Qs",),
)
EPILOGUE = fusion(
    "fuse-epilogue",
    "a pointwise operation on the result of a matrix product runs inside it",
    _epilogues,
    backward_saved,
    ("dQs",),
)
RULES = (ALL, BETWEEN_PRODUCTS, PROLOGUE, EPILOGUE)
