"""A module of its own that computes an answer's closed forms: Python's standard library alone, integers and fractions."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

import sympy as sp

from derive.exact import Number, value
from derive.flops import Pipe
from derive.met_blocks import Met
from derive.substitution import free
from outputs.notation import put, text, tidy, with_one_length
from outputs.python_form import HELPERS, LOOKUP, identifier, python_form
from outputs.spelling import in_reading_order, spelling

if TYPE_CHECKING:
    from outputs.account import Account
    from outputs.explanation import Explanation

_WIDTH = 88
_LONGEST = 160
"""Characters of a closed form that a docstring repeats."""
_SAMPLE = 5
"""Value of a size in an example, where the question gives none; sizes that must divide one another are then equal."""

_HEAD = '''\
from __future__ import annotations

from collections.abc import {abstract}
from fractions import Fraction
from math import gcd
{numpy}
Exact = int | Fraction
"""A whole number, or an exact fraction."""

__all__ = [
{names}
]


def _whole(number: Exact) -> Exact:
    """A fraction with denominator 1 as the integer it is."""
    return number.numerator if number.denominator == 1 else number


{helpers}

def _check(sizes: dict[str, int], numbers: dict[str, Exact]) -> None:
    """Refuse what no closed form holds for: sizes are whole, other numbers exact, all positive."""
    for name, size in sizes.items():
        if type(size) is not int or size < 1:
            raise ValueError(f"{{name}}={{size!r}} is no size: give a whole number from 1")
    for name, number in numbers.items():
        if type(number) not in (int, Fraction) or number <= 0:
            raise ValueError(f"{{name}}={{number!r}} is not exact: give an int or a Fraction")
'''
_OVER = '''

def over(
    function: Callable[..., Exact], **sizes: object
) -> numpy.typing.NDArray[numpy.object_]:
    """*function* over arrays of sizes, which are broadcast against each other.

    The result holds Python's own integers (dtype object): no product of sizes overflows,
    as it would in int64.

    Raises:
        ValueError: an array of floats; sizes are whole numbers.
    """
    arrays = {name: numpy.asarray(size) for name, size in sizes.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in "iuO":
            raise ValueError(f"{name} has dtype {array.dtype}; sizes are whole numbers")
    points = numpy.broadcast(*arrays.values(), 0)
    result = numpy.empty(points.shape, dtype=object)
    for place, point in zip(numpy.ndindex(points.shape), points, strict=True):
        exact = (n if isinstance(n, int | Fraction) else int(n) for n in point)
        result[place] = function(**dict(zip(arrays, exact, strict=False)))
    return result
'''


def quantities(account: Account) -> dict[str, tuple[str, sp.Expr]]:
    """What the module computes of a schedule: the phrase and the amount, by the end of the function's name."""
    found = {
        "compulsory_bytes": ("Bytes that any schedule moves", account.compulsory.total.amount),
        "sm_bytes": ("Bytes between the cache and the SMs, re-reads included", account.sm.total.amount),
        "hbm_bytes": ("Bytes between HBM and the cache, by the LRU model", account.dram.total.amount),
        "matmul_flop": ("FLOP of the matrix products that are run", account.executed[Pipe.MMA]),
        "exp_operations": ("Exponentials that are run", account.executed[Pipe.SFU]),
        "useful_matmul_flop": (
            f"FLOP of the matrix products by the {account.convention.value} convention",
            account.useful[Pipe.MMA],
        ),
        "hbm_peak_bytes": ("HBM bytes live at once", account.memory_peak),
    }
    if account.converted != 0:
        found["converted_elements"] = (
            f"Elements converted from {account.narrow} to the type that products multiply, as they are brought in",
            account.converted,
        )
    if account.footprint is not None:
        found["shared_memory_bytes"] = ("Shared-memory bytes of a CTA", account.footprint)
    return found


def module(explanation: Explanation, command: str, *, arrays: bool = False) -> str:
    """The text of the module.

    Args:
        explanation: the answer it computes; numbers in the question become examples, element types become defaults.
        command: what was typed, for its docstring.
        arrays: whether it has ``over``, which maps a function over NumPy arrays exactly.
    """
    functions: dict[str, str] = {}
    for account in explanation.accounts:
        for name, (says, amount) in quantities(account).items():
            full = f"{account.name.replace('-', '_')}_{name}"
            functions[full] = _function(explanation, account, full, says, put(amount, explanation.shown))
    doc = [
        f'"""Bytes and FLOP of {explanation.request.variant.name}, exactly: whole numbers and fractions of any size.',
        "",
        *textwrap.wrap(f"Derived from its dataflow graph by: {_plain(command)}", _WIDTH),
        "Generated: run the command again instead of editing.",
        '"""',
        "",
        "",
    ]
    lookup = _lookup(amount for account in explanation.accounts for _, amount in quantities(account).values())
    names = ["Exact", *sorted([*functions, *(["over"] if arrays else [])])]
    head = _HEAD.format(
        abstract="Callable, Iterable" if arrays else "Iterable",
        numpy="\nimport numpy\nimport numpy.typing\n" if arrays else "",
        names="\n".join(f'    "{name}",' for name in names),
        helpers=HELPERS + lookup,
    )
    return "\n".join(doc) + head + "".join(functions.values()) + (_OVER if arrays else "")


def _lookup(amounts: Iterable[sp.Expr]) -> str:
    """The list of blocks that counts are looked up in, and what looks; nothing where none is."""
    kept = next((found.kept for amount in amounts for found in amount.atoms(Met)), None)
    if kept is None:
        return ""
    rows = ", ".join(f"({' '.join(f'{key},' for key in row)})" for row in kept)
    written = textwrap.wrap(f"{rows},", _WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    listed = "\n".join(("_BLOCKS: tuple[tuple[int, ...], ...] = (", *(f"    {line}" for line in written), ")"))
    return f'\n\n{listed}\n"""The blocks of keys that each row of blocks keeps, from 0."""\n\n\n{LOOKUP}'


def _function(explanation: Explanation, account: Account, name: str, says: str, amount: sp.Expr) -> str:
    symbols = in_reading_order(free(amount))
    sizes, widths = ([s for s in symbols if bool(s.is_integer) is whole] for whole in (True, False))
    known = {s.name: Fraction(account.values[s.name]) for s in widths if s.name in account.values}
    arguments = [f"{identifier(s.name)}: int" for s in sizes]
    arguments += [f"{identifier(s.name)}: Exact{_default(known.get(s.name))}" for s in widths]
    at = _example(explanation, account, symbols)
    given = [f"{identifier(s.name)}={_literal(at[s.name])}" for s in (*sizes, *widths) if s.name not in known]
    written = text(tidy(amount))
    says = f"{says}: {written}." if len(written) <= _LONGEST else f"{says}."
    body = textwrap.wrap(python_form(tidy(amount)), _WIDTH - 8, break_long_words=False, break_on_hyphens=False)
    lines = [
        "\n",
        *_definition(name, arguments),
        '    """' + "\n    ".join(textwrap.wrap(says, _WIDTH - 10, break_long_words=False, break_on_hyphens=False)),
        "",
        *(
            ["    Args:", *(f"        {identifier(s.name)}: {spelling(s.name).says}." for s in symbols), ""]
            * bool(symbols)
        ),
        f"    >>> {name}({', '.join(given)})",
        f"    {_literal(value(amount, at))}",
        '    """',
        *_checked(sizes, widths),
        *_divisors(explanation, symbols),
        "    return _whole(",
        *(f"        {line}" for line in body),
        "    )",
        "",
    ]
    return "\n".join(lines)


def _definition(name: str, arguments: list[str]) -> list[str]:
    line = f"def {name}({', '.join(['*', *arguments] if arguments else [])}) -> Exact:"
    if len(line) <= _WIDTH:
        return [line]
    return [f"def {name}(", "    *,", *(f"    {a}," for a in arguments), ") -> Exact:"]


def _checked(sizes: list[sp.Symbol], widths: list[sp.Symbol]) -> list[str]:
    """The call that looks at every argument."""
    names = [[identifier(s.name) for s in group] for group in (sizes, widths)]
    groups = ["{" + ", ".join(f'"{n}": {n}' for n in group) + "}" for group in names]
    line = f"    _check({', '.join(groups)})"
    return [line] if len(line) <= _WIDTH else ["    _check(", *(f"        {g}," for g in groups), "    )"]


def _divisors(explanation: Explanation, symbols: list[sp.Symbol]) -> list[str]:
    """What must divide what, where a function takes both."""
    lines = []
    for small, large in explanation.request.variant.divides:
        if small in symbols and large in symbols:
            divisor, dividend = identifier(small.name), identifier(large.name)
            lines.append(f"    if {dividend} % {divisor}:")
            lines.append(
                f'        raise ValueError(f"{divisor}={{{divisor}}} does not divide {dividend}={{{dividend}}}")'
            )
    return lines


def _default(width: Number | None) -> str:
    return "" if width is None else f" = {_literal(width)}"


def _literal(number: Number) -> str:
    exact = Fraction(number)
    return str(exact.numerator) if exact.denominator == 1 else f"Fraction({exact.numerator}, {exact.denominator})"


def _example(explanation: Explanation, account: Account, symbols: list[sp.Symbol]) -> Mapping[str, Number]:
    """A value for every symbol: the question's where it gives one."""
    values = with_one_length(account.values, explanation.tied)
    return {s.name: values.get(s.name, _SAMPLE if s.is_integer else 2) for s in symbols}


def _plain(command: str) -> str:
    return " ".join(command.encode("ascii", "replace").decode("ascii").split()).replace("\\", "/").replace('"', "'")
