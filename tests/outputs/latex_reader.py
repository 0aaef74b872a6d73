r"""The house's LaTeX turned back into the text form, by replacing macros alone: it knows no printer.

``\frac{N}{B_r}`` becomes ``((N)/(B_r))``; what is left over is refused by ``outputs.reader``.
"""

from __future__ import annotations

import re

_WORDS = {
    r"\left\lceil": "ceil(", r"\right\rceil": ")", r"\left\lfloor": "floor(", r"\right\rfloor": ")",
    r"\left(": "(", r"\right)": ")", r"\min": " min", r"\max": " max", r"\gcd": " gcd", r"\le": "<=", r"\ne": "!=",
    r"\left[": "[", r"\right]": "]", r"\text{ and }": " and ", r"\text{ or }": " or ",
}  # fmt: skip


def as_text(latex: str) -> str:
    """*latex* in the text form."""
    latex = re.sub(r"_\{\\mathrm\{(\w+)\}\}", r"_\1", latex)
    latex = _cases(latex)
    latex = _sums(latex)
    while r"\frac" in latex:
        start = latex.rindex(r"\frac")
        above, after = _group(latex, start + len(r"\frac"))
        below, end = _group(latex, after)
        latex = f"{latex[:start]}(({above})/({below})){latex[end:]}"
    while r"\sqrt" in latex:
        start = latex.rindex(r"\sqrt")
        inside, end = _group(latex, start + len(r"\sqrt"))
        latex = f"{latex[:start]}sqrt({inside}){latex[end:]}"
    for macro, word in sorted(_WORDS.items(), key=lambda item: -len(item[0])):
        latex = latex.replace(macro, word)
    return re.sub(r"\^\{([^{}]*)\}", r"^(\1)", latex)


def _group(latex: str, start: int) -> tuple[str, int]:
    """The braced group at *start*, and where it ends."""
    assert latex[start] == "{", latex[start : start + 20]
    depth = 0
    for place in range(start, len(latex)):
        depth += {"{": 1, "}": -1}.get(latex[place], 0)
        if depth == 0:
            return latex[start + 1 : place], place + 1
    raise AssertionError("a brace is not closed")


def _cases(latex: str) -> str:
    while r"\begin{cases}" in latex:
        start = latex.rindex(r"\begin{cases}")
        end = latex.index(r"\end{cases}", start)
        rows = latex[start + len(r"\begin{cases}") : end].split(r"\\")
        parts = []
        for row in rows:
            amount, condition = row.split("&")
            condition = condition.strip()
            condition = condition.removeprefix(r"\text{if }")
            parts.append(amount if "otherwise" in condition else f"{amount} if {condition} else")
        latex = latex[:start] + f"({' '.join(parts)})" + latex[end + len(r"\end{cases}") :]
    return latex


def _sums(latex: str) -> str:
    r"""``\sum_{i=0}^{n} body``: the body ends with the group that the sum stands in, or with the next term."""
    while r"\sum" in latex:
        start = latex.rindex(r"\sum")
        below, after = _group(latex, start + len(r"\sum_"))
        high, after = _group(latex, after + 1)
        end = _end_of_term(latex, after)
        latex = f"{latex[:start]}sum({latex[after:end]}, {below}..{high}){latex[end:]}"
    return latex


def _end_of_term(latex: str, start: int) -> int:
    """Where the product that begins at *start* ends."""
    depth, place = 0, start + 1
    while place < len(latex):
        rest = latex[place:]
        if rest.startswith(("{", "(", r"\left")):
            depth += 1
        elif rest.startswith(("}", ")", r"\right")):
            depth -= 1
            if depth < 0:
                return place
        elif depth == 0 and re.match(r" [-+<=&] | +(if|else) | \\(le|ne|text|\\|end)|,|&", rest):
            return place
        place += 1
    return place
