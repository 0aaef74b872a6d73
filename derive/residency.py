r"""Elements that cross HBM once the cache between HBM and the SMs is modelled.

Three kinds of re-reading are served by a cache: tiles that several CTAs read (``derive.sharing``), tiles that one CTA comes
back to (FlashAttention-1's Q and partial O, a recurrence's state), and what an earlier kernel has just written (naive
attention's scores, when they are small). Each becomes a hit while what is live together fits.

Assumptions: LRU replacement; the CTAs of a wave start and stop together; tensors read or written once stream past and do
not displace others; written lines go back to HBM once. ``derive.lru`` replays exactly this, knowing none of these formulas.
"""

from __future__ import annotations

import sympy as sp

from derive.choice import at_most, cases
from derive.cost import Move, Moves, Unit, added
from derive.coverage import Coverage, coverage
from derive.einsum import Tensor
from derive.extremes import least
from derive.page_tables import as_read
from derive.schedule import Kernel, Schedule
from derive.sharing import Sharing, own_working_set, revisited, sharings
from derive.symbols import C_L2, dummy
from derive.traffic import finished_in_place, first_touch, kernel_traffic


def dram(schedule: Schedule) -> Moves:
    """Elements that cross HBM, by tensor, over all kernels.

    Returns:
        Moves in elements; without a residency on a kernel its reads are those of the SMs.
    """
    return added((kernel_dram(schedule, kernel) for kernel in schedule.kernels), Unit.ELEMENT)


def kernel_dram(schedule: Schedule, kernel: Kernel) -> Moves:
    """Elements that cross HBM in one kernel."""
    seen = kernel_traffic(schedule, kernel)
    if kernel.residency is None:
        return seen
    met = coverage(schedule.mask_of(kernel), kernel.loops) if kernel.skips_masked else None
    moves = dict(seen.by_tensor)
    made = {t.name for t in schedule.outputs_of(kernel)}
    states = {t.name: t for t in schedule.moving_states_of(kernel) if t.name not in made}
    groups = sharings(schedule, kernel)
    live = own_working_set(schedule, kernel) + sp.Add(*(s.live_bytes for s in groups))
    for tensor in (as_read(t, schedule.nodes(kernel)) for t in schedule.tensors_of(kernel)):
        if tensor.name not in kernel.residency.tensors or tensor.name not in moves:
            continue
        move = moves[tensor.name]
        shared = next((s for s in groups if tensor in s.tensors), None)
        if shared is not None:
            moves[tensor.name] = Move(_shared_reads(shared, kernel, tensor, met, move.read), move.write)
        elif tensor in schedule.added_up_of(kernel):
            fits, touched = at_most(live, C_L2), first_touch(kernel, tensor, met)
            at_rest = touched + tensor.size  # zeros go by before the CTAs start
            moves[tensor.name] = Move(_where(fits, sp.Integer(0), move.read), _where(fits, at_rest, move.write))
        elif tensor.name in states:
            fits = at_most(live, C_L2)
            in_cache = _where_any(
                move.read, states[tensor.name].size
            )  # what it is at first comes from memory, its end goes back
            first = in_cache if kernel.in_memory else sp.Integer(0)
            moves[tensor.name] = Move(_where(fits, first, move.read), _where(fits, in_cache, move.write))
        elif tensor in revisited(schedule, kernel):
            fits = at_most(live, C_L2)
            once = _once(schedule, kernel, tensor, met, move)
            moves[tensor.name] = Move(_where(fits, once.read, move.read), _where(fits, once.write, move.write))
        elif tensor.name in schedule.kernel_of and schedule.kernel_of[tensor.name] is not kernel:
            between = at_most(live_between(schedule, tensor, kernel), C_L2)
            fits = sp.And(between, sp.Eq(kernel.residency.caches, 1))
            moves[tensor.name] = Move(_where(fits, sp.Integer(0), move.read), move.write)
    return Moves(moves, Unit.ELEMENT)


def _once(schedule: Schedule, kernel: Kernel, tensor: Tensor, met: Coverage | None, move: Move) -> Move:
    """What crosses HBM of a tensor that its CTA finds in the cache whenever it comes back to it.

    A partial sum's lines go back once; when a result takes their place, only as that result.
    """
    if move.write == 0:
        return Move(read=first_touch(kernel, tensor, met))
    if finished_in_place(schedule, kernel, tensor):
        return Move()
    touched = tensor.size if tensor in schedule.outputs_of(kernel) else first_touch(kernel, tensor, met)
    return Move(write=_where_any(move.write, touched))


def _where_any(moved: sp.Expr, once: sp.Expr) -> sp.Expr:
    """*once* in the cases in which anything moves at all."""
    if not isinstance(moved, sp.Piecewise):
        return once
    return cases(*((sp.Integer(0) if amount == 0 else once, condition) for amount, condition in moved.args))


def _where(condition: sp.Basic, amount: sp.Expr, otherwise: sp.Expr) -> sp.Expr:
    return amount if amount == otherwise else cases((amount, condition), (otherwise, sp.true))


def _shared_reads(shared: Sharing, kernel: Kernel, tensor: Tensor, met: Coverage | None, unshared: sp.Expr) -> sp.Expr:
    """Elements of a shared tensor read from HBM: once, once a wave, or as often as the SMs ask.

    CTAs that start at different keys share nothing as they stream: under a mask those of a wave that sweeps backwards, and
    all of them where the mask has a first key of its own, or leaves less of one part of the keys than of another.
    """
    a_slice = first_touch(kernel, tensor, met) / shared.slices
    once = a_slice * shared.slices * shared.copies
    if shared.caches != 1:
        once = least(once, unshared)  # copies are counted from above, the SMs' own reads are not exceeded
    apart = met is not None and (met.parts is not None or met.keys.grid or not met.mask.starts_at_key_0)
    if met is not None and (shared.sawtooth or apart):
        return cases((once, shared.fits), (unshared, sp.true))
    streamed = a_slice * shared.copies * shared.streamed
    if met is not None:
        streamed = _streamed_under_mask(shared, tensor, met, streamed)
    if shared.caches != 1 or (met is not None and shared.slices != 1):
        streamed = least(streamed, unshared)
    return cases((once, shared.fits), (streamed, shared.streams), (unshared, sp.true))


def _streamed_under_mask(shared: Sharing, tensor: Tensor, met: Coverage, read: sp.Expr) -> sp.Expr:
    """*read*, made exact for one slice: a wave reads no further than its last row tile sees."""
    if not met.mask.starts_at_key_0 or len(met.rows.indices) > 1 or shared.caches != 1 or shared.rounds != 1:
        return read
    if shared.sharers != met.rows.trips:
        return read
    w = dummy("w")
    last = least((w + 1) * shared.running, shared.sharers) - 1
    by_wave = tensor.size / met.keys.extent * sp.Sum(met.keys_of(last), (w, 0, shared.waves - 1))
    alone = sp.Eq(shared.slices, 1)
    return by_wave if alone == sp.true else cases((by_wave, alone), (read, sp.true))


def live_between(schedule: Schedule, tensor: Tensor, reader: Kernel) -> sp.Expr:
    """Bytes touched from the kernel that writes *tensor* to *reader*, both included."""
    writer = schedule.kernel_of[tensor.name]
    span = schedule.kernels[schedule.kernels.index(writer) : schedule.kernels.index(reader) + 1]
    crossing = {t.name: t for k in span for t in (*schedule.inputs_of(k), *schedule.outputs_of(k))}
    return sp.Add(*(t.size * t.width for t in crossing.values()))
