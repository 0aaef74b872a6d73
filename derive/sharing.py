r"""How the CTAs of a kernel share slices of K and V through a cache: the wave model.

C CTAs run at once, issued in grid order, and sweep their tiles in step; a *wave* is C consecutive CTAs. A *slice* of K and V
(F bytes: one KV head) is shared by n consecutive CTAs; there are X slices. Of a slice, t bytes of tiles are read in one step.

* If the slices that are live together fit, H F <= C_L2, each is read once: X F bytes.
* If not, CTAs of one wave still share each tile as they stream it, and the next wave reads it again: I F bytes, where I
  counts the (wave, slice) pairs that meet. For one slice I = ceil(n / C), the number of waves.
* If not even the tiles of one step fit, H t > C_L2, nothing is shared: every SM-side read reaches HBM.
* A CTA that sweeps its slice several times (Q, once for each key tile) reads it as often where it does not fit, and once if so.
* Tensors that other grid loops carry have slices of their own (a bias of all heads beside each head's K and V); what is live
  of them takes room too. So does what CTAs come back to by themselves, such as partial sums: that of two waves (of a
  round, where the grid comes back to a slice), or one step's tiles.
* Sawtooth: when every other wave sweeps backwards, what the last wave left in the cache is read first and hits.

Where a wave ends one slice and begins the next, part of both may stay: counted for n >= 2C, bounded from above otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import sympy as sp

from derive.choice import at_most, cases
from derive.coverage import coverage
from derive.einsum import Tensor
from derive.exact import Gcd
from derive.extremes import down, least, most, up
from derive.page_tables import as_read
from derive.schedule import Kernel, Loop, Schedule
from derive.symbols import C_L2, C
from derive.traffic import first_touch, is_accumulator


@dataclass(frozen=True, slots=True)
class Sharing:
    """How the CTAs of one kernel share slices of the tensors that the cache keeps.

    Attributes:
        tensors: the tensors, all carried by the same grid loops.
        slices: X, how many slices there are.
        sharers: n, consecutive CTAs that read one slice.
        rounds: how often the grid comes back to a slice (1 with heads outermost).
        slice_bytes: F, bytes of one slice of all tensors together.
        step_bytes: t, bytes of the tiles that one iteration reads of a slice.
        caches: caches that hold copies of their own.
        sawtooth: whether odd waves sweep backwards.
        beside: bytes that the running CTAs keep for themselves in the same cache.
        beside_step: bytes of those that they touch in one step.
        others: live bytes of the slices of other tensors, which other CTAs share.
        adds: whether CTAs add to sums in memory of the same slices, which are then part of F and of t.
        sweeps: how often a CTA sweeps the slice.
    """

    tensors: tuple[Tensor, ...]
    slices: sp.Expr
    sharers: sp.Expr
    rounds: sp.Expr
    slice_bytes: sp.Expr
    step_bytes: sp.Expr
    caches: sp.Expr
    sawtooth: bool
    beside: sp.Expr
    others: sp.Expr = sp.Integer(0)  # noqa: RUF009  (SymPy numbers are immutable)
    adds: bool = False
    sweeps: sp.Expr = sp.Integer(1)  # noqa: RUF009
    beside_step: sp.Expr = sp.Integer(0)  # noqa: RUF009

    @property
    def copies(self) -> sp.Expr:
        """Caches that end up holding a slice: CTAs are dealt to private caches in turn."""
        per_round = least(self.rounds, self.caches / Gcd(self.caches, self.sharers * self.slices))
        return least(self.caches, self.sharers * per_round)

    @property
    def running(self) -> sp.Expr:
        """CTAs that run at once behind one cache."""
        return most(down(C / self.caches), sp.Integer(1))

    @property
    def sharers_a_cache(self) -> sp.Expr:
        """CTAs behind one cache that share a slice."""
        return up(self.sharers / self.caches)

    @property
    def in_a_wave(self) -> sp.Expr:
        """The most slices that one wave touches, or all of them when the grid comes back to each."""
        if self.rounds != 1:
            return self.slices
        if self.slices == 1:
            return sp.Integer(1)
        n, running = self.sharers_a_cache, self.running
        if self.caches != 1:  # slices are dealt unevenly, so waves may start anywhere in them
            return least(self.slices, 2 + down((running - 2) / most(down(self.sharers / self.caches), sp.Integer(1))))
        return least(self.slices, 2 + down((running - Gcd(running, n) - 1) / n))

    @property
    def live(self) -> sp.Expr:
        """H: slices touched between two uses of a tile, at most; a sawtooth turns, so it touches those of two waves."""
        if not self.sawtooth or self.rounds != 1 or self.slices == 1:
            return self.in_a_wave
        return least(self.slices, 2 * self.in_a_wave - 1)

    @property
    def mean_live(self) -> sp.Expr:
        """Slices that have a CTA running, on average: C / n, at least 1 and at most X."""
        if self.rounds != 1 or self.slices == 1:
            return self.slices
        return most(least(self.slices, C / self.sharers), sp.Integer(1))

    @property
    def live_bytes(self) -> sp.Expr:
        """H F."""
        return self.live * self.slice_bytes

    @property
    def waves(self) -> sp.Expr:
        """Waves in all, behind one cache."""
        return up(self.slices * self.sharers_a_cache * self.rounds / self.running)

    @property
    def meetings(self) -> sp.Expr:
        """I: how many (wave, slice) pairs meet behind one cache."""
        n, running = self.sharers_a_cache, self.running
        ctas = self.slices * n * self.rounds
        one_slice = up(ctas / running)
        if self.slices == 1:
            return one_slice
        apart = up(ctas / running) + self.slices * self.rounds - 1
        if self.caches == 1:  # a wave that ends where a slice ends does not meet it again
            apart -= down((ctas - 1) * Gcd(running, n) / (running * n))
        full = down(ctas / running)
        last = least(self.slices, ctas / n - down(full * running / n))
        whole = full * self.slices + last
        return cases((one_slice, sp.Eq(self.slices, 1)), (whole, at_most(self.slices * n, running)), (apart, sp.true))

    @property
    def waves_between(self) -> sp.Expr:
        """Waves that may run between two uses of a slice: where one ends the next; all of a round that comes back."""
        if self.rounds == 1:
            return sp.Integer(2)
        return up(self.slices * self.sharers_a_cache / self.running) + 1

    @property
    def fits(self) -> sp.Basic:
        """The live slices stay: H F <= C_L2, beside what CTAs keep for themselves between two uses of a slice."""
        own = self.beside * least(self.waves, self.waves_between)
        return at_most(self.live_bytes + own + self.others, C_L2)

    @property
    def streams(self) -> sp.Basic:
        """The tiles of one step stay, so that CTAs in step share them: H t <= C_L2."""
        return at_most(self.live * self.step_bytes + self.beside_step + self.others, C_L2)

    @property
    def covered(self) -> sp.Basic:
        """Every wave touches all slices."""
        return at_most(self.slices * self.sharers_a_cache, self.running)

    @property
    def streamed(self) -> sp.Expr:
        """Slices' worth of bytes read behind one cache when the live slices do not stay but CTAs in step share tiles."""
        again, once = self.meetings * self.sweeps, self.slices
        if self.sweeps != 1 or self.beside != 0:  # nothing is counted on to stay from one wave to the next
            return again
        F, t, n = self.slice_bytes, self.step_bytes, self.sharers_a_cache
        if self.sawtooth:
            turned = again - self._kept_at_turns(again - once)
            always = self.rounds == 1 or self.slices == 1
            comes_back = sp.true if always else sp.Or(sp.Eq(self.slices, 1), self.covered)
            return cases((turned, comes_back), (again, sp.true))
        if self.slices == 1 or self.rounds != 1 or self.caches != 1 or self.others != 0:
            return again
        straddles = once - 1 - down((once * n - 1) * Gcd(self.running, n) / (self.running * n))
        ending = most(F - t * (down((C_L2 - F) / t) + 1), sp.Integer(0))
        beginning = t * most(up((2 * F - C_L2) / t) - 1, sp.Integer(0))
        part = once + straddles * (ending + beginning) / F
        return cases((part, sp.And(at_most(F, C_L2), at_most(2 * self.running, n))), (again, sp.true))

    def _kept_at_turns(self, turns: sp.Expr) -> sp.Expr:
        """Slices' worth of bytes that a sawtooth finds in the cache over *turns*, of which the odd ones are at the end.

        At the end the ragged tile comes first, at the start a whole one; either way whole tiles are kept.
        """
        F, t = self.slice_bytes, self.step_bytes
        share, ragged = C_L2 / self.live, F - t * (up(F / t) - 1)
        at_start = least(F, t * down(share / t)) / F
        at_end = most(least(F, ragged + t * down((share - ragged) / t)), sp.Integer(0)) / F
        alone = up(turns / 2) * at_end + down(turns / 2) * at_start
        at_least = turns * least(at_start, at_end)
        return alone if self.slices == 1 else cases((alone, sp.Eq(self.slices, 1)), (at_least, sp.true))

    def is_exact(self, *, masked: bool) -> sp.Basic:
        """Where the count is what an LRU cache shows; elsewhere the cache shows at most the count."""
        one_cache = sp.Eq(self.caches, 1)
        if self.others != 0 or self.adds or self.sweeps != 1 or self.beside != 0:
            return sp.And(self.fits, one_cache)
        if self.caches != 1:
            dealt = sp.And(sp.Eq(sp.Mod(self.sharers, self.caches), 0), sp.Eq(self.rounds, 1))
            return sp.And(self.fits, sp.Or(one_cache, dealt)) if not masked else sp.And(self.fits, one_cache)
        if masked:
            return self.fits
        if self.sawtooth:
            return sp.Or(self.fits, sp.And(self.streams, sp.Eq(self.slices, 1)))
        alone, nothing_stays = sp.Eq(self.slices, 1), sp.Not(at_most(self.slice_bytes, C_L2))
        if self.rounds == 1:
            streamed = sp.Or(alone, nothing_stays, at_most(2 * self.running, self.sharers))
        else:  # a wave shorter than a round meets each slice once
            short = at_most(self.running, (self.slices - 1) * self.sharers + 1)
            streamed = sp.Or(alone, sp.And(nothing_stays, sp.Or(self.covered, short)))
        return sp.Or(self.fits, sp.And(self.streams, streamed))


def sharing(schedule: Schedule, kernel: Kernel) -> Sharing | None:
    """How *kernel*'s CTAs share most of what its residency keeps; ``None`` when no kept tensor is read by two CTAs."""
    return next(iter(sharings(schedule, kernel)), None)


def sharings(schedule: Schedule, kernel: Kernel) -> tuple[Sharing, ...]:
    """How *kernel*'s CTAs share what its residency keeps: once for each set of grid loops that carries some of it.

    What streams past comes first: tensors that a sequential loop carries, such as K and V.
    """
    if kernel.residency is None:
        return ()
    groups: dict[tuple[object, ...], list[Tensor]] = {}
    read = (as_read(t, schedule.nodes(kernel)) for t in schedule.inputs_of(kernel))
    for t in (*read, *schedule.added_up_of(kernel)):
        if t.name in kernel.residency.tensors and is_shared(kernel, t):
            alike = (_sweeps(kernel, t), *(x for x in kernel.grid if x.carried_by(t)))
            groups.setdefault(alike, []).append(t)
    found = [_sharing(schedule, kernel, shared) for shared in groups.values()]
    found.sort(key=lambda s: not any(x.carried_by(t) for x in kernel.sequential for t in s.tensors))
    if len(found) == 1:
        return (found[0],)
    return tuple(replace(s, others=sp.Add(*(_between_uses(s, o) for o in found if o is not s))) for s in found)


def _between_uses(kept: Sharing, other: Sharing) -> sp.Expr:
    """Bytes of *other*'s slices that are touched, at most, between two uses of a tile of *kept*.

    Those that are live, and the one that takes the place of one of them; all when the grid comes back to *kept*.
    """
    every = other.slices * other.slice_bytes
    return every if kept.rounds != 1 else least(every, other.live_bytes + other.slice_bytes)


def _sharing(schedule: Schedule, kernel: Kernel, shared: list[Tensor]) -> Sharing:
    """How *kernel*'s CTAs share tensors that the same grid loops carry."""
    assert kernel.residency is not None
    rounds, slices, sharers = split_grid(kernel, shared[0])
    met = coverage(schedule.mask_of(kernel), kernel.loops) if kernel.skips_masked else None
    if met is not None and met.parts is not None:
        met = None  # parts are left unequally: the largest may be whole
    total = sp.Add(*(first_touch(kernel, t, met) * t.width for t in shared))
    step = sp.Add(*(_step_elements(kernel, t) * t.width for t in shared))
    added = set(schedule.added_up_of(kernel)) & set(shared)
    return Sharing(
        tuple(t for t in shared if t not in added),
        slices,
        sharers,
        rounds,
        total / slices,
        step,
        kernel.residency.caches,
        kernel.residency.sawtooth,
        own_working_set(schedule, kernel),
        adds=bool(added),
        sweeps=_sweeps(kernel, shared[0]),
        beside_step=own_working_set(schedule, kernel, a_step=True),
    )


def _sweeps(kernel: Kernel, tensor: Tensor) -> sp.Expr:
    """How often one CTA sweeps its slice of *tensor*: the trips of loops without it around the innermost that carries it."""
    carried = [n for n, loop in enumerate(kernel.sequential) if loop.carried_by(tensor)]
    around = kernel.sequential[: max(carried, default=0)]
    return sp.Mul(*(loop.trips for loop in around if not loop.carried_by(tensor)))


def _step_elements(kernel: Kernel, tensor: Tensor) -> sp.Expr:
    """Elements of the tile that one iteration reads: looped indices by their tile, or whole where that is less."""
    size: sp.Expr = sp.Integer(1)
    for index in tensor.indices:
        loop = kernel.loop_of(index.name)
        size *= index.extent if loop is None else least(loop.tile, index.extent)
    return size


def is_shared(kernel: Kernel, tensor: Tensor) -> bool:
    """Whether several CTAs read the same tiles of *tensor*."""
    return any(not loop.carried_by(tensor) for loop in kernel.grid)


def readers_run_together(kernel: Kernel, tensor: Tensor) -> bool:
    """Whether the grid loops that carry *tensor* are neighbours, so that the readers of a slice are issued in runs."""
    carried = [n for n, x in enumerate(kernel.grid) if x.carried_by(tensor)]
    return not carried or carried[-1] - carried[0] + 1 == len(carried)


def split_grid(kernel: Kernel, tensor: Tensor) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """The grid's trips outside, among and inside the loops that carry *tensor*: rounds, slices, sharers."""
    carried = [n for n, loop in enumerate(kernel.grid) if loop.carried_by(tensor)]
    first, last = (carried[0], carried[-1]) if carried else (0, -1)

    def trips(loops: tuple[Loop, ...]) -> sp.Expr:
        return sp.Mul(*(loop.trips for loop in loops))

    return trips(kernel.grid[:first]), trips(kernel.grid[first : last + 1]), trips(kernel.grid[last + 1 :])


def own_working_set(schedule: Schedule, kernel: Kernel, *, a_step: bool = False) -> sp.Expr:
    """Bytes that the CTAs running at once come back to by themselves, states included; 0 when each reads everything once.

    What they share is no part of it. *a_step* counts of each tensor the tile that one iteration needs.
    """
    if kernel.residency is None:
        return sp.Integer(0)
    read = {as_read(t, schedule.nodes(kernel)) for t in schedule.inputs_of(kernel)}
    revisits = (t for t in revisited(schedule, kernel) if not (t in read and is_shared(kernel, t)))
    ours = [t for t in (*revisits, *schedule.moving_states_of(kernel)) if t.name in kernel.residency.tensors]
    if not ours:
        return sp.Integer(0)
    a_cta = sp.Add(*(t.size * t.width for t in ours)) / kernel.ctas
    if a_step:
        a_cta = sp.Add(*(_step_elements(kernel, t) * t.width for t in ours))
    caches = kernel.residency.caches
    if caches == 1:
        return least(C, kernel.ctas) * a_cta
    return least(most(down(C / caches), sp.Integer(1)), up(kernel.ctas / caches)) * a_cta


def revisited(schedule: Schedule, kernel: Kernel) -> tuple[Tensor, ...]:
    """Tensors whose tiles a CTA brings in more than once by itself."""
    found = []
    for tensor in (as_read(t, schedule.nodes(kernel)) for t in schedule.tensors_of(kernel)):
        carriers = [loop for loop in kernel.sequential if loop.carried_by(tensor)]
        if not carriers or (tensor.name in kernel.einsums and not is_accumulator(schedule, kernel, tensor)):
            continue
        outside = kernel.sequential[: kernel.sequential.index(carriers[-1])]
        if any(not loop.carried_by(tensor) for loop in outside):
            found.append(tensor)
    return tuple(found)
