"""``derive bound`` in a terminal: classes with certificates, regimes, lower bounds, gaps, and what numbers make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

import sympy as sp

from derive.growth.program import region_of
from outputs.layout import Section, Table
from outputs.notation import chain, text, tidy
from outputs.quantities import grouped, significant, size

if TYPE_CHECKING:
    from derive.growth import Lead
    from derive.growth.dominance import Dominated
    from outputs.account import Account
    from outputs.bounds import Bounds

_WRITTEN = 4
"""Dominated monomials shown a schedule; the JSON has all."""


def sections(answer: Bounds) -> list[Section]:
    """Everything that is printed, in reading order."""
    found = [_question(answer), _classes(answer), _best(answer)]
    if _is_numeric(answer):
        found.append(_numbers(answer))
    found += [_lower(answer), _gaps(answer), _crossings(answer)]
    found += [_certificates(answer, name) for name in answer.classes]
    found += [_optima(answer), _levels(answer)]
    return [*found, _readings()]


def theta(monomials: Iterable[sp.Expr]) -> str:
    """``Theta(N d + N^2 d^2/M)``."""
    return f"Theta({' + '.join(map(text, monomials))})"


def _is_numeric(answer: Bounds) -> bool:
    return any(answer.at_numbers.number(found.total) is not None for found in answer.classes.values())


def _question(answer: Bounds) -> Section:
    request = answer.request
    mask = next(iter(answer.accounts.values())).mask_of
    lines = [
        f"{request.variant.name}: {request.variant.says}",
        f"{answer.request.variant.seen_by(mask)}; elements that cross between the cache and one SM's fast memory of M elements,"
        " over all tiles that fit",
    ]
    if answer.where:
        lines.append(f"assumed: {chain(answer.where)}")
    return Section(f"how the traffic of {request.variant.name} must grow", lines)


def _classes(answer: Bounds) -> Section:
    table = Table(("schedule", "class", "tiles fit while", "memory beside inputs and outputs"))
    for name, found in answer.classes.items():
        extra = answer.workspace(name)
        needs = chain(answer.beyond(found.region))
        table.add(name, theta(found.monomials), needs or "always", theta(extra) if extra else "none")
    notes = [f"{name}: {reason}" for name, reason in answer.refused.items()]
    for name in answer.classes:
        if answer.granted(name):
            notes.append(f"{name}: {_granted(answer, name)}")
    return Section("class of each schedule", table, notes)


def _granted(answer: Bounds, name: str) -> str:
    kernels = ", ".join(k.name for k in answer.granted(name))
    words = f"its products ({kernels}) are granted one read of each operand, whatever M is"
    for other, regions in answer.reached(name).items():
        where = ", or ".join(chain(region) for region in regions if region)
        words += f"; with tiles, {other} reaches that class {'where ' + where if where else 'everywhere'}"
    return words


def _certificates(answer: Bounds, name: str) -> Section:
    found = answer.classes[name]
    lines = []
    for lead in found.leads:
        where = chain(answer.beyond(lead.region))
        head = f"{text(lead.monomial)} leads {'where ' + where if where else 'throughout'}"
        numbered = constants(lead)
        lines.append(f"{head}; its constant: {numbered}" if numbered else head)
        if lead.weights:
            lines.append(f"  no tiles do better: {_mean(lead)} = {text(lead.monomial)} for all of them")
        for region, tiles in lead.tilings:
            if not tiles:
                continue
            more = chain(answer.parameters.conditions(region, lead.region))
            chosen = ", ".join(f"{t} = {text(e)}" for t, e in tiles.items())
            lines.append(f"  reached by {chosen}{' where ' + more if more else ''}")
    for dominated in found.dropped[:_WRITTEN]:
        lines.append(f"left out: {_dominated(dominated)}")
    if len(found.dropped) > _WRITTEN:
        lines.append(f"and {len(found.dropped) - _WRITTEN} more (`--json` has them)")
    return Section(f"{name}: {theta(found.monomials)}, why", lines)


def constants(lead: Lead, shown: Callable[[sp.Expr], str] = text) -> str:
    """The leading term with its number: at the best tiles, and at a paper's."""
    words = {"at the best tiles": lead.constant, "at the published ones": lead.published}
    return ", ".join(f"{shown(c * lead.monomial)} {where}" for where, c in words.items() if c is not None)


def _mean(lead: Lead) -> str:
    """The dual certificate as a product of powers of terms and limits."""
    factors = []
    for row, weight in lead.weights.items():
        shown = _row(row)
        factors.append(f"({shown})" if weight == 1 else f"({shown})^({weight})")
    return " * ".join(factors)


def _row(written: str) -> str:
    """A term of the count, or a limit as a quotient that is at most 1."""
    small, _, big = written.replace("**", "^").replace("*", " ").partition(" <= ")
    return f"{small} / {big}" if big else small


def _dominated(found: Dominated) -> str:
    by = " * ".join(text(m) if w == 1 else f"({text(m)})^({w})" for m, w in found.by.items())
    since = " and ".join(f"{text(small)} <= {text(big)}" for (small, big), _ in found.because)
    return f"{text(found.monomial)} <= {by}{', since ' + since if since else ''}"


def _best(answer: Bounds) -> Section:
    table = Table(("where", "least class", "by"))
    for each in answer.best:
        table.add(chain(each.conditions) or "everywhere", theta([each.monomial]), ", ".join(each.schedules))
    left_out = [name for name in answer.classes if answer.granted(name)]
    notes = [f"not compared: {', '.join(left_out)}, whose products are granted their operands"] if left_out else []
    return Section("the best schedule by regime (constants left out)", table, notes)


def _lower(answer: Bounds) -> Section:
    table = Table(("at least", "where", "status", "how"))
    notes = []
    for bound in answer.below.lower:
        where = chain(answer.beyond(bound.region))
        amount = f"Omega({text(bound.monomial)})"
        if bound.constant is not None:
            less = f" - {text(bound.less)}" if bound.less != 0 else ""
            amount = f"{text(bound.constant * bound.monomial)}{less}"
        table.add(amount, where or "everywhere", bound.status, bound.how)
        if bound.source:
            notes.append(f"{bound.how}: {bound.source}{'; ' + bound.note if bound.note else ''}")
    return Section("lower bounds on every schedule, in elements", table, list(dict.fromkeys(notes)))


def _gaps(answer: Bounds) -> Section:
    table = Table(("schedule", "where", "its class", "lower bound", "gap"))
    for name in answer.classes:
        for gap in answer.below.gaps(name):
            where = chain(answer.beyond(gap.region))
            ratio = "none: tight" if gap.tight else f"a factor {text(gap.ratio)}"
            if gap.below:
                ratio = "below it: what it is granted cannot be had there"
            below = f"{text(gap.bound.monomial)} ({gap.bound.status})"
            table.add(name, where or "everywhere", text(gap.lead.monomial), below, ratio)
    return Section("how far each schedule is from them, constants left out", table)


def _optima(answer: Bounds) -> Section:
    lines = []
    for name in answer.classes:
        for kernel, best in answer.optima[name].items():
            tiles = ", ".join(f"{t} = {text(e)}" for t, e in best.tiles.items())
            lines.append(f"{name}, kernel {kernel.name}: {tiles}, as far as each is from 1 to its extent")
            lines.append(f"  moves {text(tidy(best.traffic))} elements, with many trips")
            lines += [f"  {t} = 1: no term of the count falls as it grows, and it takes room" for t in best.smallest]
            lines += [
                f"  {a} = {b}: they may change places, and in logarithms the problem is convex" for a, b in best.equal
            ]
            lines.append(
                f"  {text(tidy(sp.expand(best.fills)))} = M: the count falls with it until fast memory is full"
            )
    return Section("best tiles in closed form", lines or ["no schedule here has one tile that decides"])


def _levels(answer: Bounds) -> Section:
    table = Table(("schedule", "memory inside", "what crosses into it", "its tiles fit while"))
    notes = []
    for name, nested in answer.levels.items():
        order = [(a.capacity, b.capacity) for a, b in zip(nested.levels, nested.levels[1:], strict=False)]
        for level in nested.levels:
            parameters = level.growth.parameters
            assumed = region_of(parameters, [*order, *answer.where])
            needs = chain(parameters.conditions(level.growth.region, assumed))
            table.add(name, text(level.capacity), theta(level.growth.monomials), needs)
        word = "one nested choice of tiles reaches all of them" if nested.together else "no one choice reaches them all"
        notes.append(f"{name}: {word}, each level's tile inside the next one's")
    notes.append(
        "M_reg <= M <= M_L2: registers, shared memory, L2, in elements; each boundary runs the nest in its own tiles"
    )
    return Section("at every boundary", table, notes)


def _crossings(answer: Bounds) -> Section:
    lines = []
    for (tiled, granted), equality in answer.equalities.items():
        left, right = text(equality.left), text(equality.right)
        lines.append(f"{tiled} and {granted}: equal where {left} = {right}; {tiled} moves less while {left} < {right}")
    for (tiled, granted), change in answer.at_numbers.crossings.items():
        orders = (tiled, granted) if change.first_leads else (granted, tiled)
        parts = [f"{orders[n % 2]} up to N = {grouped(end - 1)}" for n, end in enumerate(change.lengths)]
        parts.append(f"{orders[len(change.lengths) % 2]} from there on")
        lines.append(f"{tiled} or {granted}, at these tiles, exactly: less is moved by {', then by '.join(parts)}")
    return Section(
        "where tiled and granted schedules move alike (leading terms in N, SM-side elements)", lines or ["nowhere"]
    )


def _numbers(answer: Bounds) -> Section:
    """Three columns that never mix: a class, a monomial at its constant, and bytes."""
    table = Table(
        ("schedule", "regime", "class", "leading term, best tiles", "SM-side at best tiles", "SM-side at these tiles")
    )
    for name in answer.classes:
        lead = answer.at_numbers.leading(name)
        usual = answer.at_numbers.usual[name]
        here = usual.number(usual.sm.total.amount) if usual else None
        tiles = _tiles(usual) if usual else ""
        cells = [
            "no tiles fit" if "M" in answer.at_numbers.values else "M is not given",
            theta(answer.classes[name].monomials),
            "",
            "",
            "",
        ]
        if lead is not None:
            region = chain(answer.parameters.conditions(lead.region))
            cells = [region, theta([lead.monomial]), _leading(answer, lead), _at_best(answer, name), ""]
        if here is not None:
            cells[-1] = f"{size(here)}{tiles}"
        elif usual is None:
            cells[-1] = "no tiles fit"
        table.add(name, *cells)
    notes = ["a class is no byte count: it leaves out the constant, and holds for sizes that grow"]
    if "M" not in answer.at_numbers.values:
        notes.append("give M in elements, or a machine with --on, to say which regime these numbers are in")
    if "M" in answer.at_numbers.values:
        width = answer.request.operand
        fast = answer.at_numbers.values["M"]
        notes.append(f"M = {grouped(fast)} elements of {width.name} ({size(fast * width.width)})")
    for name in answer.classes:
        notes += _factor(answer, name)
    return Section("at these numbers", table, notes)


def _tiles(made: Account) -> str:
    """The tiles that stand in its loops."""
    loops = {x.tile for k in made.derivation.schedule.kernels for x in k.loops if x.tile.is_Symbol}
    known = sorted((t.name for t in loops if t.name in made.values), key=("B_r", "B_c", "B_d").index)
    return f" ({', '.join(f'{name}={made.values[name]}' for name in known)})" if known else ""


def _leading(answer: Bounds, lead: Lead) -> str:
    amount = answer.at_numbers.leading_bytes(lead)
    if lead.constant is None or amount is None:
        return "no constant in closed form"
    return f"{text(lead.constant * lead.monomial)} = {size(amount)}"


def _at_best(answer: Bounds, name: str) -> str:
    made = answer.at_numbers.best[name]
    if made is None:
        tiled = [
            k for k in answer.accounts[name].derivation.schedule.kernels if any(x.tile.free_symbols for x in k.loops)
        ]
        return "no tiles" if not tiled else ("each kernel has its own" if len(tiled) > 1 else "")
    amount = made.number(made.sm.total.amount)
    return "" if amount is None else f"{size(amount)}{_tiles(made)}"


def _factor(answer: Bounds, name: str) -> list[str]:
    """How far the bytes are from the compulsory ones, and from the best tiles."""
    usual = answer.at_numbers.usual[name]
    if usual is None:
        return []
    here, least = usual.number(usual.sm.total.amount), usual.number(usual.compulsory.total.amount)
    if here is None or least is None:
        return []
    words = f"{name}: {significant(Fraction(here) / least)}x the compulsory {size(least)}"
    made = answer.at_numbers.best[name]
    if made is not None and (best := made.number(made.sm.total.amount)):
        words += f", {significant(Fraction(here) / best)}x its best tiles"
    held = answer.at_numbers.held(usual)
    fast = answer.at_numbers.values.get("M")
    if held is not None and fast is not None:
        words += f"; its tiles fill {significant(Fraction(100 * held) / fast, 3)} % of M"
    return [words]


def _readings() -> Section:
    lines = [
        "derived: classes, constants, regimes and best tiles, from the rewritten graph; both certificates are printed",
        "cited: what others proved, with its source; no constant is known for it here",
        "a working set counts a tile that takes another's place once (scaled Q in Q, P in S, O in its sum)",
        "M in elements; `--where 'd <= N'` states a regime, KEY=VALUE and --on make numbers of it",
    ]
    return Section("how to read this", lines)
