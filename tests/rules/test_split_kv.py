"""Keys in parts: what moves, against flash2 and against the walker; values; and that each part is needed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.errors import BadValueError, PreconditionError
from derive.evaluate import evaluate, random_inputs
from derive.exact import value
from derive.execute import execute
from derive.footprint import memory_peak
from derive.passes import passes
from derive.schedule import Schedule
from derive.traffic import traffic
from rules.derivations import plan
from tests.published.questions import ask, total
from tests.rules.meaning import counted, scalars_of, walked
from tests.strategies import shapes

VARIANTS = ("mha", "gqa", "gqa-repeated", "mqa", "decode")
variants = st.sampled_from(VARIANTS)
PARTIALS = ("m_s", "l_s", "U_O_s")


def cut(name: str, schedule: str = "split-kv") -> Schedule:
    """A schedule of a variant."""
    return plan(schedule).derive(variant(name).graph()).schedule


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


def test_a_masked_problem_is_refused() -> None:
    """One sentence, by the rule that cannot apply."""
    with pytest.raises(PreconditionError, match="no mask thins the pairs"):
        ask("mha N=8192 mask=causal", "split-kv")


def test_one_query_a_head_uses_few_tiles_of_the_matrix_pipe() -> None:
    """Packing fills a tile with the group's heads: executed work falls by the group's size."""
    alone, packed = (ask("decode N=8192 h=32 hk=8 d=128 splits=4", s) for s in ("flash2", "split-kv"))
    ratio = Fraction(*(a.exact(next(iter(a.executed.values()))) for a in (alone, packed)))
    assert ratio == 4
    assert traffic(packed.derivation.schedule).by_tensor["K"].read != 0
