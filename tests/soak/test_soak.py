"""A short soak with every run of the tests, from a seed of its own; `make soak` runs the same for an hour."""

from __future__ import annotations

from random import Random

import pytest
import sympy as sp
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.cost import Move, Moves, Unit
from derive.errors import DomainError
from derive.exact import value
from derive.notation import cascade
from derive.schedule import Kernel, Loop, Schedule
from derive.symbols import B_c, B_r, N_k, N_q, b, d
from derive.traffic import traffic
from tests.rules.meaning import counted, walked
from tests.soak import __main__, programs, runner
from tests.soak import traffic as catalogue_traffic
from tests.soak.batch import smallest
from tests.soak.compiled import Compiled
from tests.soak.drawing import catalogue, drawn, fitted, sizes
from tests.soak.runner import TURNS, batch, soak

SEED = 20


def test_a_seeded_run_finds_no_mismatch() -> None:
    """A turn of every kind: about six hundred configurations of two dozen programs, and the cache's thresholds."""
    found = soak(SEED, configurations=600, processes=1)
    assert found.mismatches == 0, "\n".join(found.lines)
    assert set(found.kinds) == {
        "catalogue: traffic, tile walk",
        "catalogue: HBM, LRU cache",
        "random programs: tile walk",
    }
    assert all(kind.tried >= 10 for kind in found.kinds.values() if kind.programs)


def test_a_batch_is_made_by_its_seed_and_number() -> None:
    """What ``--batch`` runs again is what ran."""
    assert batch(SEED, 3) == batch(SEED, 3)
    assert batch(SEED, 3) != batch(SEED + 1, 3)


def test_every_program_of_the_catalogue_has_its_turn() -> None:
    """As many batches as there are programs try each of them once."""
    programs_, steps = len(catalogue()), catalogue_traffic.STRIDE
    assert {n * steps % programs_ for n in range(programs_)} == set(range(programs_))
    assert set(TURNS) == set(runner.KINDS)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6))
def test_sizes_are_legal(seed: int) -> None:
    """Divisors divide and parts are within their whole."""
    random = Random(seed)
    program = drawn(random.choice(catalogue()), random)
    if program is not None:
        numbers = sizes(program, program.derive().schedule, random)
        assert fitted(program, numbers) == numbers


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_random_programs_move_what_the_plain_walk_counts(seed: int) -> None:
    """The same programs against the walk in plain Python, or a refusal."""
    random = Random(seed)
    cut, numbers = programs.program(random), programs.sizes(random)
    try:
        formula = counted(cut, numbers)
    except DomainError:
        return
    assert formula == walked(cut, numbers)


def test_what_each_cta_sums_for_itself_comes_back_to_none() -> None:
    """X0 does not carry d, whose two tiles are CTAs: each sums both rows once, on chip, and nothing is read or written."""
    text = "X0[k] = sum[q] C[q,k]\nX1[k,d] = X0[k] * A[k,d]"
    graph = cascade(text, {"q": N_q, "k": N_k, "d": d}, outputs=("X1",), width=b)
    by_one = sp.Integer(1)
    loops = (Loop((graph.indices["d"],), by_one, grid=True), *(Loop((graph.indices[i],), by_one) for i in "qk"))
    cut = Schedule(graph, (Kernel(("X0", "X1"), loops),))
    for rows in (1, 3):
        numbers = {"N_q": rows, "N_k": 2, "d": 2}
        assert counted(cut, numbers) == walked(cut, numbers)
        assert counted(cut, numbers).get("X0", (0, 0)) == (4 * (rows - 1), 4 * (rows - 1))


def test_a_sum_made_again_is_refused() -> None:
    """The row sum of A does not run over d, which stands outside k: each of its trips would add the keys up again."""
    text = "l[q] = sum[k] A[q,k]\nY[q,d] = l[q] * C[q,d]"
    graph = cascade(text, {"q": N_q, "k": N_k, "d": d}, outputs=("Y",), width=b)
    by_one = sp.Integer(1)
    loops = tuple(Loop((graph.indices[i],), by_one) for i in ("d", "k"))
    with pytest.raises(DomainError, match=r"l\[q\] would be summed again at each trip of \(for d by 1\)"):
        traffic(Schedule(graph, (Kernel(("l", "Y"), loops),)))


def test_random_programs_cover_the_nests() -> None:
    """Of 200: several kernels, several loops, grids, partial sums that come back, and sums that are refused."""
    drawn_programs = [programs.program(Random(seed)) for seed in range(200)]
    assert sum(len(p.kernels) > 1 for p in drawn_programs) > 50
    assert sum(any(len(k.loops) > 2 for k in p.kernels) for p in drawn_programs) > 25
    assert sum(any(k.grid for k in p.kernels) for p in drawn_programs) > 20
    assert sum(_refused(p) for p in drawn_programs) > 5
    assert sum(_comes_back(p) for p in drawn_programs) > 10


def _refused(program: Schedule) -> bool:
    try:
        traffic(program)
    except DomainError:
        return True
    return False


def _comes_back(program: Schedule) -> bool:
    """Whether a result that no other kernel reads is read: it leaves the SM unfinished."""
    if _refused(program):
        return False
    moves = traffic(program).by_tensor
    return any(
        moves[name].read != 0
        for kernel in program.kernels
        for name in kernel.einsums
        if name in moves and {e.output.name for e in program.graph.readers.get(name, ())} <= set(kernel.einsums)
    )


def test_a_compiled_form_is_the_form() -> None:
    """Sums, cases and fractions, at numbers beyond 64 bits too."""
    i = sp.Symbol("i", integer=True)
    amount = sp.Piecewise((sp.Sum(sp.Min(N_q, i * B_r), (i, 0, B_c)), N_q > N_k), (N_q * N_k / 2, True))
    for at in ({"N_q": 9, "N_k": 4, "B_r": 2, "B_c": 7}, {"N_q": 2**70 + 1, "N_k": 2**70 + 1, "B_r": 1, "B_c": 1}):
        assert Compiled({"x": amount, "y": amount + 0})(at) == dict.fromkeys("xy", value(amount, at))


def test_the_smallest_is_found_one_size_at_a_time() -> None:
    """Where a + b >= 7 and b >= 3 fails, and b is at least 1."""
    found = smallest({"a": 40, "b": 50}, lambda at: at["a"] + at["b"] >= 7 and at["b"] >= 3, {"a": 0})
    assert found == {"a": 0, "b": 7}


def _one_more(schedule: Schedule) -> Moves:
    """Traffic with one element too many of each input where the keys are ragged."""
    right = traffic(schedule).by_tensor
    tiled = any(B_c in loop.tile.free_symbols for kernel in schedule.kernels for loop in kernel.loops)
    more = sp.Min(1, sp.Mod(N_k, B_c)) if tiled else 0
    wrong = {n: Move(m.read + more, m.write) if n == "K" else m for n, m in right.items()}
    return Moves(wrong, Unit.ELEMENT)


def test_a_wrong_formula_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more element where keys are ragged: two keys by one, told with both counts and the command that repeats it."""
    monkeypatch.setattr(catalogue_traffic, "traffic", _one_more)
    said = CliRunner().invoke(__main__.main, ["--seed", "0", "--configurations", "4000", "--first", "--processes", "1"])
    assert said.exit_code == 1
    assert "MISMATCH in batch" in said.output
    assert "closed form K:" in said.output
    assert "derive check" in said.output
    assert "--samples 1" in said.output
    assert "python -m tests.soak --seed 0 --batch" in said.output
