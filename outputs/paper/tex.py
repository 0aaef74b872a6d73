r"""Pieces of LaTeX: escaped words, quantities that parse back, booktabs tables, lines of at most 100 characters."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from derive.exact import Number

WIDEST_LINE = 100
_SPECIAL = {
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "\\": r"\textbackslash{}", "<": "$<$", ">": "$>$", "|": "$|$",
    '"': "''",
}  # fmt: skip
_POWER = re.compile(r"\^(\w+)|\^\(([^()]*)\)")


def escaped(words: str) -> str:
    """Plain words as LaTeX text; what TeX would read as a command is printed as it stands, other alphabets as ``?``."""
    plain = words.encode("ascii", "replace").decode("ascii")
    return re.sub(r'[&%$#_{}^~\\<>|"]', lambda m: _SPECIAL.get(m[0], "\\" + m[0]), plain)


def breakable(words: str) -> str:
    """Escaped words that may break after the signs of a path or an address."""
    return re.sub(r"(/|\\_|-|\.(?=\w))", r"\1\\allowbreak{}", escaped(words))


def quantity(printed: str) -> str:
    r"""``260 MiB`` as ``\DeriveQty{260}{MiB}``: the host may print it otherwise, and a program may read it back."""
    number, _, unit = printed.partition(" ")
    return rf"\DeriveQty{{{number.replace(',', '')}}}{{{unit}}}"


def exactly(number: Number, unit: str) -> str:
    """A whole number, nothing rounded."""
    return rf"\DeriveQty{{{int(number)}}}{{{unit}}}"


def display(formula: str) -> list[str]:
    """A formula on a line of its own."""
    return [rf"\[ {formula} \]"]


def aligned(rows: Sequence[str]) -> list[str]:
    """Formulas below each other, flush left."""
    if len(rows) == 1:
        return display(rows[0])
    return [r"\[ \begin{aligned}", *(rf"& {row} \\" for row in rows[:-1]), f"& {rows[-1]}", r"\end{aligned} \]"]


def table(columns: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, tight: bool = False) -> list[str]:
    """A booktabs table, centred, in the running text; *tight* where a column of a page has to hold it."""
    size = r"\footnotesize\setlength{\tabcolsep}{2pt}" if tight else r"\small\setlength{\tabcolsep}{4pt}"
    lines = [rf"\begin{{center}}{size}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    lines += [" & ".join(head) + r" \\", r"\midrule"]
    lines += [" & ".join(row) + r" \\" for row in rows]
    return [*lines, r"\bottomrule", r"\end{tabular}", r"\end{center}"]


def cell(words: str, width: str) -> str:
    """Words in a cell of a given width, ragged, over as many lines as they need."""
    return rf"\parbox[t]{{{width}}}{{\raggedright {words}\strut}}"


def numbered(items: Sequence[str], label: str) -> list[str]:
    """A list whose items are called ``A1``, ``A2``, ..."""
    start = rf"\begin{{list}}{{}}{{\setlength{{\leftmargin}}{{2em}}\setlength{{\labelwidth}}{{1.5em}}%{chr(10)}"
    start += r"\setlength{\itemsep}{2pt}\setlength{\parsep}{0pt}}"
    return [start, *(rf"\item[{label}{n}] {item}" for n, item in enumerate(items, 1)), r"\end{list}"]


def wrapped(lines: Sequence[str]) -> str:
    """Lines broken at spaces, none longer than ``WIDEST_LINE``; a comment keeps its sign on every line."""
    out: list[str] = []
    for line in "\n".join(lines).splitlines():
        comment = line.startswith("%")
        out += textwrap.wrap(
            line,
            WIDEST_LINE,
            break_long_words=False,
            break_on_hyphens=False,
            subsequent_indent="%   " if comment else "",
        ) or [""]
    return "\n".join(out) + "\n"
