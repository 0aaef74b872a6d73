"""The numbers side by side, and the closed forms they come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import sympy as sp

from derive.symbols import N
from outputs.formula import latex
from outputs.notation import put, text
from outputs.paper.layout import Claim, Layout, in_cases
from outputs.paper.statement import amounts, said, status
from outputs.parts import Parts
from outputs.quantities import grouped, significant, size
from outputs.report.curves import swatch
from outputs.report.markup import Content, Markup, element, form, formula, inline, joined, scrolled
from outputs.spelling import in_reading_order, spelling

if TYPE_CHECKING:
    from outputs.account import Account
    from outputs.report.page import Page

_LAYOUT = Layout("page", 100, 1.0, True)
_MOST_DRAWN = 16
"""Of more parts all is written in plain text, as a terminal shows it: drawn, they alone would take half of a page."""
_ROWS: tuple[tuple[str, str, str], ...] = (
    ("compulsory bytes", "compulsory", "size"),
    ("SM-side bytes", "sm", "size"),
    ("DRAM bytes (modelled)", "dram", "size"),
    ("matmul FLOP, run", "flop", "flop"),
    ("matmul FLOP, useful", "useful", "flop"),
    ("elements converted", "converted", "whole"),
    ("FLOP a byte of DRAM", "intensity", "number"),
    ("shared memory a CTA", "footprint", "size"),
    ("HBM at its peak", "peak", "size"),
)
_TIMES: tuple[tuple[str, str], ...] = (
    ("time of the matrix pipe", "time.mma"),
    ("time of exp", "time.exp"),
    ("time of other vector operations", "time.vector"),
    ("time of conversions", "time.convert"),
    ("time of shared memory", "time.shared"),
    ("time between L2 and SMs", "time.l2"),
    ("time of HBM", "time.dram"),
    ("at least, in all", "seconds"),
)


def numbers(page: Page) -> Markup:
    """One column a schedule; every cell follows the sliders."""
    heads = [element("th", swatch(page.place(a.name)), f" {a.name}", scope="col") for a in page.accounts]
    rows = [element("tr", element("td", ""), *heads)]
    for words, key, as_ in (*_ROWS, *((words, key, "seconds") for words, key in _TIMES)):
        cells = [_cell(page, a.name, key, as_) for a in page.accounts]
        if any(key in page.amounts[a.name] for a in page.accounts):
            rows.append(element("tr", element("th", words, scope="row"), *cells))
    table = element("table", element("caption", "Bytes, FLOP and times of each schedule"), element("tbody", *rows))
    return scrolled(table, label="numbers of each schedule")


def _cell(page: Page, schedule: str, key: str, as_: str) -> Markup:
    if key not in page.amounts[schedule]:
        words = {
            "footprint": "its library's own",
            "converted": "none",
            "time.convert": "none",
            "time.shared": "its library's own",
        }
        return element("td", words.get(key, "not known"))
    parts: list[Content] = [page.shown(schedule, key, as_)]
    if as_ == "size":
        parts += [element("br"), element("small", page.shown(schedule, key, "whole"), " B")]
    return element("td", *parts)


def verdicts(page: Page) -> Markup:
    """A sentence a schedule: which side of the ridge, what the cache keeps."""
    return element("ul", *(element("li", *_verdict(page, a)) for a in page.accounts), class_="verdicts")


def _verdict(page: Page, account: Account) -> list[Content]:
    words: list[Content] = [
        element("b", account.name), ": ", page.shown(account.name, "sm", "size"), " enter and leave the SMs, ",
        page.shown(account.name, "dram", "size"), " reach HBM",
    ]  # fmt: skip
    if account.ridge is not None:
        side = "compute-bound" if page.number(account.name, "intensity") >= account.ridge else "bandwidth-bound"
        words += [
            "; ", element("span", side, data_verdict=account.name), " against HBM: ",
            page.shown(account.name, "intensity", "number"), f" FLOP/B, ridge {significant(account.ridge)}",
        ]  # fmt: skip
    room = account.machine.get("shared_mem_per_block_max") if account.machine else None
    if room is not None and "footprint" in page.amounts[account.name]:
        fits = "fits" if page.number(account.name, "footprint") <= room.value else "does not fit"
        words += [
            "; its tile of ", page.shown(account.name, "footprint", "size"), " ",
            element("span", fits, data_fits=account.name), f" {size(room.value)} of shared memory",
        ]  # fmt: skip
    limit = page.start.answer.thresholds.get(account.name)
    if limit is not None and limit.number is not None:
        words += ["; the cache serves what it reads again up to ", limit.symbol, " = ",
                  element("span", grouped(limit.number), data_threshold=account.name)]  # fmt: skip
    return words


def closed_forms(page: Page) -> Markup:
    """The closed forms of every schedule, cut into named parts where they are long; the parts, which many share, come once."""
    shown, parts = page.start.answer.shown, Parts()
    wholes: dict[tuple[str, str], sp.Expr] = {}
    for account in page.accounts:
        for symbol, amount in amounts(account).items():
            wholes[account.name, symbol] = parts.of(put(amount, shown))
    wholes |= {("", latex(name)): part for name, part in parts.since(0)}
    found, definitions = in_cases(wholes, _LAYOUT)
    claims: dict[str, list[Claim]] = {}
    for (name, symbol), stated in found.items():
        claims.setdefault(name, []).append(Claim(symbol, stated))
    drawn = [_forms(page, account, claims[account.name]) for account in page.accounts]
    where = _where(claims.get("", []), definitions)
    return joined(*drawn, _opened("where, in all of them", joined(*where), "parts of closed forms") if where else None)


def _forms(page: Page, account: Account, stated: list[Claim]) -> Markup:
    answer = page.start.answer
    rows: list[Markup] = []
    for claim in stated:
        rows.append(element("dt", f"{said(claim)} ({status(claim)})"))
        for n, (amount, condition) in enumerate(claim.forms):
            words: list[Content] = []
            if condition != sp.true:
                words = [element("p", "while" if n == 0 else "else while", class_="why"), _row(latex(condition))]
            elif n:
                words = [element("p", "otherwise", class_="why")]
            rows.append(element("dd", *words, _row(f"{claim.symbol} = {latex(amount)}")))
    limit = answer.thresholds.get(account.name)
    if limit is not None:
        rows.append(element("dt", f"the largest {limit.symbol} at which the cache keeps what is read again (modelled)"))
        rows.append(element("dd", element("div", form(put(limit.formula, answer.shown)), class_="row")))
    return _opened(account.name, element("dl", *rows), f"closed forms of {account.name}")


def _where(parts: list[Claim], definitions: Sequence[tuple[sp.Symbol, sp.Expr]]) -> list[Markup]:
    """What each name in the forms stands for."""
    if len(parts) <= _MOST_DRAWN:
        rows = [_row(f"{latex(name)} = {latex(part)}") for name, part in definitions]
        return [_cases(parts, lambda form: inline(latex(form))), *rows] if parts else rows
    written = [element("li", f"{name} = {text(part)}") for name, part in definitions]
    return [_cases(parts, lambda form: joined(text(form))), element("ul", *written)]


def _cases(parts: list[Claim], drawn: Callable[[sp.Basic], Markup]) -> Markup:
    """A table: what each part is in each of its cases."""
    names = {latex(name): name for name in (sp.Symbol(f"Y_{n}") for n in range(1, len(parts) + 1))}
    rows = [element("tr", *(element("th", words, scope="col") for words in ("part", "bytes", "while")))]
    for claim in parts:
        for n, (amount, condition) in enumerate(claim.forms):
            told: Content = "otherwise" if condition == sp.true else drawn(condition)
            rows_of = len(claim.forms)
            name = element("th", drawn(names[claim.symbol]), rowspan=rows_of, scope="rowgroup") if n == 0 else None
            rows.append(element("tr", name, element("td", drawn(amount)), element("td", told)))
    caption = element(
        "caption", "Parts of the counts above that the cache or the tiles decide (of HBM bytes: modelled)"
    )
    return element("table", caption, element("tbody", *rows), class_="cases")


def _opened(summary: str, content: Markup, label: str) -> Markup:
    return element("details", element("summary", summary), scrolled(content, label=label), open=True)


def _row(written: str) -> Markup:
    return element("div", formula(written), class_="row")


def symbols(page: Page) -> Markup:
    """What each symbol means, with the number it starts with."""
    used = frozenset().union(*page.used.values())
    rows = []
    for symbol in in_reading_order(s for s in used if spelling(s.name).says):
        spelt = spelling(symbol.name)
        numbers_ = dict.fromkeys(v[symbol.name] for v in page.values.values() if symbol.name in v)
        written = ", ".join(size(n) if spelt.unit == "bytes" and n >= 1024 else significant(n) for n in numbers_)
        chosen = {"N_q", "N_k"} if symbol == N else {symbol.name}
        note = " (not in the question: a number to begin with)" if chosen & set(page.start.chosen) else ""
        rows.append(
            element("tr", element("th", formula(spelt.latex), scope="row"),
                    element("td", f"{spelt.says}{f' [{spelt.unit}]' if spelt.unit else ''}"), element("td", written + note))
        )  # fmt: skip
    head = element("tr", *(element("th", words, scope="col") for words in ("symbol", "meaning", "number")))
    table = element("table", element("caption", "Symbols"), element("thead", head), element("tbody", *rows))
    return scrolled(table, label="symbols")
