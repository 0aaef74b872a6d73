"""What must agree in a limit, and what must rise: every count of a schedule, not pairs alone.

Pairs of masks in their limits are in ``tests/derive/test_masks.py``, densities in ``test_density.py``, and what a split moves
beside packed heads in ``tests/rules/test_split_kv.py``.
"""

from __future__ import annotations

from functools import cache

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.einsum import Reduce
from derive.errors import PreconditionError
from derive.exact import value
from derive.flops import Convention, Pipe, executed, flops
from derive.footprint import footprint, memory_peak
from derive.masks import Pattern
from derive.residency import dram
from derive.rewrite import Derivation
from derive.schedule import Schedule
from derive.traffic import compulsory, traffic
from rules.derivations import plan
from tests.strategies import FORWARD, is_plain

BYTES = {"b": 2, "b_kv": 2, "b_s": 2, "b_p": 2, "b_l": 4, "b_acc": 4, "b_part": 4, "b_h": 2}
MACHINE = {"C": 4, "n_L2": 1}
sizes = st.fixed_dictionaries(
    {name: st.integers(1, top) for name, top in (("N_q", 20), ("N_k", 20), ("d", 4), ("d_v", 4), ("h", 4), ("B", 2))}
    | {name: st.integers(1, 8) for name in ("B_r", "B_c", "B_d")}
    | {"C_L2": st.integers(1, 900)}
)


@cache
def derived(name: str, schedule: str, mask: Pattern = Pattern()) -> Derivation:  # noqa: B008  (a frozen value)
    """The derivation, every symbol kept."""
    return plan(schedule).derive(variant(name).graph(mask))


@cache
def counts(name: str, schedule: str, mask: Pattern = Pattern()) -> dict[str, sp.Expr]:  # noqa: B008
    """Every count of a schedule in closed form, bytes of each tensor apart."""
    cut: Schedule = derived(name, schedule, mask).schedule
    widths = {t: tensor.width for t, tensor in cut.graph.tensors.items()}
    found = {f"executed {pipe.value}": cost.amount for pipe, cost in executed(cut).items()}
    found |= {f"useful {pipe.value}": cost.amount for pipe, cost in flops(cut.graph).items()}
    for level, moves in (("compulsory", compulsory(cut.graph)), ("sm", traffic(cut)), ("dram", dram(cut))):
        for tensor, move in moves.in_bytes(widths).by_tensor.items():
            found |= {f"{level} {tensor} read": move.read, f"{level} {tensor} written": move.write}
    shared = footprint(cut)
    return found | {"peak": memory_peak(cut).amount} | ({"footprint": shared.amount} if shared else {})


def at(found: dict[str, sp.Expr], numbers: dict[str, int]) -> dict[str, object]:
    """The counts at *numbers*; a tensor that does not move counts as one that is not there."""
    known = {**BYTES, **MACHINE, "n_s": next(n for n in (3, 2, 1) if numbers["N_k"] % n == 0), **numbers}
    return {name: n for name, amount in found.items() if (n := value(amount, known)) != 0}


every_schedule = pytest.mark.parametrize("schedule", FORWARD)
few = settings(max_examples=10, deadline=None)


@every_schedule
@pytest.mark.parametrize("mask", ["full", "causal"])
@few
@given(numbers=sizes)
def test_grouped_heads_of_one_are_plain_heads(schedule: str, mask: str, numbers: dict[str, int]) -> None:
    """GQA with hk = h is MHA, tensor by tensor and at every level.

    HBM bytes where all fits the cache, or nothing; between, GQA makes room for slices that nobody shares, and is no less.
    """
    pairs = [counts(name, schedule, Pattern(mask)) for name in ("gqa", "mha")]
    for room in (1, numbers["C_L2"], 10**9):
        grouped, plain = (at(found, {**numbers, "h_k": numbers["h"], "C_L2": room}) for found in pairs)
        if room == numbers["C_L2"]:
            assert all(grouped.get(name, 0) >= plain[name] for name in plain if "dram" in name)  # type: ignore[operator]
        else:
            assert grouped == plain


@every_schedule
@few
@given(numbers=sizes)
def test_one_group_is_multi_query(schedule: str, numbers: dict[str, int]) -> None:
    """GQA with hk = 1 is MQA."""
    assert at(counts("gqa", schedule), {**numbers, "h_k": 1}) == at(counts("mqa", schedule), {**numbers, "h_k": 1})


@every_schedule
@few
@given(numbers=sizes)
def test_one_query_is_a_decode_step(schedule: str, numbers: dict[str, int]) -> None:
    """GQA with N_q = 1 is decode."""
    given_one = {**numbers, "N_q": 1, "h_k": 1}
    assert at(counts("gqa", schedule), given_one) == at(counts("decode", schedule), given_one)


@few
@given(n=st.integers(1, 10**6), head=st.integers(1, 256), heads=st.integers(1, 8))
def test_a_decode_step_is_the_last_row_of_a_causal_prefill(n: int, head: int, heads: int) -> None:
    """Useful work on n tokens less that on n - 1 is one query's against n keys, on every pipe that pairs keys with queries."""
    sized = {"d": head, "d_v": head, "h": heads, "h_k": heads, "B": 1}
    prefill = {p: c.amount for p, c in flops(derived("gqa", "flash2", Pattern("causal")).schedule.graph).items()}
    step = {p: c.amount for p, c in flops(derived("decode", "flash2").schedule.graph).items()}
    for pipe in (Pipe.MMA, Pipe.SFU):
        longer, shorter = (value(prefill[pipe], {**sized, "N_q": m, "N_k": m}) for m in (n, n - 1))
        assert longer - shorter == value(step[pipe], {**sized, "N_k": n})


@every_schedule
@few
@given(numbers=sizes, more=st.integers(0, 5))
def test_a_window_of_all_keys_moves_and_runs_what_a_causal_mask_does(
    schedule: str, numbers: dict[str, int], more: int
) -> None:
    """On chip too: no tile is skipped that causal keeps, whatever the tiles; HBM reads within what either's SMs ask."""
    wide = at(counts("mha", schedule, Pattern("window")), {**numbers, "W": max(numbers["N_q"], numbers["N_k"]) + more})
    whole = at(counts("mha", schedule, Pattern("causal")), numbers)
    assert {k: v for k, v in wide.items() if "dram" not in k} == {k: v for k, v in whole.items() if "dram" not in k}


@every_schedule
@few
@given(numbers=sizes, n=st.sampled_from((1, 7, 12)))
def test_one_document_is_causal_and_one_whole_document_is_unmasked(
    schedule: str, numbers: dict[str, int], n: int
) -> None:
    """Tiles, work and bytes of a list of one are those of the mask it is."""
    numbers = {**numbers, "N_q": n, "N_k": n}
    form = frozenset({"docs"})
    for one, other in (("docs", "causal"), ("docs-full", "full")):
        listed = at(counts("mha", schedule, Pattern(one, form, (n,))), numbers)
        plain = at(counts("mha", schedule, Pattern(other)), numbers)
        assert {k: v for k, v in listed.items() if "dram" not in k} == {
            k: v for k, v in plain.items() if "dram" not in k
        }


@pytest.mark.parametrize("schedule", ["naive", "flash1", "flash2"])
@pytest.mark.parametrize("mask", ["full", "causal", "window", "prefix"])
@few
@given(numbers=sizes, n=st.integers(1, 20), window=st.integers(1, 24), more=st.integers(1, 9))
def test_counts_rise_with_the_length_and_with_the_window(
    schedule: str, mask: str, numbers: dict[str, int], n: int, window: int, more: int
) -> None:
    """Compulsory, SM-side and executed amounts of a longer sequence, and of a wider window, are never less."""
    found = {k: e for k, e in counts("mha", schedule, Pattern(mask)).items() if "dram" not in k}
    short = {**numbers, "N_q": n, "N_k": n, "W": window, "N_p": window}
    for larger in ({"N_q": n + more, "N_k": n + more}, {"W": window + more}, {"N_p": window + more}):
        before, after = at(found, short), at(found, {**short, **larger})
        risen = {name: (before[name], after.get(name, 0)) for name in before if before[name] > after.get(name, 0)}  # type: ignore[operator]
        assert risen == {}


@pytest.mark.parametrize("name", ["gqa", "mla", "differential", "alibi", "sigmoid"])
@pytest.mark.parametrize("mask", ["causal", "window", "chunk"])
@few
@given(numbers=sizes, extra=st.integers(1, 9))
def test_useful_is_at_most_executed_in_every_variant(name: str, mask: str, numbers: dict[str, int], extra: int) -> None:
    """Exact work <= whole tiles on the matrix and exponential pipes, <= dense work in whole tiles, for any variant's flash2."""
    numbers = {**numbers, "h_k": 1, "d_c": 2, "d_r": 1, "W": extra, "C_k": extra}
    cut, dense = derived(name, "flash2", Pattern(mask)).schedule, derived(name, "flash2").schedule
    for pipe in (Pipe.MMA, Pipe.SFU):
        exact = value(flops(cut.graph)[pipe].amount, numbers)
        run = value(executed(cut)[pipe].amount, numbers)
        assert 0 <= exact <= run <= value(executed(dense)[pipe].amount, numbers)
        assert exact <= value(flops(cut.graph, Convention.DENSE)[pipe].amount, numbers)


def test_the_schedules_compared_are_those_of_plain_attention() -> None:
    """The parametrisation is not empty, and a schedule that refuses a mask is left out by its precondition alone."""
    assert {"naive", "flash1", "flash2"} <= set(FORWARD)
    assert is_plain("gqa")
    with pytest.raises(PreconditionError):
        plan("flash2").derive(variant("mha-backward").graph())
    assert Reduce.MAX in {e.reduce for e in derived("mha", "flash2").schedule.graph.einsums}
