"""Recurrences: what stands one step behind, run in order by every reader of a graph; and one tensor under two names."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from derive.denote import denote, equal, equation
from derive.differentiate import differentiate
from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.errors import IllFormedError
from derive.evaluate import evaluate
from derive.flops import Pipe, flops
from derive.graph import Graph
from derive.mask import causal
from derive.notation import cascade
from derive.passes import passes
from derive.schedule import Kernel, Loop, Schedule, lift
from derive.symbols import N_k, N_q, b, d
from derive.traffic import traffic
from rules.schedule.examples import fused, loop

SIZES = {"q": N_q, "k": N_q, "d": d, "n": N_k}
SUM = """
    H[q] = previous[q] J[q]
    J[q] = H[q] + x[q]
"""


def graph(text: str, *outputs: str, mask: bool = False) -> Graph:
    """A small cascade."""
    return cascade(text, SIZES, outputs=outputs, width=b, mask=causal(N_q, N_q) if mask else None)


def test_a_running_sum_is_what_stands_one_step_behind_and_what_comes() -> None:
    """H is the sum of all earlier entries, J with the own one."""
    x = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    found = evaluate(graph(SUM, "H", "J"), {"x": x})
    assert found["H"].tolist() == [0, 3, 4, 8, 9]
    assert found["J"].tolist() == np.cumsum(x).tolist()


def test_a_recurrence_need_not_be_linear() -> None:
    """J[q] = exp(J[q - 1] * x[q]), step by step."""
    made = graph("H[q] = previous[q] J[q]\nY[q] = H[q] * x[q]\nJ[q] = exp(Y[q])", "J")
    x = np.array([0.5, -1.0, 0.25])
    wanted, last = [], 0.0
    for entry in x:
        last = np.exp(last * entry)
        wanted.append(last)
    assert np.allclose(evaluate(made, {"x": x})["J"], wanted)


def test_a_recurrence_is_written_out_entry_by_entry() -> None:
    """With a decay: J[2] = a2 (a1 x0 + x1) + x2."""
    made = graph("H[q] = previous[q] J[q]\nF[q] = a[q] * H[q]\nJ[q] = F[q] + x[q]", "J")
    a, x = (sp.IndexedBase(name, real=True) for name in "ax")
    found = denote(made, "J", {"q": 3})
    assert equal(found[(2,)], a[2] * (a[1] * x[0] + x[1]) + x[2])


def test_a_recurrence_in_closed_form_is_one() -> None:
    """J[q] is J[q - 1] + x[q]; the first has no predecessor."""
    q = sp.Symbol("q", nonnegative=True, integer=True)
    right = equation(graph(SUM, "J"), "J").rhs
    j, x = (sp.IndexedBase(name, real=True) for name in "Jx")
    assert right == sp.Piecewise((j[q - 1], q > 0), (0, True)) + x[q]


def test_a_running_sum_costs_one_addition_a_step() -> None:
    """Standing one step behind costs nothing."""
    found = flops(graph(SUM, "J"))
    assert {pipe: cost.amount for pipe, cost in found.items()} == {Pipe.VECTOR: N_q, Pipe.MMA: 0, Pipe.SFU: 0}


def test_reading_a_state_at_its_own_step_needs_no_further_pass() -> None:
    """One pass; what waits for the sum of all states needs a second one, also where it waits through something else."""
    assert passes(graph(SUM + "y[q] = H[q] * x[q]", "y"), "q") == 1
    total = "l[d] = sum[q] A[q,d]\ni[d] = exp(l[d])\ny[q,d] = A[q,d] * i[d]"
    assert passes(graph(total, "y"), "q") == 2


def test_op_by_op_a_recurrence_is_one_operator() -> None:
    """None of its Einsums can finish before another begins; what only reads it is a kernel of its own."""
    schedule = lift(graph(SUM + "y[q] = H[q] * x[q]", "y"))
    assert [k.einsums for k in schedule.kernels] == [("H", "J"), ("y",)]
    assert {n: (m.read, m.write) for n, m in traffic(schedule).by_tensor.items()} == {
        "x": (2 * N_q, 0),
        "H": (N_q, N_q),
        "y": (0, N_q),
    }


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("H[q] = previous[k] J[q]\nJ[q] = H[q] + x[q]", r"J\[q\] has no index k to stand one step behind along"),
        ("H[q] = previous[q] H[q]", "a plain copy of another tensor, index for index"),
        ("H[q,d] = previous[q] J[d,q]\nJ[d,q] = exp(H[q,d])", "a plain copy of another tensor, index for index"),
        ("H[q] = previous[q] J[q]\nJ[q] = K[q] + x[q]\nK[q] = J[q] + x[q]", "K is read before it is defined"),
        ("Y[q] = exp(J[q])\nH[q] = previous[q] J[q]\nJ[q] = H[q] + x[q]", "J is read before it is defined"),
        (
            "H[q,d] = previous[q] J[q,d]\nl[d] = sum[q] H[q,d]\nJ[q,d] = H[q,d] + l[d]",
            "needs no step of it, or all; move it out",
        ),
        (
            "H[q,k] = previous[q] J[q,k]\nG[q,k] = previous[k] L[q,k]\nJ[q,k] = H[q,k] + x[q,k]\nL[q,k] = G[q,k] + x[q,k]",
            "it runs along k inside a recurrence along q; take them apart",
        ),
        ("A[k] = view(B[d])", "each to one of the same extent"),
        ("A[q] = view(B[k])\nC[q,n] = B[q] + B[n]", "a tensor has one list of indices"),
        ("A[q] = exp(x[q])\nB[q,k] = A[q] * A[k]", "a tensor has one list of indices"),
    ],
)
def test_a_cascade_that_means_nothing_is_refused(text: str, error: str) -> None:
    """The message names the Einsum."""
    with pytest.raises(IllFormedError, match=error):
        graph(text, "J" if "J[" in text else "A")


def test_a_delay_that_reduces_or_computes_is_refused() -> None:
    """It is a copy and nothing else."""
    q = Index("q", N_q)
    x = Tensor("x", (q,), b)
    with pytest.raises(IllFormedError, match="what stands one step behind is a plain copy of another tensor"):
        Einsum(Tensor("H", (q,), b), (x,), Map.EXP, previous="q")


TWO_NAMES = """
    Y[q,k] = f[q] - f[k]
    z[q]   = sum[k] Y[q,k]
"""


def test_an_input_under_two_names_is_read_once() -> None:
    """F at rows and at keys are the same N elements."""
    made = fused(graph(TWO_NAMES, "z"))
    assert traffic(made).by_tensor["f"].read == N_q
    f = np.array([1.0, 2.0, 5.0])
    assert evaluate(made.graph, {"f": f})["z"].tolist() == [-5, -2, 7]


def test_a_loop_must_not_cut_what_is_read_under_two_names() -> None:
    """A tile of rows does not hold all keys."""
    made = graph(TWO_NAMES, "z")
    with pytest.raises(IllFormedError, match="reads a tensor under two names, whole; for q by B_r would cut it"):
        fused(made, loop(made, "q"))


def test_a_view_names_a_result_anew() -> None:
    """A[q] = exp(x[q]) is asked for at keys; whoever reads it there waits for all of it."""
    text = "A[q] = exp(x[q])\nA_k[k] = view(A[q])\nY[q,k] = A[q] * A_k[k]\nz[q] = sum[k] Y[q,k]"
    made = graph(text, "z")
    x = np.array([0.0, 1.0])
    wanted = np.exp(x) * np.exp(x).sum()
    assert np.allclose(evaluate(made, {"x": x})["z"], wanted)
    found = denote(made, "z", {"q": 2, "k": 2})
    entry = sp.IndexedBase("x", real=True)
    assert equal(found[(1,)], sp.exp(entry[1]) * (sp.exp(entry[0]) + sp.exp(entry[1])))
    assert passes(made, "q") == 2
    with pytest.raises(IllFormedError, match="under two names, whole; for k by B_c would cut it"):
        fused(made, Loop((made.indices["k"],), sp.Symbol("B_c", positive=True, integer=True)))


def test_a_mask_may_make_a_prefix_sum() -> None:
    """A[q] = sum of f[k] over k <= q: N (N + 1)/2 additions; over rows q >= k it is the suffix sum."""
    prefix = graph("A[q] = sum[k] f[k]", "A", mask=True)
    suffix = graph("A[k] = sum[q] f[q]", "A", mask=True)
    f = np.array([1.0, 2.0, 5.0])
    assert evaluate(prefix, {"f": f})["A"].tolist() == [1, 3, 8]
    assert evaluate(suffix, {"f": f})["A"].tolist() == [8, 7, 5]
    assert sp.expand(flops(prefix)[Pipe.VECTOR].amount - N_q * (N_q + 1) / 2) == 0
    values = {N_q: 3}
    for made, index in ((prefix, "q"), (suffix, "k")):
        right = equation(made, "A").rhs.subs(values).subs(sp.Symbol(index, nonnegative=True, integer=True), 1).doit()
        entry = sp.IndexedBase("f", real=True)
        assert right == (entry[0] + entry[1] if index == "q" else entry[1] + entry[2])


def test_part_of_a_recurrence_is_no_kernel() -> None:
    """State and step must meet in one."""
    made = graph(SUM, "J")
    with pytest.raises(IllFormedError, match="it runs part of the recurrence along q; run all of it"):
        Schedule(made, (Kernel(("H",)), Kernel(("J",))))


def test_a_sum_may_not_be_over_what_the_mask_lacks() -> None:
    """An output index needs an input or the mask."""
    with pytest.raises(IllFormedError, match="index q of the output is bound by no input"):
        Einsum(Tensor("A", (Index("q", N_q),), b), (Tensor("f", (Index("k", N_q),), b),), Map.COPY, Reduce.SUM)


@pytest.mark.parametrize("text", [SUM, "J[k] = view(x[q])"])
def test_what_runs_in_order_has_no_derivative_yet(text: str) -> None:
    """Its gradient would run from the last step to the first; it is refused, not got wrong."""
    with pytest.raises(IllFormedError, match="a recurrence, or a view, has no derivative here"):
        differentiate(graph(text, "J"))
