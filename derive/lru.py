"""The cache between HBM and the SMs, replayed line by line: what misses an LRU cache crosses HBM.

A line is a whole tile. CTA p is served by cache p mod ``caches``; a cache runs its share of the CTAs in waves, and the
CTAs of a wave start together and advance in step: all of them make the accesses of their first iteration, in CTA order,
then those of their second. With a sawtooth, CTAs of odd waves run their iterations last to first.

What is kept:

* tensors that the kernel's residency names; of these, a tensor of which the cache serves every tile at most once streams
  past, like all others, and displaces nothing;
* in a kernel without loops, everything it touches, in up to 64 pieces a tensor that it sweeps together. All of it
  occupies the cache, yet only what the residency names can hit; what it writes crosses HBM once.

A line that does not fit the whole cache is never kept. A written line is dirty: it crosses HBM when it is evicted, or once
at the end. Zeros that CTAs add to are written past the cache before the first one starts. Partial sums that live in memory
from the start are put into the cache, for nothing, when the wave that needs them starts: the first touch of a tile reads HBM
only if it has been evicted since. The output that finishes one in place overwrites its line. Tiles of two kernels are
different lines: what a kernel with loops writes is not found by another, what one without loops writes is.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, zip_longest
from math import prod

from derive.einsum import Tensor
from derive.evaluate import sizes
from derive.replay import Access, Nest, Step, Values
from derive.replay_gather import brought_in
from derive.replay_mask import Coordinates
from derive.schedule import Kernel, Schedule

PIECES = 64
"""Into how many pieces at most a kernel without loops cuts a tensor."""


Line = tuple[int, str, Coordinates]
"""Which kernel's tiling, which tensor, which tile."""
UNTILED = -1
"""Stands for the tiling that all kernels without loops share."""


class Cache:
    """A least-recently-used cache of whole lines, and the bytes that it moves from and to HBM, by tensor.

    Args:
        capacity: bytes.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.read: defaultdict[str, Fraction] = defaultdict(Fraction)
        self.written: defaultdict[str, Fraction] = defaultdict(Fraction)
        self._lines: OrderedDict[Line, tuple[Fraction, bool]] = OrderedDict()
        self._used = Fraction(0)

    def load(self, line: Line, size: Fraction, *, lookup: bool = True) -> None:
        """An SM reads a line of *size* bytes; without *lookup*, HBM is read whatever is kept."""
        if not (lookup and line in self._lines):
            self.read[line[1]] += size
        self._keep(line, size, dirty=False)

    def place(self, line: Line, size: Fraction) -> None:
        """Make a line the most recently used one; nothing crosses HBM for it."""
        self._keep(line, size, dirty=False)

    def store(self, line: Line, size: Fraction) -> None:
        """An SM writes a line of *size* bytes."""
        self._keep(line, size, dirty=True)

    def drop(self, line: Line) -> None:
        """Forget a line that something else has overwritten."""
        if line in self._lines:
            self._used -= self._lines.pop(line)[0]

    def flush(self) -> None:
        """Write every dirty line to HBM."""
        while self._lines:
            self._evict()

    def _keep(self, line: Line, size: Fraction, *, dirty: bool) -> None:
        """Make *line* the most recently used one."""
        if line in self._lines:
            dirty = dirty or self._lines[line][1]
            self.drop(line)
        if size > self.capacity:
            self.written[line[1]] += size if dirty else Fraction(0)
            return
        while self._used + size > self.capacity:
            self._evict()
        self._lines[line] = (size, dirty)
        self._used += size

    def _evict(self) -> None:
        line, (size, dirty) = self._lines.popitem(last=False)
        self._used -= size
        self.written[line[1]] += size if dirty else Fraction(0)


def replay_cache(
    schedule: Schedule,
    values: Values,
    *,
    running: int,
    capacity: int,
    caches: int = 1,
    widths: Mapping[str, Fraction],
) -> dict[str, tuple[Fraction, Fraction]]:
    """Bytes read from and written to HBM, by tensor, over the kernels in order.

    Args:
        schedule: what runs; ``residency`` of its kernels says what may hit, and its sawtooth is obeyed.
        values: the value of each symbol, by name.
        running: CTAs that run at once on the whole machine.
        capacity: bytes of one cache.
        caches: how many caches there are; a kernel without loops runs through the first.
        widths: bytes an element, by tensor.

    Raises:
        UnboundError: a symbol of an extent or a tile has no value.
        DomainError: an extent or a tile is no whole number.
    """
    held = [Cache(capacity) for _ in range(caches)]
    for number, kernel in enumerate(schedule.kernels):
        if not kernel.loops:
            _sweep(schedule, kernel, values, widths, held[0])
            continue
        nest = Nest(schedule, kernel, values)
        for name, elements in nest.zeroed().items():
            held[0].written[name] += elements * widths[name]
        ctas = list(nest.ctas())
        for which, cache in enumerate(held):
            waves = _waves(nest, ctas[which::caches], max(1, running // caches))
            kept = _touched_again(a for wave in waves for steps in wave for step in steps for a in step)
            kept |= nest.in_memory
            named = kept & set(kernel.residency.tensors) if kernel.residency else set()
            served = _Served(cache, nest, number, widths, named)
            for wave in waves:
                served.start(wave)
                for together in zip_longest(*wave, fillvalue=()):
                    for access in chain.from_iterable(together):
                        served.touch(access)
    for cache in held:
        cache.flush()
    return {
        name: (Fraction(sum(c.read[name] for c in held)), Fraction(sum(c.written[name] for c in held)))
        for name, tensor in schedule.graph.tensors.items()
        if tensor.indices
    }


def _waves(nest: Nest, ctas: list[Coordinates], at_once: int) -> list[list[list[Step]]]:
    """For each wave, the steps of each of its CTAs."""
    sawtooth = nest.kernel.residency is not None and nest.kernel.residency.sawtooth
    return [
        [nest.steps(cta, backwards=sawtooth and wave % 2 == 1) for cta in ctas[start : start + at_once]]
        for wave, start in enumerate(range(0, len(ctas), at_once))
    ]


def _touched_again(accesses: Iterable[Access]) -> set[str]:
    """Tensors of which some tile is touched more than once."""
    touched = Counter((a.tensor, a.tile) for a in accesses)
    return {tensor for (tensor, _), times in touched.items() if times > 1}


@dataclass(slots=True)
class _Served:
    """The part of one kernel's CTAs that one cache serves.

    Attributes:
        cache: the cache.
        nest: the kernel's loop nest.
        number: the kernel's number, which tells its tiles from those of others.
        widths: bytes an element, by tensor.
        kept: tensors that the cache keeps.
        placed: tiles of partial sums that have been put into the cache as they were in memory at first.
    """

    cache: Cache
    nest: Nest
    number: int
    widths: Mapping[str, Fraction]
    kept: set[str]
    placed: set[Line] = field(default_factory=set)

    def start(self, wave: list[list[Step]]) -> None:
        """Put the partial sums that a wave finds in memory there."""
        for access in (a for steps in wave for step in steps for a in step):
            if access.is_read and access.tensor in self.kept & self.nest.in_memory:
                line = (self.number, access.tensor, access.tile)
                if line in self.placed:
                    continue
                self.placed.add(line)
                self.cache.place(line, access.elements * self.widths[access.tensor])

    def touch(self, access: Access) -> None:
        """Serve one access."""
        tensor, tile, elements, is_read = access
        line, size = (self.number, tensor, tile), elements * self.widths[tensor]
        if is_read and tensor in self.kept:
            self.cache.load(line, size)
        elif is_read:
            self.cache.read[tensor] += size
        elif tensor in self.kept:
            self.cache.store(line, size)
        else:
            self.cache.written[tensor] += size
        if not is_read and tensor in self.nest.finished:
            self.cache.drop((self.number, self.nest.finished[tensor], tile))


def _sweep(
    schedule: Schedule,
    kernel: Kernel,
    values: Values,
    widths: Mapping[str, Fraction],
    cache: Cache,
) -> None:
    """A kernel without loops: piece by piece through all its tensors together, reads before writes."""
    extents = sizes(schedule.graph, values)
    may_hit = kernel.residency.tensors if kernel.residency else ()
    read = {t.name: _pieces(t, extents) for t in brought_in(schedule.nodes(kernel), schedule.inputs_of(kernel))}
    written = {t.name: _pieces(t, extents) for t in schedule.outputs_of(kernel)}
    for piece in range(PIECES):
        for name in (n for n, pieces in read.items() if piece < len(pieces)):
            cache.load((UNTILED, name, (piece,)), read[name][piece] * widths[name], lookup=name in may_hit)
        for name in (n for n, pieces in written.items() if piece < len(pieces)):
            size = written[name][piece] * widths[name]
            cache.written[name] += size
            cache.place((UNTILED, name, (piece,)), size)


def _pieces(tensor: Tensor, extents: Mapping[str, int]) -> list[int]:
    """Elements of each piece: runs of whole rows, as even as they go."""
    *outer, row = (extents[i.name] for i in tensor.indices)
    rows = prod(outer) if outer else row
    each = row if outer else 1
    count = min(PIECES, rows)
    return [(rows * (n + 1) // count - rows * n // count) * each for n in range(count)]
