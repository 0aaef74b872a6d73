r"""Elements that cross from the cache into the SMs: the re-read rule, exactly, ragged tiles and masks included.

For a tensor T let the *prefix* be the loops down to the innermost sequential loop that carries T and has more than one
trip; grid loops are always in it, since each CTA has a fast memory of its own. T's tile is brought in once an iteration of
the prefix, so

    moved(T) = |T| * (product of the trips of the prefix's loops that do not carry T).

An input is read that much. One that is gathered from is read as often as the rows themselves are brought in, whichever of them
coincide; a table of pages gives its entries as rows reach them (``derive.page_entries``). A partial sum is written that much
and read back that much, less the first visits. The state of a recurrence stays on chip from step to step, unless a loop that
cuts it stands inside the loop over steps, or it lives in memory. Where a mask leaves only some (row, key) tile pairs, the
products become sums over the pairs that are left.

Source: Dao et al. 2022, arXiv:2205.14135, theorem 2 (the attention case); Dao 2023, arXiv:2307.08691, section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import sympy as sp

from derive.choice import cases
from derive.cost import Move, Moves, Unit, added
from derive.coverage import Coverage, PartedCoverage, coverage
from derive.einsum import Einsum, Index, Map, Tensor
from derive.errors import DomainError
from derive.extremes import least
from derive.graph import Graph
from derive.mask import Mask
from derive.page_entries import along_rows, entries_read
from derive.page_tables import tables
from derive.paging import Paging
from derive.places import Places
from derive.schedule import Kernel, Loop, Schedule


def traffic(schedule: Schedule) -> Moves:
    """Elements read and written by each tensor, over all kernels.

    Returns:
        Moves in elements, as the SMs see them: every tile load counts, whatever the cache serves.
    """
    return added((kernel_traffic(schedule, kernel) for kernel in schedule.kernels), Unit.ELEMENT)


@lru_cache(maxsize=256)
def kernel_traffic(schedule: Schedule, kernel: Kernel) -> Moves:
    """Elements read and written by each tensor in one kernel."""
    return traffic_under(
        schedule, kernel, coverage(schedule.mask_of(kernel), kernel.loops) if kernel.skips_masked else None
    )


def traffic_under(schedule: Schedule, kernel: Kernel, met: Coverage | None) -> Moves:
    """Elements read and written by each tensor in one kernel, when *met* says which tiles its mask leaves.

    Raises:
        DomainError: a loop that a sum does not run over stands outside one that it does: its trips would sum it again.
    """
    _check_sums(schedule, kernel)
    moves: dict[str, Move] = {}
    states = {state.name: _carried(kernel, state, steps) for state, steps in schedule.states_of(kernel)}
    rows = schedule.gathers_of(kernel)
    pages = tables(schedule.nodes(kernel))
    for tensor in schedule.inputs_of(kernel):
        if (paging := pages.get(tensor.name)) is not None:
            moves[tensor.name] = Move(read=_entries(kernel, tensor, paging, met))
            continue
        whole = () if schedule.is_gathered_only(tensor, kernel) else (tensor,)
        brought = (*whole, *rows.get(tensor.name, ()))
        read = sp.Add(*(_by_case(kernel, t, partial(_visits, tensor=t, met=met)) for t in brought))
        moves[tensor.name] = Move(read=read)
    leaves = {t.name for t in schedule.outputs_of(kernel)}
    for tensor in (*schedule.internals_of(kernel), *schedule.outputs_of(kernel)):
        move = _result(schedule, kernel, tensor, met, leaves=tensor.name in leaves)
        state = states.get(tensor.name, sp.Integer(0))
        move = Move(move.read + state, move.write + state)
        if move.read != 0 or move.write != 0:
            moves[tensor.name] = move
    return Moves(moves, Unit.ELEMENT)


def _entries(kernel: Kernel, table: Tensor, paging: Paging[Index], met: Coverage | None) -> sp.Expr:
    """Entries of a table of pages that CTAs read, as often as they go through its rows."""
    if met is not None and met.keys.carried_by(along_rows(table, paging)):
        raise DomainError(
            f"kernel {kernel.name}: it skips rows that lie in pages, and how many entries of {table.name} it then reads is "
            "not counted; ask without a mask"
        )
    by_row, entries = along_rows(table, paging), entries_read(paging, kernel.loops)
    return _by_case(kernel, by_row, lambda prefix: _visits(prefix, by_row, met) / paging.extent * entries)


def _check_sums(schedule: Schedule, kernel: Kernel) -> None:
    """Every sum or maximum that builds up does so once."""
    for e in schedule.nodes(kernel):
        own = [n for n, loop in enumerate(kernel.loops) if any(i in e.space for i in loop.indices)]
        builds_up = any(_reduces(schedule, e.output, loop) for loop in kernel.sequential)
        outside = (
            x for x in kernel.loops[: max(own, default=0)] if not x.grid and not any(i in e.space for i in x.indices)
        )
        if builds_up and (again := next(outside, None)) is not None:
            raise DomainError(
                f"kernel {kernel.name}: {e.output} would be summed again at each trip of ({again}), which is not counted; "
                f"move that loop inside, or make {e.output.name} in a kernel of its own"
            )


def compulsory(graph: Graph) -> Moves:
    """Inputs read once and outputs written once: what any schedule must move, the mask taken into account.

    A key that no query sees need not be read, nor a query that sees no key; every output row is written. Of what is gathered
    from, rows are read that some position names: as many as there are positions, or all there are, where as few positions
    coincide as can. Fewer where more of them do; which do is data.
    """
    moves = {t.name: Move(read=_touched_of(graph, t)) for t in graph.inputs}
    moves |= {name: Move(write=graph.tensors[name].size) for name in graph.outputs}
    return Moves(moves, Unit.ELEMENT)


def _touched_of(graph: Graph, tensor: Tensor) -> sp.Expr:
    """Elements of an input that some kept pair needs."""
    if (rows := _rows_named(graph, tensor)) is not None:
        return rows
    names = {i.name for i in tensor.indices}
    if (mask := next((m for m in graph.masks if {m.row, m.column} <= names), None)) is not None:
        return mask.pairs * sp.Mul(*(i.extent for i in tensor.indices if i.name not in mask.axes))
    return sp.Mul(*(_touched(graph, i.name, i.extent) for i in tensor.indices))


def _rows_named(graph: Graph, tensor: Tensor) -> sp.Expr | None:
    """Elements of the rows that positions name, where nothing but them is read of *tensor*."""
    readers = graph.readers.get(tensor.name, ())
    if not readers or any(e.map is not Map.GATHER or e.inputs[0] != tensor for e in readers):
        return None
    along = {e.selected for e in readers if e.selected is not None}
    if len(along) != 1:
        return None
    (index,) = along
    shared = set(tensor.indices)
    named = {e.inputs[1]: _kept_of(e.inputs[1], shared, e.domain) for e in readers}
    rows = least(_seen_along(index, readers), sp.Add(*named.values()))
    selected = next((e.domain for e in readers if isinstance(e.domain, Places)), None)
    if selected is not None and [*named.values()] == [selected.pairs]:
        rows = selected.most_apart
    if (paging := readers[0].paging) is not None:  # the last page of a table need not be full
        rows *= paging.extent / (paging.entry.extent * paging.row.extent)
    return tensor.size / index.extent * rows


def _seen_along(index: Index, readers: tuple[Einsum, ...]) -> sp.Expr:
    """Rows along *index* that some query may select."""
    masks = {e.domain.source if isinstance(e.domain, Places) else None for e in readers}
    (mask, *others) = masks
    return index.extent if mask is None or others or mask.column != index.name else mask.keys_touched


def _kept_of(positions: Tensor, shared: set[Index], mask: Mask | None) -> sp.Expr:
    """Positions along the indices that are not *shared*; those that their *mask* keeps, where it speaks of two of them."""
    own = {i.name: i.extent for i in positions.indices if i not in shared}
    if mask is None or not set(mask.axes) <= set(own):
        return sp.Mul(*own.values())
    return mask.pairs * sp.Mul(*(extent for name, extent in own.items() if name not in mask.axes))


def _touched(graph: Graph, index: str, extent: sp.Expr) -> sp.Expr:
    mask = next((m for m in graph.masks if index in m.axes), None)
    if mask is None:
        return extent
    if index == mask.part:  # keys are counted over all parts together
        return sp.Integer(1)
    return mask.rows_touched if index == mask.row else mask.keys_touched


def first_touch(kernel: Kernel, tensor: Tensor, met: Coverage | None) -> sp.Expr:
    """Elements of *tensor* that *kernel* touches at all, in whole tiles, each counted once."""
    return _elements(kernel.loops, tensor, met, once=True)


def is_accumulator(schedule: Schedule, kernel: Kernel, tensor: Tensor) -> bool:
    """Whether *tensor* is a sum or maximum over an index that *kernel* runs over tile by tile."""
    return any(_reduces(schedule, tensor, loop) for loop in kernel.sequential)


def _result(schedule: Schedule, kernel: Kernel, tensor: Tensor, met: Coverage | None, *, leaves: bool) -> Move:
    """What *kernel* moves of a tensor it defines: a finished result once, a partial sum at every visit.

    A tile that nothing is added to is written too, as zeros, unless the mask itself empties it: such a tile nobody reads.
    """
    once = first_touch(kernel, tensor, met) * _copies(kernel, tensor, met)
    kept = kernel.in_memory and not finished_in_place(schedule, kernel, tensor)

    if tensor in schedule.added_up_of(kernel):  # zeros are written first, all of them, and then one share after another
        shares = _by_case(kernel, tensor, lambda prefix: _visits(prefix, tensor, met))
        return Move(shares, shares + tensor.size)

    whole = once if met is not None and met.rows.carried_by(tensor) and met.keys.carried_by(tensor) else tensor.size

    def is_partial(prefix: tuple[Loop, ...]) -> bool:
        return any(_reduces(schedule, tensor, loop) for loop in prefix if not loop.grid)

    def read(prefix: tuple[Loop, ...]) -> sp.Expr:
        if not is_partial(prefix):
            return sp.Integer(0)
        return _visits(prefix, tensor, met) - (0 if kernel.in_memory else once)

    def write(prefix: tuple[Loop, ...]) -> sp.Expr:
        if not is_partial(prefix):
            return whole if leaves else sp.Integer(0)
        never_visited, last_visits = (whole - once if leaves else 0), (0 if leaves or kept else once)
        return _visits(prefix, tensor, met) + never_visited - last_visits

    return Move(_by_case(kernel, tensor, read), _by_case(kernel, tensor, write))


def _copies(kernel: Kernel, tensor: Tensor, met: Coverage | None) -> sp.Expr:
    """How many CTAs make one tile of *tensor*, each for itself: a result that does not depend on their loop."""
    coupled = (met.rows, met.keys) if met is not None else ()
    return sp.Mul(*(x.trips for x in kernel.grid if x not in coupled and not x.carried_by(tensor)))


def _carried(kernel: Kernel, state: Tensor, steps: Loop) -> sp.Expr:
    """Elements of a state that go to memory between the steps of a recurrence, and as many that come back.

    In memory throughout, it is read before every step and written after it; else it goes between two steps only, where a loop
    that cuts it stands inside the loop over steps.
    """

    def amount(prefix: tuple[Loop, ...]) -> sp.Expr:
        if kernel.in_memory and steps not in prefix:
            prefix = kernel.loops[: kernel.loops.index(steps) + 1]
        if steps not in prefix:
            return sp.Integer(0)
        others = sp.Mul(*(x.trips for x in prefix if x is not steps and not x.carried_by(state)))
        return state.size * others * (steps.trips if kernel.in_memory else steps.trips - 1)

    return _by_case(kernel, state, amount)


def finished_in_place(schedule: Schedule, kernel: Kernel, tensor: Tensor) -> bool:
    """Whether the last visit writes a result computed from *tensor* in its stead, as O = U / l takes the place of U."""
    finished = {t.name for t in schedule.outputs_of(kernel) if t.indices == tensor.indices}
    return any(e.output.name in finished for e in schedule.graph.readers.get(tensor.name, ()))


def _reduces(schedule: Schedule, tensor: Tensor, loop: Loop) -> bool:
    """Whether *loop* runs over an index that *tensor* is reduced over."""
    producer = schedule.graph.producers.get(tensor.name)
    return producer is not None and any(i in producer.reduced for i in loop.indices)


def _by_case(kernel: Kernel, tensor: Tensor, amount: Callable[[tuple[Loop, ...]], sp.Expr]) -> sp.Expr:
    """*amount* of the prefix of *tensor*, which depends on which of the loops that carry it have more than one trip."""
    carriers = [loop for loop in kernel.sequential if loop.carried_by(tensor)]
    cases = [(amount(kernel.grid), sp.true)]
    for loop in carriers:  # outermost first, so that the innermost ends up deciding first
        longer = amount(kernel.loops[: kernel.loops.index(loop) + 1])
        several = loop.extent > loop.tile
        if longer != cases[0][0]:
            cases.insert(0, (longer, several))
        else:
            cases[0] = (longer, sp.Or(several, cases[0][1]))
    return cases[0][0] if len(cases) == 1 else sp.Piecewise(*cases)


def _visits(prefix: tuple[Loop, ...], tensor: Tensor, met: Coverage | None) -> sp.Expr:
    """Elements of *tensor* brought in, over all iterations of *prefix*."""
    return _elements(prefix, tensor, met, once=False)


def _elements(prefix: tuple[Loop, ...], tensor: Tensor, met: Coverage | None, *, once: bool) -> sp.Expr:
    """Elements of one tile of *tensor*, summed over the iterations of *prefix*; *once* counts no tile twice."""
    repeats: sp.Expr = sp.Integer(1)
    parts = met.parts if met is not None else None
    coupled = (met.rows, met.keys, parts) if met is not None else ()
    for loop in prefix:
        if loop not in coupled and not loop.carried_by(tensor) and not once:
            repeats *= loop.trips
    if met is None:
        return tensor.size * repeats
    rows_vary, keys_vary = (loop in prefix and not once for loop in (met.rows, met.keys))
    size = tensor.size
    if parts is not None and parts.carried_by(tensor):
        size /= parts.extent
    if met.rows.carried_by(tensor) and met.keys.carried_by(tensor):
        return size / (met.rows.extent * met.keys.extent) * repeats * met.pairs
    if met.keys.carried_by(tensor):
        keys = met.key_rows if rows_vary else met.key_rows_once
        return size / met.keys.extent * repeats * keys
    if met.rows.carried_by(tensor):
        rows = _query_rows(prefix, tensor, met) if keys_vary else met.query_rows_once
        if once and isinstance(met, PartedCoverage) and size == tensor.size:
            rows = met.query_rows_of_any_part
        return size / met.rows.extent * repeats * rows
    if rows_vary and keys_vary:
        return size * repeats * met.tiles
    if keys_vary:
        return size * repeats * met.key_tiles_once
    if rows_vary:
        return size * repeats * met.row_tiles
    return tensor.size * repeats if once else size * repeats * met.parts_met


def _query_rows(prefix: tuple[Loop, ...], tensor: Tensor, met: Coverage) -> sp.Expr:
    """Query rows brought in while the keys vary: the last tile stays for the next keys unless other heads come between.

    Nothing stays where each key tile has a CTA of its own.
    """
    if met.keys.grid:
        return met.query_rows_met
    inside = prefix[prefix.index(met.keys) + 1 :]
    between = sp.Mul(*(loop.trips for loop in inside if loop != met.rows and loop.carried_by(tensor)))
    return cases((met.query_rows, sp.Eq(between, 1)), (met.query_rows_met, sp.true))
