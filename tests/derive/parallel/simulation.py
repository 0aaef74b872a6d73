"""Devices that hold tokens and pass them on, played through element by element: a witness that knows no formula."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import product

Element = tuple[str, int, int]
"""A row of a tensor: its name, its head, its position."""


@dataclass
class Played:
    """What was seen of each device.

    Attributes:
        received: rows that arrived over a link, by device and tensor.
        sent: rows that left over a link, likewise.
        pairs: pairs worked on, by step and device.
        held: the most rows that a device held at once.
    """

    received: Counter[tuple[int, str]] = field(default_factory=Counter)
    sent: Counter[tuple[int, str]] = field(default_factory=Counter)
    pairs: Counter[tuple[int, int]] = field(default_factory=Counter)
    held: Counter[int] = field(default_factory=Counter)


def deal(tokens: int, devices: int, zigzag: bool) -> list[list[int]]:
    """The tokens of each device."""
    if not zigzag:
        return [list(range(r * tokens // devices, (r + 1) * tokens // devices)) for r in range(devices)]
    size = tokens // (2 * devices)
    chunks = [list(range(c * size, (c + 1) * size)) for c in range(2 * devices)]
    return [chunks[r] + chunks[2 * devices - 1 - r] for r in range(devices)]


def play_ring(
    queries: list[list[int]], keys: list[list[int]], kv_heads: int, q_heads: int, sees: Callable[[int, int], bool]
) -> Played:
    """Shards of K and V go round: at each step every device works on what it has and hands it to the next one."""
    played = Played()
    devices = len(queries)
    shard = {r: list(keys[r]) for r in range(devices)}
    for step in range(devices):
        for r in range(devices):
            played.pairs[step, r] += sum(sees(q, k) for q in queries[r] for k in shard[r])
            rows = 2 * q_heads * len(queries[r]) + 2 * kv_heads * len(shard[r])
            arriving = 2 * kv_heads * len(shard[(r - 1) % devices]) if step < devices - 1 else 0
            played.held[r] = max(played.held[r], rows + arriving)
        if step < devices - 1:
            for r in range(devices):
                for name in ("K", "V"):
                    played.sent[r, name] += kv_heads * len(shard[r])
                    played.received[(r + 1) % devices, name] += kv_heads * len(shard[r])
            shard = {(r + 1) % devices: rows for r, rows in shard.items()}
    return played


def play_fetching(
    needs: list[set[Element]], makes: list[set[Element]], home: Callable[[Element], int | None]
) -> Played:
    """Each device fetches the rows it needs and lacks, and sends home the rows it makes for others.

    Args:
        needs: rows that each device reads.
        makes: rows that each device writes.
        home: the device where a row lies before or after; ``None`` where it lies wherever it is used.
    """
    played = Played()
    for r, (read, made) in enumerate(zip(needs, makes, strict=True)):
        for row in read:
            if home(row) not in (None, r):
                played.received[r, row[0]] += 1
        for row in made:
            if home(row) not in (None, r):
                played.sent[r, row[0]] += 1
        played.held[r] = len(read) + len(made)
    return played


def rows_of_heads(
    devices: int, tokens: int, q_heads: int, kv_heads: int
) -> tuple[list[set[Element]], list[set[Element]]]:
    """What each device reads and makes when each has an equal run of query heads, and the KV heads that these use."""
    each, group = q_heads // devices, q_heads // kv_heads
    needs, makes = [], []
    for r in range(devices):
        mine = range(r * each, (r + 1) * each)
        used: Iterable[int] = {head // group for head in mine}
        needs.append(
            {("Q", head, t) for head, t in product(mine, range(tokens))}
            | {(name, head, t) for name, head, t in product(("K", "V"), used, range(tokens))}
        )
        makes.append({("O", head, t) for head, t in product(mine, range(tokens))})
    return needs, makes
