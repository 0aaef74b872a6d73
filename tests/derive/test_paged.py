"""Keys and values in pages: what a step on them computes and moves, against loops over tokens and entries counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.buffers import working_set
from derive.cache import token_bytes, token_elements
from derive.cost import Move
from derive.denote import denote, equation
from derive.errors import DomainError, IllFormedError
from derive.evaluate import evaluate, random_inputs
from derive.exact import value
from derive.execute import execute
from derive.extremes import up
from derive.footprint import kernel_footprint, memory_peak
from derive.graph import Graph
from derive.mask import causal
from derive.notation import cascade
from derive.operators import Array
from derive.replay import walk
from derive.replay_arrays import Walker
from derive.residency import dram
from derive.schedule import Kernel, Loop, Schedule, lift
from derive.symbols import B_c, N_k, N_q, b, d, n_page, n_s
from derive.traffic import compulsory, traffic
from outputs.latex import einsum_latex
from rules.algebra import split_keys
from rules.derivations import plan
from tests.outputs.command import derive
from tests.rules.meaning import counted, walked
from tests.strategies import PAIRS, fitted, shapes

SIZES = {"k": N_k, "d": d, "p": up(N_k / n_page), "y": n_page, "n": up(N_k / n_page), "q": N_q}
SCHEDULES = tuple(schedule for name, schedule in PAIRS if name == "paged")
SCALARS = {"c": 0.7}
NUMBERS = {"N_k": 23, "n_page": 4, "h": 6, "h_k": 2, "d": 2, "d_v": 3, "B": 2, "B_r": 2, "B_c": 5, "n_s": 1, "M": 64}


def gathered(text: str = "", *, output: str = "G") -> Graph:
    """Rows in pages, put one behind another, and perhaps more."""
    return cascade(f"G[k,d] = gather(C[p,y,d], T[n])\n{text}", SIZES, outputs=(output,), width=b)


SUMMED = "l[d] = sum[k] G[k,d]"


def by_token(i: dict[str, Array], tokens: int) -> Array:
    """Sequence by sequence, head by head: each token looked up in its page, no further than the last one."""
    page = i["K_pages"].shape[1]
    q, table = i["Q"], i["T"].astype(int)
    found = np.zeros((*q.shape[:-1], i["V_pages"].shape[-1]))
    for at in np.ndindex(*q.shape[:-1]):
        sequence, group, *_ = at
        keys, values = (
            np.array([i[name][table[sequence, t // page], t % page, group] for t in range(tokens)])
            for name in ("K_pages", "V_pages")
        )
        weights = np.exp(0.7 * keys @ q[at])
        found[at] = weights @ values / weights.sum()
    return found


@settings(max_examples=40, deadline=None)
@given(numbers=shapes())
def test_a_step_reads_each_token_where_its_page_stands(numbers: dict[str, int]) -> None:
    """At any length of the cache and of its pages; two sequences may share a page."""
    numbers, graph = fitted("paged", numbers), variant("paged").graph()
    inputs = random_inputs(graph, numbers, np.random.default_rng(0))
    found = evaluate(graph, inputs, SCALARS, numbers)["O"]
    np.testing.assert_allclose(found, by_token(inputs, numbers["N_k"]), rtol=1e-9, atol=1e-11)


def test_pages_in_order_are_a_cache_without_pages() -> None:
    """The interpreter finds what it finds for decode on the same keys, what the last page has behind them left aside."""
    graph, sizes = variant("paged").graph(), NUMBERS
    inputs = random_inputs(graph, sizes, np.random.default_rng(0))
    pages = -(-sizes["N_k"] // sizes["n_page"])
    inputs["T"] = np.arange(sizes["B"] * pages, dtype=np.float64).reshape(sizes["B"], pages)
    plain = {"Q": inputs["Q"]}
    for name in ("K", "V"):
        rows = inputs[f"{name}_pages"].reshape(sizes["B"], -1, *inputs[f"{name}_pages"].shape[2:])
        plain[name] = rows[:, : sizes["N_k"]].swapaxes(1, 2)
    wanted = evaluate(variant("decode").graph(), plain, SCALARS, sizes)["O"]
    np.testing.assert_allclose(evaluate(graph, inputs, SCALARS, sizes)["O"], wanted, rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(schedule=st.sampled_from(SCHEDULES), numbers=shapes())
def test_every_schedule_computes_and_counts_it(schedule: str, numbers: dict[str, int]) -> None:
    """Tile by tile the values are the graph's; traffic and work are what either walk counts."""
    numbers = fitted("paged", numbers) | {"M": 64}
    made = plan(schedule).derive(variant("paged").graph())
    inputs = random_inputs(made.start, numbers, np.random.default_rng(0))
    found, wanted = execute(made.schedule, inputs, SCALARS, numbers), evaluate(made.start, inputs, SCALARS, numbers)
    np.testing.assert_allclose(found["O"], wanted["O"], rtol=1e-9, atol=1e-11)
    assert counted(made.schedule, numbers) == walked(made.schedule, numbers)
    assert Walker(made.schedule).walk(numbers) == walk(made.schedule, numbers)


def test_those_that_a_decode_step_has_take_pages_too() -> None:
    """Naive and op by op, which gather first; FlashAttention, which gathers as it streams; and in parts."""
    assert {"naive", "op-by-op", "flash1", "flash2", "flash2-packed", "split-kv"} <= set(SCHEDULES)
    made = plan("flash2").derive(variant("paged").graph()).schedule
    assert len(made.kernels) == 1
    assert {"K", "V"} <= {k.name for k in plan("naive").derive(variant("paged").graph()).schedule.kernels}


@settings(max_examples=60, deadline=None)
@given(
    tokens=st.integers(1, 40),
    page=st.integers(1, 9),
    tile=st.integers(1, 9),
    parts=st.integers(1, 5),
    split=st.booleans(),
)
def test_a_table_is_read_once_a_sweep_and_twice_where_two_parts_meet_in_a_page(
    tokens: int, page: int, tile: int, parts: int, split: bool
) -> None:
    """Entries listed for each run of tokens that some CTA has to itself."""
    tokens *= parts
    run = tokens // parts if split else tokens
    entries = sum(len({t // page for t in range(start, start + run)}) for start in range(0, tokens, run))
    numbers = NUMBERS | {"N_k": tokens, "n_page": page, "B_c": tile, "n_s": parts, "B_r": 3}
    schedule = plan("split-kv" if split else "flash2").derive(variant("paged").graph()).schedule
    readers = numbers["h_k"] if split else numbers["h"]
    assert counted(schedule, numbers)["T"] == (numbers["B"] * readers * entries, 0)


def test_what_is_read_stops_at_the_last_token_and_what_is_allocated_at_the_last_page() -> None:
    """23 tokens in pages of 4: six entries and 23 rows are read, and there is room for 24."""
    graph, sizes = variant("paged").graph(), NUMBERS | {"b": 2, "b_kv": 2}
    moves = compulsory(graph).by_tensor
    assert value(moves["K_pages"].read, sizes) == 2 * 2 * 23 * 2
    assert value(moves["V_pages"].read, sizes) == 2 * 2 * 23 * 3
    assert value(moves["T"].read, sizes) == 2 * 6
    sm = traffic(plan("flash2-packed").derive(graph).schedule).by_tensor
    assert value(sm["K_pages"].read, sizes | {"B_r": 8}) == value(moves["K_pages"].read, sizes)
    peak = memory_peak(plan("flash2").derive(graph).schedule).amount
    assert value(peak, sizes) == 2 * (2 * 2 * 24 * 5 + 2 * 6 * (2 + 3)) + 4 * 2 * 6


def test_case_76_a_step_reads_a_table_of_0_006_percent() -> None:
    """https://github.com/vllm-project/vllm/pull/57336: 4 B a page of 16 tokens, of 8 heads of 128 bf16 channels each way."""
    at = {"N_k": 8192, "n_page": 16, "h": 32, "h_k": 8, "d": 128, "d_v": 128, "B": 1}
    moves = {name: value(move.read, at) for name, move in compulsory(variant("paged").graph()).by_tensor.items()}
    share = 4 * moves["T"] / (2 * (moves["K_pages"] + moves["V_pages"]))
    assert (moves["T"], round(100 * share, 3)) == (512, 0.006)


def test_the_cache_of_pages_is_a_cache() -> None:
    """A token takes what it takes without pages, whatever their size."""
    found = {name.removesuffix("_pages"): n for name, n in token_elements(variant("paged").graph()).items()}
    assert found == dict(token_elements(variant("decode").graph()))
    assert token_bytes(variant("paged").graph()) == token_bytes(variant("decode").graph())


def test_the_l2_serves_pages_as_it_serves_rows_in_order() -> None:
    """Query heads of a group read the same pages: HBM sees them once while a head's fit, as it does K and V of decode."""
    schedules = (plan("flash2").derive(variant(name).graph()).schedule for name in ("paged", "decode"))
    paged, plain = (dram(schedule).by_tensor for schedule in schedules)
    once = value(compulsory(variant("paged").graph()).by_tensor["K_pages"].read, NUMBERS)
    found = []
    for capacity in (1, 300, 10**6):
        at = NUMBERS | {"C": 4, "b": 2, "b_kv": 2, "C_L2": capacity}
        assert value(paged["K_pages"].read, at) == value(plain["K"].read, at)
        assert value(paged["V_pages"].read, at) == value(plain["V"].read, at)
        found.append(value(paged["K_pages"].read, at))
    assert found[0] == 3 * once
    assert found[-1] == once


def test_a_tile_holds_the_entries_that_it_may_need_at_once() -> None:
    """Five tokens in pages of four meet two or three of them, wherever they begin: none needs more than three."""
    graph = gathered(SUMMED, output="l")
    kernel = Kernel(("G", "l"), (Loop((graph.indices["k"],), B_c),))
    schedule = Schedule(graph, (kernel,))
    at = {"N_k": 23, "n_page": 4, "d": 2, "B_c": 5}
    starts = range(4)
    assert max(len({t // 4 for t in range(s, s + 5)}) for s in starts) == 2
    assert value(kernel_footprint(schedule, kernel).amount, at) == 2 + 5 * 2 + 2
    assert value(working_set(schedule, kernel).amount, at) == 2 + 5 * 2 + 2
    assert walk(schedule, at).live[kernel.name] <= 2 + 5 * 2


def test_without_a_loop_over_tokens_the_table_is_held_whole() -> None:
    """As is everything else."""
    graph = gathered(SUMMED, output="l")
    kernel = Kernel(("G", "l"), (Loop((graph.indices["d"],), sp.Integer(1), grid=True),))
    schedule = Schedule(graph, (kernel,))
    assert kernel_footprint(schedule, kernel).amount == up(N_k / n_page) + N_k + 1


def test_in_expressions_a_token_is_an_entry_of_its_page() -> None:
    """Written out, the page of token 2 is one of two; in closed form the position says which."""
    graph = gathered()
    found = denote(graph, "G", {"k": 3, "d": 1, "p": 2, "y": 2, "n": 2})[2, 0]
    assert str(found) == "KroneckerDelta(0, T[1])*C[0, 0, 0] + KroneckerDelta(1, T[1])*C[1, 0, 0]"
    assert str(equation(graph, "G").rhs) == "C[T[floor(k/n_page)], Mod(k, n_page), d']"
    tex = r"C_{T_{\lfloor k / n_{\mathrm{page}} \rfloor},k \operatorname{mod} n_{\mathrm{page}},d}"
    assert einsum_latex(graph.einsums[0]) == f"G_{{k,d}} = {tex}"


def test_keys_in_pages_are_cut_into_parts_and_selected_ones_are_not() -> None:
    """Token k of part s is token s N_k/n_s + k, whose page is known; which keys a query selects is data."""
    scores = "S[q,k] = sum[d] Q[q,d] * G[k,d]\nm[q] = max[k] S[q,k]"
    graph = gathered(scores, output="m")
    (keys,) = split_keys.RULE.matches(graph)
    cut = split_keys.RULE.rewrite(graph, keys)
    assert str(cut.einsums[0]) == "G[s, k, d] = gather(C[p, y, d], T[n])"
    assert r"(s \, \frac{N_k}{n_s} + k) \operatorname{mod} n_{\mathrm{page}}" in einsum_latex(cut.einsums[0])
    inputs = random_inputs(graph, NUMBERS | {"N_q": 2, "N_k": 24}, np.random.default_rng(0))
    sizes = NUMBERS | {"N_q": 2, "N_k": 24, "n_s": 3}
    np.testing.assert_allclose(
        evaluate(cut, inputs, {}, sizes)["m"], evaluate(graph, inputs, {}, sizes)["m"], rtol=1e-12
    )
    assert not list(split_keys.RULE.matches(variant("topk").graph()))


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("G[k,d] = gather(C[p,y,d], T[n])", {"n": N_k}),
        ("G[k,d] = gather(C[p,y,d], T[n])", {"y": N_k}),
        ("G[k,q,d] = gather(C[p,y,d], T[n])", {}),
        ("G[k,d] = gather(C[p,y,d], T[n,q])", {}),
        ("G[n,d] = gather(C[p,y,d], T[n])", {}),
    ],
)
def test_a_table_has_an_entry_for_each_page_of_rows(text: str, sizes: dict[str, sp.Expr]) -> None:
    """Not more, not fewer, and one index of rows for one of entries."""
    with pytest.raises(IllFormedError, match="or name as many pages as its rows take"):
        cascade(text, SIZES | sizes, outputs=("G",), width=b)


@pytest.mark.parametrize("index", ["p", "y", "n"])
def test_no_loop_cuts_pages_or_their_table(index: str) -> None:
    """Which page is next is not known before its entry is read."""
    graph = gathered()
    with pytest.raises(IllFormedError, match="would cut it"):
        Schedule(graph, (Kernel(("G",), (Loop((graph.indices[index],), sp.Integer(1)),)),))


def test_positions_of_pages_that_there_are_not() -> None:
    """An entry names one of the pages of the pool."""
    graph = gathered()
    inputs = {"C": np.zeros((2, 2, 1)), "T": np.array([0.0, 2.0])}
    with pytest.raises(DomainError, match=r"positions are whole numbers from 0 to 1; got 0\.0 to 2\.0"):
        evaluate(graph, inputs, {}, {"N_k": 3})


@pytest.mark.parametrize(
    "loops",
    [
        (("k", 1, False), ("s", 1, False)),  # keys outside, parts inside: a CTA comes back to a page that it has left
        (("s", 2, False), ("k", 2, False)),  # two parts at a time: rows of the one, then rows of the other
        (("s", 1, True), ("k", 2, True)),  # a CTA for each tile of a part: any two of them may meet in a page
    ],
)
def test_rows_that_do_not_follow_one_another_are_not_counted(loops: tuple[tuple[str, int, bool], ...]) -> None:
    """An entry is counted once where a CTA reads rows in order, and nothing is said of any other order."""
    graph = gathered(SUMMED, output="l")
    cut = split_keys.RULE.rewrite(graph, graph.indices["k"])
    alone = Graph(cut.einsums[:1], ("G",))
    nest = tuple(Loop((cut.indices[name],), sp.Integer(tile), grid=grid) for name, tile, grid in loops)
    schedule = Schedule(alone, (Kernel(("G",), nest),))
    with pytest.raises(DomainError, match="entries of pages are counted where each CTA reads rows one after another"):
        traffic(schedule)


def test_pages_under_a_mask_that_skips_tiles_are_not_counted() -> None:
    """It says so, rather than to count entries of tiles that nobody loads."""
    graph = cascade(
        "G[k,d] = gather(C[p,y,d], T[n])\nS[q,k] = sum[d] Q[q,d] * G[k,d]",
        SIZES,
        outputs=("S",),
        width=b,
        mask=causal(N_q, N_k),
    )
    loops = tuple(Loop((graph.indices[name],), sp.Integer(2), grid=name == "q") for name in ("q", "k"))
    schedule = Schedule(graph, (Kernel(("G", "S"), loops, skips_masked=True),))
    with pytest.raises(DomainError, match="how many entries of T it then reads is not counted; ask without a mask"):
        traffic(schedule)


def test_an_outer_loop_reads_the_table_again_and_a_single_tile_holds_it() -> None:
    """Three query tiles sweep six entries each; where one tile has all tokens, they find them there."""
    graph = gathered("S[q,k] = sum[d] Q[q,d] * G[k,d]", output="S")
    loops = tuple(Loop((graph.indices[name],), B_c) for name in ("q", "k"))
    schedule = Schedule(graph, (Kernel(("G", "S"), loops),))
    for tile, entries in ((5, 3 * 6), (23, 6)):
        at = {"N_q": 15 if tile == 5 else 60, "N_k": 23, "n_page": 4, "d": 2, "B_c": tile}
        assert counted(schedule, at)["T"] == walked(schedule, at)["T"] == (entries, 0)
        assert Walker(schedule).walk(at) == walk(schedule, at)


def test_op_by_op_copies_the_pages_first() -> None:
    """A kernel that reads every token and writes it where the next one finds it in order."""
    moves = traffic(lift(gathered())).by_tensor
    assert moves["C"] == Move(read=N_k * d)
    assert moves["G"] == Move(write=N_k * d)
    assert moves["T"] == Move(read=up(N_k / n_page))


def test_a_paged_cache_cut_into_parts_needs_no_whole_pages() -> None:
    """Parts of 7 tokens in pages of 4: entries 0..1, 1..3, 3..5 are seven reads of six entries."""
    schedule = plan("split-kv").derive(variant("paged").graph()).schedule
    at = NUMBERS | {"N_k": 21, "n_s": 3, "B": 1, "h": 1, "h_k": 1}
    assert counted(schedule, at)["T"] == (2 + 3 + 3, 0)
    assert counted(schedule, at | {"n_page": 7})["T"] == (3, 0)
    assert n_s in schedule.graph.indices["s"].extent.free_symbols


def test_a_part_of_several_indices_is_no_row() -> None:
    """Two new indices, neither a part of the other."""
    good = gathered().einsums[0]
    parts = replace(good.output, indices=(replace(good.output.indices[0], name="s"), *good.output.indices))
    with pytest.raises(IllFormedError, match="name as many pages as its rows take"):
        replace(good, output=parts)


@pytest.mark.parametrize("mask", ["causal", "window", "docs"])
def test_a_step_on_pages_takes_no_mask_and_says_why(mask: str) -> None:
    """It sees every token; nobody may read a mask into it that is not counted."""
    answer = derive("explain", "paged", f"mask={mask}", "Nk=64", "d=8")
    assert answer.code == 2
    assert f"paged takes no mask: a decode step sees every token of its pages; leave mask={mask} out" in answer.err
    assert derive("explain", "paged", "mask=full", "Nk=64", "page=16", "d=8", "--schedule", "flash2").code == 0


def test_gathering_first_streaming_and_parts_are_compared_when_nothing_is_asked() -> None:
    """The three ways that a paged step is run."""
    found = derive("explain", "paged", "Nk=64", "page=16", "d=8", "h=4", "hk=2", "--json").json["schedules"]
    assert [one if isinstance(one, str) else one["name"] for one in found] == ["naive", "flash2", "split-kv"]
