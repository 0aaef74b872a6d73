"""The answer as a person reads it in a terminal: tables, then the reasons behind each number."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import sympy as sp

from derive.einsum import Map
from derive.flops import Pipe
from derive.graph import Graph
from derive.mask import Mask
from derive.passes import passes
from outputs.alignment import other_alignment
from outputs.best_sizes import best_sizes
from outputs.closed_form import case_note, form, where
from outputs.contrasts import if_causal, if_decode
from outputs.layout import Section, Table
from outputs.notation import as_asked, text
from outputs.parts import Parts
from outputs.profile import profile
from outputs.quantities import decimal, grouped, seconds, significant, size
from outputs.reasons import after_the_threshold, tile_constant, until_when, why_fewer_bytes
from outputs.sparsity import lines as sparse_at
from outputs.splits import how_many
from outputs.times import PIPE_NAMES, roofline
from outputs.trade import where_they_cross

if TYPE_CHECKING:
    from derive.cost import Moves
    from derive.exact import Number
    from derive.rewrite import Step
    from hardware.roofline import Pipe as Level
    from outputs.account import Account
    from outputs.explanation import Explanation


def explain(answer: Explanation) -> list[Section]:
    """The whole answer, section by section."""
    parts = Parts()
    sections = [_question(answer), _work(answer, parts), _bytes(answer, parts)]
    sections += where(parts)
    known = len(parts.names)
    sections.append(_memory(answer, parts))
    sections += where(parts, known)
    if answer.machine is not None and all(a.is_numeric for a in answer.accounts):
        sections.append(roofline(answer))
        sections += how_many(answer)
    sections.append(_why_legal(answer))
    reasons = (why_fewer_bytes(answer), until_when(answer), after_the_threshold(answer), best_sizes(answer))
    sections += [s for s in reasons if s]
    more = (tile_constant(answer), where_they_cross(answer), if_causal(answer), if_decode(answer), profile(answer))
    sections += [s for s in more if s]
    sections.append(_readings(answer))
    return sections


def steps(answer: Explanation) -> list[Section]:
    """Each derivation, rule by rule, with what stood before and after."""
    sections = []
    for account in answer.accounts:
        lines = ["start"] + [f"    {e}" for e in account.derivation.start.einsums]
        for n, step in enumerate(account.derivation.steps, 1):
            lines += ["", f"{n}  {step.rule}: {step.rule.claim}"]
            lines += [f"   legal because {reason}" for reason in step.reasons]
            if step.condition != sp.true:
                lines.append(f"   holds while {text(step.condition)}")
            lines.append(f"   [{step.rule.reference}]")
            lines += [f"    {line}" for line in _changed_lines(str(step.before), str(step.after))]
        sections.append(Section(f"{account.name}, step by step", lines))
    return sections


def _changed_lines(before: str, after: str) -> list[str]:
    old = before.splitlines()
    return [line for line in after.splitlines() if line not in old]


def _question(answer: Explanation) -> Section:
    request = answer.request
    numbers = [
        f"{k} = {significant(v) if v.denominator > 1 else grouped(v)}"
        for k, v in as_asked(request.numbers, request.tied).items()
    ]
    tiles = answer.accounts[-1].values
    numbers += [
        f"{k} = {grouped(tiles[k])}" for k in ("B_r", "B_c", "B_d", "C_t") if k in tiles and k not in request.numbers
    ]
    mask: Mask | None = answer.accounts[0].derivation.start.mask
    types = ", ".join(f"{group} {t.name}" for group, t in request.types.items() if group != "dtype")
    lines = [
        f"{request.variant.name}: {request.variant.says}",
        f"{request.variant.direction}, {request.variant.seen_by(mask)}, {request.operand.name}"
        f" (b = {significant(request.operand.width, 3)} B{', ' + types if types else ''})",
    ]
    if numbers:
        lines.append("  ".join(numbers))
    lines += [*sparse_at(answer.accounts), *other_alignment(answer)]
    if answer.machine is not None:
        lines.append(f"on {answer.machine.id}: {answer.machine.name}")
    return Section("", lines)


def _work(answer: Explanation, parts: Parts) -> Section:
    table = Table(("", "", "closed form", "exact"))
    first = answer.accounts[0]
    convention = first.convention.value
    rows = (("matmul FLOP", Pipe.MMA, "FLOP"), ("exponentials", Pipe.SFU, "exp"), ("vector ops", Pipe.VECTOR, "op"))
    for label, pipe, unit in rows:
        accounts = {a.name: a for a in answer.accounts}
        if len({a.useful[pipe] for a in answer.accounts}) == 1:
            accounts = {"useful": first}
        for name, account in accounts.items():
            amount = account.useful[pipe]
            table.add(label, name, form(answer, amount, parts), _exact(account.number(amount), unit))
            label = ""
    for account in answer.accounts:
        if account.converted != 0:
            amount = form(answer, account.converted, parts)
            table.add(
                "converted",
                account.name,
                amount,
                _exact(account.number(account.converted), f"{account.narrow} elements"),
            )
    for account in answer.accounts:
        run, useful = account.number(account.executed[Pipe.MMA]), account.number(account.useful[Pipe.MMA])
        if run is None or useful is None:
            continue
        share = f"{significant(Fraction(run) / useful)}x useful" if run != useful else "= useful"
        table.add(
            "executed", account.name, form(answer, account.executed[Pipe.MMA], parts), f"{grouped(run)} FLOP, {share}"
        )
    return Section(f"work ({convention} count of pairs; one multiply-add = 2 FLOP)", table)


def _exact(number: Number | None, unit: str) -> str:
    return "" if number is None else f"{grouped(number)} {unit}"


def _bytes(answer: Explanation, parts: Parts) -> Section:
    columns = ("", "", "closed form", "bytes", "exact")
    table = Table((*columns, "time") if answer.machine else columns)
    first = answer.accounts[0]
    if all(a.compulsory == first.compulsory for a in answer.accounts):
        table.add("compulsory", "any", *_row(answer, first, first.compulsory, "dram", parts))
    else:  # they read different tensors that the forward pass saved
        for n, account in enumerate(answer.accounts):
            table.add(
                "" if n else "compulsory", account.name, *_row(answer, account, account.compulsory, "dram", parts)
            )
    levels: tuple[tuple[str, Level], ...] = (("SM-side", "l2"), ("DRAM", "dram"))
    for label, level in levels:
        for n, account in enumerate(answer.accounts):
            moves = account.sm if level == "l2" else account.dram
            table.add("" if n else label, account.name, *_row(answer, account, moves, level, parts))
    notes = [note for account in answer.accounts if (note := case_note(answer, account))]
    bounds = [a.name for a in answer.accounts if a.is_numeric and a.is_exact is False]
    if bounds:
        notes.append(f"{' and '.join(bounds)}: DRAM bytes are at most this; near the cache's size LRU may keep part")
    known = [(level, first.rate(level)) for _, level in levels]
    notes += [
        f"time at {decimal(r.value, 'B/s')} for {PIPE_NAMES[level]}: {r.how}, {r.kind}" for level, r in known if r
    ]
    return Section("bytes (sizes binary, rates decimal)", table, notes)


def _row(answer: Explanation, account: Account, moves: Moves, level: Level, parts: Parts) -> list[str]:
    amount = moves.total.amount
    number = account.number(amount)
    cells = [form(answer, amount, parts)]
    if number is None:
        return [*cells, "", ""] + ([""] if answer.machine else [])
    cells += [size(number), f"{grouped(number)} B"]
    if answer.machine is not None:
        rate = account.rate(level)
        cells.append("" if rate is None else seconds(Fraction(number) / rate.value))
    return cells


def _why_legal(answer: Explanation) -> Section:
    lines = []
    for account in answer.accounts:
        lines.append(f"{account.name}:")
        for n, step in enumerate(account.derivation.steps, 1):
            reasons = "; ".join(step.reasons)
            passed = _passes(step)
            lines.append(f"  {n}. {step.rule}: {step.rule.claim}{passed}; legal: {reasons} [{step.rule.reference}]")
    return Section("why each step is legal (`derive steps` shows the graphs between)", lines)


def _passes(step: Step) -> str:
    """How many passes over the keys the cascade needs after an algebra step."""
    if not isinstance(step.after, Graph) or any(e.map.is_opaque for e in step.after.einsums):
        return ""
    column = step.after.mask.column if step.after.mask else "k"
    return f"; passes over {column} it needs: {passes(step.after, column)}" if column in step.after.indices else ""


def _memory(answer: Explanation, parts: Parts) -> Section:
    """What a CTA holds on chip, and what HBM holds at the worst moment."""
    table = Table(("", "", "closed form", "bytes", "of"))
    room = answer.machine.get("shared_mem_per_block_max") if answer.machine else None
    for n, account in enumerate(answer.accounts):
        label = "" if n else "shared memory a CTA"
        if account.footprint is None:
            table.add(label, account.name, "its library's own tiles", "", "")
            continue
        held = account.number(account.footprint)
        limit = size(room.value) if room is not None and held is not None else ""
        table.add(
            label, account.name, form(answer, account.footprint, parts), "" if held is None else size(held), limit
        )
    for n, account in enumerate(answer.accounts):
        peak = account.number(account.memory_peak)
        closed = form(answer, account.memory_peak, parts)
        table.add("" if n else "HBM at its peak", account.name, closed, "" if peak is None else size(peak), "")
    notes = _training_rows(answer, table, parts)
    return Section("memory", table, notes)


def _training_rows(answer: Explanation, table: Table, parts: Parts) -> list[str]:
    """Rows on a backward pass together with the forward pass before it; nothing for forward passes."""
    labels = "HBM, forward + backward", "  gradients added to buffers"
    found = [(account, peaks) for account in answer.accounts if (peaks := answer.training(account)) is not None]
    for kind, label in enumerate(labels):
        for n, (account, peaks) in enumerate(found):
            peak = account.number(peaks[kind])
            table.add(
                "" if n else label,
                account.name,
                form(answer, peaks[kind], parts),
                "" if peak is None else size(peak),
                "",
            )
    if not found:
        return []
    return [
        "forward + backward: what is saved lives from its writer to its last reader, results and gradients to the end; "
        "a framework keeps a buffer beside each new gradient and adds it"
    ]


def _readings(answer: Explanation) -> Section:
    lines = [
        "derived: FLOPs, bytes, footprint and residency, from the rewritten graph; checked by `derive check`",
        "modelled: DRAM bytes use an LRU cache, CTAs in step, waves in grid order; measured kernels drift",
        "SM-side bytes of an untiled operator count each operand once: its library's own tiles are not modelled",
        "written lines go back to HBM once, intermediates included",
    ]
    if any(a.times.get("shared") is not None for a in answer.accounts):
        lines.append(
            "shared memory: operands that matrix instructions read, and what is staged for them; loads that fill it are SM-side"
        )
    selections = [e for e in answer.accounts[0].derivation.start.einsums if e.map.is_selection]
    paged = [e for e in selections if e.paging is not None]
    if paged:
        lines.append(
            f"{', '.join(sorted({e.inputs[0].name for e in paged}))} lie in pages: no two sequences are taken to share one, "
            "and the part of a last page that is empty is never read, only allocated (`derive cache page=`)"
        )
    if gathered := sorted({e.inputs[0].name for e in selections if e.map is Map.GATHER and e not in paged}):
        lines.append(
            f"rows of {', '.join(gathered)} are gathered: which coincide is data, so every one counts at HBM, an upper bound; "
            "compulsory counts each once where as few coincide as can"
        )
    if any(e.map is Map.TOP for e in selections):
        lines.append("a top counts one comparison an element it looks through; how it keeps the largest is left open")
    if any(e.map is Map.INVERSE for e in answer.accounts[0].derivation.start.einsums):
        lines.append(
            "an inverse counts its substitution, on the vector pipe; merging small blocks would use the matrix pipe"
        )
    if any(a.operand for a in answer.accounts) and answer.machine is not None:
        lines.append(
            "times are lower bounds at peak rates from data sheets; `derive machines` says where each comes from"
        )
    return Section("how to read this", lines)
