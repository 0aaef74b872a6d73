"""Monomials and regimes as people write them: ``N^2 d/M``, ``N**2*d/sqrt(M)``, ``d <= M <= N d``; nothing is run as code."""

from __future__ import annotations

import re
from collections.abc import Mapping

import sympy as sp

from derive.errors import BadValueError, clipped, nearest
from derive.growth.parameters import Condition
from derive.symbols import MEANINGS, N, symbol

_TOKEN = re.compile(r"\s*(?:(sqrt)\s*\(\s*([A-Za-z]\w*)\s*\)|([A-Za-z]\w*)|(\d+)|(\*\*|\^|[*/()]))", re.ASCII)
_LONGEST, _LARGEST_POWER = 200, 16


def known_symbols() -> dict[str, sp.Symbol]:
    """Every name a monomial may use: symbols by name, by the key people type, and N."""
    found = {"N": N}
    for name, meaning in MEANINGS.items():
        found[name] = symbol(name)
        if meaning.key:
            found.setdefault(meaning.key, symbol(name))
    return found


def read_condition(text: str, names: Mapping[str, sp.Symbol] | None = None) -> list[Condition]:
    """The conditions of a chain such as ``d <= M <= N d``.

    Raises:
        BadValueError: it is no chain of monomials joined by <= or >=.
        UnknownNameError: a symbol that does not exist.
    """
    parts = re.split(r"(<=|>=|<|>|=)", text[: _LONGEST + 1])
    if len(text) > _LONGEST or len(parts) < 3 or any(p in ("<", ">", "=") for p in parts[1::2]):
        raise BadValueError(
            f"{clipped(text, 60)!a} is no regime; write monomials joined by <=, such as 'd <= M <= N*d'"
        )
    sides = [read_monomial(side, names) for side in parts[::2]]
    found = []
    for left, relation, right in zip(sides, parts[1::2], sides[1:], strict=False):
        found.append((left, right) if relation == "<=" else (right, left))
    return found


def read_monomial(text: str, names: Mapping[str, sp.Symbol] | None = None) -> sp.Expr:
    """A product of powers of symbols.

    Raises:
        BadValueError: it is none, or an exponent beyond 16.
        UnknownNameError: a symbol that does not exist.
    """
    names = names if names is not None else known_symbols()
    tokens = _tokens(text)
    result, divides = sp.Integer(1), False
    while tokens:
        kind, word = tokens.pop(0)
        if word in ("*", "/"):
            if not tokens or tokens[0][1] in ("*", "/"):
                raise _refused(text)
            divides = word == "/"
            continue
        if kind == "number":
            if word != "1":
                raise BadValueError(
                    f"{text.strip()!a} has the number {word} in it; classes and regimes leave constants out"
                )
            base, power = sp.Integer(1), sp.Integer(1)
        elif kind == "name":
            if word not in names:
                raise nearest("symbol", word, names)
            base, power = names[word], sp.Integer(1)
        else:
            raise _refused(text)
        if tokens and tokens[0][1] == "^":
            tokens.pop(0)
            power = _exponent(text, tokens)
        elif tokens and tokens[0][0] == "root":
            power = sp.Rational(1, 2)
            tokens.pop(0)
        result *= base ** (-power if divides else power)
        divides = False
    return result


def _tokens(text: str) -> list[tuple[str, str]]:
    found, position = [], 0
    text = text.strip()
    if not text or len(text) > _LONGEST:
        raise _refused(text)
    while position < len(text):
        matched = _TOKEN.match(text, position)
        if matched is None:
            raise _refused(text)
        position = matched.end()
        _, under_root, name, number, mark = matched.groups()
        if under_root:
            found += [("name", under_root), ("root", "")]
        elif name:
            found.append(("name", name))
        elif number:
            found.append(("number", number))
        else:
            found.append(("mark", "^" if mark == "**" else mark))
    return found


def _exponent(text: str, tokens: list[tuple[str, str]]) -> sp.Rational:
    """A whole number, or a fraction in brackets."""
    words = [word for _, word in tokens]
    if words[:1] == ["("] and len(words) >= 5 and words[2] == "/" and words[4] == ")":
        top, bottom, used = words[1], words[3], 5
    elif words[:1] == ["("] and len(words) >= 3 and words[2] == ")":
        top, bottom, used = words[1], "1", 3
    elif words:
        top, bottom, used = words[0], "1", 1
    else:
        raise _refused(text)
    if not (top.isdigit() and bottom.isdigit()) or len(top + bottom) > 4 or int(bottom) == 0:
        raise _refused(text)
    if int(top) > _LARGEST_POWER * int(bottom):
        raise BadValueError(f"{text!a}: no exponent beyond {_LARGEST_POWER} is taken")
    del tokens[:used]
    return sp.Rational(int(top), int(bottom))


def _refused(text: str) -> BadValueError:
    return BadValueError(
        f"{clipped(text, 60)!a} is no monomial; write a product of powers, such as N^2 d/M or N**2*d/sqrt(M)"
    )
