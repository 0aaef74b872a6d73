"""Einsum notation: a cascade as one writes it on paper, one line an Einsum.

    S[h,q,k] = sum[d] Q[h,q,d] * K[h,k,d]
    P[h,q,k] = softmax(S[h,q,k])
    O[h,q,e] = sum[k] P[h,q,k] * V[h,k,e]

Operators: ``A * B``, ``A + B``, ``A - B``, ``A / B``, ``exp(A)``, ``log(A)``, ``neg(A)``, ``tanh(A)``, ``sigmoid(A)``,
``relu(A)``, ``max(A, B)``, the larger, ``softmax(A)``, a plain ``A`` (copy), each after an optional ``sum[...]`` or
``max[...]``; ``position()`` and ``keep(p)``, which generate what they leave; ``T[q,k] = top(X[q,j])``, the positions of
the largest along j, with ``G[q,k,c] = gather(C[j,c], T[q,k])``, the rows that stand there; and ``T[q,k] = inverse(A[q,k])``,
the inverse of I + (A strictly below its diagonal). A name without brackets is a scalar argument.

``H[n] = previous[n] J[n]`` is J one step behind, zero at the first; J may be defined further down, in terms of H: a
recurrence. ``A_k[k] = view(A[q])`` is A under another index name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import sympy as sp

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.errors import IllFormedError, clipped
from derive.graph import Graph
from derive.mask import Mask

LONGEST_LINE = 1000
"""Characters of an Einsum."""
_TENSOR = r"([A-Za-z]\w{0,39})(?:\[([\w,\s]*)\])?"
_LINE = re.compile(rf"^{_TENSOR}\s*=\s*(?:(sum|max|previous)\[([\w,\s]+)\]\s*)?(.+)$", re.ASCII)
_BINARY = re.compile(rf"^{_TENSOR}\s*([*+\-/])\s*{_TENSOR}$", re.ASCII)
_UNARY = re.compile(rf"^(exp|log|neg|tanh|sigmoid|relu|keep|softmax|view|top|inverse)\({_TENSOR}\)$", re.ASCII)
_GATHER = re.compile(rf"^gather\({_TENSOR}\s*,\s*{_TENSOR}\)$", re.ASCII)
_MAXIMUM = re.compile(rf"^max\({_TENSOR}\s*,\s*{_TENSOR}\)$", re.ASCII)
_COPY = re.compile(rf"^{_TENSOR}$", re.ASCII)
_OPERATORS = {"*": Map.MUL, "+": Map.ADD, "-": Map.SUB, "/": Map.DIV}


def cascade(
    text: str,
    extents: Mapping[str, sp.Expr],
    *,
    outputs: tuple[str, ...],
    width: sp.Expr,
    widths: Mapping[str, sp.Expr] | None = None,
    mask: Mask | tuple[Mask, ...] | None = None,
) -> Graph:
    """The graph that *text* writes.

    Args:
        text: one Einsum a line; blank lines are skipped.
        extents: the extent of each index by name.
        outputs: tensors the program must leave in memory.
        width: bytes an element of a tensor that *widths* does not name.
        widths: bytes an element by tensor.
        mask: the domain of every Einsum that runs over both of its indices, or several: the first that an Einsum has both of.

    Raises:
        IllFormedError: a line that is no Einsum, an index without an extent, or a graph with no meaning.
    """
    widths = widths or {}
    masks = mask if isinstance(mask, tuple) else (mask,) if mask is not None else ()

    def tensor(name: str, names: str | None) -> Tensor:
        indices = []
        for index in (n.strip() for n in (names or "").split(",") if n.strip()):
            if index not in extents:
                raise IllFormedError(
                    f"{name}[{clipped(names or '')}]: index {clipped(index)} has no extent; "
                    f"the extents given are {list(extents)}"
                )
            indices.append(Index(index, extents[index]))
        return Tensor(name, tuple(indices), widths.get(name, width))

    einsums = []
    for line in filter(None, (raw.strip() for raw in text.splitlines())):
        matched = _LINE.match(line) if len(line) <= LONGEST_LINE else None
        if matched is None:
            raise IllFormedError(f"{_said(line)} is no Einsum; write e.g. S[q,k] = sum[d] Q[q,d] * K[k,d]")
        name, indices, reduce, reduced, right = matched.groups()
        operator, inputs = _right_side(right, line)
        output = tensor(name, indices)
        read = tuple(tensor(*t) for t in inputs)
        seen = read if operator is Map.TOP else (output,) if operator is Map.GATHER else (output, *read)
        names = {i.name for t in seen for i in t.indices}
        whole = operator in (Map.VIEW, Map.INVERSE)
        domain = next((m for m in masks if {m.row, m.column} <= names and not whole), None)
        written = {n.strip() for n in (reduced or "").split(",") if n.strip()}
        if reduce == "previous":
            einsums.append(Einsum(output, read, operator, previous=", ".join(sorted(written))))
            continue
        einsum = Einsum(output, read, operator, Reduce(reduce) if reduce else None, domain)
        if not operator.is_selection and written != {i.name for i in einsum.reduced}:
            raise IllFormedError(
                f"{_said(line)} reduces {sorted(i.name for i in einsum.reduced)}, not {clipped(str(sorted(written)))}"
            )
        einsums.append(einsum)
    return Graph(tuple(einsums), outputs)


def _said(text: str) -> str:
    """*text* as a message repeats it."""
    return ascii(clipped(text, 80))


def _right_side(text: str, line: str) -> tuple[Map, list[tuple[str, str | None]]]:
    """The operator, and the tensors it reads as (name, indices)."""
    if text == "position()":
        return Map.POSITION, []
    if found := _UNARY.match(text):
        return Map(found[1]), [(found[2], found[3])]
    if found := _GATHER.match(text):
        return Map.GATHER, [(found[1], found[2]), (found[3], found[4])]
    if found := _MAXIMUM.match(text):
        return Map.MAXIMUM, [(found[1], found[2]), (found[3], found[4])]
    if found := _BINARY.match(text):
        return _OPERATORS[found[3]], [(found[1], found[2]), (found[4], found[5])]
    if found := _COPY.match(text):
        return Map.COPY, [(found[1], found[2])]
    raise IllFormedError(
        f"{_said(line)}: {_said(text)} is none of A * B, A + B, A - B, A / B, exp(A), log(A), neg(A), tanh(A), sigmoid(A), "
        "relu(A), max(A, B), softmax(A), position(), keep(p), view(A), top(A), gather(A, T), inverse(A), A"
    )
