r"""Elements that cross HBM once the cache between HBM and the SMs is modelled: the wave model.

C CTAs run at once, issued in grid order, and sweep their tiles in step; a *wave* is C consecutive CTAs. A *slice* of K and V
(F bytes: one KV head) is shared by n consecutive CTAs; there are X slices.

* If the slices that are live together fit, H F <= C_L2, each is read once: X F bytes.
* If not, CTAs of one wave still share each tile as they stream it, and the next wave reads it again: I F bytes, where I
  counts the (wave, slice) pairs that meet. For one slice I = ceil(n / C), the number of waves.
* Sawtooth: when every other wave sweeps backwards, what the last wave left in the cache is read first and hits.

What one CTA itself reads again (FlashAttention-1's Q and O) is kept likewise while all CTAs that run fit, and what an
earlier kernel wrote is read back from the cache while everything touched in between fits.

Assumptions: LRU replacement; the CTAs of a wave start and stop together; tensors read or written once stream past and do
not displace others; written lines go back to HBM once. ``derive.lru`` replays exactly this, knowing none of these formulas.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.cost import Move, Moves, Unit, added
from derive.coverage import Coverage, coverage
from derive.einsum import Tensor
from derive.exact import Gcd
from derive.extremes import least, most
from derive.schedule import Kernel, Loop, Schedule
from derive.symbols import C_L2, C, dummy
from derive.traffic import finished_in_place, first_touch, is_accumulator, kernel_traffic


@dataclass(frozen=True, slots=True)
class Sharing:
    """How the CTAs of one kernel share slices of the tensors that the cache keeps.

    Attributes:
        tensors: the tensors, all carried by the same grid loops.
        slices: X, how many slices there are.
        sharers: n, consecutive CTAs that read one slice.
        rounds: how often the grid comes back to a slice (1 with heads outermost).
        slice_bytes: F, bytes of one slice of all tensors together.
        caches: caches that hold copies of their own.
    """

    tensors: tuple[Tensor, ...]
    slices: sp.Expr
    sharers: sp.Expr
    rounds: sp.Expr
    slice_bytes: sp.Expr
    caches: sp.Expr

    @property
    def ctas(self) -> sp.Expr:
        """CTAs in all."""
        return self.slices * self.sharers * self.rounds

    @property
    def copies(self) -> sp.Expr:
        """Caches that end up holding a slice: CTAs are dealt to private caches in turn."""
        per_round = least(self.rounds, self.caches / Gcd(self.caches, self.sharers * self.slices))
        return least(self.caches, self.sharers * per_round)

    @property
    def running(self) -> sp.Expr:
        """CTAs that run at once behind one cache."""
        return most(sp.floor(C / self.caches), sp.Integer(1))

    @property
    def sharers_a_cache(self) -> sp.Expr:
        """CTAs behind one cache that share a slice."""
        return sp.ceiling(self.sharers / self.caches)

    @property
    def live(self) -> sp.Expr:
        """H: the most slices that one wave touches, or all of them when the grid comes back to each."""
        if self.rounds != 1:
            return self.slices
        if self.slices == 1:
            return sp.Integer(1)
        n, running = self.sharers_a_cache, self.running
        return least(self.slices, 2 + sp.floor((running - Gcd(running, n) - 1) / n))

    @property
    def mean_live(self) -> sp.Expr:
        """Slices that have a CTA running, on average: C / n, at least 1 and at most X."""
        return most(least(self.slices, C / self.sharers), sp.Integer(1)) if self.rounds == 1 else self.slices

    @property
    def live_bytes(self) -> sp.Expr:
        """H F."""
        return self.live * self.slice_bytes

    @property
    def waves(self) -> sp.Expr:
        """Waves in all, behind one cache."""
        return sp.ceiling(self.slices * self.sharers_a_cache * self.rounds / self.running)

    @property
    def meetings(self) -> sp.Expr:
        """I: how many (wave, slice) pairs meet behind one cache."""
        n, running = self.sharers_a_cache, self.running
        ctas = self.slices * n * self.rounds
        if self.slices == 1:
            return sp.ceiling(ctas / running)
        common = running * n / Gcd(running, n)
        apart = sp.ceiling(ctas / running) + self.slices * self.rounds - 1 - sp.floor((ctas - 1) / common)
        full = sp.floor(ctas / running)
        last = least(self.slices, ctas / n - sp.floor(full * running / n))
        return sp.Piecewise((full * self.slices + last, running >= self.slices * n), (apart, True))

    def slice_reads(self, *, sawtooth: bool) -> sp.Expr:
        """How often a slice's worth of bytes is read from HBM, over all slices and caches."""
        once, again = self.slices, self.meetings
        F, n, running = self.slice_bytes, self.sharers_a_cache, self.running
        cold = again
        if sawtooth:
            beside = self.slices if self.rounds != 1 else 2 * self.live - 1
            cold = again - (again - once) * least(C_L2 / (beside * F), sp.Integer(1))
        elif self.slices != 1 and self.rounds == 1:
            common = running * n / Gcd(running, n)
            straddles = self.slices - 1 - sp.floor((self.slices * n - 1) / common)
            part = once + 2 * straddles * most(2 - C_L2 / F, sp.Integer(0))
            cold = sp.Piecewise((part, sp.And(F <= C_L2, n >= 2 * running)), (again, True))
        return self.copies * sp.Piecewise((once, self.live_bytes <= C_L2), (cold, True))

    def is_exact(self, *, sawtooth: bool, masked: bool) -> sp.Basic:
        """Where the count is what an LRU cache would show; elsewhere it is at most that."""
        fits = self.live_bytes <= C_L2
        if masked or sawtooth:
            return sp.Or(fits, sp.Eq(self.slices, 1))
        return sp.Or(fits, self.slice_bytes > C_L2, sp.And(self.rounds <= 1, self.sharers_a_cache >= 2 * self.running))


def sharing(schedule: Schedule, kernel: Kernel) -> Sharing | None:
    """How *kernel*'s CTAs share what its residency keeps; ``None`` when no kept tensor is read by two CTAs."""
    if kernel.residency is None:
        return None
    shared = [t for t in schedule.inputs_of(kernel) if t.name in kernel.residency.tensors and is_shared(kernel, t)]
    if not shared:
        return None
    rounds, slices, sharers = split_grid(kernel, shared[0])
    met = coverage(schedule.graph.mask, kernel.loops) if kernel.skips_masked else None
    total = sp.Add(*(first_touch(kernel, t, met) * t.width for t in shared))
    return Sharing(tuple(shared), slices, sharers, rounds, total / slices, kernel.residency.caches)


def is_shared(kernel: Kernel, tensor: Tensor) -> bool:
    """Whether several CTAs read the same tiles of *tensor*."""
    return any(not loop.carried_by(tensor) for loop in kernel.grid)


def split_grid(kernel: Kernel, tensor: Tensor) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """The grid's trips outside, among and inside the loops that carry *tensor*: rounds, slices, sharers."""
    carried = [n for n, loop in enumerate(kernel.grid) if loop.carried_by(tensor)]
    first, last = (carried[0], carried[-1]) if carried else (0, -1)

    def trips(loops: tuple[Loop, ...]) -> sp.Expr:
        return sp.Mul(*(loop.trips for loop in loops))

    return trips(kernel.grid[:first]), trips(kernel.grid[first : last + 1]), trips(kernel.grid[last + 1 :])


def own_working_set(schedule: Schedule, kernel: Kernel) -> sp.Expr:
    """Bytes that the CTAs running at once come back to by themselves; 0 when each reads everything once."""
    if kernel.residency is None:
        return sp.Integer(0)
    ours = [t for t in _revisited(schedule, kernel) if t.name in kernel.residency.tensors]
    if not ours:
        return sp.Integer(0)
    a_cta = sp.Add(*(t.size * t.width for t in ours)) / kernel.ctas
    return least(C, kernel.ctas) * a_cta / kernel.residency.caches


def _revisited(schedule: Schedule, kernel: Kernel) -> tuple[Tensor, ...]:
    """Tensors whose tiles a CTA brings in more than once by itself."""
    found = []
    for tensor in schedule.tensors_of(kernel):
        carriers = [loop for loop in kernel.sequential if loop.carried_by(tensor)]
        if not carriers or (tensor.name in kernel.einsums and not is_accumulator(schedule, kernel, tensor)):
            continue
        outside = kernel.sequential[: kernel.sequential.index(carriers[-1])]
        if any(not loop.carried_by(tensor) for loop in outside):
            found.append(tensor)
    return tuple(found)


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
    met = coverage(schedule.graph.mask, kernel.loops) if kernel.skips_masked else None
    moves = dict(seen.by_tensor)
    own = own_working_set(schedule, kernel)
    shared = sharing(schedule, kernel)
    for tensor in schedule.tensors_of(kernel):
        if tensor.name not in kernel.residency.tensors or tensor.name not in moves:
            continue
        move = moves[tensor.name]
        if shared is not None and tensor in shared.tensors:
            reads = shared.slice_reads(sawtooth=kernel.residency.sawtooth)
            read = first_touch(kernel, tensor, met) / shared.slices * reads
            moves[tensor.name] = Move(_with_mask(read, shared, tensor, met), move.write)
        elif tensor in _revisited(schedule, kernel):
            fits = own <= C_L2
            once = _once(schedule, kernel, tensor, met, move)
            moves[tensor.name] = Move(_where(fits, once.read, move.read), _where(fits, once.write, move.write))
        else:
            fits = sp.And(live_between(schedule, tensor, kernel) <= C_L2, sp.Eq(kernel.residency.caches, 1))
            moves[tensor.name] = Move(_where(fits, sp.Integer(0), move.read), move.write)
    return Moves(moves, Unit.ELEMENT)


def _once(schedule: Schedule, kernel: Kernel, tensor: Tensor, met: Coverage | None, move: Move) -> Move:
    """What crosses HBM of a tensor that its CTA finds in the cache whenever it comes back to it.

    A partial sum's lines go back once; when a result takes their place, only as that result.
    """
    if move.write == 0:
        return Move(read=first_touch(kernel, tensor, met))
    return Move() if finished_in_place(schedule, kernel, tensor) else Move(write=tensor.size)


def _where(condition: sp.Basic, amount: sp.Expr, otherwise: sp.Expr) -> sp.Expr:
    return amount if amount == otherwise else sp.Piecewise((amount, condition), (otherwise, True))


def _with_mask(read: sp.Expr, shared: Sharing, tensor: Tensor, met: Coverage | None) -> sp.Expr:
    """*read*, made exact for one slice under a mask: a wave reads no further than its last row tile sees."""
    if met is None or met.mask.first is not None or len(met.rows.indices) > 1 or shared.caches != 1:
        return read
    if shared.sharers != met.rows.trips or shared.rounds != 1:
        return read
    w = dummy("w")
    last = least((w + 1) * shared.running, shared.sharers) - 1
    streamed = tensor.size / met.keys.extent * sp.Sum(met.keys_of(last), (w, 0, shared.waves - 1))
    fits = shared.live_bytes <= C_L2
    alone = sp.Eq(shared.slices, 1)
    if alone == sp.true:
        return sp.Piecewise((tensor.size / met.keys.extent * met.key_rows_once, fits), (streamed, True))
    return sp.Piecewise((streamed, sp.And(alone, sp.Not(fits))), (read, True))


def live_between(schedule: Schedule, tensor: Tensor, reader: Kernel) -> sp.Expr:
    """Bytes touched from the kernel that writes *tensor* to the one that reads it, both included."""
    writer = schedule.kernel_of.get(tensor.name)
    if writer is None:
        return sp.oo
    span = schedule.kernels[schedule.kernels.index(writer) : schedule.kernels.index(reader) + 1]
    crossing = {t.name: t for k in span for t in (*schedule.inputs_of(k), *schedule.outputs_of(k))}
    return sp.Add(*(t.size * t.width for t in crossing.values()))
