"""A recurrence by token cut into chunks: the values of both, and the counts of the chunked form that is written by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from sympy import divisors

from derive.attention import variant
from derive.denote import denote, equal
from derive.errors import PreconditionError
from derive.evaluate import evaluate, random_inputs
from derive.exact import value
from derive.execute import execute
from derive.flops import executed, flops
from derive.footprint import footprint, memory_peak
from derive.graph import Graph
from derive.notation import cascade
from derive.operators import Array
from derive.rewrite import apply_once
from derive.schedule import Schedule
from derive.symbols import B, C_k, C_t, N_q, b, d, d_v, h
from derive.traffic import compulsory, traffic
from outputs.request import read_request
from rules.algebra.chunk_recurrence import RULE
from rules.derivations import plan
from tests.outputs.command import derive
from tests.rules.meaning import counted, walked
from tests.strategies import shapes

BY_HAND = {"chunked": "chunkwise", "chunked-materialised": "chunkwise-materialised"}


def by_rule() -> Graph:
    """The rule by token, cut into chunks."""
    found = apply_once(RULE, variant("linear-recurrent").graph()).after
    assert isinstance(found, Graph)
    return found


def by_token(i: dict[str, Array]) -> Array:
    """Sum over the tokens up to each one of (q k) v, token by token."""
    q, k, v = i["Q"], i["K"], i["V"]
    found = np.zeros((*q.shape[:-1], v.shape[-1]))
    for t in range(q.shape[2]):
        state = sum(k[:, :, s, :, None] * v[:, :, s, None, :] for s in range(t + 1))
        found[:, :, t] = (q[:, :, t, :, None] * state).sum(axis=2)
    return found


@settings(max_examples=40, deadline=None)
@given(numbers=shapes())
def test_the_chunked_form_answers_what_the_rule_by_token_does(numbers: dict[str, int]) -> None:
    """In every chunk that divides the tokens, one token and all of them included; tile by tile too."""
    graph = variant("linear-recurrent").graph()
    inputs = random_inputs(graph, numbers, np.random.default_rng(0))
    wanted = by_token(inputs)
    for chunk in divisors(numbers["N_q"]):
        at = numbers | {"C_t": chunk}
        np.testing.assert_allclose(evaluate(by_rule(), inputs, {}, at)["O"], wanted, rtol=1e-9, atol=1e-11)
        made = plan("chunked").derive(graph).schedule
        np.testing.assert_allclose(execute(made, inputs, {}, at)["O"], wanted, rtol=1e-9, atol=1e-11)
        assert counted(made, at) == walked(made, at)


def test_it_is_proved_for_generic_entries() -> None:
    """Two chunks of two tokens, every element written out: all four answers are equal."""
    extents = {"b": 1, "h": 1, "d": 2, "e": 1}
    before = denote(variant("linear-recurrent").graph(), "O", extents | {"q": 4})
    after = denote(by_rule(), "O", extents | {"n": 2, "q": 2, "k": 2})
    assert [*before] == [(0, 0, t, 0) for t in range(4)]
    assert all(equal(element, after[place]) for place, element in before.items())


@pytest.mark.parametrize("name", BY_HAND)
def test_it_counts_what_the_form_written_by_hand_does(name: str) -> None:
    """Work, traffic, footprint and memory of linear-chunkwise, C_t in the place of C_k."""

    def amounts(schedule: Schedule) -> list[object]:
        found = [c.amount for pipes in (flops(schedule.graph), executed(schedule)) for c in pipes.values()]
        room = footprint(schedule)
        assert room is not None
        moves = (traffic(schedule).by_tensor, compulsory(schedule.graph).by_tensor)
        moved = (by_tensor[tensor] for by_tensor in moves for tensor in "QKVO")
        found += [amount for move in moved for amount in (move.read, move.write)]
        found += [room.amount, memory_peak(schedule).amount]
        return [amount.xreplace({C_t: C_k}).expand() for amount in found]

    derived = plan(name).derive(variant("linear-recurrent").graph()).schedule
    written = plan(BY_HAND[name]).derive(variant("linear-chunkwise").graph()).schedule
    assert amounts(derived) == amounts(written)


def test_states_are_as_many_as_chunks() -> None:
    """N/C of them leave the SM and come back, and a chunk has C (C + 1)/2 pairs."""
    made = plan("chunked-materialised").derive(variant("linear-recurrent").graph()).schedule
    at = {"N_q": 12, "C_t": 3, "d": 2, "d_v": 5, "h": 1, "B": 1}
    assert counted(made, at)["H"] == walked(made, at)["H"] == (4 * 2 * 5, 4 * 2 * 5)
    (mask,) = made.graph.masks
    assert value(mask.pairs, at) == 6
    assert made.graph.producers["S"].points.subs({B: 1, h: 1}).expand() == (N_q * d * (C_t + 1) / 2).expand()


def test_keys_and_values_may_be_multiplied_in_either_order() -> None:
    """The one that carries what the answer sums over is the key."""
    text = """
        H[q,d,e] = previous[q] J[q,d,e]
        X[q,d,e] = V[q,e] * K[q,d]
        J[q,d,e] = X[q,d,e] + H[q,d,e]
        O[q,e]   = sum[d] J[q,d,e] * Q[q,d]
    """
    graph = cascade(text, {"q": N_q, "d": d, "e": d_v}, outputs=("O",), width=b)
    after = apply_once(RULE, graph).after
    assert isinstance(after, Graph)
    assert [t.name for t in after.producers["S"].inputs] == ["Q", "K_k"]
    at = {"N_q": 6, "C_t": 3, "d": 2, "d_v": 3}
    inputs = random_inputs(graph, at, np.random.default_rng(0))
    np.testing.assert_allclose(evaluate(after, inputs, {}, at)["O"], evaluate(graph, inputs, {}, at)["O"], rtol=1e-12)


STATES = {
    "H": "H[q,d,e] = previous[q] J[q,d,e]",
    "X": "X[q,d,e] = K[q,d] * V[q,e]",
    "J": "J[q,d,e] = H[q,d,e] + X[q,d,e]",
    "O": "O[q,e] = sum[d] Q[q,d] * J[q,d,e]",
}


def states(**changed: str) -> list[object]:
    """Where the rule sees states that add up, in linear attention with other lines."""
    text = "\n".join((STATES | changed).values())
    return list(RULE.shape(cascade(text, {"q": N_q, "d": d, "e": d_v, "c": h}, outputs=("O",), width=b)))


def test_only_sums_of_products_of_one_token_are_seen() -> None:
    """Each line has its part in it: another in its place is no state that adds up, or no answer that is asked of it."""
    assert states()
    assert not states(X="X[q,d,e] = sum[c] K[q,c,d] * V[q,c,e]")  # a product of each c
    assert not states(X="X[q,d,e] = K[q,d] + V[q,e]")
    assert not states(X="X[q,d,e] = K[d] * V[q,e]")  # one key for all tokens
    assert not states(J="J[q,d,e] = H[q,d,e] - X[q,d,e]")
    assert not states(J="J[q,d,e] = A[q,d,e] + X[q,d,e]")  # the state before is not in it
    assert not states(O="O[q,e] = max[d] Q[q,d] * J[q,d,e]")
    assert not states(O="O[q,e] = sum[d] Q[q,d] + J[q,d,e]")
    assert not states(O="O[q,d,e] = Q[q,d] * J[q,d,e]")


@pytest.mark.parametrize("name", ["delta", "linear-chunkwise", "mha"])
def test_other_cascades_are_not_cut(name: str) -> None:
    """A state that decays, chunks that are there already, no recurrence: the schedule says that it does not fit."""
    assert not list(RULE.shape(variant(name).graph()))
    with pytest.raises(PreconditionError, match="chunk-recurrence does not apply"):
        plan("chunked").derive(variant(name).graph())


def test_the_chunk_is_asked_for_by_its_name() -> None:
    """Chunks that do not divide the tokens are refused with those that do."""
    assert read_request(variant("linear-recurrent"), ("N=100", "chunk=20")).numbers["C_t"] == 20
    answer = derive("explain", "linear-recurrent", "N=100", "chunk=30", "--schedule", "chunked")
    assert answer.code == 2
    assert "chunk=30 does not divide Nq=100" in answer.err
    assert "the nearest that divide are 25 and 50" in answer.err
