"""Keys in parts: what moves, against flash2 and against the walker; values; and that each part is needed."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import divisors

from derive.attention import variant
from derive.errors import BadValueError, PreconditionError
from derive.evaluate import evaluate, kept_pairs, random_inputs
from derive.exact import value
from derive.execute import execute
from derive.flops import Pipe, executed, is_contraction
from derive.footprint import memory_peak
from derive.masks import Pattern, patterns
from derive.passes import passes
from derive.replay import walk
from derive.schedule import Schedule
from derive.symbols import n_s
from derive.traffic import traffic
from rules.derivations import plan
from tests.published.questions import ask, total
from tests.rules.meaning import cache_agrees, counted, scalars_of, walked
from tests.strategies import shapes

VARIANTS = ("mha", "gqa", "gqa-repeated", "mqa", "decode")
variants = st.sampled_from(VARIANTS)
PARTIALS = ("m_s", "l_s", "U_O_s")


MASKED = tuple(p for p in patterns(((3, 4, 5), (6, 2, 9, 1))) if p.name != "full")


@lru_cache(maxsize=64)
def cut(name: str, schedule: str = "split-kv", mask: str | Pattern = "full") -> Schedule:
    """A schedule of a variant."""
    return plan(schedule).derive(variant(name).graph(mask)).schedule


@st.composite
def masked_shapes(draw: st.DrawFn, pattern: Pattern) -> dict[str, int]:
    """Shapes under a mask; packed documents say how long their sequence is."""
    numbers = draw(shapes())
    if pattern.length:
        numbers |= {
            "N_q": pattern.length,
            "N_k": pattern.length,
            "n_s": draw(st.sampled_from(divisors(pattern.length))),
        }
    return numbers


def at(name: str, numbers: dict[str, int]) -> dict[str, int]:
    """*numbers*, with one query where the variant says so."""
    return {**numbers, "N_q": 1} if name == "decode" else numbers


@settings(max_examples=25)
@given(name=variants, numbers=shapes())
def test_the_closed_form_is_what_the_walker_counts(name: str, numbers: dict[str, int]) -> None:
    """Ragged tiles in every part, any divisor of the keys."""
    assert counted(cut(name), at(name, numbers)) == walked(cut(name), at(name, numbers))


@settings(max_examples=25)
@given(name=variants, numbers=shapes())
def test_both_kernels_leave_what_the_variant_means(name: str, numbers: dict[str, int]) -> None:
    """The variant's own graph on the same arrays: K[k, d] is read as K[s, k, d] without being moved."""
    graph, numbers = variant(name).graph(), at(name, numbers)
    inputs = random_inputs(graph, numbers, np.random.default_rng(0))
    scalars = scalars_of(graph)
    wanted = evaluate(graph, inputs, scalars, numbers)["O"]
    found = execute(cut(name), inputs, scalars, numbers)["O"]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


@settings(max_examples=25)
@given(name=variants, numbers=shapes())
def test_parts_move_what_packed_flash2_moves_and_partial_results(name: str, numbers: dict[str, int]) -> None:
    """K, V and O as in flash2-packed; Q once a part; (m, l, U) of each row and part written once and read once."""
    numbers = at(name, numbers)
    whole, parts = counted(cut(name, "flash2-packed"), numbers), counted(cut(name), numbers)
    rows = int(value(variant(name).graph().tensors["O"].size, numbers)) // numbers["d_v"]
    assert all(parts[n] == whole[n] for n in ("K", "V", "O"))
    assert parts["Q"] == (numbers["n_s"] * whole["Q"][0], 0)
    kept = {n: rows * numbers["n_s"] * (numbers["d_v"] if n == "U_O_s" else 1) for n in PARTIALS}
    assert {n: parts[n] for n in PARTIALS} == {n: (size, size) for n, size in kept.items()}
    assert set(parts) == {*whole, *PARTIALS}


def test_partial_results_are_four_bytes_wide_whatever_the_operands() -> None:
    """Flash-Decoding keeps them in fp32; ``partials=`` says otherwise."""
    found, narrow = (
        ask(f"decode N=8192 h=32 hk=8 d=128 splits=4 {more}", "split-kv") for more in ("dtype=fp8", "partials=bf16")
    )
    rows = 32 * 4
    assert found.exact(found.sm.by_tensor["U_O_s"].write) == rows * 128 * 4
    assert narrow.exact(narrow.sm.by_tensor["U_O_s"].write) == rows * 128 * 2
    whole = ask("decode N=8192 h=32 hk=8 d=128", "flash2-packed")
    again = ask("decode N=8192 h=32 hk=8 d=128 splits=1", "split-kv")
    assert total(again, again.sm) - total(whole, whole.sm) == 2 * 32 * (128 + 2) * 4


def test_a_part_reads_its_keys_in_one_pass_and_the_merge_its_parts() -> None:
    """Without the parts' own maxima every part waits for all: two passes over the parts' keys."""
    graph = cut("mha").graph
    assert passes(graph, "k") == 1
    assert passes(graph, "s") == 1
    assert [k.einsums[-1] for k in cut("mha").kernels] == ["U_O_s", "O"]


def test_partial_results_count_in_the_peak_of_memory() -> None:
    """They are there between the two kernels."""
    peak = memory_peak(cut("mha")).amount.subs({"b_part": 4})
    numbers = {"B": 1, "h": 1, "N_q": 8, "N_k": 64, "d": 4, "d_v": 4, "n_s": 2, "b": 2, "b_kv": 2, "b_part": 4}
    assert value(peak, numbers) == 2 * (2 * 8 * 4 + 2 * 64 * 4) + 2 * 8 * (4 + 2) * 4


def test_splits_that_do_not_divide_the_keys_are_refused() -> None:
    """With the nearest that do."""
    with pytest.raises(BadValueError, match=r"splits=5 does not divide Nk=8192.* nearest that divide are 4 and 8"):
        ask("decode N=8192 splits=5", "split-kv")
    with pytest.raises(BadValueError, match=r"nearest that divide are 7$"):
        ask("decode N=7 splits=9", "split-kv")


def test_a_mask_of_which_only_a_share_is_known_is_refused() -> None:
    """One sentence, by the rule that cannot apply."""
    for mask in (
        "N=8192 mask=block-sparse s=1/4",
        "N=64 mask=blocks block=16 blocks=0/0,1/1,2/3",
    ):  # rows of a list come in any order
        with pytest.raises(PreconditionError, match="says which keys each query sees, and not only how many"):
            ask(f"mha {mask}", "split-kv")


@settings(max_examples=15)
@given(name=st.sampled_from(("gqa",)), pattern=st.sampled_from(MASKED), data=st.data())
def test_under_a_mask_parts_move_and_run_what_the_walker_counts(
    name: str, pattern: Pattern, data: st.DataObject
) -> None:
    """Parts that the mask empties, whole and in part; queries that see nothing in a part, or nothing at all; ragged tiles."""
    numbers, schedule = data.draw(masked_shapes(pattern)), cut(name, mask=pattern)
    assert counted(schedule, numbers) == walked(schedule, numbers)
    work = executed(schedule)[Pipe.MMA].amount
    points = walk(schedule, numbers).points
    assert value(work, numbers) == sum(2 * points[e.output.name] for e in schedule.graph.einsums if is_contraction(e))
    running, capacity = data.draw(st.sampled_from((1, 2, 5))), data.draw(st.sampled_from((16, 96, 400)))
    assert cache_agrees(schedule, numbers, running=running, capacity=capacity)


@settings(max_examples=15)
@given(name=st.sampled_from(("gqa",)), pattern=st.sampled_from(MASKED), data=st.data())
def test_under_a_mask_both_kernels_leave_what_the_variant_means(
    name: str, pattern: Pattern, data: st.DataObject
) -> None:
    """A query that sees no key of a part has no weight there; one that sees none at all gets a row of zeros."""
    numbers, graph = data.draw(masked_shapes(pattern)), variant(name).graph(pattern)
    inputs, scalars = random_inputs(graph, numbers, np.random.default_rng(0)), scalars_of(graph)
    wanted = evaluate(graph, inputs, scalars, numbers)["O"]
    found = execute(cut(name, mask=pattern), inputs, scalars, numbers)["O"]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("pattern", MASKED, ids=str)
def test_cutting_the_keys_changes_no_pair(pattern: Pattern) -> None:
    """The pairs of the parts, each a mask over its own keys, are the pairs of the whole."""
    graph, rng = variant("mha").graph(pattern), np.random.default_rng(1)
    whole = graph.mask
    assert whole is not None
    for _ in range(3):
        length = pattern.length
        numbers = {"N_q": length or int(rng.integers(1, 14)), "N_k": length or int(rng.integers(1, 14))}
        numbers |= {name: int(rng.integers(1, 14)) for name in pattern.sizes} | {"n_s": numbers["N_k"], "p": 0}
        kept = kept_pairs(whole, numbers)
        alone = [kept_pairs(whole.cut("s", n_s).inside(sp.Integer(p)), numbers) for p in range(numbers["N_k"])]
        np.testing.assert_array_equal(np.hstack(alone), kept)
        assert value(whole.cut("s", n_s).pairs, numbers) == kept.sum()


def test_a_causal_decode_keeps_everything() -> None:
    """One query stands on the last key: nothing is masked, and nothing moves that did not before."""
    plain, masked = (
        ask(f"gqa Nq=1 Nk=8192 h=32 hk=8 d=128 splits=4 {more}", "split-kv") for more in ("", "mask=causal")
    )
    assert total(plain, plain.sm) == total(masked, masked.sm)
    assert total(plain, plain.dram) == total(masked, masked.dram)
    assert plain.exact(plain.executed[Pipe.MMA]) == masked.exact(masked.executed[Pipe.MMA])


def test_a_windowed_decode_step_leaves_the_parts_before_its_window_alone() -> None:
    """W = 1,024 of 8,192 keys in 8 parts: the last part is read, eight tiles of 128 keys, and each KV head's Q once."""
    found = ask("gqa Nq=1 Nk=8192 h=32 hk=8 d=128 splits=8 mask=window W=1024 Bc=128", "split-kv")
    sm = found.sm.by_tensor
    assert found.exact(sm["K"].read) == 8 * 1024 * 128 * 2
    assert found.exact(sm["Q"].read) == 32 * 128 * 2
    assert found.exact(sm["U_O_s"].write) == 8 * 32 * 128 * 4


def test_verifying_eight_draft_tokens_reads_each_key_once_a_head() -> None:
    """Eight queries of four heads fill one tile of 32 rows; the pairs are 8 x 8,192 less the 28 above the diagonal."""
    found = ask("gqa Nq=8 Nk=8192 h=32 hk=8 d=128 splits=8 mask=causal", "split-kv")
    assert found.exact(found.sm.by_tensor["K"].read) == 8 * 8192 * 128 * 2
    assert found.exact(found.useful[Pipe.MMA]) == 4 * 32 * 128 * (8 * 8192 - 28)


def test_a_prefilled_chunk_skips_what_lies_ahead_of_it() -> None:
    """512 queries, top-left, on 8,192 keys in 4 parts: only the first part has kept pairs, 10 tiles of 128 x 128 a head."""
    found = ask("mha Nq=512 Nk=8192 d=128 splits=4 mask=causal-tl", "split-kv")
    assert found.exact(found.executed[Pipe.MMA]) == 10 * 4 * 128 * 128 * 128
    assert found.exact(found.sm.by_tensor["K"].read) == 10 * 128 * 128 * 2
    assert found.exact(found.sm.by_tensor["Q"].read) == 512 * 128 * 2


def test_one_query_a_head_uses_few_tiles_of_the_matrix_pipe() -> None:
    """Packing fills a tile with the group's heads: executed work falls by the group's size."""
    alone, packed = (ask("decode N=8192 h=32 hk=8 d=128 splits=4", s) for s in ("flash2", "split-kv"))
    ratio = Fraction(*(a.exact(next(iter(a.executed.values()))) for a in (alone, packed)))
    assert ratio == 4
    assert traffic(packed.derivation.schedule).by_tensor["K"].read != 0


def test_a_lone_ragged_tile_that_sees_nothing_of_a_part_is_not_read() -> None:
    """One query of two heads in a tile of four rows sees the first of 22 parts alone."""
    numbers = {"N_q": 1, "N_k": 22, "n_s": 22, "d": 2, "d_v": 3, "h_k": 2, "h": 2, "B": 1, "B_r": 4, "B_c": 7}
    schedule = cut("mqa", mask="causal-tl")
    assert counted(schedule, numbers)["Q"] == walked(schedule, numbers)["Q"] == (4, 0)
