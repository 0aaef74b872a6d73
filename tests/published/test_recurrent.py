"""Linear and recurrent attention: the papers' counts, and values against each paper's recurrence, written out plainly."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.denote import denote, equal
from derive.evaluate import evaluate, random_inputs
from derive.exact import value
from derive.execute import execute
from derive.flops import Convention, Pipe, flops, operations
from derive.graph import Graph
from derive.operators import Array
from derive.schedule import Schedule
from derive.symbols import C_k, N_q, d, d_v
from derive.traffic import traffic
from rules.derivations import plan
from tests.outputs.command import derive

ONE_HEAD = {"N_q": 8192, "d": 128, "d_v": 128, "h": 1, "B": 1}
CHUNKED = ("linear-chunkwise", "retention", "gla", "mlstm", "ssd", "delta-chunkwise")
BY_TOKEN = ("linear-recurrent", "delta")
Step = Callable[[Array, dict[str, Array], int], tuple[Array, Array]]
"""The state after a token and its output, from the state before, the token's operands and its number."""


@cache
def graph(name: str) -> Graph:
    """One head, d = d_v kept apart."""
    return variant(name).graph(given=variant(name).symbols - {sp.Symbol("B"), sp.Symbol("h")})


@cache
def schedule(name: str, how: str) -> Schedule:
    """The schedule of a variant."""
    return plan(how).derive(graph(name)).schedule


def moved(name: str, how: str) -> sp.Expr:
    """SM-side elements of one head, in closed form."""
    return sp.expand(traffic(schedule(name, how)).total.amount.subs({"B": 1, "h": 1}).subs({d_v: d}))


def one_head(amount: sp.Expr) -> sp.Expr:
    """An amount with one head of one sequence."""
    return sp.expand(amount.subs({s: 1 for s in amount.free_symbols if s.name in ("B", "h")}))


# --- counts that papers state --------------------------------------------------------------------------------------------


def test_gla_algorithm_1_reads_and_writes_4_l_d() -> None:
    """arXiv:2312.06635, algorithm 1, not materialised: Q, K, V read and O written, the state in SRAM: 4 L d."""
    assert one_head(moved("linear-chunkwise", "chunkwise")) == 4 * N_q * d


def test_gla_algorithm_1_materialised_moves_6_l_d_and_the_states_twice() -> None:
    """The same, materialised: K, V read twice, Q once, O written; L/C states of d x d written and read."""
    assert one_head(moved("linear-chunkwise", "chunkwise-materialised")) == 6 * N_q * d + 2 * N_q * d**2 / C_k


def test_chunks_cost_l_c_d_and_l_d_squared() -> None:
    """The same, section 4.1: O(L C d + L d^2) FLOP; as matrix products of whole chunks 4 L C d and 4 L d^2."""
    dense = flops(graph("linear-chunkwise"), Convention.DENSE)[Pipe.MMA].amount
    assert one_head(dense.subs(d_v, d)) == 4 * N_q * C_k * d + 4 * N_q * d**2


@pytest.mark.parametrize("by", ["chunk", "sequence"])
def test_mlstm_moves_what_its_kernels_count(by: str) -> None:
    """NX-AI/mlstm_kernels, roofline_analysis: bytes of the recurrent and of the parallel kernel, for a chunk of L.

    rec: L (d_qk + d_hv) + 2 L gates read, d_qk d_hv written; par: L (2 d_qk + d_hv) + 2 L gates + d_qk d_hv read, L d_hv
    written; the gates are one number each a token.
    """
    length, keys, values = C_k, d, d_v
    recurrent = length * (keys + values) + 2 * length + keys * values
    parallel = length * (2 * keys + values) + 2 * length + keys * values + length * values
    found = one_head(traffic(schedule("mlstm", "chunkwise-materialised")).total.amount)
    chunks = N_q / C_k
    assert sp.expand(found - chunks * (recurrent + parallel)) == 0
    if by == "sequence":
        at = {**ONE_HEAD, "C_k": 64}
        assert value(found, at) == 128 * (64 * 256 + 128 + 2**14 + 64 * 384 + 128 + 2**14 + 64 * 128)


def test_mlstm_runs_what_its_kernels_count() -> None:
    """The same: matrix products of the recurrent, intra- and inter-chunk parts, state update, gates on K and Q, combination.

    rec 2 L d_qk d_hv (+ 2 d_qk d_hv for the update, L d_qk for K), intra F_causal 2 L^2 (d_qk + d_hv) with exponentials
    F_causal L^2, inter 2 L d_qk d_hv (+ L d_qk for Q), combine L d_hv. F_causal is (L + 1)/(2 L), each pair once.
    """
    chunks, causal = N_q / C_k, (C_k + 1) / (2 * C_k)
    made = flops(graph("mlstm"))
    products = 4 * C_k * d * d_v + causal * 2 * C_k**2 * (d + d_v)
    assert sp.expand(one_head(made[Pipe.MMA].amount) - chunks * products) == 0
    by_name = {e.output.name: one_head(e.points * sum(operations(e).values())) for e in graph("mlstm").einsums}
    assert by_name["F"] + by_name["J"] == sp.expand(2 * chunks * d * d_v)
    assert by_name["Kg"] == by_name["Qg"] == sp.expand(chunks * C_k * d)
    assert by_name["O"] == sp.expand(chunks * C_k * d_v)
    assert sp.expand(by_name["G"] - chunks * causal * C_k**2) == 0
    assert sp.expand(by_name["D"] + by_name["Di"] - 2 * chunks * causal * C_k**2) == 0
    assert sp.expand(by_name["A"] - chunks * C_k * (C_k + 1) / 2) == 0  # the gates' running sum


def test_the_time_of_mlstm_is_least_at_chunks_that_grow_with_the_root_of_d_and_of_the_intensity() -> None:
    """Beck et al. 2025, TFLA, arXiv:2503.14376: the best chunk grows with sqrt(d_hv) and with sqrt(I_acc), 128 to 256 there."""

    def best(d_: int, machine: str) -> float:
        answer = derive(
            "explain", "mlstm", "N=8192", f"d={d_}", "--on", machine, "--schedule", "chunkwise-materialised"
        )
        assert answer.code == 0, answer.err
        line = " ".join(answer.out.split("one after another: least at")[1].split("with I_m")[0].split())
        return float(line.rpartition(",")[2])

    assert best(256, "h100-sxm") / best(64, "h100-sxm") == pytest.approx(2, rel=0.01)
    assert 64 <= best(128, "h100-sxm") <= 256


def test_ssd_has_the_orders_of_its_table() -> None:
    """arXiv:2405.21060, section 6: with head and state of N and chunks of N, training takes T N^2 FLOP; attention T^2 N."""
    state = sp.Symbol("n", positive=True, integer=True)
    length = sp.Symbol("t", positive=True, integer=True)
    work = one_head(flops(graph("ssd"))[Pipe.MMA].amount)
    small = sp.Poly(work.subs({C_k: state, d: state, d_v: state, N_q: length}).expand(), length, state)
    assert max(small.monoms()) == (1, 2)
    whole = sp.Poly(work.subs({C_k: length, d: state, d_v: state, N_q: length}).expand(), length, state)
    assert (2, 1) in whole.monoms()
    held = sp.expand(one_head(graph("ssd").tensors["H"].size).subs({N_q: C_k}))
    assert held == d * d_v  # N^2 a head for inference, whatever T


def test_case_80_the_gated_delta_rule_takes_7_dk_dv_a_token() -> None:
    """tile-ai/TileOPs pull request 2135: k S, rank-1 update, q S are 6 dk dv, the decay one more; no product of q and k.

    0.940 GFLOP at 8192 tokens of 128 x 128. An fp32 state goes through memory in 1.0 GiB token by token, 16 MiB by 64.
    """
    work = one_head(flops(graph("delta"))[Pipe.VECTOR].amount)
    assert sp.Poly(work, d, d_v).coeff_monomial(d * d_v) == 7 * N_q
    assert sp.expand(work - 7 * N_q * d * d_v) == 2 * N_q * d_v  # v - k S, and its weight beta
    assert flops(graph("delta"))[Pipe.MMA].amount == 0
    assert 7 * 128 * 128 == 114_688
    assert value(7 * N_q * d * d_v, ONE_HEAD) == 939_524_096
    state = traffic(schedule("delta", "recurrent")).by_tensor["H"]
    through_memory = {steps: 4 * value(state.read + state.write, {**ONE_HEAD, "B_r": steps}) for steps in (1, 64)}
    assert through_memory == {1: 2**30, 64: 16 * 2**20}
    assert "H" not in traffic(schedule("delta", "chunkwise")).by_tensor


def test_case_80_in_chunks_of_64_an_fp32_state_goes_through_memory_in_16_mib() -> None:
    """The same pull request: 8192 tokens are 128 chunks, 64 KiB each way; every schedule that keeps the state in memory."""
    for how, numbers in (("recurrent", {"B_r": 1}), ("chunkwise-materialised", {})):
        state = traffic(schedule("delta-chunkwise", how)).by_tensor["H"]
        through_memory = {c: 4 * value(state.read + state.write, {**ONE_HEAD, **numbers, "C_k": c}) for c in (1, 64)}
        assert through_memory == {1: 2**30, 64: 16 * 2**20}
    assert "H" not in traffic(schedule("delta-chunkwise", "chunkwise")).by_tensor


def test_the_delta_rule_in_chunks_takes_the_products_of_its_wy_form() -> None:
    """DeltaNet, arXiv:2406.06484, section 3: K K^T, T V, T K, Q K^T and its product with u, each C x C under the diagonal.

    Three products with the state, W H, K^T u and Q H, are 6 d dv a token; T itself is (C^3 - C)/6 multiply-adds a chunk.
    """
    made = flops(graph("delta-chunkwise"))
    pairs = C_k * (C_k + 1) / 2
    a_chunk = 2 * pairs * (3 * d + 2 * d_v) + 6 * C_k * d * d_v
    assert sp.expand(one_head(made[Pipe.MMA].amount) - N_q / C_k * a_chunk) == 0
    (inverse,) = (e for e in graph("delta-chunkwise").einsums if e.output.name == "T")
    assert sp.expand(one_head(inverse.points) - N_q / C_k * (C_k**3 - C_k) / 6) == 0


def test_the_delta_rule_materialised_moves_one_gate_a_token_and_what_the_chunks_have_written() -> None:
    """As in the kernels of fla-org/flash-linear-attention, gated_delta_rule: the first leaves states and u, no C x C decays.

    First K, V, f and beta read, u and the states written; then Q, K, u, f and the states read, O written.
    """
    first = C_k * (d + d_v + 2) + C_k * d_v + d * d_v
    second = C_k * (2 * d + d_v + 1) + d * d_v + C_k * d_v
    found = one_head(traffic(schedule("delta-chunkwise", "chunkwise-materialised")).total.amount)
    assert sp.expand(found - N_q / C_k * (first + second)) == 0
    read_once = C_k * (2 * d + d_v + 2) + C_k * d_v
    assert (
        sp.expand(one_head(traffic(schedule("delta-chunkwise", "chunkwise")).total.amount) - N_q / C_k * read_once) == 0
    )


# --- values, token by token ----------------------------------------------------------------------------------------------


def _linear(state: Array, at: dict[str, Array], token: int) -> tuple[Array, Array]:
    state = state + np.outer(at["K"][token], at["V"][token])
    return state, at["Q"][token] @ state


def _decayed(gate: str = "", write: str = "") -> Step:
    """A state that forgets by exp(gate), or by GAMMA where there is none, and takes in k v^T by exp(write), or whole."""

    def step(state: Array, at: dict[str, Array], token: int) -> tuple[Array, Array]:
        kept = np.exp(at[gate][token]) if gate else np.array(GAMMA)
        taken = np.exp(at[write][token]) if write else 1.0
        rows = kept[:, None] if kept.ndim else kept
        state = rows * state + taken * np.outer(at["K"][token], at["V"][token])
        return state, at["Q"][token] @ state

    return step


def _delta(state: Array, at: dict[str, Array], token: int) -> tuple[Array, Array]:
    """S_t = S_{t-1} (a (I - beta k k^T)) + beta v k^T, transposed (arXiv:2412.06464, equation 10)."""
    k, v, a, beta = at["K"][token], at["V"][token], at["alpha"][token], at["beta"][token]
    state = a * (np.eye(len(k)) - beta * np.outer(k, k)) @ state + beta * np.outer(k, v)
    return state, at["Q"][token] @ state


def _delta_by_log(state: Array, at: dict[str, Array], token: int) -> tuple[Array, Array]:
    """The same, the decay a = exp(f)."""
    return _delta(state, {**at, "alpha": np.exp(at["f"])}, token)


GAMMA = 0.83
STEPS: dict[str, Step] = {
    "linear-chunkwise": _linear,
    "linear-recurrent": _linear,
    "retention": _decayed(),
    "gla": _decayed("f"),
    "mlstm": _decayed("f", "i"),
    "ssd": _decayed("f"),
    "delta": _delta,
    "delta-chunkwise": _delta_by_log,
}


def inputs(name: str, numbers: dict[str, int]) -> dict[str, Array]:
    """Random operands; log gates are negative, decays between 0 and 1, RetNet's tensors powers of one decay."""
    drawn = random_inputs(graph(name), numbers, np.random.default_rng(1))
    for gate in ("f", "i"):
        if gate in drawn:
            drawn[gate] = -np.abs(drawn[gate]) / 4
    for gate in ("alpha", "beta"):
        if gate in drawn:
            drawn[gate] = 1 / (1 + np.exp(-drawn[gate]))
    if name == "retention":
        rows = np.arange(numbers["C_k"])
        drawn["D"][:] = np.where(rows[:, None] >= rows, GAMMA ** (rows[:, None] - rows), 0.0)
        drawn["xi"][:], drawn["zeta"][:] = GAMMA ** (rows + 1), GAMMA ** (len(rows) - 1 - rows)
        drawn["g"][:] = GAMMA ** len(rows)
    return drawn


def reference(name: str, numbers: dict[str, int], given: dict[str, Array]) -> Array:
    """The recurrence of one head of one sequence after another, one token at a time."""
    tokens, by_chunk = numbers["N_q"], name in CHUNKED
    rows = []
    for sequence in range(numbers["B"]):
        for head in range(numbers["h"]):
            own = {n: a[sequence, head] for n, a in given.items() if n in ("Q", "K", "V", "f", "i", "alpha", "beta")}
            own = {n: a.reshape(tokens, *a.shape[2:]) if by_chunk else a for n, a in own.items()}
            state = np.zeros((numbers["d"], numbers["d_v"]))
            for token in range(tokens):
                state, out = STEPS[name](state, own, token)
                rows.append(out)
    return np.array(rows).reshape(numbers["B"], numbers["h"], tokens, numbers["d_v"])


def tokens_of(found: Array, numbers: dict[str, int]) -> Array:
    """An output by chunk and row as one by token."""
    return found.reshape(numbers["B"], numbers["h"], numbers["N_q"], numbers["d_v"])


@pytest.mark.parametrize("name", [*CHUNKED, *BY_TOKEN])
@settings(max_examples=12)
@given(data=st.data())
def test_every_variant_is_its_recurrence(name: str, data: st.DataObject) -> None:
    """In the interpreter and under every schedule, tile by tile, whatever the chunk: the values of the recurrence."""
    chunk = data.draw(st.integers(1, 5), label="C")
    numbers = {"C_k": chunk, "N_q": chunk * data.draw(st.integers(1, 5), label="chunks"), "h": 2, "B": 2}
    numbers |= {
        "d": data.draw(st.integers(1, 3)),
        "d_v": data.draw(st.integers(1, 3)),
        "B_r": data.draw(st.integers(1, 3)),
    }
    given_ = inputs(name, numbers)
    wanted = reference(name, numbers, given_)
    found = tokens_of(evaluate(graph(name), given_, {}, numbers)["O"], numbers)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)
    for how in ("recurrent", "chunkwise", "chunkwise-materialised")[: 3 if name in CHUNKED else 2]:
        run = tokens_of(execute(schedule(name, how), given_, {}, numbers)["O"], numbers)
        np.testing.assert_allclose(run, wanted, rtol=1e-9, atol=1e-11, err_msg=how)


@settings(max_examples=25)
@given(data=st.data())
def test_the_delta_rule_in_chunks_is_its_graph_by_token(data: st.DataObject) -> None:
    """Two graphs in one interpreter, in every chunk that divides the tokens."""
    chunk, chunks = data.draw(st.integers(1, 6), label="C"), data.draw(st.integers(1, 4), label="chunks")
    sizes = {"d": data.draw(st.integers(1, 4)), "d_v": data.draw(st.integers(1, 4))}
    numbers = {"C_k": chunk, "N_q": chunk * chunks, "h": 2, "B": 1, **sizes}
    of_chunks = inputs("delta-chunkwise", numbers)
    of_tokens = {name: a.reshape(1, 2, chunk * chunks, *a.shape[4:]) for name, a in of_chunks.items()}
    of_tokens["alpha"] = np.exp(of_tokens.pop("f"))
    by_token = evaluate(graph("delta"), of_tokens, {}, numbers)["O"]
    in_chunks = tokens_of(evaluate(graph("delta-chunkwise"), of_chunks, {}, numbers)["O"], numbers)
    np.testing.assert_allclose(in_chunks, by_token, rtol=1e-8, atol=1e-10)


def test_one_chunk_is_masked_quadratic_attention() -> None:
    """C = N: (Q K^T under the mask) V, entry by entry, and the state is never asked."""
    made = graph("linear-chunkwise")
    extents = {"b": 1, "h": 1, "n": 1, "q": 3, "k": 3, "d": 2, "e": 1}
    found = denote(made, "O", extents)
    q, k, v = (sp.IndexedBase(name, real=True) for name in "QKV")
    for row in range(3):
        scores = [sum(q[0, 0, 0, row, x] * k[0, 0, 0, col, x] for x in range(2)) for col in range(row + 1)]
        wanted = sum(score * v[0, 0, 0, col, 0] for col, score in enumerate(scores))
        assert equal(found[(0, 0, 0, row, 0)], wanted)


def test_chunks_of_one_token_are_the_recurrence() -> None:
    """C = 1: 4 d d_v FLOP a token for state and query, as token by token, beside the token's own q k v."""
    work = one_head(flops(graph("linear-chunkwise"))[Pipe.MMA].amount).subs(C_k, 1)
    assert sp.expand(work - N_q * (4 * d * d_v + 2 * d + 2 * d_v)) == 0
    by_token = one_head(flops(graph("linear-recurrent"))[Pipe.VECTOR].amount)
    assert by_token == 4 * N_q * d * d_v


# --- as a person asks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("mlstm", "mask=causal"), "mlstm is causal by its recurrence and takes no other mask; leave mask=causal out"),
        (("delta", "mask=full"), "delta is causal by its recurrence and takes no other mask; leave mask=full out"),
        (("gla", "N=8192", "C=100"), "C=100 does not divide N=8192; give a divisor of it for the keys of a chunk"),
        (("delta", "--schedule", "flash2"), "does not apply"),
        (("delta", "--schedule", "chunkwise-materialised"), "split-at-states does not apply"),
        (("mha", "--schedule", "chunkwise"), "nothing here has its shape"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(words: tuple[str, ...], error: str) -> None:
    """Exit code 2, and no traceback."""
    answer = derive("explain", *words)
    assert answer.code == 2
    assert error in answer.err


def test_devices_that_share_a_recurrence_are_refused() -> None:
    """A ring passes keys on, not states: no count is better than one of something else."""
    answer = derive("devices", "gla", "devices=8")
    assert answer.code == 2
    assert "gla hands a state on from step to step" in answer.err


def test_a_chunk_that_does_not_fit_names_the_largest_that_does() -> None:
    """C (2 d + d_v) of 2 bytes in 227 KiB: 302 rows of 128."""
    answer = derive("explain", "linear-chunkwise", "N=8192", "d=128", "C=4096", "--on", "h100-sxm")
    assert answer.code == 3
    assert "the largest C that fits is 302" in answer.err
