r"""The one symbol table: how each symbol is written, what it means and in which unit; text and LaTeX both read it.

A name is a base and perhaps a subscript, ``C_L2``. A subscript of one letter is a variable and slanted (``B_r``), a longer
one is a word and upright. ``sympy.latex`` reads suffixes of names as accents instead (``C_HBM`` comes out bold).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sp

from derive.symbols import MEANINGS, N

ORDER = (
    "s", "L", "L_w", "B", "h", "h_k", "N", "N_q", "N_k", "N_p", "N_s", "N_g", "W", "W_l", "W_r", "C_k", "C_t", "n_t", "n_d",
    "C", "B_r", "B_c", "B_d", "n_pad", "m_I", "n_I", "M_reg", "M", "M_L2", "d", "d_v", "b", "b_kv", "b_s", "b_p", "b_l",
    "b_acc", "b_h", "I_m", "n_L2", "C_L2", "R", "F", "B_link", "C_kv",
)  # fmt: skip
"""Factors print in this order; what is not named here comes last, by name."""
_RANK = {name: n for n, name in enumerate(ORDER)}
_NAME = re.compile(r"([A-Za-z]+)(?:_([A-Za-z0-9]+))?('*)", re.ASCII)
_GREEK = frozenset(
    {"alpha", "beta", "gamma", "delta", "eta", "theta", "kappa", "lambda", "mu", "rho", "sigma", "tau", "phi"}
)


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a symbol is written.

    Attributes:
        base: its letter, or the name of a Greek one.
        subscript: what stands below it; empty when nothing does.
        primes: how many primes follow.
        says: what it means; empty for a bound variable or a shorthand.
        unit: unit of its value; empty for a count.
    """

    base: str
    subscript: str = ""
    primes: int = 0
    says: str = ""
    unit: str = ""

    @property
    def latex(self) -> str:
        r"""Its LaTeX: ``C_{\mathrm{L2}}``, ``B_r``, ``k'``."""
        base = f"\\{self.base}" if self.base in _GREEK else self.base
        if len(base) > 1 and base[0] != "\\":
            base = rf"\mathrm{{{base}}}"
        below = self.subscript
        if len(below) > 1 and not below.isdigit():
            below = rf"{{\mathrm{{{below}}}}}"
        elif len(below) > 1:
            below = f"{{{below}}}"
        return base + (f"_{below}" if below else "") + "'" * self.primes


def spelling(name: str) -> Spelling:
    """The spelling of the symbol *name*.

    Raises:
        TypeError: it is no letter with perhaps a subscript; nothing is guessed.
    """
    matched = _NAME.fullmatch(name)
    if matched is None:
        raise TypeError(f"{name!a} has no spelling: a symbol is a letter, perhaps with one subscript, such as B_r")
    says, unit = "", ""
    if name in MEANINGS:
        says, unit = MEANINGS[name].says, MEANINGS[name].unit
    elif name == N.name:
        says = "queries and keys a head"
    return Spelling(matched[1], matched[2] or "", len(matched[3]), says, unit)


def in_reading_order(symbols: Iterable[sp.Symbol]) -> list[sp.Symbol]:
    """*symbols* as a table lists them: N first, then as ``derive.symbols`` does, then by name."""
    places = {name: n for n, name in enumerate((N.name, *MEANINGS))}
    return sorted(symbols, key=lambda s: (places.get(s.name, len(places)), s.name))


def rank(symbol: sp.Symbol) -> tuple[int, str, int]:
    """Where a symbol stands among the factors of a product; what is numbered, by its number."""
    base, _, number = symbol.name.rpartition("_")
    numbered = (base, int(number)) if base and number.isdecimal() else (symbol.name, 0)
    return _RANK.get(symbol.name, len(_RANK)), *numbered
