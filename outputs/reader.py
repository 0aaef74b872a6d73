"""House notation read back: ``2 N d b (1 + ceil(N/B_r))`` as an expression, and nothing that a person types is ever run.

The text is cut into tokens, each symbol is replaced by a placeholder, Python's own grammar makes a syntax tree of it, and a
whitelist of nodes turns the tree into an expression. Length, depth, powers and numbers are bounded; decimals are refused.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

import sympy as sp
from sympy.logic.boolalg import Boolean

from derive.choice import cases
from derive.errors import BadValueError, nearest, repeated
from derive.exact import Gcd
from derive.extremes import down, up
from derive.same import Same
from derive.symbols import MEANINGS, N, dummy, symbol

MOST_CHARACTERS = 40_000
MOST_DEPTH = 60
MOST_BITS = 256
"""Bits of a number that is written out."""
LARGEST_POWER = 16
_MOST_RESULT_BITS = 4096
_TOKEN = re.compile(
    r"\s*(?:(\d+)|([A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*)|(\.\.|<=|>=|!=|[-+*/^(),=<>\[\]])|$)", re.ASCII
)
_FUNCTIONS = frozenset({"ceil", "floor", "min", "max", "gcd", "sqrt", "sum"})
_WORDS = frozenset({"if", "else", "and", "or"})
_TRUTH = {"true": sp.true, "false": sp.false}
_RELATIONS: Mapping[type[ast.cmpop], Callable[..., Any]] = {
    ast.LtE: sp.Le,
    ast.Lt: sp.Lt,
    ast.GtE: sp.Ge,
    ast.Gt: sp.Gt,
    ast.Eq: sp.Eq,
    ast.NotEq: sp.Ne,
}


def read(written: str, names: Mapping[str, sp.Symbol] | None = None) -> sp.Basic:
    """The expression that *written* stands for in house notation.

    Args:
        written: what ``outputs.notation.text`` prints, or a person types.
        names: symbols it may use; the engine's own when ``None``.

    Raises:
        BadValueError: it is not in house notation, or beyond a bound.
        UnknownNameError: a symbol that does not exist; the nearest is suggested.
    """
    known = dict(names) if names is not None else {N.name: N} | {name: symbol(name) for name in MEANINGS}
    if len(written) > MOST_CHARACTERS:
        raise BadValueError(f"a formula of {len(written)} characters is too long; at most {MOST_CHARACTERS} are read")
    source, meant = _as_python(written)
    try:
        tree = ast.parse(source, mode="eval")
        return _Reading(meant, known).expression(tree.body, 0)
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        raise BadValueError(
            f"{repeated(written)} is no formula; write for instance 2 N d b (1 + ceil(N/B_r))"
        ) from None


def _as_python(written: str) -> tuple[str, list[str]]:
    """*written* in Python's grammar, products written out and each symbol a placeholder ``v0``; and the symbols' names."""
    out: list[str] = []
    meant: list[str] = []
    ends_operand, depth, place = False, 0, 0
    while place < len(written):
        matched = _TOKEN.match(written, place)
        if matched is None:
            rest = written[place:].lstrip(" \t\n\r\f\v")  # what the pattern takes for space, and not more
            way = "write a fraction instead of decimals" if rest[0] == "." else "see `derive explain` for the notation"
            raise BadValueError(f"{rest[0]!a} at character {written.index(rest, place) + 1} of a formula; {way}")
        place = matched.end()
        number, name, sign = matched.groups()
        starts_operand = number or sign in ("(", "[") or (name and name not in _WORDS)
        called = out[-1:] and out[-1] in _FUNCTIONS and sign == "("
        if ends_operand and starts_operand and not called:
            out.append("*")
        if number:
            if len(number) > 80 or int(number).bit_length() > MOST_BITS:
                raise BadValueError(f"{number[:20]}... is too large a number for a formula; at most 2^{MOST_BITS}")
            out.append(str(int(number)))
        elif name:
            placeholder = name not in _FUNCTIONS and name not in _WORDS
            out.append(f"v{len(meant)}" if placeholder else name)
            meant += [name] if placeholder else []
        elif sign:
            after_index = out[-1:] and out[-1][0] == "v" and out[-2:-1] == [","]
            out.append({"^": "**", "=": "," if after_index else "==", "..": ","}.get(sign, sign))
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(sign, 0)
            if depth > MOST_DEPTH:
                raise BadValueError(f"a formula nested deeper than {MOST_DEPTH} brackets is not read")
        ends_operand = bool(number or sign in (")", "]") or (name and name not in _WORDS))
    return " ".join(out), meant


class _Reading:
    """One syntax tree being read; *known* changes inside a sum, which binds its index."""

    def __init__(self, meant: list[str], known: Mapping[str, sp.Symbol]) -> None:
        self._meant = meant
        self._known = dict(known)

    def expression(self, node: ast.expr, depth: int) -> Any:
        """The meaning of *node*."""
        rule = _NODES.get(type(node))
        if rule is None or depth > 4 * MOST_DEPTH:
            raise ValueError(type(node).__name__)
        return rule(self, node, depth + 1)

    def name(self, node: ast.Name, _depth: int) -> Any:
        """A symbol."""
        word = self._word(node)
        if word in _TRUTH:
            return _TRUTH[word]
        if word not in self._known:
            raise nearest("symbol", word, self._known)
        return self._known[word]

    def _word(self, node: ast.Name) -> str:
        if not re.fullmatch(r"v\d+", node.id):  # the name of a function that is not called
            raise ValueError(node.id)
        return self._meant[int(node.id[1:])]

    def number(self, node: ast.Constant, _depth: int) -> Any:
        """A whole number."""
        if type(node.value) is not int:
            raise ValueError(node.value)
        return sp.Integer(node.value)

    def negative(self, node: ast.UnaryOp, depth: int) -> Any:
        """Minus something."""
        if not isinstance(node.op, ast.USub):
            raise ValueError(node.op)
        operand = self.expression(node.operand, depth)
        if _is_condition(operand):
            raise ValueError("a condition is no number")
        return -operand

    def arithmetic(self, node: ast.BinOp, depth: int) -> Any:
        """Two operands and an operator."""
        left, right = self.expression(node.left, depth), self.expression(node.right, depth)
        if _is_condition(left) or _is_condition(right):
            raise ValueError("a condition is no number")
        kind = type(node.op)
        if kind is ast.Add:
            return _bounded(left + right)
        if kind is ast.Sub:
            return _bounded(left - right)
        if kind is ast.Mult:
            return _times(left, right)
        if kind is ast.Div:
            if right == 0:
                raise BadValueError("a formula divides by zero")
            return _times(left, _power(right, sp.Integer(-1)))
        if kind is ast.Pow:
            return _power(left, right)
        raise ValueError(kind)

    def comparison(self, node: ast.Compare, depth: int) -> Any:
        """A chain such as ``a <= b <= c``."""
        sides = [self.expression(side, depth) for side in (node.left, *node.comparators)]
        if any(_is_condition(side) for side in sides):
            raise ValueError("a condition is compared")
        pairs = zip(sides, node.ops, sides[1:], strict=False)
        links = [_RELATIONS[type(op)](a, b, evaluate=bool(a.is_Number and b.is_Number)) for a, op, b in pairs]
        return links[0] if len(links) == 1 else sp.And(*links, evaluate=False)

    def bracket(self, node: ast.List, depth: int) -> Any:
        """Iverson's ``[a = b]``."""
        (equal,) = node.elts
        if not isinstance(equal, ast.Compare) or [type(op) for op in equal.ops] != [ast.Eq]:
            raise ValueError("a bracket holds one equation")
        left, right = (self.expression(side, depth) for side in (equal.left, *equal.comparators))
        if _is_condition(left) or _is_condition(right):
            raise ValueError("a condition is compared")
        return Same(left, right)

    def connected(self, node: ast.BoolOp, depth: int) -> Any:
        """``and`` and ``or``."""
        parts = [self.expression(part, depth) for part in node.values]
        if not all(_is_condition(part) for part in parts):
            raise ValueError("a number is no condition")
        return (sp.And if isinstance(node.op, ast.And) else sp.Or)(*parts, evaluate=False)

    def choice(self, node: ast.IfExp, depth: int) -> Any:
        """``a if condition else b``."""
        condition = self.expression(node.test, depth)
        if not _is_condition(condition):
            raise ValueError("a number is no condition")
        if condition.has(sp.Piecewise):
            raise BadValueError("a condition in a formula has no cases of its own; write them as `and` and `or`")
        amount, otherwise = self.expression(node.body, depth), self.expression(node.orelse, depth)
        if _is_condition(amount) or _is_condition(otherwise):
            raise ValueError("a condition is no number")
        rest = otherwise.args if isinstance(otherwise, sp.Piecewise) else [(otherwise, sp.true)]
        return cases((amount, condition), *((a, c) for a, c in rest))

    def call(self, node: ast.Call, depth: int) -> Any:
        """A function of the notation."""
        if not isinstance(node.func, ast.Name) or node.keywords or not node.args:
            raise ValueError("no call")
        name = node.func.id
        if name == "sum":
            return self._sum(node, depth)
        arguments = [self.expression(a, depth) for a in node.args]
        if any(_is_condition(a) for a in arguments):
            raise ValueError("a condition is no number")
        if name in ("min", "max"):
            numbers = all(a.is_Number for a in arguments)
            return (sp.Min if name == "min" else sp.Max)(*arguments, evaluate=numbers or len(arguments) == 1)
        if name == "gcd" and len(arguments) == 2:
            return Gcd(*arguments)
        if len(arguments) != 1 or name not in ("ceil", "floor", "sqrt"):
            raise ValueError(name)
        if name == "sqrt":
            return _power(arguments[0], sp.Rational(1, 2))
        return up(arguments[0]) if name == "ceil" else down(arguments[0])

    def _sum(self, node: ast.Call, depth: int) -> Any:
        """``sum(term, i=low..high)``."""
        if len(node.args) != 4 or not isinstance(node.args[1], ast.Name):
            raise ValueError("a sum is written sum(term, i=low..high)")
        name = self._word(node.args[1])
        low, high = (self.expression(a, depth) for a in node.args[2:])
        index, outer = dummy(name), self._known
        self._known = {**outer, name: index}
        term = self.expression(node.args[0], depth)
        self._known = outer
        if any(map(_is_condition, (term, low, high))):
            raise ValueError("a condition is no number")
        return sp.Sum(term, (index, low, high))


_NODES: Mapping[type[ast.expr], Callable[[_Reading, Any, int], Any]] = {
    ast.Name: _Reading.name,
    ast.Constant: _Reading.number,
    ast.UnaryOp: _Reading.negative,
    ast.BinOp: _Reading.arithmetic,
    ast.Compare: _Reading.comparison,
    ast.BoolOp: _Reading.connected,
    ast.IfExp: _Reading.choice,
    ast.Call: _Reading.call,
    ast.List: _Reading.bracket,
}
"""What is read; any other node of Python's grammar is refused."""


def _is_condition(part: Any) -> bool:
    return isinstance(part, Boolean) and not isinstance(part, sp.Expr)  # a SymPy symbol is both


def _power(base: Any, exponent: Any) -> Any:
    if not exponent.is_Rational or abs(exponent.p) > LARGEST_POWER or exponent.q > LARGEST_POWER:
        raise BadValueError(f"a power in a formula is a number up to {LARGEST_POWER}, not {repeated(str(exponent))}")
    if base == 0 and exponent < 0:
        raise BadValueError("a formula divides by zero")
    if base.is_Rational and max(base.p.bit_length(), base.q.bit_length()) * abs(exponent.p) > _MOST_RESULT_BITS:
        raise BadValueError(f"a number in a formula grows beyond {_MOST_RESULT_BITS} bits")
    return sp.Pow(base, exponent, evaluate=False) if _has_cases(base) else _bounded(base**exponent)


def _times(left: Any, right: Any) -> Any:
    as_written = (_has_cases(left) and _has_cases(right)) or _has_raised_cases(left) or _has_raised_cases(right)
    return sp.Mul(left, right, evaluate=False) if as_written else _bounded(left * right)


def _has_cases(product: Any) -> bool:
    """Whether a factor is a case distinction or a power of one: SymPy raises every case, and examines every condition anew."""
    return any(factor.as_base_exp()[0].is_Piecewise for factor in sp.Mul.make_args(product)) or _has_raised_cases(
        product
    )


def _has_raised_cases(product: Any) -> bool:
    """Whether a factor is a power of such a product: SymPy takes powers up again whenever it multiplies."""
    return any(factor.is_Pow and _has_cases(factor.base) for factor in sp.Mul.make_args(product))


def _bounded(number: Any) -> Any:
    """*number*, unless it has grown too large."""
    for part in (number, *number.args):
        if part.is_Rational and max(int(part.p).bit_length(), int(part.q).bit_length()) > _MOST_RESULT_BITS:
            raise BadValueError(f"a number in a formula grows beyond {_MOST_RESULT_BITS} bits")
    return number
