"""Closed forms against the witnesses, on random configurations, shrunk to the smallest that disagrees.

Witnesses: the tile walker (traffic, work, footprint), the LRU cache with CTA scheduling (residency), the interpreter of
schedules (values) and counting pair by pair (masks). None of them imports a formula.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from math import ceil, prod
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import seed as seeded
from hypothesis import strategies as st
from sympy import divisors

from derive.attention import variant as find_variant
from derive.errors import BadValueError, DomainError, PreconditionError
from derive.exact import value
from derive.masks import patterns
from outputs.comparisons import COMPARISONS, ClosedForms, Configuration, Finding, Mismatch, Trial
from outputs.layout import Section, Table
from outputs.request import read_request
from outputs.searching import quietly
from rules.derivations import plan

if TYPE_CHECKING:
    from derive.masks import Pattern
    from derive.variant import Variant
    from outputs.request import Request


_LARGEST = 256
"""The largest size that may be given."""
_MOST_POINTS = 2**24
"""The most points of one Einsum that sizes given may make: the interpreter visits each, for every configuration."""
_SHARE = 100
"""Configurations that a process tries at a time."""
_DOCUMENTS = ((7,), (3, 5), (1, 1, 9), (8, 8, 8), (2, 11, 1, 6))
"""Lengths of packed documents that are tried: a new list is a new graph."""
_SEEDS_APART = 1_000_003
"""Shares of one seed do not meet those of the next."""


@dataclass
class Report:
    """What a check found.

    Attributes:
        variant, schedules, samples, seed: what was asked.
        tried: configurations tried, each for every schedule.
        checked: comparisons made, by name.
        failure: the smallest configuration that disagrees, with both numbers; ``None`` when all agree.
    """

    variant: str
    schedules: tuple[str, ...]
    samples: int
    seed: int
    tried: int = 0
    checked: Counter[str] = field(default_factory=Counter)
    failure: Finding | None = None

    @property
    def mismatches(self) -> int:
        """1 when a configuration disagrees: the search stops at the first and shrinks it."""
        return int(self.failure is not None)

    def as_json(self) -> dict[str, Any]:
        """The object that ``derive check --json`` prints."""
        return {
            "variant": self.variant,
            "schedules": list(self.schedules),
            "samples": self.tried,
            "seed": self.seed,
            "mismatches": self.mismatches,
            "checked": dict(self.checked),
            "failure": None if self.failure is None else asdict(self.failure),
        }


def check_schedules(
    question: Mapping[str, Any], *, samples: int, seed: int, progress: Callable[[str], None] | None = None
) -> Report:
    """Try *samples* random configurations of the variant in *question*, each under every schedule it names.

    Args:
        question: the words of the command line: variant, symbols, schedule; symbols given keep their value.
        samples: configurations to try, shared by all processor cores when there are many.
        seed: seed of the random configurations.
        progress: told now and then how far it has come.

    Raises:
        UnknownNameError: a variant, schedule or symbol that does not exist.
        BadValueError: a size too large to visit tile by tile.
    """
    variant = find_variant(question["variant"])
    asked = Asked(variant.name, variant.named_schedules(question["schedule"]), tuple(question["symbols"]))
    _refuse_large(asked.request)
    for name in asked.schedules:
        plan(name)
    cores = min(os.cpu_count() or 1, samples // _SHARE)
    if cores < 2:
        return search(asked, samples, seed, progress)
    shares = [min(_SHARE, samples - start) for start in range(0, samples, _SHARE)]
    total = Report(asked.variant, asked.schedules, samples, seed)
    with ProcessPoolExecutor(cores) as pool:
        parts = [pool.submit(search, asked, share, seed * _SEEDS_APART + n) for n, share in enumerate(shares)]
        for part in as_completed(parts):
            found = part.result()
            total.tried += found.tried
            total.checked += found.checked
            if progress is not None:
                progress(f"{total.tried} of {samples} configurations")
            if found.failure is not None:
                total.failure = found.failure
                pool.shutdown(cancel_futures=True)
                break
    return total


@dataclass(frozen=True)
class Asked:
    """What to check, in words that another process understands."""

    variant: str
    schedules: tuple[str, ...]
    symbols: tuple[str, ...]

    @property
    def request(self) -> Request:
        """The words as values."""
        return read_request(find_variant(self.variant), self.symbols)


def search(asked: Asked, samples: int, seed: int, progress: Callable[[str], None] | None = None) -> Report:
    """Try *samples* configurations in this process; the first that disagrees is shrunk."""
    report = Report(asked.variant, asked.schedules, samples, seed)
    shrinking = False

    @seeded(seed)
    @quietly(samples)
    @given(configurations(asked.request, asked.schedules))
    def agrees(drawn: Configuration) -> None:
        nonlocal shrinking
        report.tried += not shrinking
        if progress is not None and report.tried % 25 == 0:
            progress(f"{report.tried} of {samples} configurations")
        try:
            for name in asked.schedules:
                order = drawn.order if _can_be_ordered(asked.variant, name, drawn.mask, drawn.order) else "head"
                forms = _forms(asked.variant, name, drawn.mask, order, drawn.sawtooth, drawn.caches > 1)
                trial = Trial(forms, drawn)
                for label, compare in COMPARISONS.items():
                    made = compare(trial)
                    report.checked[label] += 0 if shrinking else made
        except Mismatch:
            shrinking = True
            raise

    try:
        agrees()
    except Mismatch as smallest:
        report.failure = smallest.finding
    return report


def _refuse_large(request: Request) -> None:
    """The witnesses visit every tile and pair, so given sizes must be small, and so must the work that they make together."""
    sizes = {s.name for s in request.variant.symbols} | {"C_k", *request.pattern.sizes}
    for name, number in request.numbers.items():
        if name in sizes and number > _LARGEST:
            raise BadValueError(
                f"{name}={number} is too large to check pair by pair; give at most {_LARGEST}, or leave it out to draw it"
            )
    graph = request.variant.graph(request.pattern)
    ones = {s.name: 1 for i in graph.indices.values() for s in i.extent.free_symbols}
    at: Mapping[str, Any] = {**ones, **request.numbers}
    points = max(ceil(prod(value(i.extent, at) for i in e.space)) for e in graph.einsums)
    if points > _MOST_POINTS:
        raise BadValueError(
            f"the sizes given make {points:,} points of one Einsum, too many to visit one by one; leave some out to draw "
            f"them, or stay below {_MOST_POINTS:,}"
        )


@lru_cache(maxsize=256)
def _forms(variant: str, schedule: str, mask: Pattern, order: str, sawtooth: bool, private: bool) -> ClosedForms:
    """The closed forms of a derivation with every symbol kept."""
    chosen = plan(schedule).ordered(order=order, sawtooth=sawtooth, private_caches=private)
    return ClosedForms(chosen.derive(find_variant(variant).graph(mask)))


def configurations(request: Request, schedules: tuple[str, ...]) -> Any:
    """A Hypothesis strategy of configurations: small ragged shapes, every mask, grid order and sweep, small caches."""
    variant: Variant = request.variant
    fixed = {name: int(number) for name, number in request.numbers.items()}
    packed = _DOCUMENTS if _packs(variant) else ()
    others = sorted({s.name for s in variant.symbols} - {"N_q", "N_k", "d", "d_v", "h_k", "h", "B"})
    if request.mask != "full" or variant.own_mask is not None:
        masks: Any = st.just(request.pattern)
        if not _cuts_evenly(request.pattern, schedules, fixed):
            raise BadValueError(
                f"splits={fixed['n_s']} does not divide the {request.pattern.length} tokens of mask={request.pattern}; give a "
                f"divisor of {request.pattern.length}, or leave splits out to draw one"
            )
    else:
        masks = st.sampled_from([p for p in patterns(packed) if _is_counted(variant.name, schedules, p)])

    @st.composite
    def draw_one(draw: Any) -> Configuration:
        def size(name: str, largest: int) -> int:
            return fixed[name] if name in fixed else int(draw(st.integers(1, largest), label=name))

        kv_heads = size("h_k", 3)
        pattern = draw(masks.filter(lambda p: _cuts_evenly(p, schedules, fixed)))
        lengths = {} if pattern.length is None else dict.fromkeys(("N_q", "N_k"), pattern.length)
        parts = _parts(draw, schedules, {**fixed, **lengths})
        numbers = {
            **{name: size(name, 4) for name in others},
            "N_q": size("N_q", 32),
            "N_k": size("N_k", 32),
            "d": size("d", 4),
            "d_v": size("d_v", 4),
            "h_k": kv_heads,
            "h": fixed.get("h", kv_heads * size("group", 3)),
            "B": size("B", 2),
            **parts,
            "B_r": size("B_r", 12),
            "B_c": size("B_c", 12),
            "B_d": size("B_d", 12),
            "C": size("C", 8),
        }
        if not variant.extents["q"].free_symbols:
            numbers["N_q"] = int(value(variant.extents["q"], {}))
        numbers |= lengths
        numbers |= {name: size(name, 12) for name in sorted(pattern.sizes)}
        for divisor, dividend in ((a.name, b.name) for a, b in variant.divides):
            if numbers[dividend] % numbers[divisor] == 0:
                continue
            if dividend in fixed:
                numbers[divisor] = draw(st.sampled_from(divisors(fixed[dividend])), label=divisor)
            else:
                numbers[dividend] = numbers[divisor] * draw(st.integers(1, 6), label=f"{dividend}/{divisor}")
        for part, whole in variant.at_most:
            numbers[part.name] = min(numbers[part.name], int(value(whole, numbers)))
        slices = numbers["N_k"] * (numbers["d"] + numbers["d_v"] + sum(numbers[name] for name in others))
        return Configuration(
            numbers=numbers,
            widths=request.widths,
            mask=pattern,
            order=draw(st.sampled_from(("head", "query"))),
            sawtooth=draw(st.booleans()),
            caches=draw(st.sampled_from((1, 1, 1, 2, 4))),
            capacity=fixed.get("C_L2") or draw(st.integers(1, 8 * slices), label="C_L2"),
        )

    return draw_one()


def _parts(draw: Any, schedules: tuple[str, ...], fixed: Mapping[str, int]) -> dict[str, int]:
    """Sizes that divide another: a number of parts, and that many times the size of a part."""
    found: dict[str, int] = {}
    for divisor, dividend in dict.fromkeys(pair for name in schedules for pair in plan(name).divides):
        whole = fixed.get(dividend.name)
        if whole is None:
            parts = fixed.get(divisor.name) or int(draw(st.integers(1, 4), label=divisor.name))
            whole = parts * int(draw(st.integers(1, 8), label=f"{dividend.name}/{divisor.name}"))
        else:
            parts = fixed.get(divisor.name) or int(draw(st.sampled_from(divisors(whole)), label=divisor.name))
        found |= {divisor.name: parts, dividend.name: whole}
    return found


def _cuts_evenly(pattern: Pattern, schedules: tuple[str, ...], fixed: Mapping[str, int]) -> bool:
    """Whether parts whose number is given divide the length that a list of documents has."""
    parts = {fixed[a.name] for name in schedules for a, _ in plan(name).divides if a.name in fixed}
    return pattern.length is None or not any(pattern.length % number for number in parts)


def _is_counted(variant: str, schedules: tuple[str, ...], pattern: Pattern) -> bool:
    """Whether every schedule has closed forms under a mask; where one has none, ``derive explain`` says so."""
    try:
        return all(_forms(variant, name, pattern, "head", False, False).traffic is not None for name in schedules)
    except (BadValueError, DomainError):
        return False
    except PreconditionError:  # some schedules take no mask at all; one that does not take the variant says so
        if pattern.name == "full":
            raise
        return False


@lru_cache(maxsize=256)
def _can_be_ordered(variant: str, schedule: str, pattern: Pattern, order: str) -> bool:
    """Whether the grid order is legal: in another one the readers of some tensor may be scattered."""
    try:
        return _forms(variant, schedule, pattern, order, False, False) is not None
    except PreconditionError:
        return False


def _packs(variant: Variant) -> bool:
    """Whether documents can be packed: queries and keys are one sequence."""
    return variant.one_sequence and bool(variant.extents["q"].free_symbols)


def report(found: Report) -> list[Section]:
    """What a check found, for a terminal."""
    table = Table(("comparison", "made"))
    for label, made in found.checked.items():
        table.add(label, f"{made:,}")
    names = ", ".join(found.schedules)
    summary = f"{found.variant}, {names}: {found.tried} configurations (seed {found.seed})"
    if found.failure is None:
        return [Section(summary, table, ["no mismatch: closed forms and witnesses agree"])]
    return [Section(summary, table), Section("MISMATCH, shrunk to its smallest form", found.failure.lines)]
