"""Which kernels are fused around the pairs, and what stays apart."""

import pytest

from derive.attention import variant
from derive.rewrite import apply_once
from derive.schedule import Schedule, lift
from rules.derivations import plan
from rules.schedule.examples import streaming, three_pass
from rules.schedule.fuse_pairs import PAIRS, SOFTMAX


def kernels(name: str, schedule: str) -> list[str]:
    """Names of the kernels of a schedule."""
    return [k.name for k in plan(schedule).derive(variant(name).graph()).schedule.kernels]


def test_plain_attention_is_one_kernel() -> None:
    """Scaling before and division after go with it."""
    after = apply_once(PAIRS, lift(streaming())).after
    assert isinstance(after, Schedule)
    assert [k.einsums for k in after.kernels] == [tuple(e.output.name for e in streaming().einsums)]


@pytest.mark.parametrize(
    ("name", "schedule", "wanted"),
    [
        ("mla", "flash2", ["K", "V", "Ns..O"]),  # expanded once, not once a query tile
        ("mla", "absorbed", ["Ns", "Ns_W_K", "S_nope..P_C", "O"]),
        ("mla-latent", "naive", ["Ns..S", "m..P", "O"]),  # both sorts of channels into one accumulator
        ("alibi", "flash2", ["Qs..O"]),  # positions and slopes are made where they are used
        ("differential", "flash2", ["Qs1..O"]),
        ("dropout", "naive", ["Qs..S", "m..P", "D", "Y", "O"]),  # the mask and its product are passes of their own
        ("softcap", "naive", ["Qs..S", "R", "T", "Z", "m..P", "O"]),
        ("sink-logits", "naive", ["Qs..S", "m..P", "O"]),
        ("differential", "naive", ["Qs1..S1", "Qs2..S2", "m..P1", "m_P2..P2", "L", "A", "O"]),
    ],
)
def test_kernels_of_other_variants(name: str, schedule: str, wanted: list[str]) -> None:
    """Projections stay apart from the fused kernel; a framework's passes stay apart from its softmax."""
    assert sorted(kernels(name, schedule)) == sorted(wanted)


def test_each_softmax_is_a_match_of_its_own() -> None:
    """One in plain attention, none left once it is fused."""
    found = list(SOFTMAX.matches(lift(three_pass())))
    assert [tuple(k.name for k in match) for match in found] == [("m", "X", "E", "l", "P")]
