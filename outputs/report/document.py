"""The page put together: one file that asks for nothing, runs one script by its hash, and reads without it too."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from derive.errors import DomainError, PreconditionError
from derive.substitution import free
from outputs.javascript_form import javascript_program, name
from outputs.pictures.lengths import by_length
from outputs.pictures.roof import roof
from outputs.pictures.start import start
from outputs.report import bars, controls, curves, dataflow, regime_map, tables
from outputs.report.axes import BOTTOM, LEFT, RIGHT, TOP
from outputs.report.markup import Markup, element, joined
from outputs.report.page import Page
from outputs.report.proof import derivations

if TYPE_CHECKING:
    from outputs.explanation import Explanation

_READINGS = (
    "Derived: FLOP, compulsory and SM-side bytes, shared memory, growth classes, from the graph by the steps below.",
    "Modelled: DRAM bytes, by an LRU cache, CTAs in step and waves in grid order; a written line goes back to HBM once.",
    "An operator that is not tiled counts each operand once; its library's own tiles are not modelled.",
    "Times are lower bounds at the peak rates of data sheets: each pipe and level alone, perfectly overlapped.",
    "Sizes are binary (MiB), rates and times decimal. All numbers on this page are computed exactly and rounded when written.",
)


@cache
def _text(file: str) -> str:
    """A script or a style sheet, its lines without indentation."""
    lines = (files("outputs.report") / file).read_text(encoding="utf-8").splitlines()
    return "".join(f"{line.strip()}\n" for line in lines if not line.lstrip().startswith("//"))


def report(asked: Explanation, command: str) -> str:
    """The whole file.

    Args:
        asked: the answer it shows.
        command: what was typed.

    Raises:
        InfeasibleError: at the numbers it begins with, the tiles do not fit the machine.
    """
    page = Page(start(asked), command)
    lengths, roofs = by_length(page.start), roof(page.start)
    found_maps, why_no_map = _maps(page)
    variant = asked.request.variant
    mask = page.accounts[0].mask_of
    machine = asked.machine
    question = f"{variant.direction}, {mask.says if mask else 'no mask'}, {asked.request.operand.name}"
    question += f", on {machine.id}: {machine.name}" if machine else ", no machine named"
    pictures = [
        curves.roof_picture(page, roofs) if roofs else None,
        curves.length_picture(page, lengths) if lengths else None,
    ]
    pictures += [regime_map.drawn(each) for each in found_maps]
    note = element("p", why_no_map, class_="why") if why_no_map else None
    body = joined(
        element("header", element("h1", f"{variant.name}: {variant.says}"), element("p", question),
                element("p", element("code", command)), _chosen(page)),
        element(
            "main",
            _section("answer", "How many bytes, how many FLOP", tables.verdicts(page), tables.numbers(page)),
            controls.controls(page),
            _section("bytes", "Three byte counts of each tensor", bars.bars(page)),
            _section("pictures", "Where it stands, and until when", element("div", *pictures, class_="pictures"), note),
            _section("forms", "Closed forms", tables.closed_forms(page), tables.symbols(page)),
            _section("schedules", "What is fused, what is tiled, where each tensor lives", dataflow.legend(),
                     dataflow.graph_drawn(page.accounts[0].derivation.start, "graph"),
                     dataflow.schedules_drawn(page.accounts)),
            _section("derivation", "The derivation, rule by rule",
                     derivations([account.derivation for account in page.accounts], page.start.answer.shown)),
            _section("reading", "How to read this", element("ul", *(element("li", words) for words in _READINGS)),
                     element("p", f"Source of the variant: {variant.reference}", class_="source")),
        ),
    )  # fmt: skip
    script = _script(page, curves.data(lengths, roofs), [regime_map.data(each) for each in found_maps])
    style = _text("page.css")
    policy = f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'"
    policy += "; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{variant.name}: bytes and FLOP, derived"),
        element("style", Markup(style)),
    )
    whole = element("html", head, element("body", body, element("script", Markup(script))), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n"


def _section(name_: str, title: str, *content: Markup | None) -> Markup:
    return element(
        "section", element("h2", title, id=f"{name_}-title"), *content, aria_labelledby=f"{name_}-title", id=name_
    )


def _chosen(page: Page) -> Markup | None:
    """What the question left open, and what stands in for it."""
    if not page.start.chosen:
        return None
    used = {s.key.rpartition(":")[2] for s in page.sliders if not s.given}
    words = [f"{s.symbol} = {s.value}" for s in page.sliders if s.symbol in used]
    if not words:
        return None
    return element("p", f"Not in the question, so numbers to begin with: {', '.join(words)}.", class_="why")


def _maps(page: Page) -> tuple[tuple[regime_map.Map, ...], str]:
    """The regime maps, or why there are none."""
    from outputs.bounds import Bounds

    asked = page.start.asked
    try:
        bounds = Bounds(asked.request, (), asked.machine, asked.options)
        return regime_map.maps(page, bounds), ""
    except (DomainError, PreconditionError) as error:
        return (), f"No map of growth classes: {error}."


def _script(page: Page, pictures: dict[str, object], maps: list[dict[str, object]]) -> str:
    """Arithmetic, closed forms and data, then what moves them; nothing in it can end the element it stands in."""
    forms = {f"{schedule}|{key}": amount for schedule, found in page.amounts.items() for key, amount in found.items()}
    data = {
        **controls.data(page),
        **_values(page),
        "divides": [[name(a.name), name(b.name)] for a, b in page.start.asked.request.variant.divides],
        "ridge": {a.name: str(a.ridge) for a in page.accounts if a.ridge is not None},
        "room": _room(page),
        "thresholds": _thresholds(page),
        "maps": maps,
        "frame": {"left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM},
        "longest": bars.LONGEST,
        **pictures,
    }
    written = (
        json.dumps(data, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )
    program = javascript_program(forms).replace("<", "\\u003c")  # only in names: no operator is printed with it
    program = program.replace(", ", ",").replace(" => ", "=>")  # no name has either
    return f'"use strict";\n{{\n{_text("arithmetic.js")}{program}const data = {written};\n{_text("page.js")}}}\n'


def _values(page: Page) -> dict[str, object]:
    """The numbers of each schedule; those that all of them have, once."""
    written = {
        schedule: {name(symbol): str(number) for symbol, number in values.items()}
        for schedule, values in page.values.items()
    }
    first, *rest = written.values()
    shared = {symbol: n for symbol, n in first.items() if all(values.get(symbol) == n for values in rest)}
    own = {s: {symbol: n for symbol, n in values.items() if symbol not in shared} for s, values in written.items()}
    return {"shared": shared, "values": own}


def _room(page: Page) -> str | None:
    machine = page.start.answer.machine
    room = machine.get("shared_mem_per_block_max") if machine else None
    return None if room is None else str(room.value)


def _thresholds(page: Page) -> dict[str, dict[str, object]]:
    """Which schedules have one, the length that grows, and whether what is live changes with the row tiles."""
    found: dict[str, dict[str, object]] = {}
    for account in page.accounts:
        limit = page.start.answer.thresholds.get(account.name)
        if limit is None:
            continue
        shared = account.sharing
        steady = shared is None or limit.symbol == "N_k" or not {"N_q"} & {s.name for s in free(shared[1].live)}
        found[account.name] = {"symbol": limit.symbol, "scan": not steady}
    return found


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
