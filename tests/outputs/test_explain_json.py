"""``derive explain --json``: its schema, its numbers, and closed forms that give those numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any

import jsonschema
import pytest
import sympy as sp

from derive.attention import names as variant_names
from derive.attention import variant as find_variant
from derive.exact import Gcd
from rules.derivations import names as schedule_names
from tests.outputs.command import derive, numbers_for
from tests.strategies import ATTENTION, PAIRS, applies

SCHEMA = json.loads((files("outputs") / "schema" / "explain.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@cache
def schedules_of(variant: str, mask: str = "full") -> list[str]:
    """Schedules that fit a variant under a mask: all of them for plain attention, its own for any other."""
    own = schedule_names() if variant in ATTENTION else find_variant(variant).schedules
    return [
        schedule for name, schedule in PAIRS if name == variant and schedule in own and applies(name, schedule, mask)
    ]


def explain(*words: str) -> Any:
    """The object for a question; tests must leave it as it is."""
    answer = derive("explain", *words, "--json")
    assert (answer.code, answer.err) == (0, ""), answer.err
    return answer.json


def masked(variant: str, mask: str) -> tuple[str, ...]:
    """The word for a mask; none where the variant has its own."""
    return (f"mask={mask}",) if find_variant(variant).own_mask is None else ()


def test_the_schema_is_a_schema() -> None:
    """Draft 2020-12 accepts it, and it lets no unknown key through anywhere."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    stack: list[Any] = [SCHEMA]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            assert part.get("type") != "object" or "additionalProperties" in part, part
            stack += part.values()
        elif isinstance(part, list):
            stack += part


PLAIN = ("full", "causal", "causal-tl")
CATALOGUE = [
    *(
        (v, mask)
        for v, mask in product(variant_names(), PLAIN)
        if find_variant(v).own_mask in (None, mask) and find_variant(v).takes(mask)
    ),
    ("mha", "window"),
    ("decode", "window"),
    ("mha", "chunk-tl"),
    ("mha", "prefix"),
]
SIZES = {"window": ["W=70"], "chunk": ["C=70"], "prefix": ["prefix=70"]}


@pytest.mark.parametrize(("variant", "mask"), CATALOGUE)
def test_every_answer_is_whole_and_agrees_with_itself(variant: str, mask: str) -> None:
    """Every variant under every schedule and mask with numbers: the schema's shape, and counts that fit together.

    SymPy reads each ``symbolic`` (under masks: those of mha); with the parameters put in it is the ``value`` beside it, a
    narrow type rounded up. Each total is the sum over its tensors. DRAM bytes lie between the compulsory and the SM-side.
    """
    sizes = SIZES.get(mask.removesuffix("-tl"), [])
    for name in (
        schedules_of(variant, mask) if mask in PLAIN else schedules_of(variant)[:2]
    ):  # SymPy takes seconds over flash1's sums
        found = explain(
            variant, *numbers_for(variant), *masked(variant, mask), *sizes, "--schedule", name, "--on", "h100-sxm"
        )
        VALIDATOR.validate(found)
        assert (found["variant"], found["machine"], found["mask"]) == (variant, "h100-sxm", mask)
        schedule = found["schedules"][name]
        for where, amount in _amounts(schedule) if mask == "full" or variant == "mha" else ():  # sums are slow in SymPy
            assert _agrees(amount, schedule["parameters"]), f"{name}: {where}: {amount}"
        totals = {level: moves["value"] for level, moves in schedule["bytes"].items()}
        for level, moves in schedule["bytes"].items():
            assert sum(m["read"] + m["write"] for m in moves["tensors"].values()) == totals[level], (name, level)
        assert totals["compulsory"] <= totals["dram"] <= totals["sm"], name
        assert schedule["flops"]["executed"]["value"] >= schedule["flops"]["matmul"]["value"], name
        assert schedule["time"]["seconds"] == max(t for t in _levels(schedule["time"]) if t is not None), name


def test_schedules_side_by_side_say_each_its_own_tiles() -> None:
    """The tiles of one schedule are not those of the next; a reader must be able to put in those that were used."""
    found = explain("mha", "N=300", "d=64", "--schedule", "flash1,flash2", "--on", "h100-sxm")
    for name, schedule in found["schedules"].items():
        assert _agrees(schedule["footprint"], schedule["parameters"]), name
        assert _agrees(schedule["flops"]["executed"], schedule["parameters"]), name


@pytest.mark.parametrize(("variant", "mask"), CATALOGUE)
def test_every_answer_without_numbers_has_forms_and_nulls(variant: str, mask: str) -> None:
    """With no number given, every variant, schedule and mask still has its closed forms, and every count is null."""
    found = explain(variant, *masked(variant, mask), "--schedule", ",".join(schedules_of(variant, mask)))
    VALIDATOR.validate(found)
    assert found["machine"] is None
    for name, schedule in found["schedules"].items():
        assert {moves["value"] for moves in schedule["bytes"].values()} == {None}, name
        matmul = schedule["flops"]["matmul"]
        assert matmul["value"] is None or matmul == {"symbolic": "0", "value": 0}, name  # a rank-1 update is no product
        assert set(schedule["time"].values()) == {None}, name


@pytest.mark.parametrize("variant", ["mha", "decode"])
def test_numbers_without_a_machine_have_bytes_and_no_times(variant: str) -> None:
    """Sizes need no machine; times do. What depends on the cache alone stays null."""
    found = explain(variant, *numbers_for(variant), "M=100K", "splits=4", "--schedule", ",".join(schedules_of(variant)))
    VALIDATOR.validate(found)
    for name, schedule in found["schedules"].items():
        assert schedule["bytes"]["sm"]["value"] is not None, name
        assert schedule["bytes"]["compulsory"]["value"] is not None, name
        assert set(schedule["time"].values()) == {None}, name


@pytest.mark.parametrize("variant", ["mha", "decode"])
def test_a_machine_without_numbers_has_no_times(variant: str) -> None:
    """A machine's constants alone give no count."""
    found = explain(variant, "--schedule", ",".join(schedules_of(variant)), "--on", "h100-sxm")
    VALIDATOR.validate(found)
    assert all(schedule["time"]["seconds"] is None for schedule in found["schedules"].values())


@pytest.mark.parametrize("machine", ["tpu-v5p", "mi300x", "b200-sxm", "m4-max", "gaudi3"])
def test_a_machine_that_lacks_a_constant_answers_null(machine: str) -> None:
    """No L2, several L2s, no exponential rate: the shape stays, and what is unknown is null, not zero."""
    found = explain("mha", "N=300", "d=64", "h=4", "--on", machine)
    VALIDATOR.validate(found)
    for schedule in found["schedules"].values():
        assert 0 not in schedule["time"].values()


@pytest.mark.parametrize(
    "types", [("dtype=mxfp4",), ("kv=fp8",), ("scores=fp32", "probs=fp8", "stats=fp32", "acc=fp32")]
)
def test_narrow_and_mixed_types_have_the_shape_too(types: tuple[str, ...]) -> None:
    """A width of half a byte is exact text; every group that was named is in ``dtype``."""
    found = explain("mha", "N=300", "d=64", *types, "--schedule", ",".join(schedules_of("mha")))
    VALIDATOR.validate(found)
    assert {f"{group}={name}" for group, name in found["dtype"].items()} >= set(types)


def _broken(document: Any) -> Iterator[tuple[str, Any]]:
    """Documents with one thing wrong each."""

    def with_change(*path: str, value: Any) -> Any:
        copy = json.loads(json.dumps(document))
        place = copy
        for key in path[:-1]:
            place = place[key]
        if value is ...:
            del place[path[-1]]
        else:
            place[path[-1]] = value
        return copy

    flash = ("schedules", "flash2")
    yield "an unknown key", with_change("extra", value=1)
    yield "an unknown key inside", with_change(*flash, "bytes", "hbm", value={})
    yield "no bytes", with_change(*flash, "bytes", value=...)
    yield "no value", with_change(*flash, "bytes", "sm", "value", value=...)
    yield "a size in text", with_change(*flash, "bytes", "sm", "value", value="260 MiB")
    yield "a size with a fraction", with_change(*flash, "bytes", "sm", "value", value=0.5)
    yield "a negative size", with_change(*flash, "bytes", "dram", "value", value=-1)
    yield "a hit rate in per cent", with_change(*flash, "residency", "hit_rate", value=97.7)
    yield "no symbolic form", with_change(*flash, "bytes", "compulsory", "symbolic", value=None)
    yield "an unknown bound", with_change(*flash, "time", "bound", value="hbm")
    yield "an unknown convention", with_change(*flash, "flops", "convention", value="causal")
    yield "no schedules", with_change("schedules", value={})
    yield "a float parameter", with_change("parameters", "N_q", value=0.5)
    yield "a step without a reason", with_change(*flash, "steps", value=[{"rule": "fuse"}])


def test_the_schema_refuses_what_is_broken() -> None:
    """Each of these mutations of a right document is refused, so the checks above mean something."""
    right = explain("mha", "N=8192", "d=128", "--on", "h100-sxm")
    assert VALIDATOR.is_valid(right)
    accepted = [what for what, document in _broken(right) if VALIDATOR.is_valid(document)]
    assert accepted == []


def test_the_numbers_of_the_running_example() -> None:
    """N = 8192, d = 128, BF16 on an H100: 520 MiB, 260 MiB and 8 MiB, 34.4 GFLOP, 4096 FLOP/B against 295.3."""
    found = explain("mha", "N=8192", "d=128", "--on", "h100-sxm")
    mib = 2**20
    flash, naive = found["schedules"]["flash2"], found["schedules"]["naive"]
    assert found["parameters"]["N_q"] == found["parameters"]["N_k"] == 8192
    assert (found["parameters"]["d"], found["parameters"]["C_L2"]) == (128, 50 * mib)
    assert flash["flops"]["convention"] == "exact"
    assert flash["flops"]["matmul"] == {"symbolic": "4*N_k*N_q*d", "value": 34359738368}
    assert flash["flops"]["executed"]["value"] == 34359738368
    assert flash["flops"]["exp"]["value"] == 67108864
    assert flash["bytes"]["compulsory"]["value"] == 8388608
    assert flash["bytes"]["compulsory"]["tensors"]["Q"] == {"read": 2097152, "write": 0}
    assert flash["bytes"]["sm"]["value"] == 272629760 == 260 * mib
    assert flash["bytes"]["dram"]["value"] == 8388608
    assert naive["bytes"]["sm"]["value"] == naive["bytes"]["dram"]["value"] == 520 * mib
    assert flash["footprint"]["value"] == (128 + 2 * 128) * 128 * 2
    assert flash["intensity"] == 4096
    assert flash["ridge"] == pytest.approx(float(Fraction("989.4") / Fraction("3.35")), rel=1e-12)
    assert flash["time"]["bound"] == "mma"
    assert flash["time"]["seconds"] == flash["time"]["mma"] == pytest.approx(34359738368 / 989.4e12, rel=1e-12)
    assert flash["time"]["exp"] == pytest.approx(67108864 / (132 * 16 * 1.83e9), rel=1e-12)
    assert flash["time"]["dram"] == pytest.approx(8388608 / 3.35e12, rel=1e-12)
    assert naive["time"]["bound"] == "dram"
    assert naive["time"]["seconds"] == pytest.approx(520 * mib / 3.35e12, rel=1e-12)
    assert flash["residency"]["fits"] is True
    assert (flash["residency"]["live_heads"], flash["residency"]["live_bytes"]) == (1, 4 * mib)
    assert flash["residency"]["capacity"] == 50 * mib
    assert flash["residency"]["hit_rate"] == pytest.approx(1 - 6 / 260, rel=1e-12)
    assert flash["residency"]["threshold"]["value"] == 102400


@pytest.mark.parametrize(
    ("words", "pairs"),
    [
        (("mha", "N=8192", "d=128", "mask=causal"), 33558528),
        (("mha", "N=4", "d=128", "mask=causal"), 10),
        (("cross", "Nq=2", "Nk=5", "d=128", "mask=causal"), 9),
        (("cross", "Nq=2", "Nk=5", "d=128", "mask=causal-tl"), 3),
        (("cross", "Nq=5", "Nk=2", "d=128", "mask=causal"), 3),
        (("cross", "Nq=5", "Nk=2", "d=128", "mask=causal-tl"), 9),
        (("cross", "Nq=8192", "Nk=1024", "d=128", "mask=causal"), 524800),
        (("decode", "Nk=8192", "d=128", "mask=causal"), 8192),
    ],
)
def test_a_mask_keeps_exactly_its_pairs(words: tuple[str, ...], pairs: int) -> None:
    """Useful FLOPs are 4 d a kept pair, exactly, whichever length is longer and however the mask is aligned."""
    flops = explain(*words, "--schedule", "flash2")["schedules"]["flash2"]["flops"]
    assert flops["matmul"]["value"] == 4 * 128 * pairs
    assert flops["exp"]["value"] == pairs
    assert flops["executed"]["value"] >= flops["matmul"]["value"]


def test_the_conventions_differ_as_their_names_say() -> None:
    """Half is half of dense, exact has the diagonal, tiled is what runs."""
    n, d = 8192, 128
    found = {
        convention: explain(
            "mha", f"N={n}", f"d={d}", "mask=causal", "--schedule", "flash2", "--convention", convention
        )
        for convention in ("exact", "half", "dense", "tiled")
    }
    flops = {name: answer["schedules"]["flash2"]["flops"] for name, answer in found.items()}
    assert {name: f["convention"] for name, f in flops.items()} == {name: name for name in flops}
    assert flops["exact"]["matmul"]["value"] == 17181966336
    assert flops["half"]["matmul"]["value"] == 17179869184
    assert flops["dense"]["matmul"]["value"] == 34359738368
    assert flops["tiled"]["matmul"]["value"] == flops["exact"]["executed"]["value"] == 2080 * 128 * 128 * 4 * d


def test_flops_do_not_depend_on_key_value_heads_and_bytes_do() -> None:
    """Eight query heads run the same work over 8, 2 or 1 key/value heads, from ever fewer bytes."""
    found = [
        explain("gqa", "N=256", "d=64", "h=8", f"hk={hk}", "--schedule", "flash2")["schedules"]["flash2"]
        for hk in (8, 2, 1)
    ]
    assert {f["flops"]["matmul"]["value"] for f in found} == {134217728}
    kv = [f["bytes"]["compulsory"]["tensors"]["K"]["read"] for f in found]
    assert kv == [8 * 256 * 64 * 2, 2 * 256 * 64 * 2, 256 * 64 * 2]


def _levels(time: dict[str, Any]) -> list[float | None]:
    """Seconds of each pipe and level."""
    return [time[level] for level in ("mma", "exp", "vector", "convert", "shared", "l2", "dram")]


def _amounts(part: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Everything that has a closed form and a value."""
    if isinstance(part, dict):
        if {"symbolic", "value"} <= set(part) and "symbol" not in part:
            yield where, part
        for key, inner in part.items():
            yield from _amounts(inner, f"{where}/{key}")


def _agrees(amount: Any, parameters: dict[str, Any]) -> bool:
    """Whether the closed form gives the value, once the parameters are put in."""
    return amount["symbolic"] is None or sp.ceiling(_read(amount["symbolic"], parameters)) == amount["value"]


def _read(symbolic: str, parameters: dict[str, Any]) -> Any:
    """The number that *symbolic*, our own output, stands for."""
    values = {name: sp.Symbol(name) if value is None else sp.Rational(value) for name, value in parameters.items()}
    return sp.sympify(symbolic, locals={**values, "Gcd": Gcd}).doit()
