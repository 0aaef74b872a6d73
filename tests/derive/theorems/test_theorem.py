"""Published lower bounds: their data, and the graphs that they speak of."""

from __future__ import annotations

import pytest

from derive.attention import variant
from derive.growth.reading import read_condition, read_monomial
from derive.notation import cascade
from derive.symbols import M, N_k, N_q, b, d, h
from derive.theorems import speaks_of, theorems

BY_NAME = {t.name: t for t in theorems()}
ATTENTION = BY_NAME["exact attention"]
TIED = {N_q: N_k}


@pytest.mark.parametrize("theorem", theorems(), ids=lambda t: t.name)
def test_every_theorem_names_its_source_and_reads(theorem: object) -> None:
    """Its classes and regimes are monomials in its own symbols."""
    names = {str(i.extent): i.extent for i in theorem.pattern.indices.values()} | {"M": M}  # type: ignore[attr-defined]
    assert theorem.source  # type: ignore[attr-defined]
    assert theorem.assumes  # type: ignore[attr-defined]
    for monomial, where in theorem.classes:  # type: ignore[attr-defined]
        assert read_monomial(monomial, names) != 1
        assert not where or all(read_condition(part, names) for part in where.split(" and "))


def test_attention_is_spoken_of_whatever_its_heads() -> None:
    """Batch and heads are copies; the scale changes nothing."""
    reading = speaks_of(ATTENTION, variant("mha").graph("full", (h,)), TIED)
    assert reading is not None
    assert (reading.sizes, reading.copies) == ({"N": N_k, "d": d}, h)


@pytest.mark.parametrize(
    ("name", "mask"),
    [("mha", "causal"), ("decode", "full"), ("cross", "full")],
    ids=["masked", "one query", "two lengths"],
)
def test_other_graphs_are_not(name: str, mask: str) -> None:
    """A mask, one query, or two lengths are outside the statement."""
    assert speaks_of(ATTENTION, variant(name).graph(mask, ()), {} if name == "cross" else TIED) is None


def test_shared_key_heads_are_not() -> None:
    """K carries fewer indices than Q: the theorem does not say what sharing saves."""
    assert speaks_of(ATTENTION, variant("gqa").graph("full"), TIED) is None


def test_a_product_is_no_attention_and_the_other_way_round() -> None:
    """Each theorem has one pattern."""
    graph = cascade("S[i,j] = sum[r] B[j,r] * A[i,r]", {"i": N_q, "j": N_k, "r": d}, outputs=("S",), width=b)
    assert speaks_of(ATTENTION, graph) is None
    reading = speaks_of(BY_NAME["matrix product"], graph)
    assert reading is not None
    assert set(reading.sizes.values()) == {N_q, N_k, d}
    assert speaks_of(BY_NAME["matrix product"], variant("mha").graph("full", ())) is None
