"""Measured throughput never passes what the modelled time allows: times are lower bounds, of every kernel that was timed.

Sources, read off the plots of https://github.com/Dao-AILab/flash-attention (assets/flash3_fp16_fwd.png; README, flash2 on A100
and H100); the setting is that of Shah et al. 2024, arXiv:2407.08608, section 4.1: 16,384 tokens in all, a hidden width of 2048.
Their FLOP are 4 N^2 d a head forward, 2.5 times that backward, and half under a causal mask.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from outputs.account import Account
from tests.published.questions import ask

TOKENS, HIDDEN = 16_384, 2048
LENGTHS = (512, 1024, 2048, 4096, 8192, 16_384)


@dataclass(frozen=True)
class Timed:
    """A line of a plot: TFLOP/s at each of ``LENGTHS``, as far as it goes.

    Attributes:
        kernel: who ran.
        schedules: what it is here, forward and, where both were timed together, backward.
        machine: where.
        d: head dimension.
        mask: ``full`` or ``causal``.
        tiles: of the forward kernel where it publishes them.
        tflops: measured.
    """

    kernel: str
    schedules: tuple[str, ...]
    machine: str
    d: int
    mask: str
    tiles: str
    tflops: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.kernel}-{self.machine}-{self.d}-{self.mask}"


FORWARD = (
    Timed("standard", ("naive",), "h100-sxm", 64, "full", "", (52, 63, 67, 72, 73)),
    Timed("standard", ("naive",), "h100-sxm", 64, "causal", "", (16, 18, 18, 18, 18)),
    Timed("standard", ("naive",), "h100-sxm", 128, "full", "", (74, 100, 119, 133, 139)),
    Timed("standard", ("naive",), "h100-sxm", 128, "causal", "", (26, 31, 34, 35, 35)),
    Timed("FA3", ("flash2",), "h100-sxm", 64, "full", "Br=192 Bc=192", (333, 392, 460, 476, 496, 497)),
    Timed("FA3", ("flash2",), "h100-sxm", 64, "causal", "Br=192 Bc=128", (197, 265, 371, 420, 460, 473)),
    Timed("FA3", ("flash2",), "h100-sxm", 128, "full", "Br=128 Bc=176", (467, 565, 625, 638, 646, 648)),
    Timed("FA3", ("flash2",), "h100-sxm", 128, "causal", "Br=128 Bc=128", (292, 423, 521, 579, 602, 616)),
    Timed("FA3", ("flash2",), "h100-sxm", 256, "causal", "Br=128 Bc=80", (286, 427, 537, 612, 628, 642)),
    Timed("cuDNN", ("flash2",), "h100-sxm", 128, "full", "", (497, 574, 617, 609, 600, 595)),
)
BOTH = (
    Timed("FA2", ("flash2", "flash2-backward-atomic"), "a100-sxm-80gb", 64, "full", "", (132, 153, 162, 171, 175, 176)),
    Timed(
        "FA2", ("flash2", "flash2-backward-atomic"), "a100-sxm-80gb", 128, "causal", "", (99, 133, 155, 173, 182, 189)
    ),
    Timed("FA2", ("flash2", "flash2-backward-atomic"), "h100-sxm", 64, "causal", "", (141, 192, 232, 257, 273, 284)),
    Timed("FA2", ("flash2", "flash2-backward-atomic"), "h100-sxm", 128, "full", "", (248, 294, 320, 326, 335, 338)),
)


def accounts(line: Timed) -> list[Account]:
    """Its passes at N = 512."""
    words = f"N=512 d={line.d} h={HIDDEN // line.d} B={TOKENS // 512} dtype=fp16 mask={line.mask}"
    variants = ("mha", "mha-backward")
    return [
        ask(f"{variant} {words} {line.tiles if not n else ''}", schedule, on=line.machine)
        for n, (variant, schedule) in enumerate(zip(variants, line.schedules, strict=False))
    ]


def allowed(line: Timed) -> list[float]:
    """TFLOP/s that the modelled times allow at each length."""
    made = accounts(line)
    counted = 4 * (1 if len(made) == 1 else 3.5) / (1 if line.mask == "full" else 2)
    found = []
    for n, _ in zip(LENGTHS, line.tflops, strict=False):
        flop = counted * n * n * HIDDEN * (TOKENS // n)
        times = [replace(a, values={**a.values, "N_q": n, "N_k": n, "B": TOKENS // n}).seconds for a in made]
        found.append(flop / sum(t for t in times if t is not None) / 1e12)
    return found


@pytest.mark.parametrize("line", [*FORWARD, *BOTH], ids=str)
def test_nothing_runs_faster_than_its_time_allows(line: Timed) -> None:
    """At every point of every line; and the bound is no idle one: at the longest length some 3 of 10 of it are reached."""
    bound = allowed(line)
    reached = [measured / most for measured, most in zip(line.tflops, bound, strict=True)]
    assert max(reached) <= 1, dict(zip(LENGTHS, reached, strict=False))
    assert reached[-1] > (0.3 if line.kernel != "standard" else 0.2), reached
