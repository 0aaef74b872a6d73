"""Which tiles share fast memory: the papers' count of tiles of Q, K, V and O."""

from __future__ import annotations

import sympy as sp

from derive.attention import variant
from derive.buffers import buffers, register_bytes, working_set
from derive.notation import cascade
from derive.schedule import Schedule, lift
from derive.symbols import B_c, B_r, N_k, N_q, b, b_acc, d
from rules.derivations import plan
from rules.schedule.examples import fused


def flash() -> Schedule:
    """flash2 of one head."""
    return plan("flash2").derive(variant("mha").graph("full", ())).schedule


def test_results_take_the_place_of_what_is_not_read_again() -> None:
    """Scaled Q in Q, P in S, O in its sum: tiles of Q, K, V, O, one of scores, two columns."""
    schedule = flash()
    (kernel,) = schedule.kernels
    assert {tuple(t.name for t in x) for x in buffers(schedule, kernel) if len(x) > 1} == {
        ("Q", "Qs"),
        ("S", "X", "E"),
        ("U_O", "O"),
    }
    assert sp.expand(working_set(schedule, kernel).amount - (2 * B_r * d + 2 * B_c * d + B_r * B_c + 2 * B_r)) == 0
    assert sp.expand(register_bytes(schedule, kernel).amount / b_acc - (B_r * d + B_r * B_c + 2 * B_r)) == 0


def test_an_operand_that_is_read_again_keeps_its_place() -> None:
    """E and l both need S - m: only what reads it last may overwrite it."""
    text = """
        X[q,k] = exp(S[q,k])
        Y[q,k] = X[q,k] * S[q,k]
        Z[q,k] = X[q,k] + Y[q,k]
    """
    schedule = fused(cascade(text, {"q": N_q, "k": N_k}, outputs=("Z",), width=b))
    found = {tuple(t.name for t in x) for x in buffers(schedule, schedule.kernels[0])}
    assert found == {("X", "Z"), ("S", "Y")}


def test_a_reduction_needs_a_place_of_its_own() -> None:
    """A row sum does not fit where its row stands."""
    schedule = lift(cascade("l[q] = sum[k] S[q,k]", {"q": N_q, "k": N_k}, outputs=("l",), width=b))
    assert len(buffers(schedule, schedule.kernels[0])) == 2
