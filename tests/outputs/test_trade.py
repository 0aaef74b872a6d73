"""Where the work of two schedules crosses, against both counts on either side of it."""

from __future__ import annotations

import pytest

from derive.flops import Pipe
from derive.symbols import N, N_q, d, d_c, d_v
from outputs.trade import trades
from tests.outputs.command import derive
from tests.published.questions import ask, explain

LATENT = "mla Nk=8192 h=16 d=128 dv=96 dc=512 dr=64"


def flop(words: str, schedule: str) -> int:
    """Dense matmul FLOP of one schedule."""
    found = ask(words, schedule)
    return int(found.exact(found.useful[Pipe.MMA]))


def test_absorbing_pays_below_the_crossing_and_not_above_it() -> None:
    """The number lies between two whole numbers of queries, and who runs fewer on either side is said."""
    (trade,) = (t for t in trades(explain(f"{LATENT} Nq=1", "flash2", "absorbed")) if t.symbol == N_q)
    assert (trade.below, trade.above) == ("absorbed", "flash2")
    assert trade.number is not None
    last = int(trade.number)
    assert flop(f"{LATENT} Nq={last}", "absorbed") <= flop(f"{LATENT} Nq={last}", "flash2")
    assert flop(f"{LATENT} Nq={last + 1}", "absorbed") > flop(f"{LATENT} Nq={last + 1}", "flash2")


def test_with_many_keys_the_crossing_has_a_limit() -> None:
    """d_c (d + d_v) / (2 d_c - d - d_v) queries, whatever the heads."""
    (trade,) = (t for t in trades(explain(f"{LATENT} Nq=1", "flash2", "absorbed")) if t.symbol == N_q)
    assert trade.limit is not None
    assert (trade.limit - d_c * (d + d_v) / (2 * d_c - d - d_v)).simplify() == 0


def test_linear_attention_needs_no_scores_from_d_keys_on() -> None:
    """N^2 d twice against N d^2 twice: equal at N = d, and in symbols too."""
    (trade,) = trades(explain("linear N=1024 d=64", "naive", "reassociated"))
    assert (trade.symbol, trade.number, trade.below, trade.above) == (N, 64, "naive", "reassociated")
    (open_,) = trades(explain("linear", "naive", "reassociated"))
    assert (open_.at, open_.number) == (d, None)


@pytest.mark.parametrize("words", ["mha N=1024 d=64", "gqa N=1024 d=64 h=8 hk=2"])
def test_schedules_of_equal_work_do_not_cross(words: str) -> None:
    """Fusion changes no FLOP, and nothing is said."""
    assert trades(explain(words, "naive", "flash2")) == []
    assert "schedules cross" not in derive("explain", *words.split()).out
