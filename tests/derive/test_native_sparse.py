"""Native sparse attention as one graph, against a plain reading of its paper: three branches, each for itself."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings

from derive.attention import variant
from derive.errors import BadValueError, PreconditionError
from derive.evaluate import evaluate, random_inputs
from derive.execute import execute
from derive.operators import Array
from derive.selection import random_positions
from derive.symbols import N_k
from outputs.explanation import Explanation
from outputs.request import read_request
from rules.derivations import plan
from tests.rules.meaning import counted, walked
from tests.strategies import fitted, shapes

SCALARS = {"c": 0.7}


def overlaps(numbers: dict[str, int]) -> tuple[Array, Array]:
    """For each selected block, the compressed blocks that the paper's equation 9 adds up, and which of them there are.

    p_slc[j] = sum over m < l'/d and n < l/d of p_cmp[(l'/d) j - m - n]; one before the first counts nothing.
    """
    wide, long = numbers["l_s"] // numbers["d_s"], numbers["l_c"] // numbers["d_s"]
    blocks = np.arange(numbers["N_k"] // numbers["l_s"])
    at = wide * blocks[:, None, None] - np.arange(wide)[:, None] - np.arange(long)
    return np.maximum(at, 0).astype(float), (at >= 0).astype(float)


def attended(query: Array, keys: Array, values: Array) -> tuple[Array, Array]:
    """(probabilities, result) of one query."""
    scores = np.exp(0.7 * keys @ query)
    return scores / scores.sum(), scores / scores.sum() @ values


def plainly(i: dict[str, Array], numbers: dict[str, int]) -> Array:
    """Group by group: importance of blocks from the compressed probabilities of its heads, then each branch, then gates."""
    wide, long = numbers["l_s"] // numbers["d_s"], numbers["l_c"] // numbers["d_s"]
    found = np.zeros((*i["Q"].shape[:-1], i["V_cmp"].shape[-1]))
    for b, g in np.ndindex(*i["Q"].shape[:2]):
        queries = i["Q"][b, g, :, 0]
        compressed = [attended(q, i["K_cmp"][b, g], i["V_cmp"][b, g]) for q in queries]
        shares = sum(p for p, _ in compressed)
        importance = np.array(
            [
                sum(shares[at] for m in range(wide) for n in range(long) if (at := wide * j - m - n) >= 0)
                for j in range(numbers["N_k"] // numbers["l_s"])
            ]
        )
        best = np.argsort(-importance, kind="stable")[: numbers["n_b"]]
        keys, values = (np.concatenate(i[name][b, g, best]) for name in ("K_slc", "V_slc"))
        for r, query in enumerate(queries):
            _, selected = attended(query, keys, values)
            _, recent = attended(query, i["K_win"][b, g], i["V_win"][b, g])
            gates = [i[f"g_{branch}"][b, g, r, 0] for branch in ("cmp", "slc", "win")]
            found[b, g, r, 0] = sum(x * o for x, o in zip(gates, (compressed[r][1], selected, recent), strict=True))
    return found


def inputs_of(numbers: dict[str, int]) -> dict[str, Array]:
    """Random ones, with the paper's table of overlapping blocks."""
    inputs = random_inputs(variant("nsa").graph(), numbers, np.random.default_rng(0))
    inputs["Y"], inputs["A"] = overlaps(numbers)
    return inputs


MANY = {"N_q": 1, "N_k": 48, "l_s": 4, "l_c": 4, "d_s": 2, "n_b": 3, "W": 5, "d": 3, "d_v": 2, "h": 6, "h_k": 2, "B": 2}
"""More blocks than are selected, and heads that have to agree on them."""


def test_the_blocks_are_those_that_the_paper_selects() -> None:
    """Which are selected depends on every head's normalised share, and on how often blocks overlap."""
    inputs = inputs_of(MANY)
    found = evaluate(variant("nsa").graph(), inputs, SCALARS, MANY)["O"]
    np.testing.assert_allclose(found, plainly(inputs, MANY), rtol=1e-9, atol=1e-11)


@settings(max_examples=25, deadline=None)
@given(numbers=shapes())
def test_the_graph_is_what_the_paper_says(numbers: dict[str, int]) -> None:
    """arXiv:2502.11089, equations 5, 9 to 12: at any shape."""
    numbers = fitted("nsa", numbers)
    inputs = inputs_of(numbers)
    found = evaluate(variant("nsa").graph(), inputs, SCALARS, numbers)["O"]
    np.testing.assert_allclose(found, plainly(inputs, numbers), rtol=1e-9, atol=1e-11)


@settings(max_examples=15, deadline=None)
@given(numbers=shapes())
def test_its_schedule_computes_and_counts_it(numbers: dict[str, int]) -> None:
    """Tile by tile, whatever the tiles; the closed form of traffic is the walker's count."""
    numbers = fitted("nsa", numbers)
    made = plan("per-query").derive(variant("nsa").graph())
    inputs = inputs_of(numbers)
    found = execute(made.schedule, inputs, SCALARS, numbers)["O"]
    np.testing.assert_allclose(found, plainly(inputs, numbers), rtol=1e-9, atol=1e-11)
    assert counted(made.schedule, numbers) == walked(made.schedule, numbers)


def test_each_branch_streams_in_a_kernel_of_its_own() -> None:
    """Compressed keys and the scores that blocks are selected by in tiles of B_c, selected keys block by block."""
    schedule = plan("per-query").derive(variant("nsa").graph()).schedule
    nests = {k.name: k.nest for k in schedule.kernels}
    rows = "grid b by 1, grid g by 1, grid q by 1, grid r by B_r, for"
    assert nests["Q_cmp..G_cmp"] == f"{rows} p by B_c"
    assert nests["K_sel..G_slc"] == f"{rows} t by 1"
    assert nests["Q_win..G_win"] == f"{rows} k by B_c"
    assert nests["Q_imp..I"] == "grid b by 1, grid g by 1, grid q by 1, for j by B_c"


def test_a_table_may_name_a_row_twice_and_a_selection_may_not() -> None:
    """Blocks overlap: several selected blocks lie over one compressed block."""
    drawn = random_positions(2, (3, 5), np.random.default_rng(0), distinct=False)
    assert drawn.shape == (3, 5)
    assert set(drawn.ravel()) == {0.0, 1.0}
    numbers = {"N_k": 8, "l_s": 2, "l_c": 4, "d_s": 1, "n_b": 3, "W": 2, "d": 1, "d_v": 1, "h": 1, "h_k": 1, "B": 1}
    assert random_inputs(variant("nsa").graph(), numbers, np.random.default_rng(0))["Y"].shape == (4, 2, 4)


@pytest.mark.parametrize("name", ["per-sequence", "cascade", "recurrent"])
def test_what_would_gather_from_its_own_kernel_is_refused(name: str) -> None:
    """The rule's clause says why, and no ill-formed schedule is made."""
    with pytest.raises(PreconditionError, match="nothing that the run makes is gathered from in it"):
        plan(name).derive(variant("nsa").graph())


def test_forms_that_grow_with_no_length_leave_the_threshold_alone() -> None:
    """Of the 25 intermediates of the unfused program some are as large at any length."""
    account = Explanation(read_request(variant("nsa"), ()), ("naive",))
    limit = account.thresholds["naive"]
    assert limit is not None
    assert not limit.formula.has(sp.zoo, sp.nan)
    assert N_k not in limit.formula.free_symbols


def test_sizes_that_divide_an_open_length_are_no_mistake() -> None:
    """What was not given may still be a multiple; h, which is 1 where it is not given, may not."""
    assert read_request(variant("nsa"), ("ls=30",)).numbers["l_s"] == 30
    with pytest.raises(BadValueError, match="hk=2 does not divide h=1"):
        read_request(variant("nsa"), ("hk=2",))
    with pytest.raises(BadValueError, match=r"nb=4: there cannot be more blocks .* than 3, with Nk=90, ls=30"):
        read_request(variant("nsa"), ("Nk=90", "ls=30", "nb=4"))
