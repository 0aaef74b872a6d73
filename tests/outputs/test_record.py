"""A derivation as JSON reads back to an equal one; a record that its rules would not make is refused in a sentence."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from derive.attention import variant
from derive.errors import BadValueError, DeriveError
from derive.masks import Pattern, patterns
from derive.rewrite import Derivation, WherePossible
from derive.symbols import N_k
from outputs.record.formulas import reread, written
from outputs.record.reading import _rules, from_json, load
from outputs.record.writing import as_json
from rules.derivations import names as schedule_names
from rules.derivations import plan
from tests.outputs.command import derive
from tests.strategies import PAIRS, applies

SCHEMA = json.loads((files("outputs") / "schema" / "steps.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
DOCUMENTS = (Pattern("docs", numbers=(3, 5, 1)), Pattern("docs-full", numbers=(3, 5, 1)))
MASKS = [
    *(p for p in patterns() if not p.name.endswith("-tl")),
    Pattern("causal-tl"),
    Pattern("block-sparse"),
    *DOCUMENTS,
]
GRID_ORDERS = tuple(product(("head", "query"), (False, True), (False, True)))


def reloaded(derivation: Derivation) -> Derivation:
    """What comes back through text, after the schema has looked at it."""
    record = {"variant": "any", "mask": "any", "derivations": [as_json(derivation)]}
    VALIDATOR.validate(record)
    (found,) = load(json.dumps(record))
    return found


@pytest.mark.parametrize("schedule", schedule_names())
def test_every_derivation_reads_back_to_an_equal_one(schedule: str) -> None:
    """Graphs, loop nests, rules and steps, for every variant that the schedule fits."""
    fitting = [name for name, other in PAIRS if other == schedule]
    assert fitting
    for name in fitting:
        derivation = plan(schedule).derive(variant(name).graph())
        assert reloaded(derivation) == derivation


@pytest.mark.parametrize("pattern", MASKS, ids=str)
def test_every_mask_reads_back(pattern: Pattern) -> None:
    """Its bounds as formulas, step functions and the share of a density included."""
    derivation = plan("flash2").derive(variant("gqa").graph(pattern))
    assert reloaded(derivation) == derivation


@pytest.mark.parametrize(("order", "sawtooth", "private"), GRID_ORDERS)
def test_every_grid_order_sweep_and_cache_reads_back(order: str, sawtooth: bool, private: bool) -> None:
    """The rules that an option puts into a plan are found by their options."""
    chosen = plan("flash2").ordered(order=order, sawtooth=sawtooth, private_caches=private)
    derivation = chosen.derive(variant("mha").graph("causal"))
    assert reloaded(derivation) == derivation


@pytest.mark.parametrize("schedule", schedule_names())
def test_every_rule_of_a_plan_is_found_by_its_name(schedule: str) -> None:
    """The record names a rule by what it rewrites, its name and its options; that means one rule and the same one."""
    for order, sawtooth, private in GRID_ORDERS:
        chosen = plan(schedule).ordered(order=order, sawtooth=sawtooth, private_caches=private)
        for kind, taken in [*(("graph", r) for r in chosen.algebra), *(("schedule", r) for r in chosen.schedule)]:
            rule: Any = taken.rule if isinstance(taken, WherePossible) else taken
            assert _rules()[kind, rule.name, rule.options] is rule


def test_the_schema_is_closed() -> None:
    """Draft 2020-12 accepts it, and it lets no unknown key through anywhere."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    stack: list[Any] = [SCHEMA]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            assert part.get("type") != "object" or "additionalProperties" in part
            stack += part.values()
        elif isinstance(part, list):
            stack += part


Path_ = tuple[str | int, ...]


def leaves(part: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Each value of a record that holds no others, with the way to it."""
    if isinstance(part, dict | list):
        for key, inner in part.items() if isinstance(part, dict) else enumerate(part):
            yield from leaves(inner, (*path, key))
    else:
        yield path, part


@cache
def records() -> tuple[tuple[Any, list[tuple[Path_, Any]]], ...]:
    """Records with their leaves: a forward pass under a mask, a backward one, a recurrence, parts of the keys."""
    asked = (
        ("gqa", "flash2-packed"),
        ("mha-backward", "flash2-backward"),
        ("gla", "chunkwise"),
        ("mha", "split-kv"),
        ("mha-backward", "flash2-backward-split"),
    )
    found = []
    for name, schedule in asked:
        mask = "causal" if applies(name, schedule, "causal") and variant(name).own_mask is None else "full"
        record = as_json(plan(schedule).derive(variant(name).graph(mask)))
        found.append((record, [end for end in leaves(record) if end[0] != ("name",)]))
    return tuple(found)


def changed(record: Any, path: Path_, value: Any) -> Any:
    """A copy of *record* with another value at the end of *path*."""
    found = copy.deepcopy(record)
    part = found
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return found


def refused_or_another(record: Any) -> None:
    """An error of ours, or, where the only graph is the start, the record of a derivation that starts elsewhere."""
    try:
        found = from_json(record)
    except DeriveError:
        return
    assert as_json(found) == record
    assert len(record["graphs"]) == 1


@given(st.data())
def test_every_change_of_a_record_is_refused(data: st.DataObject) -> None:
    """Whatever value is put in place of another: no exception but ours."""
    record, ends = records()[data.draw(st.integers(0, len(records()) - 1))]
    path, leaf = ends[data.draw(st.integers(0, len(ends) - 1))]
    other = data.draw(st.one_of(st.sampled_from(sorted({str(v) for _, v in ends})), st.integers(-1, 9), st.booleans()))
    if other == leaf and type(other) is type(leaf):
        other = None
    refused_or_another(changed(record, path, other))


@given(st.data())
def test_every_key_that_is_taken_out_is_missed(data: st.DataObject) -> None:
    """A record with a hole is refused too."""
    record, ends = records()[data.draw(st.integers(0, len(records()) - 1))]
    path, _ = ends[data.draw(st.integers(0, len(ends) - 1))]
    cut = data.draw(st.integers(1, len(path)))
    found = copy.deepcopy(record)
    part = found
    for key in path[: cut - 1]:
        part = part[key]
    del part[path[cut - 1]]
    refused_or_another(found)


def flash2() -> Any:
    """The record of plain attention by flash2."""
    return as_json(plan("flash2").derive(variant("mha").graph()))


def test_a_changed_step_says_what_its_rule_makes() -> None:
    """The step, the place, the value of the file and the right one."""
    record = flash2()
    at = next(n for n, step in enumerate(record["steps"]) if step["options"] == "q by B_r")
    record["steps"][at]["after"]["kernels"][0]["loops"][0]["tile"] = "B_c"
    with pytest.raises(
        BadValueError, match=rf'steps\[{at}\]: tile\(q by B_r\) .*tile is "B_c", and the rules make "B_r"'
    ):
        from_json(record)


def test_a_rule_that_does_not_apply_is_refused_with_its_clause() -> None:
    """Division cannot be deferred twice: the second time there is nothing of its shape."""
    record = flash2()
    record["steps"].insert(2, record["steps"][1])
    with pytest.raises(BadValueError, match=r"steps\[2\]: defer-division does not apply"):
        from_json(record)


def test_a_claim_of_ones_own_is_refused() -> None:
    """The reasons of a step are the rule's, not the file's."""
    record = flash2()
    record["steps"][0]["claim"] = "attention is free"
    with pytest.raises(BadValueError, match=r'steps\[0\]\.claim is "attention is free", and the rules make'):
        from_json(record)


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("__import__('os')", "character"),
        ("N_q**9**9", "formula"),
        ("x", "no symbol"),
        ("N_q <= 2", "condition"),
        (3, "no formula"),
    ],
)
def test_no_formula_of_a_record_is_run(formula: Any, says: str) -> None:
    """It is read in house notation, or refused."""
    with pytest.raises(BadValueError, match=says):
        reread(formula, "here")


def test_a_formula_that_would_read_back_as_another_is_not_written() -> None:
    """A symbol of the same name and other assumptions prints alike, and is not what comes back."""
    assert reread(written(N_k / 2), "here") == N_k / 2
    with pytest.raises(BadValueError, match="does not read back"):
        written(sp.Symbol("N_k"))


@pytest.mark.parametrize(
    "text", ["", "[", "[]", "{}", "[" * 100_000, '{"derivations": 3}', '{"derivations": [3]}', "\0"]
)
def test_what_is_no_record_is_refused(text: str) -> None:
    """No JSON, or JSON of something else."""
    with pytest.raises(BadValueError, match=r"record|JSON|derivations"):
        load(text)


def test_the_commands_write_and_read_it(tmp_path: Path) -> None:
    """``derive steps --json`` makes what ``derive reload`` takes; a changed file ends with code 2 and one line."""
    answer = derive("steps", "gqa", "h=4", "hk=2", "mask=docs", "docs=512,512", "--on", "b200-sxm", "--json")
    assert (answer.code, answer.err) == (0, "")
    VALIDATOR.validate(answer.json)
    file = tmp_path / "steps.json"
    file.write_text(answer.out, encoding="utf-8")
    again = derive("reload", str(file))
    assert (again.code, again.err) == (0, "")
    assert [line.split(":")[0] for line in again.out.splitlines()] == ["naive", "flash2"]
    file.write_text(answer.out.replace('"div"', '"mul"', 1), encoding="utf-8")
    refused = derive("reload", str(file))
    assert refused.code == 2
    assert len(refused.err.splitlines()) == 1
    file.write_bytes(b"\xff\xfe")
    assert derive("reload", str(file)).code == 2
