"""How many parts: modelled from derived costs, and the published rule, cited beside it."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import pytest

from outputs.splits import published_count, splits
from tests.outputs.command import derive
from tests.published.questions import ask

QUESTION = "decode N=8192 h=32 hk=8 d=128"


@pytest.mark.parametrize(
    ("ctas", "places", "key_tiles", "picked"),
    [(48, 108, 64, 2), (12, 108, 64, 8), (12, 132, 64, 10), (8, 132, 64, 15), (90, 108, 64, 1), (8, 132, 4, 1)],
)
def test_the_cited_rule_gives_its_published_counts(ctas: int, places: int, key_tiles: int, picked: int) -> None:
    """Case 72: https://github.com/Dao-AILab/flash-attention/issues/609 and hopper/heuristics.h."""
    assert published_count(ctas=ctas, places=places, key_tiles=key_tiles) == picked


def test_the_cited_rule_splits_a_head_that_the_cache_cannot_hold() -> None:
    """hopper/heuristics.h: a KV head of 64 MiB, read by enough query tiles: two parts of at most 50 MiB; none if causal."""
    long = {"ctas": 1024, "places": 132, "key_tiles": 1024, "query_tiles": 1024, "head_bytes": 64 * 2**20}
    assert published_count(**long) == 2  # type: ignore[arg-type]
    assert published_count(**long, masked=True) == 1  # type: ignore[arg-type]


def test_the_count_that_is_used_takes_least_modelled_time() -> None:
    """8 CTAs without parts on 132 SMs: 16 of the powers of two, where the rule would take 15."""
    found = ask(QUESTION, "split-kv")
    costs = splits(found)
    assert costs is not None
    assert found.values["n_s"] == costs.best == 16
    assert costs.cited == 15
    assert costs.times[16] == min(costs.times.values())
    assert costs.shares[16] == Fraction(8 * 16, 132)


def test_the_modelled_time_is_waves_times_what_a_cta_takes() -> None:
    """By hand at 2 parts: the larger pipe of each kernel, spread over the waves' places."""
    found = ask(f"{QUESTION} splits=2", "split-kv")
    costs = splits(found)
    assert costs is not None
    rate = {level: found.rate(level).value for level in ("l2", "dram", "mma")}  # type: ignore[arg-type, union-attr]
    heads, kv, d = 32, 8, 128
    partial = heads * 2 * (d + 2) * 4
    part = max(
        Fraction(kv * 8192 * 2 * d * 2 + 2 * heads * d * 2 + partial) / rate["dram"],
        Fraction(4 * d * 128 * 8192 * kv) / rate["mma"],
    )
    merge = Fraction(partial + heads * d * 2) / rate["l2"]
    merge = max(merge, Fraction(heads * d * 2) / rate["dram"])
    seconds = part * 132 / 16 * ceil(Fraction(16, 132)) + merge * Fraction(132, 32)
    assert abs(costs.times[2] / seconds - 1) < Fraction(1, 50)


def test_a_machine_with_many_ctas_takes_one_part() -> None:
    """A batch that fills the machine has nothing to gain: partial results only cost."""
    found = splits(ask("decode N=8192 h=32 hk=8 d=128 B=33", "split-kv"))
    assert found is not None
    assert found.best == found.cited == 1


def test_no_machine_no_count() -> None:
    """The closed forms keep the number of parts."""
    found = ask(QUESTION, "split-kv", on=None)
    assert "n_s" not in found.values
    assert splits(found) is None


def test_both_are_printed() -> None:
    """Modelled and cited, told apart; the JSON has every count."""
    words = [*QUESTION.split(), "--schedule", "split-kv", "--on", "h100-sxm"]
    printed = " ".join(derive("explain", *words).out.split())
    assert "16 takes least" in printed
    assert "cited, not derived: the rule of FlashAttention-3 picks 15" in printed
    found = derive("explain", *words, "--json").json["schedules"]["split-kv"]["splits"]
    assert (found["best"], found["cited"]) == (16, 15)
    assert set(found["seconds"]) == {"1", "2", "4", "8", "16", "32", "64"}
