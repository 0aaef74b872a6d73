"""Pairs of each device under every mask, against pairs looked at one by one."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.exact import value
from derive.mask import Mask
from derive.masks import Pattern, patterns
from derive.parallel.balance import Balance, imbalance, lock_step_imbalance
from derive.parallel.rectangle import pairs_in
from derive.parallel.shards import Shards
from derive.symbols import ROW, N, N_k, N_q, R, dummy
from tests.derive.parallel.simulation import deal, play_ring
from tests.seen import seen
from tests.strategies import mask_sizes

PATTERNS = patterns(((3, 5, 4), (1, 1, 9, 1)))
ALIGNED = [p for p in PATTERNS if not p.length and not p.name.endswith("-tl") and p.name != "dilated"]
"""Those that a ring is played under; how a rectangle is cut out of the others is checked above."""
DEALS = {"contiguous": Shards(), "zig-zag": Shards(zigzag=True)}
every_deal = pytest.mark.parametrize("shards", DEALS.values(), ids=DEALS)
Q0, Q1, K0, K1 = (dummy(name) for name in ("q_0", "q_1", "k_0", "k_1"))


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_pairs_of_a_rectangle_are_those_looked_at_one_by_one(pattern: Pattern, data: st.DataObject) -> None:
    """Some queries and some keys of every mask, whatever the sizes."""
    lengths = st.just(pattern.length) if pattern.length else st.integers(1, 12)
    rows, columns = data.draw(lengths), data.draw(lengths)
    first, past = sorted((data.draw(st.integers(0, rows)), data.draw(st.integers(0, rows))))
    begin, end = sorted((data.draw(st.integers(0, columns)), data.draw(st.integers(0, columns))))
    sizes = data.draw(mask_sizes())
    at = {**sizes, "N_q": rows, "N_k": columns, "q_0": first, "q_1": past, "k_0": begin, "k_1": end}
    found = value(pairs_in(pattern.mask(N_q, N_k), (Q0, Q1), (K0, K1)), at)
    assert found == seen(pattern, rows, columns, sizes)[first:past, begin:end].sum()


def test_a_density_keeps_its_share_of_every_rectangle() -> None:
    """A share s of the pairs, on the mean."""
    pattern = Pattern("block-sparse")
    found = pairs_in(pattern.mask(N_q, N_k), (Q0, Q1), (K0, K1))
    assert value(found, {"s": Fraction(1, 4), "q_0": 2, "q_1": 6, "k_0": 1, "k_1": 9}) == 8


@every_deal
@pytest.mark.parametrize("pattern", ALIGNED, ids=str)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_work_of_each_device_and_step_is_what_a_ring_does(
    pattern: Pattern, shards: Shards, data: st.DataObject
) -> None:
    """Device by device and step by step: a ring that hands its shards on, looking at every pair."""
    devices, each = data.draw(st.integers(2, 4)), data.draw(st.integers(1, 2)) * shards.pieces
    tokens, sizes = devices * each, data.draw(mask_sizes())
    sees = seen(pattern, tokens, tokens, sizes)
    held = deal(tokens, devices, shards.zigzag)
    played = play_ring(held, held, 1, 1, lambda q, k: bool(sees[q, k]))
    balance = Balance(pattern.mask(N, N), N, N, shards)
    at = {**sizes, "N": tokens, "R": devices}
    steps = balance.by_step(at)
    assert steps == tuple(tuple(played.pairs[t, r] for r in range(devices)) for t in range(devices))
    assert balance.by_device(at) == tuple(sum(column) for column in zip(*steps, strict=True))
    for closed, exact in (
        (balance.busiest, imbalance(balance.by_device(at))),
        (balance.lock_step, lock_step_imbalance(steps)),
    ):
        if closed is not None:
            assert value(closed, at) == exact * value(balance.mean, at)
    if balance.step is not None:
        assert {max(step) for step in steps[1:]} == {value(balance.step, at)}


@pytest.mark.parametrize("name", ["full", "causal", "causal-tl"])
@every_deal
def test_plain_masks_have_closed_forms(name: str, shards: Shards) -> None:
    """For any number of devices; a window's depend on how far it reaches."""
    balance = Balance(Pattern(name).mask(N, N), N, N, shards)
    assert None not in (balance.busiest, balance.step, balance.lock_step)
    window = Balance(Pattern("window").mask(N, N), N, N, shards)
    assert (window.busiest, window.step, window.lock_step) == (None, None, None)
    assert window.ratio(window.busiest) is None
    assert window.limit(window.busiest) is None


def test_lengths_of_two_sequences_have_closed_forms_without_a_mask_alone() -> None:
    """Causal queries and keys of two lengths are left to numbers."""
    assert Balance(None, N_q, N_k, Shards()).step == N_q * N_k / R**2
    assert Balance(Pattern("causal").mask(N_q, N_k), N_q, N_k, Shards()).busiest is None


def test_a_ring_of_many_devices_is_not_asked_step_by_step() -> None:
    """R^2 questions would take minutes; nothing is guessed in their place."""
    assert Balance(Pattern("window").mask(N, N), N, N, Shards()).by_step({"N": 1300, "W": 5, "R": 65}) is None


def test_work_that_is_not_there_is_even() -> None:
    """No pair on any device: nobody waits."""
    assert imbalance((0, 0)) == lock_step_imbalance(((0, 0), (0, 0))) == 1


def test_where_the_load_falls_from_device_to_device_no_closed_form_names_the_last() -> None:
    """Each query sees the keys after its own: the first device has most to do."""
    ahead = Mask("ahead", "", "q", "k", N, N, first=ROW + 1)
    assert Balance(ahead, N, N, Shards()).busiest is None
    behind = Mask("behind", "", "q", "k", N, N, last=ROW)
    assert Balance(behind, N, N, Shards()).busiest is not None
