"""Cascades: what is read, by whom, and in which order; what has no meaning is refused."""

from dataclasses import replace

import networkx as nx
import pytest

from derive.einsum import Einsum, Map, Reduce, Tensor
from derive.errors import IllFormedError
from derive.graph import Graph
from derive.notation import cascade
from derive.symbols import N_k, N_q, b, b_s
from rules.schedule.examples import streaming

SIZES = {"q": N_q, "k": N_k}
TEXT = """
    E[q,k] = exp(S[q,k])
    l[q] = sum[k] E[q,k]
    P[q,k] = E[q,k] / l[q]
    Y[q,k] = P[q,k] * c
"""
GRAPH = cascade(TEXT, SIZES, outputs=("Y",), width=b)
E, L, P, Y = GRAPH.einsums


def test_readers_and_producers_are_found_by_name() -> None:
    """E is read by l and P."""
    assert GRAPH.readers["E"] == (L, P)
    assert GRAPH.producers["P"] is P
    assert "Y" not in GRAPH.readers


def test_inputs_are_read_and_never_defined_and_a_scalar_is_none() -> None:
    """S is in memory, c is an argument."""
    assert [t.name for t in GRAPH.inputs] == ["S"]
    assert list(GRAPH.tensors) == ["S", "E", "l", "P", "c", "Y"]


def test_a_tensor_that_is_read_twice_by_one_node_has_one_reader() -> None:
    """X x."""
    graph = cascade("y[q,k] = x[q,k] * x[q,k]", SIZES, outputs=("y",), width=b)
    assert len(graph.readers["x"]) == 1


def test_indices_and_the_mask_are_those_of_its_nodes() -> None:
    """Attention under a causal mask."""
    assert GRAPH.mask is None
    assert set(GRAPH.indices) == {"q", "k"}
    mask = streaming("causal").mask
    assert mask is not None
    assert mask.name == "causal"


def test_new_nodes_stand_where_the_last_old_one_stood() -> None:
    """Replacing E and P keeps l before the new P."""
    quotient = Einsum(P.output, (GRAPH.tensors["S"], L.output), Map.DIV)
    assert GRAPH.replace((P,), (quotient,)).einsums == (E, L, quotient, Y)
    assert GRAPH.replace((), ()) is GRAPH


def test_a_cascade_prints_one_line_a_node() -> None:
    """In order."""
    assert str(GRAPH).splitlines()[1] == "l[q] = sum_{k} E[q, k]"


def test_the_networkx_view_is_frozen_and_acyclic() -> None:
    """Tensors and nodes alternate; nothing can be added."""
    view = GRAPH.to_networkx()
    assert nx.is_directed_acyclic_graph(view)
    assert nx.ancestors(view, "l") == {"S", "E =", "E", "l ="}
    with pytest.raises(nx.NetworkXError, match="Frozen graph can't be modified"):
        view.add_edge("a", "b")


def test_a_tensor_has_one_list_of_indices_and_one_width() -> None:
    """Read transposed, or with another width, it would be another tensor."""
    k, q = P.output.indices[::-1]
    for other in (Tensor("E", (k, q), b), Tensor("E", (q, k), b_s)):
        twice = replace(L, inputs=(other,))
        with pytest.raises(IllFormedError, match="a tensor has one list of indices and one width"):
            Graph((E, twice), ("l",))


def test_a_tensor_is_defined_once_and_before_it_is_read() -> None:
    """Two definitions, and a late one."""
    with pytest.raises(IllFormedError, match="E is defined twice; give the second one another name"):
        Graph((E, E), ("E",))
    with pytest.raises(IllFormedError, match="E is read before it is defined; move its definition up"):
        Graph((L, E), ("l",))


def test_an_output_must_be_defined() -> None:
    """What there is, is listed."""
    with pytest.raises(IllFormedError, match=r"the output O is defined by no Einsum; the graph defines \['E'\]"):
        Graph((E,), ("O",))


def test_what_ran_before_gives_the_inputs_a_meaning() -> None:
    """E saved by an earlier program: l reads it, and S is what it comes from."""
    back = Graph((L,), ("l",), given=(E,))
    assert [t.name for t in back.inputs] == ["E"]
    assert [t.name for t in back.sources] == ["S"]
    assert back.saved == (E,)
    again = Graph((E, L), ("l",), given=(E,))
    assert again.saved == ()
    assert back.replace((L,), (E, L)) == again
    assert set(back.indices) == {"q", "k"}


def test_what_ran_before_stands_by_itself() -> None:
    """It reads nothing that is made only later, and a name has one list of indices in both."""
    with pytest.raises(IllFormedError, match="an earlier program reads E, which is defined only here"):
        Graph((E,), ("E",), given=(L,))
    k, q = P.output.indices[::-1]
    turned = Tensor("E", (k, q), b)
    with pytest.raises(IllFormedError, match=r"an earlier program left E\[q, k\]; a name has one value"):
        Graph((replace(E, output=turned, inputs=(turned_scores(turned),)),), ("E",), given=(E,))
    with pytest.raises(IllFormedError, match=r"E\[k, q\] is read, but an earlier program left E\[q, k\]"):
        Graph((replace(L, inputs=(turned,)),), ("l",), given=(E,))


def turned_scores(like: Tensor) -> Tensor:
    """Scores that carry the indices of *like*, under a name of their own."""
    return Tensor("S_turned", like.indices, like.width)


def test_a_sum_is_rescaled_by_a_maximum_that_is_there() -> None:
    """Neither an unknown name nor a sum will do."""
    for name in ("m", "E"):
        with pytest.raises(IllFormedError, match=f"{name} is no running maximum that is defined before it"):
            Graph((E, replace(L, rescale=name)), ("l",))
    m = Einsum(Tensor("m", L.output.indices, b), (GRAPH.tensors["S"],), Map.COPY, Reduce.MAX)
    assert Graph((m, E, replace(L, rescale="m")), ("l",)).producers["l"].rescale == "m"


def test_an_input_may_be_read_under_other_names_of_equal_extents_alone() -> None:
    """Self-attention's X[m,d] is X[n,d] too; X[q,d] is not X[k,d] where there are not as many keys as queries."""
    text = "S[q,k] = sum[d] X[q,d] * X[k,d]"
    alike = cascade(text, {"q": N_q, "k": N_q, "d": N_k}, outputs=("S",), width=b)
    assert [t.name for t in alike.einsums[0].inputs] == ["X", "X"]
    with pytest.raises(IllFormedError, match="a tensor has one list of indices and one width"):
        cascade(text, {"q": N_q, "k": N_k, "d": N_k}, outputs=("S",), width=b)
