"""Cutting the keys into parts: the same elements in memory, a partial result a part."""

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.flops import flops
from derive.graph import Graph
from derive.rewrite import apply_once
from derive.schedule import lift
from derive.symbols import N_k, N_q, b, d_v, n_s
from derive.traffic import traffic
from rules.algebra.split_keys import RULE
from tests.rules.meaning import same_graphs


def test_what_lies_in_memory_stays_where_it_was() -> None:
    """V[k, e] is read as V[s, k, e], with k fastest of the two: one axis of as many elements, read once as before."""
    step = apply_once(RULE, RULE.example())
    assert isinstance(step.after, Graph)
    v = step.after.tensors["V"]
    assert [[i.name for i in axis] for axis in v.axes] == [["s", "k"], ["e"]]
    assert v.size == N_k * d_v
    assert traffic(lift(step.after)).by_tensor["V"].read == N_k * d_v


def test_partial_results_are_n_s_times_the_result() -> None:
    """Op by op each is written and read once."""
    after = apply_once(RULE, RULE.example()).after
    assert isinstance(after, Graph)
    moves = traffic(lift(after)).by_tensor
    assert (moves["m_s"].write, moves["O_s"].read) == (N_q * n_s, N_q * d_v * n_s)


def test_only_the_merges_are_more_work() -> None:
    """The products over k are as many; n_s terms a result are added on top: a maximum, d_v sums, and that of positions."""
    step = apply_once(RULE, RULE.example())
    assert isinstance(step.before, Graph)
    assert isinstance(step.after, Graph)
    before, after = flops(step.before), flops(step.after)
    more = {pipe: (after[pipe].amount - before[pipe].amount).expand() for pipe in before}
    assert sorted(map(str, more.values())) == sorted(["0", "0", str((N_q * n_s * (1 + d_v) + n_s).expand())])


def test_a_view_of_keys_in_memory_has_its_parts_where_they_lie() -> None:
    """As read, so seen; one that gives keys another name, or another place, is not cut."""
    q, r, k, j = Index("q", N_q), Index("r", N_q), Index("k", N_k), Index("j", N_k)

    def viewed(seen: tuple[Index, ...], under: Index = k) -> Graph:
        """A sum over keys of scores seen under other indices."""
        scores, view = Tensor("S", (q, k), b), Tensor("W", seen, b)
        total = Tensor("t", tuple(i for i in seen if i != under), b)
        return Graph((Einsum(view, (scores,), Map.VIEW), Einsum(total, (view,), Map.COPY, Reduce.SUM)), ("t",))

    before = viewed((r, k))
    after = apply_once(RULE, before).after
    assert isinstance(after, Graph)
    assert [i.name for i in after.tensors["W"].indices] == ["r", "s", "k"]
    assert same_graphs(before, after, {"N_q": 3, "N_k": 4, "n_s": 2})
    assert not list(RULE.shape(viewed((r, j), j)))
    square = Index("q", N_k), Index("k", N_k)
    turned = Einsum(Tensor("W", square[::-1], b), (Tensor("S", square, b),), Map.VIEW)
    total = Einsum(Tensor("t", square[:1], b), (turned.output,), Map.COPY, Reduce.SUM)
    assert not list(RULE.shape(Graph((turned, total), ("t",))))
