"""Values of a record read back as their classes declare them; what does not fit is refused in a sentence that says where."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import sympy as sp

from derive.einsum import Index, Tensor
from derive.errors import BadValueError, IllFormedError, one_line, repeated
from derive.mask import Mask
from outputs.record.formulas import reread


@dataclasses.dataclass(frozen=True)
class Names:
    """What the names in one graph's record stand for."""

    indices: Mapping[str, Index] = dataclasses.field(default_factory=dict)
    widths: Mapping[str, sp.Expr] = dataclasses.field(default_factory=dict)
    masks: tuple[Mask, ...] = ()


def member(record: Any, key: str, kind: type, where: str) -> Any:
    """What stands under *key* in an object, which must be of *kind*."""
    if not isinstance(record, dict) or key not in record:
        raise BadValueError(f"{where} has no {key}")
    return of_kind(record[key], kind, f"{where}.{key}")


def of_kind(record: Any, kind: type, where: str) -> Any:
    """*record* as it is, if it is of *kind*; a truth value is no number."""
    if not isinstance(record, kind) or (kind is int and isinstance(record, bool)):
        raise BadValueError(f"{where} is {repeated(repr(record))}, and {_SAID[kind]} belongs there")
    return record


_SAID = {str: "text", int: "a whole number", bool: "true or false", list: "a list", dict: "an object"}


def read_fields(cls: Any, record: Any, names: Names, where: str) -> Any:
    """The dataclass *cls* from an object of its fields.

    Raises:
        BadValueError: a field is missing, not known, of another kind than the class declares, or refused by it.
    """
    of_kind(record, dict, where)
    hints = _hints(cls)
    declared = {f.name: f for f in dataclasses.fields(cls)}
    for key in record:
        if key not in declared:
            raise BadValueError(f"{where} has an unknown key {repeated(str(key))}; known: {', '.join(declared)}")
    for name, declaration in declared.items():
        plain = declaration.default is dataclasses.MISSING and declaration.default_factory is dataclasses.MISSING
        if name not in record and plain:
            raise BadValueError(f"{where} has no {name}")
    values = {key: _value(part, hints[key], names, f"{where}.{key}") for key, part in record.items()}
    try:
        return cls(**values)
    except IllFormedError as error:
        raise BadValueError(f"{where}: {one_line(str(error))}") from error


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


def _value(record: Any, hint: Any, names: Names, where: str) -> Any:
    """The value of type *hint* that *record* holds."""
    if isinstance(hint, UnionType):
        wanted = next(part for part in get_args(hint) if part is not type(None))
        return None if record is None else _value(record, wanted, names, where)
    if get_origin(hint) is tuple:
        part = get_args(hint)[0]
        return tuple(_value(r, part, names, f"{where}[{n}]") for n, r in enumerate(of_kind(record, list, where)))
    if hint in (str, bool, int):
        return of_kind(record, hint, where)
    if hint is Index:
        return _named("index", names.indices, record, where)
    if hint is Tensor:
        return _tensor(record, names, where)
    if hint is Mask:
        return _mask_numbered(record, names, where)
    if issubclass(hint, Enum):
        return _choice(hint, record, where)
    if issubclass(hint, sp.Basic):
        return reread(record, where)
    return read_fields(hint, record, names, where)


def _choice(kinds: type[Enum], record: Any, where: str) -> Enum:
    known = {kind.value: kind for kind in kinds}
    if not isinstance(record, str) or record not in known:
        raise BadValueError(f"{where} is {repeated(repr(record))}; known: {', '.join(known)}")
    return known[record]


def _named(what: str, known: Mapping[str, Any], record: Any, where: str) -> Any:
    if not isinstance(record, str) or record not in known:
        raise BadValueError(f"{where} names the {what} {repeated(str(record))}, which its graph does not list")
    return known[record]


def _tensor(record: Any, names: Names, where: str) -> Tensor:
    name = member(record, "tensor", str, where)
    width = _named("tensor", names.widths, name, where)
    indices = member(record, "indices", list, where)
    return Tensor(name, tuple(_named("index", names.indices, i, where) for i in indices), width)


def _mask_numbered(record: Any, names: Names, where: str) -> Mask:
    number: int = of_kind(record, int, where)
    if not 0 <= number < len(names.masks):
        raise BadValueError(
            f"{where} is mask {repeated(str(number))}, and its graph lists {len(names.masks)}, counted from 0"
        )
    return names.masks[number]
