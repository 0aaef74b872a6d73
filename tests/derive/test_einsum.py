"""The node: what it runs over, what it reduces, and what it refuses to be."""

import pytest

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.errors import IllFormedError
from derive.exact import value
from derive.mask import causal
from derive.symbols import N_k, N_q, b, d

Q, K, D = Index("q", N_q), Index("k", N_k), Index("d", d)
QUERY, KEY, SCORES = Tensor("Q", (Q, D), b), Tensor("K", (K, D), b), Tensor("S", (Q, K), b)
PRODUCT = Einsum(SCORES, (QUERY, KEY), Map.MUL, Reduce.SUM)


def test_the_iteration_space_is_the_output_and_what_is_reduced() -> None:
    """S[q,k] = sum_d: q, k, then d."""
    assert PRODUCT.space == (Q, K, D)
    assert PRODUCT.reduced == (D,)
    assert PRODUCT.points == N_q * N_k * d


def test_a_mask_thins_out_the_points() -> None:
    """Causal, 4 by 4: 10 pairs times d."""
    masked = Einsum(SCORES, (QUERY, KEY), Map.MUL, Reduce.SUM, causal(N_q, N_k))
    assert value(masked.points, {"N_q": 4, "N_k": 4, "d": 3}) == 30


def test_indices_are_reduced_in_the_order_in_which_they_are_first_read() -> None:
    """Y = sum over q, d, k of Q K."""
    assert Einsum(Tensor("y", (), b), (QUERY, KEY), Map.MUL, Reduce.SUM).reduced == (Q, D, K)


def test_nodes_are_compared_by_value() -> None:
    """Two of the same fields are one key."""
    assert len({PRODUCT, Einsum(SCORES, (QUERY, KEY), Map.MUL, Reduce.SUM)}) == 1


def test_a_tensor_has_the_product_of_its_extents() -> None:
    """A scalar has one element."""
    assert (SCORES.size, Tensor("c", (), b).size) == (N_q * N_k, 1)


def test_a_node_prints_as_mathematics() -> None:
    """Output, operator, operands, and what it follows."""
    assert str(PRODUCT) == "S[q, k] = sum_{d} mul(Q[q, d], K[k, d])"
    assert str(Einsum(SCORES, (SCORES,), Map.EXP)) == "S[q, k] = exp(S[q, k])"
    low = Einsum(Tensor("l", (Q,), b), (SCORES,), Map.COPY, Reduce.SUM, rescale="m")
    assert str(low) == "l[q] = sum_{k} S[q, k]  rescaled by running m"
    assert str(Tensor("c", (), b)) == "c"


ARITIES = {"position": 0} | dict.fromkeys(
    ("copy", "view", "neg", "exp", "log", "tanh", "sigmoid", "relu", "top", "keep", "softmax", "inverse"), 1
)


def test_a_copy_of_nothing_is_refused_by_name() -> None:
    """The error shows what it refuses, though there is nothing to print."""
    with pytest.raises(IllFormedError, match=r"S\[q, k\] = copy\(\): copy reads 1 tensors, not 0"):
        Einsum(SCORES, (), Map.COPY)


@pytest.mark.parametrize(("operator", "arity"), [(m, ARITIES.get(m.value, 2)) for m in Map])
def test_an_operator_reads_so_many_tensors(operator: Map, arity: int) -> None:
    """Any other number is refused."""
    assert operator.arity == arity
    with pytest.raises(IllFormedError, match=f"{operator.value} reads {arity} tensors, not 3"):
        Einsum(SCORES, (SCORES,) * 3, operator)


def test_an_output_index_must_be_bound() -> None:
    """Only a plain copy may repeat its input."""
    with pytest.raises(IllFormedError, match="index k of the output is bound by no input; read it somewhere"):
        Einsum(SCORES, (Tensor("x", (Q,), b),), Map.EXP)
    with pytest.raises(IllFormedError, match="index k of the output is bound by no input"):
        Einsum(SCORES, (QUERY,), Map.COPY, Reduce.SUM)
    assert Einsum(SCORES, (Tensor("x", (Q,), b),), Map.COPY).reduced == ()


def test_a_missing_index_needs_an_operator() -> None:
    """The message writes it down."""
    with pytest.raises(IllFormedError, match=r"index d is missing .* name the operator, e.g. sum\[d\]"):
        Einsum(SCORES, (QUERY, KEY), Map.MUL)


def test_an_operator_needs_something_to_reduce() -> None:
    """A maximum of one element is a copy."""
    with pytest.raises(IllFormedError, match="max has no index to reduce; drop it"):
        Einsum(SCORES, (SCORES,), Map.COPY, Reduce.MAX)


def test_a_softmax_runs_along_its_result_s_last_index() -> None:
    """A scalar has none; a sum of it would leave open which index is meant."""
    one = Tensor("c", (), b)
    says = "softmax runs along its result's last index, and sums nothing up"
    with pytest.raises(IllFormedError, match=f"c = softmax.*{says}"):
        Einsum(one, (one,), Map.SOFTMAX)
    with pytest.raises(IllFormedError, match=says):
        Einsum(Tensor("l", (Q,), b), (SCORES,), Map.SOFTMAX, Reduce.SUM)
    with pytest.raises(IllFormedError, match="softmax_gradient runs along"):
        Einsum(one, (one, one), Map.SOFTMAX_GRADIENT)
    assert Einsum(SCORES, (SCORES,), Map.SOFTMAX).points == N_q * N_k


def test_only_a_sum_is_rescaled() -> None:
    """Multiplying by exp(m_old - m_new) repairs no maximum."""
    with pytest.raises(IllFormedError, match="only a sum can be rescaled by a running maximum"):
        Einsum(Tensor("l", (Q,), b), (SCORES,), Map.COPY, Reduce.MAX, rescale="m")
