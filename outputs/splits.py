"""How many parts the keys are cut into: the count with the least modelled time, and what a published kernel picks, apart."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sympy as sp

from derive.errors import UnboundError
from derive.exact import Number, value
from derive.symbols import B_c, N_k, n_s
from outputs.layout import Section
from outputs.quantities import seconds, significant
from outputs.waves import Waves, efficiency

if TYPE_CHECKING:
    from derive.schedule import Kernel
    from outputs.account import Account
    from outputs.explanation import Explanation

DATA = Path(__file__).parent / "data" / "split_heuristic.toml"
MOST = 256
"""No more parts than this are tried."""


@dataclass(frozen=True)
class Splits:
    """The counts that divide the keys and leave each part a whole tile at least, with what they cost.

    Attributes:
        times: modelled seconds by count.
        shares: share of the places for CTAs that the part kernel fills, by count.
        cited: what the published rule picks, whether or not it divides the keys.
    """

    times: Mapping[int, Number]
    shares: Mapping[int, Number]
    cited: int

    @property
    def best(self) -> int:
        """The count with the least modelled time, the smallest of equals."""
        return min(self.times, key=lambda n: (self.times[n], n))


def splits(account: Account) -> Splits | None:
    """What each count costs; ``None`` where the schedule has no parts, no machine is named, or a number is missing."""
    kernel = _part_kernel(account)
    if kernel is None or account.machine is None:
        return None
    try:
        at = {name: number for name, number in account.values.items() if name != n_s.name}
        keys, tile = int(value(N_k, at)), int(value(B_c, at))
        waves = Waves(account)
        counts = [n for n in sp.divisors(keys) if n == 1 or n <= min(MOST, keys // tile)]
        times = {n: waves.seconds({**at, n_s.name: n}) for n in counts}
        shares = {n: efficiency(kernel.ctas, {**at, n_s.name: n}) for n in counts}
        return Splits(times, shares, _cited(account, kernel, {**at, n_s.name: 1}))
    except UnboundError:
        return None


def _part_kernel(account: Account) -> Kernel | None:
    """The kernel whose CTAs each run one part."""
    for kernel in account.derivation.schedule.kernels:
        if any(i.part_of for loop in kernel.grid for i in loop.indices):
            return kernel
    return None


def _cited(account: Account, kernel: Kernel, at: Mapping[str, Number]) -> int:
    """The published rule at the numbers of *account* with one part."""
    rows = kernel.loop_of("q")
    schedule = account.derivation.schedule
    if schedule.graph.given:
        return deterministic_count(ctas=int(value(kernel.ctas, at)), places=int(at["C"]))
    streamed = [t for t in schedule.staged_of(kernel) if any(loop.carried_by(t) for loop in kernel.sequential)]
    heads = sp.Mul(*(i.extent for i in streamed[0].indices if not i.part_of and kernel.loop_of(i.name) in kernel.grid))
    held = sp.Add(*(t.size * t.width for t in streamed)) / heads
    return published_count(
        ctas=int(value(kernel.ctas, at)),
        places=int(at["C"]),
        key_tiles=-(-int(at["N_k"]) // int(at["B_c"])),
        query_tiles=1 if rows is None else int(value(rows.trips, at)),
        head_bytes=value(held, at),
        masked=schedule.graph.mask is not None,
    )


@lru_cache(maxsize=1)
def _rule() -> dict[str, Any]:
    return tomllib.loads(DATA.read_text(encoding="utf-8"), parse_float=Decimal)


def published_count(
    *, ctas: int, places: int, key_tiles: int, query_tiles: int = 1, head_bytes: Number = 0, masked: bool = False
) -> int:
    """What FlashAttention-3 picks; cited, not derived.

    Args:
        ctas: CTAs without parts: batch times heads times query tiles.
        places: CTAs that run at once.
        key_tiles: tiles of keys.
        query_tiles: tiles of queries of one head.
        head_bytes: bytes of one head's K and V.
        masked: whether the mask is causal or a window.

    Source: Dao-AILab/flash-attention, hopper/heuristics.h, ``num_splits_heuristic``.
    """
    rule = _rule()
    if ctas >= Fraction(rule["enough_ctas"]) * places:
        large = head_bytes > rule["l2_bytes"] and query_tiles >= rule["query_tiles_an_sm"] * places and not masked
        return min(-(-int(head_bytes) // rule["l2_bytes"]), rule["most"]) if large else 1
    if key_tiles <= rule["few_key_tiles"]:
        return 1
    counts = range(1, min(rule["most"], places, key_tiles) + 1)
    shares = {n: Fraction(ctas * n, places) / -(-ctas * n // places) for n in counts}
    return next(n for n in counts if shares[n] >= Fraction(rule["near_best"]) * max(shares.values()))


def deterministic_count(*, ctas: int, places: int) -> int:
    """How many copies of dQ FlashAttention-2's deterministic backward pass sums in; cited, not derived.

    Args:
        ctas: CTAs without parts: batch times heads.
        places: CTAs that run at once, one an SM.

    Source: Dao-AILab/flash-attention, flash_bwd_launch_template.h, ``run_flash_bwd_seqk_parallel``.
    """
    return -(-places // ctas)


def how_many(answer: Explanation) -> list[Section]:
    """For each schedule with parts: the counts that cost least, and the published rule's."""
    sections = []
    for account in answer.accounts:
        found = splits(account)
        if found is None:
            continue
        ranked = sorted(found.times, key=lambda n: (found.times[n], n))
        used = int(account.values[n_s.name])
        lines = [
            f"splits={n}: {seconds(float(found.times[n]))}, {significant(found.shares[n] * 100)} % of the places for CTAs"
            f" taken{', used here' if n == used else ''}"
            for n in dict.fromkeys((*ranked[:3], 1, used))
        ]
        lines.append(
            f"modelled: of the {len(ranked)} counts that divide N_k, leave a part a tile and are at most {MOST}, {found.best}"
            " takes least: waves x the work of a CTA at 1/C of each rate, partial results included"
        )
        rule = _rule()["backward"] if account.derivation.start.given else _rule()
        lines.append(f"cited, not derived: the rule of {rule['kernel']} picks {found.cited} [{rule['source']}]")
        sections.append(Section(f"how many parts ({account.name})", lines))
    return sections
