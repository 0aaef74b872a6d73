"""Values that other tools agree on: N = 8192, d = 128, 16-bit, one head, forward.

Each was printed by the tool and version named; formulas are theirs, counts here are derived.
"""

from __future__ import annotations

import pytest

from derive.flops import Pipe
from tests.published.questions import MiB, ask, matmul_flop, total


def test_unfused_and_fused() -> None:
    """Calculon, SOLAR, LLM-Viewer's naive path and AccelForge 1.0.467: 520 MiB unfused; 8 MiB fused and resident."""
    naive, flash2 = ask("mha N=8192 d=128", "naive"), ask("mha N=8192 d=128")
    assert (total(naive, naive.dram), total(flash2, flash2.dram)) == (520 * MiB, 8 * MiB)


@pytest.mark.parametrize(
    ("rows", "mib"), [(128, 260), (256, 132), (512, 68), (1024, 36), (2048, 20), (4096, 12), (8192, 8), (432, 80)]
)
def test_fused_traffic_by_buffer(rows: int, mib: int) -> None:
    """AccelForge 1.0.467, fused: (64.5 KiB, 260) ... (4096.5 KiB, 8), and 80 at 228 KiB with imperfect tiles of 432 rows."""
    found = ask(f"mha N=8192 d=128 Br={rows} Bc=1", on=None)
    assert total(found, found.sm) == mib * MiB


def test_a_prime_length_is_no_obstacle() -> None:
    """AccelForge's divisors-only default gives 6278 MiB at N = 8191, where 80 MiB is reachable."""
    found = ask("mha N=8191 d=128 Br=432 Bc=1", on=None)
    assert total(found, found.sm) == 2 * 8191 * 128 * 2 * (1 + 19)


def test_op_by_op() -> None:
    """DaCe, eager op by op, bf16: 20 N^2 + 12 N d + 8 N bytes = 1292 MiB."""
    found = ask("mha N=8192 d=128", "op-by-op")
    n, d = 8192, 128
    assert total(found, found.sm) == 20 * n * n + 12 * n * d + 8 * n


def test_operations_by_kind() -> None:
    """loopy: 4 N^2 d matmul, 2 N^2 add, N^2 max, N^2 exp, N d div (deferred); the scale of Q is N d more here."""
    found = ask("mha N=8192 d=128")
    n, d = 8192, 128
    assert found.exact(found.useful[Pipe.MMA]) == 4 * n * n * d
    assert found.exact(found.useful[Pipe.SFU]) == n * n
    assert found.exact(found.useful[Pipe.VECTOR]) == 2 * n * n + n * n + n * d + n * d


def test_flop_counter_mode() -> None:
    """Torch 2.13 FlopCounterMode: GQA 32/8 1,099,511,627,776; d_k 192, d_v 128: 42,949,672,960."""
    assert matmul_flop("gqa N=8192 d=128 h=32 hk=8") == 1_099_511_627_776
    assert matmul_flop("mha N=8192 d=192 dv=128") == 42_949_672_960


@pytest.mark.parametrize("n", [1, 1000, 8191])
@pytest.mark.parametrize("schedule", ["naive", "flash1", "flash2"])
def test_awkward_lengths_have_answers(n: int, schedule: str) -> None:
    """One, a multiple of nothing, a prime: counts lie between the floor and the ceiling of what is possible."""
    found = ask(f"mha N={n} d=128 mask=causal", schedule)
    floor = total(found, found.compulsory)
    assert 0 < floor <= total(found, found.dram) <= total(found, found.sm)
