"""The inverse of a unit lower triangle: its value, its work and what may not be done to it, against substitution by hand."""

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.denote import denote, equal, equation
from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.errors import IllFormedError
from derive.evaluate import evaluate
from derive.exact import value
from derive.execute import execute
from derive.flops import Convention, Pipe, executed, flops
from derive.graph import Graph
from derive.mask import causal
from derive.notation import cascade
from derive.operators import Array
from derive.passes import passes
from derive.replay import walk
from derive.replay_arrays import Walker
from derive.schedule import Kernel, Loop, Schedule, lift
from derive.symbols import B, B_r, C_k, N_k, N_q, b, d_v
from outputs.latex import einsum_latex

TEXT = """
    T[n,q,k] = inverse(A[n,q,k])
    U[n,q,e] = sum[k] T[n,q,k] * V[n,k,e]
"""


def graph(*, masked: bool = False) -> Graph:
    """B squares of C x C, inverted, times a tall matrix each."""
    extents = {"n": B, "q": C_k, "k": C_k, "e": d_v}
    return cascade(TEXT, extents, outputs=("T", "U"), width=b, mask=causal(C_k, C_k) if masked else None)


def by_hand(square: Array) -> tuple[Array, int]:
    """The inverse of I + (square strictly below its diagonal), one element after another, and its multiply-adds."""
    size, done = len(square), 0
    found = np.eye(size)
    for i in range(size):
        for j in range(i):
            for m in range(j, i):
                found[i, j] -= square[i, m] * found[m, j]
                done += 1
    return found, done


@settings(max_examples=40)
@given(size=st.integers(1, 8), squares=st.integers(1, 3), seed=st.integers(0, 2**32 - 1))
def test_it_is_what_substitution_makes_and_takes_what_substitution_takes(size: int, squares: int, seed: int) -> None:
    """Each element and each multiply-add, under every convention: the triangle is the operator's, not a mask's."""
    rng = np.random.default_rng(seed)
    a, v = rng.standard_normal((squares, size, size)), rng.standard_normal((squares, size, 2))
    found = evaluate(graph(), {"A": a, "V": v})
    rows = [by_hand(square) for square in a]
    np.testing.assert_allclose(found["T"], [inverse for inverse, _ in rows], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found["U"], [t @ x for (t, _), x in zip(rows, v, strict=True)], rtol=1e-8, atol=1e-9)
    at = {"B": squares, "C_k": size, "d_v": 2}
    alone = Graph(graph().einsums[:1], ("T",))
    for convention in (Convention.EXACT, Convention.DENSE, Convention.HALF):
        work = flops(alone, convention)
        assert value(work[Pipe.VECTOR].amount, at) == 2 * sum(done for _, done in rows)
        assert work[Pipe.MMA].amount == 0
    for walked in (walk(lift(alone), at), Walker(lift(alone)).walk(at)):
        assert walked.points["T"] == sum(done for _, done in rows)
        assert walked.moves["A"] == (squares * size**2, 0)
        assert walked.moves["T"] == (0, squares * size**2)


def test_nothing_on_the_diagonal_or_above_it_is_read() -> None:
    """Whatever stands there, NaN or not, changes nothing."""
    a = np.array([[[9.0, 9, 9], [2, 9, 9], [3, 4, 9]]])
    lower = np.array([[[1.0, 0, 0], [-2, 1, 0], [5, -4, 1]]])
    given_ = {"V": np.ones((1, 3, 1))}
    assert evaluate(graph(), {"A": a, **given_})["T"].tolist() == lower.tolist()
    a[0][np.triu_indices(3)] = np.nan
    assert evaluate(graph(), {"A": a, **given_})["T"].tolist() == lower.tolist()


def test_written_out_it_is_the_inverse_entry_by_entry() -> None:
    """SymPy's own inverse of a generic unit triangle, 4 x 4."""
    found = denote(graph(), "T", {"n": 1, "q": 4, "k": 4, "e": 1})
    a = sp.IndexedBase("A", real=True)
    wanted = sp.Matrix(4, 4, lambda i, j: int(i == j) if j >= i else a[0, i, j]).inv()
    assert all(equal(found[0, i, j], wanted[i, j]) for i in range(4) for j in range(4))


def test_in_closed_form_it_stands_as_it_is() -> None:
    """Rows and columns of its own, the element that is asked for first."""
    n, q, k, *inner = (sp.Symbol(name, nonnegative=True, integer=True) for name in ("n", "q", "k", "q'", "k'"))
    found = equation(graph(), "T").rhs
    ranges = (sp.Tuple(i, sp.Integer(0), C_k - 1) for i in inner)
    assert found == sp.Function("inverse", real=True)(q, k, sp.IndexedBase("A", real=True)[n, *inner], *ranges)
    assert einsum_latex(graph().einsums[0]) == r"T_{n,q,k} = \left(I + \operatorname{tril}(A_{n,q,k}, -1)\right)^{-1}"


def test_a_mask_thins_out_what_reads_it_and_not_itself() -> None:
    """T V under the diagonal: C (C + 1)/2 pairs."""
    inverse, product = graph(masked=True).einsums
    assert inverse.domain is None
    assert sp.expand(product.points - B * d_v * C_k * (C_k + 1) / 2) == 0


@settings(max_examples=20)
@given(size=st.integers(1, 5), squares=st.integers(1, 7), tile=st.integers(1, 3), grid=st.booleans())
def test_squares_may_be_run_in_tiles(size: int, squares: int, tile: int, grid: bool) -> None:
    """Ragged ones too: the same values, and the work of whole tiles."""
    made = graph()
    loop = Loop((made.indices["n"],), B_r, grid=grid)
    schedule = Schedule(made, (Kernel(("T", "U"), (loop,)),))
    at = {"B": squares, "C_k": size, "d_v": 2, "B_r": tile}
    rng = np.random.default_rng(size)
    given_ = {"A": rng.standard_normal((squares, size, size)), "V": rng.standard_normal((squares, size, 2))}
    np.testing.assert_allclose(execute(schedule, given_, {}, at)["U"], evaluate(made, given_)["U"], atol=1e-9)
    walked = walk(schedule, at).points["T"]
    assert walked == Walker(schedule).walk(at).points["T"] == -(-squares // tile) * tile * (size**3 - size) // 6
    assert value(executed(schedule)[Pipe.VECTOR].amount, at) == 2 * walked


@pytest.mark.parametrize("index", ["q", "k"])
@pytest.mark.parametrize("grid", [False, True])
def test_no_loop_cuts_a_square(index: str, grid: bool) -> None:
    """A tile of rows waits for all rows above it."""
    made = Graph(graph().einsums[:1], ("T",))
    assert passes(graph(), "k") == 2
    with pytest.raises(
        IllFormedError, match=f"inverts a whole square; {'grid' if grid else 'for'} {index} by B_r would"
    ):
        Schedule(made, (Kernel(("T",), (Loop((made.indices[index],), B_r, grid=grid),)),))


def _node(rows: Index, columns: Index, **more: object) -> Einsum:
    square = Tensor("A", (rows, columns), b)
    return Einsum(Tensor("T", (rows, columns), b), (square,), Map.INVERSE, **more)  # type: ignore[arg-type]


def test_only_a_plain_square_is_inverted() -> None:
    """Another shape, another order, a mask or a sum are refused."""
    row, column = Index("q", C_k), Index("k", C_k)
    assert _node(row, column).inverted == (row, column)
    batch = Index("b", B)
    squares = Einsum(Tensor("T", (batch, row, column), b), (Tensor("A", (batch, row, column), b),), Map.INVERSE)
    assert squares.inverted == (row, column)
    turned = Tensor("T", (column, row), b)
    refused = (
        lambda: _node(Index("q", N_q), Index("k", N_k)),
        lambda: _node(row, column, domain=causal(C_k, C_k)),
        lambda: Einsum(turned, (Tensor("A", (row, column), b),), Map.INVERSE),
        lambda: Einsum(Tensor("T", (row,), b), (Tensor("A", (row,), b),), Map.INVERSE),
        lambda: Einsum(Tensor("T", (row,), b), (Tensor("A", (row, column), b),), Map.INVERSE, Reduce.SUM),
    )
    for make in refused:
        with pytest.raises(IllFormedError, match="a square is inverted along its last two indices, index for index"):
            make()
