"""Parts of pages that are written when the site is built: ``<!-- generated: WORD ... -->`` becomes what the engine prints."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

from derive.attention import names as variant_names
from derive.attention import variant
from derive.flops import Pipe
from derive.symbols import MEANINGS
from hardware import load
from hardware import names as machine_names
from outputs.account import Account
from outputs.deduction import Options, account
from outputs.formula import latex
from outputs.mathml import mathml
from outputs.notation import tidy
from outputs.notebook import as_html
from outputs.request import read_request
from rules.catalogue import ALGEBRA, SCHEDULE
from rules.derivations import names as schedule_names
from rules.derivations import plan

_MARK = re.compile(r"^<!-- generated: ([a-z]+)((?: [a-z0-9_.-]+)*) -->$", flags=re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with what its marks stand for; MkDocs calls this for each."""
    return _MARK.sub(lambda mark: _MAKERS[mark[1]](*mark[2].split()), markdown)


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *(tuple(c.replace("|", r"\|") for c in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _linked(reference: str) -> str:
    """A reference with its arXiv numbers as links."""
    return re.sub(r"arXiv:(\d{4}\.\d{5})", r"[arXiv:\1](https://arxiv.org/abs/\1)", reference)


def _variants() -> str:
    """Each variant with the keys of its sizes."""
    found = [variant(name) for name in variant_names()]
    rows = []
    for v in found:
        written = {s.name for s in v.symbols}
        keys = " ".join(m.key for name, m in MEANINGS.items() if name in written and m.key)
        rows.append((f"`{v.name}`", v.says, f"`{keys}`", _linked(v.reference)))
    return _table(("variant", "what it is", "sizes", "published in"), rows)


def _schedules() -> str:
    found = [plan(name) for name in schedule_names()]
    rows = [(f"`{p.name}`", p.says, p.direction, _linked(p.reference)) for p in found]
    return _table(("schedule", "what it is", "pass", "published in"), rows)


def _rules() -> str:
    rows = [
        (f"`{rule}`", kind, rule.claim, "; ".join(p.says for p in rule.preconditions), _linked(rule.reference))
        for kind, rules in (("graph", ALGEBRA), ("schedule", SCHEDULE))
        for rule in rules
    ]
    return _table(("rule", "rewrites a", "what it says", "needs that", "proved in"), rows)


def _machines() -> str:
    return _table(("machine", "what it is"), [(f"`{name}`", load(name).name) for name in machine_names()])


def _account(name: str, schedule: str) -> Account:
    return account(read_request(variant(name), ()), schedule, None, Options())


def _forms(name: str, schedule: str) -> str:
    """The closed forms of one schedule, nothing set."""
    found = _account(name, schedule)
    rows = [
        ("compulsory bytes", found.compulsory.total.amount),
        ("SM-side bytes", found.sm.total.amount),
        ("useful matmul FLOP", found.useful[Pipe.MMA]),
        ("fast memory of a CTA, bytes", found.footprint),
    ]
    shown = [(what, mathml(latex(tidy(amount)))) for what, amount in rows if amount is not None]
    return _table((f"{name} by {schedule}", "closed form"), shown)


def _derivation(name: str, schedule: str) -> str:
    """Every step, drawn as in a notebook."""
    return as_html(_account(name, schedule).derivation)


def _docstring(module: str) -> str:
    """What a module says of itself, without its first line."""
    return (inspect.getdoc(import_module(module)) or "").partition("\n")[2].strip()


_MAKERS: dict[str, Callable[..., str]] = {
    "variants": _variants,
    "schedules": _schedules,
    "rules": _rules,
    "machines": _machines,
    "forms": _forms,
    "derivation": _derivation,
    "docstring": _docstring,
}
