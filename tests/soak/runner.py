"""Batches run in several processes until there are enough configurations or no time is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import count
from time import monotonic

from tests.soak import programs, residency, traffic
from tests.soak.batch import Found

KINDS: Mapping[str, tuple[Callable[[int, int, int], Found], int]] = {
    "traffic": (traffic.batch, 28),
    "programs": (programs.batch, 8),
    "residency": (residency.batch, 12),
}
"""What is compared, and how many configurations a batch of it tries."""
TURNS = ("traffic",) * 16 + ("programs", "residency")
"""Which kind comes when."""


@dataclass
class Total:
    """What all batches found.

    Attributes:
        seed: the seed they were drawn from.
        kinds: what was found, by kind.
        seconds: how long it took.
        mismatching: the batch that each counterexample came from.
    """

    seed: int
    kinds: dict[str, Found] = field(default_factory=dict)
    seconds: float = 0.0
    mismatching: list[tuple[int, Found]] = field(default_factory=list)

    @property
    def tried(self) -> int:
        """Configurations tried in all."""
        return sum(found.tried for found in self.kinds.values())

    @property
    def mismatches(self) -> int:
        """Configurations that disagree."""
        return sum(found.mismatches for found in self.kinds.values())

    def add(self, number: int, found: Found) -> None:
        """Count what batch *number* found."""
        self.kinds.setdefault(found.kind, Found(found.kind)).add(found)
        if found.mismatches:
            self.mismatching.append((number, found))

    @property
    def lines(self) -> Iterator[str]:
        """The report."""
        visits = sum(found.visits for found in self.kinds.values())
        rate = f"{visits / self.seconds:,.0f} tile visits/s" if self.seconds else ""
        yield (
            f"seed {self.seed}: {self.tried:,} configurations, {self.mismatches} mismatches, "
            f"{self.seconds:.0f} s, {visits:,} tile visits, {rate}"
        )
        for found in self.kinds.values():
            refused = f", {found.refused:,} refused a closed form" if found.refused else ""
            yield (
                f"  {found.kind:<30} {found.tried:>10,} configurations, {found.mismatches} mismatches, "
                f"{found.programs:,} programs{refused}"
            )
        for number, found in sorted(self.mismatching, key=lambda pair: _size(pair[1]))[:3]:
            yield f"MISMATCH in batch {number}: {found.smallest}"
            yield f"  the batch    python -m tests.soak --seed {self.seed} --batch {number}"


def _size(found: Found) -> int:
    return sum(found.smallest.numbers.values()) if found.smallest is not None else 0


def batch(seed: int, number: int) -> Found:
    """Batch *number* of *seed*."""
    kind = TURNS[number % len(TURNS)]
    run, configurations = KINDS[kind]
    rounds = number // len(TURNS) * TURNS.count(kind) + TURNS[: number % len(TURNS)].count(kind)
    return run(seed, rounds, configurations)


def soak(
    seed: int,
    *,
    configurations: int | None = None,
    seconds: float | None = None,
    processes: int = 2,
    stop_at_first: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Total:
    """Run batches 0, 1, 2 ... until *configurations* are tried, *seconds* are over, or, if so asked, one disagrees."""
    total, started = Total(seed), monotonic()

    def goes_on() -> bool:
        enough = configurations is not None and total.tried >= configurations
        late = seconds is not None and monotonic() - started >= seconds
        return not (enough or late or (stop_at_first and total.mismatches))

    def told() -> None:
        total.seconds = monotonic() - started
        progress(f"{total.tried:,} configurations, {total.mismatches} mismatches")

    if processes == 1:
        for number in count():
            if not goes_on():
                break
            total.add(number, batch(seed, number))
            told()
        return total
    with ProcessPoolExecutor(processes) as pool:
        numbers = count()
        running = {pool.submit(batch, seed, n): n for n in (next(numbers) for _ in range(2 * processes))}
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for part in done:
                total.add(running.pop(part), part.result())
                told()
                if goes_on():
                    following = next(numbers)
                    running[pool.submit(batch, seed, following)] = following
    return total
