"""What a person asked for, from words to values; nothing a person types is ever evaluated as code.

A length is a whole number, ``8192``, ``8K`` or ``8Ki`` (both 8192). A capacity takes a unit, ``50MiB``. An element type is
a name. ``?`` leaves a symbol open that has a default.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from derive.dtype import DType, dtype
from derive.errors import BadValueError, nearest, repeated
from derive.masks import LIST_KEYS, MASK_KEYS, Pattern
from derive.symbols import FRACTIONS, MAY_BE_ZERO, MEANINGS
from outputs.block_words import block_rows, check_blocks

if TYPE_CHECKING:
    import sympy as sp

    from derive.exact import Number
    from derive.variant import Variant

LARGEST = 10**24
"""No length, and no count, beyond this."""
LARGEST_WIDTH = 2**20
"""No head dimension and no tile beyond this."""
MOST_DOCUMENTS = 1024
"""Lengths in one list: an answer takes some 10 ms for each."""
_MULTIPLES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_LENGTH = re.compile(r"(\d+)(?:([KMGT])i?)?", re.ASCII)
_CAPACITY = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|kB|KB|MB|GB)", re.ASCII)
_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_GROUPS = {
    "dtype": ("b", "b_kv", "b_s", "b_p", "b_l", "b_h", "b_i"),
    "kv": ("b_kv",),
    "scores": ("b_s", "b_p"),
    "probs": ("b_p",),
    "stats": ("b_l",),
    "state": ("b_h",),
    "indexer": ("b_i",),
    "acc": ("b_acc",),
    "partials": ("b_part",),
}
"""Which widths a type name sets; later ones override earlier ones."""
_OWN = ("b", "b_kv", "b_i")
"""Widths of operands, which a product multiplies as they are."""
_KEYS = {meaning.key: name for name, meaning in MEANINGS.items() if meaning.key}
COMMANDS = {"R": "derive devices", "L": "derive cache", "L_w": "derive cache", "n_page": "derive cache"}
"""Symbols that one command takes whatever the variant."""
_OF_SCHEDULES = ("M", "B_r", "B_c", "B_d", "C", "C_L2", "n_s", "n_pad", "C_t")
"""Symbols that schedules and machines bring, whatever the variant."""
_NARROW = {"d", "d_v", "d_c", "d_r", "d_i", "B_r", "B_c", "B_d", "n_pad", "R"}


@dataclass(frozen=True)
class Request:
    """A question in values.

    Attributes:
        variant: the variant asked about.
        numbers: value by symbol name, sizes and tiles alike, as far as given.
        open: symbols left open although they have a default.
        types: element type by group, ``dtype`` first.
        pattern: the mask.
        tied: whether N set both lengths.
    """

    variant: Variant
    numbers: Mapping[str, Number] = field(default_factory=dict)
    open: frozenset[str] = frozenset()
    types: Mapping[str, DType] = field(default_factory=dict)
    pattern: Pattern = field(default_factory=Pattern)
    tied: bool = False

    @property
    def mask(self) -> str:
        """Name of the mask."""
        return self.pattern.name

    @property
    def widths(self) -> dict[str, Fraction]:
        """Bytes an element by width symbol."""
        found = dict.fromkeys(("b_acc", "b_part"), dtype("fp32").width)
        for group, names in _GROUPS.items():
            if group in self.types:
                found |= dict.fromkeys(names, self.types[group].width)
        return found

    def stated(self, amount: sp.Expr, kept: Collection[sp.Symbol] = ()) -> sp.Expr:
        """*amount* with the defaults of what was not given put in; those of *kept* stay open."""
        given = {*self.numbers, *self.open, *(s.name for s in kept)}
        for size, default in self.variant.defaults.items():  # in order: h_k falls back to h, h to 1
            if size.name not in given:
                amount = amount.subs(size, default)
        return amount

    @property
    def operand(self) -> DType:
        """The type of Q, K, V and O unless one is set apart."""
        return self.types["dtype"]

    @property
    def multiplied(self) -> DType:
        """The type that matrix products run in: the wider of that of K and V and that of the other operands."""
        return max((self.types["dtype"], self.types.get("kv", self.types["dtype"])), key=lambda t: t.width)

    @property
    def converted(self) -> DType | None:
        """The narrowest type of an operand, where it is narrower than what products run in."""
        groups = [self.types[g] for g in ("dtype", "kv", "probs", "indexer") if g in self.types]
        least = min(groups, key=lambda t: t.width)
        return least if least.width < self.multiplied.width else None

    @property
    def operands(self) -> dict[str, DType]:
        """The type in which a matrix product takes an operand, by the symbol of its width.

        What is stored wider than the operands are, such as scores or a state, is narrowed to their type for the product.
        """
        found = {name: self.types[g] for g, names in _GROUPS.items() if g in self.types for name in names}
        return {n: t if n in _OWN else min(t, self.multiplied, key=lambda x: x.width) for n, t in found.items()}


def read_request(variant: Variant, words: Iterable[str], also: Collection[str] = ()) -> Request:
    """The request that KEY=VALUE *words* make of *variant*; *also* names symbols that only the command asked takes.

    Raises:
        BadValueError: a word that is no KEY=VALUE, a value its key cannot take, or a key given twice.
        UnknownNameError: a key that *variant* does not have.
    """
    numbers: dict[str, Number] = {}
    types: dict[str, DType] = {"dtype": dtype("bf16")}
    left_open: set[str] = set()
    written: dict[str, str] = {}
    mask, tied = "full", False
    mask_keys: set[str] = set()
    listed: tuple[int, ...] = ()
    kept: tuple[tuple[int, ...], ...] = ()
    has = {s.name for s in variant.symbols}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key or not text:
            raise BadValueError(f"{repeated(word)} is not KEY=VALUE; write for instance N=8192")
        sets = _symbols_of(key, variant, has | set(also))
        for name in sets:
            if name in written:
                raise BadValueError(
                    f"{name} is given twice, by {written[name]} and by {repeated(word)}; "
                    "N sets N_q and N_k, so give either N or Nq and Nk"
                )
            written[name] = repeated(word)
        if key in _GROUPS:
            types[key] = dtype(text)
        elif key == "mask":
            mask = text
        elif key == "blocks":
            mask_keys.add(key)
            kept = block_rows(text)
        elif key in LIST_KEYS:
            mask_keys.add(key)
            listed = tuple(int(_number(key, "N_k", part, types)) for part in _parts(key, text))
        elif text == "?":
            left_open |= set(sets)
        else:
            tied |= key == "N" and "N_q" in sets
            numbers |= dict.fromkeys(sets, _number(key, sets[0], text, types))
            mask_keys |= {key} & MASK_KEYS - ({key} if sets[0] in has else set())
    if "mask" in written and variant.own_mask is not None and not (mask == "full" == variant.own_mask):
        raise variant.refuses(repeated(mask))
    if variant.own_mask is not None and mask_keys:
        why = (
            f"it takes no mask: {variant.no_mask}" if variant.no_mask else f"it is {variant.own_mask} by its recurrence"
        )
        raise BadValueError(f"{variant.name} has no {min(mask_keys)}: {why}; leave it out")
    mask = variant.own_mask or mask
    pattern = Pattern(mask, frozenset(mask_keys), listed, kept)
    if pattern.length is not None:
        _check_packed(variant, pattern, numbers)
        tied |= not {"N_q", "N_k"} & set(numbers)
        numbers |= dict.fromkeys(("N_q", "N_k"), pattern.length)
    request = Request(variant, numbers, frozenset(left_open), types, pattern, tied)
    _check_divisors(request)
    _check_limits(request)
    if pattern.kept:
        check_blocks(request)
    return request


def _symbols_of(key: str, variant: Variant, has: set[str]) -> tuple[str, ...]:
    """The symbols that *key* sets for *variant*; a group or the mask stands for itself."""
    if key in _GROUPS or key in LIST_KEYS or key == "mask":
        return (key,)
    if key == "N":
        return tuple(name for name in ("N_q", "N_k") if name in has)
    sizes = {k: n for k, n in _KEYS.items() if n in has or n in _OF_SCHEDULES or k in MASK_KEYS}
    if key in sizes:
        return (sizes[key],)
    if key in _KEYS and _KEYS[key] in COMMANDS:
        raise BadValueError(
            f"{variant.name} has no {key} ({MEANINGS[_KEYS[key]].says}), which `{COMMANDS[_KEYS[key]]}` takes; leave it out"
        )
    if key in _KEYS:
        fixed = "its value is fixed by the variant" if key == "Nq" else "try gqa, or leave it out"
        raise BadValueError(f"{variant.name} has no {key} ({MEANINGS[_KEYS[key]].says}); {fixed}")
    raise nearest(
        "symbol", key, ("N", *sizes, *_GROUPS, "mask", *sorted(LIST_KEYS)), f"derive explain {variant.name} --help"
    )


def _number(key: str, name: str, text: str, types: Mapping[str, DType]) -> Number:
    """The value of *text* for symbol *name*."""
    if name == "C_L2":
        return capacity(f"{key}=", text)
    if name in FRACTIONS:
        return _share(key, name, text)
    matched = _LENGTH.fullmatch(text)
    if matched is None:
        raise BadValueError(_why_no_length(key, name, text, types))
    if len(matched[1]) > 30:
        raise BadValueError(f"{key}={repeated(text)} is beyond 10^24, the largest size taken")
    number = int(matched[1]) * _MULTIPLES[matched[2] or ""]
    largest = LARGEST_WIDTH if name in _NARROW else LARGEST
    if number < (0 if name in MAY_BE_ZERO else 1):
        raise BadValueError(f"{key}={repeated(text)}: {MEANINGS[name].says} must be at least 1")
    if number > largest:
        raise BadValueError(f"{key}={repeated(text)}: {MEANINGS[name].says} beyond {largest} is no attention kernel's")
    return number


def plain_length(text: str) -> int | None:
    """The whole number that *text* writes as a length, ``8192``, ``8K`` or ``8Ki``; ``None`` where it is none."""
    matched = _LENGTH.fullmatch(text)
    return None if matched is None or len(matched[1]) > 30 else int(matched[1]) * _MULTIPLES[matched[2] or ""]


def _share(key: str, name: str, text: str) -> Number:
    """A share of something, more than 0 and at most 1, exactly."""
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})|(\d{0,9}\.?\d{1,9})", text, re.ASCII)
    share = None
    if (found is not None and found[2] is None) or (found is not None and int(found[2]) > 0):
        share = Fraction(text)
    if share is None or not 0 < share <= 1:
        raise BadValueError(
            f"{key}={repeated(text)}: {MEANINGS[name].says} is more than 0 and at most 1, such as 0.1 or 1/8"
        )
    return share


def _why_no_length(key: str, name: str, text: str, types: Mapping[str, DType]) -> str:
    """Why *text* is no whole number, and what would be."""
    says = MEANINGS[name].says
    if found := _CAPACITY.fullmatch(text):
        size = int(Fraction(found[1]) * _BYTES[found[2]])
        if name == "M":
            width = types["dtype"].width
            return f"M={text}: M is counted in elements, not bytes; {text} of {types['dtype'].name} is M={int(size / width)}"
        return f"{key}={text}: {says} is a count and takes no unit; write {key}={found[1]} or such"
    if re.fullmatch(r"-\d+", text, re.ASCII):
        return f"{key}={repeated(text)}: {says} must be at least {0 if name in MAY_BE_ZERO else 1}"
    if re.fullmatch(r"-?\d*\.?\d+([eE][+-]?\d+)?", text, re.ASCII):
        return f"{key}={repeated(text)}: {says} is a whole number written out, such as 8192, 8K or 8Ki"
    return f"{key}={repeated(text)} is no number; {says} is a whole number such as 8192, 8K or 8Ki"


def _parts(key: str, text: str) -> list[str]:
    """The parts of a list, none of them empty."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > MOST_DOCUMENTS:
        raise BadValueError(f"{key}= lists {len(parts)} lengths; at most {MOST_DOCUMENTS} are taken: pack fewer in one")
    if not all(parts):
        raise BadValueError(
            f"{key}={repeated(text)}: a list of lengths with commas between, such as {key}=512,512,1024"
        )
    return parts


def _check_packed(variant: Variant, pattern: Pattern, numbers: Mapping[str, Number]) -> None:
    """Packed documents are one sequence, as long as all of them together."""
    if not variant.one_sequence or not {"N_q", "N_k"} <= {s.name for s in variant.symbols}:
        raise BadValueError(
            f"{variant.name} has queries and keys of two sequences, and mask={pattern.name} packs one; try mha or gqa"
        )
    for name in ("N_q", "N_k"):
        if numbers.get(name, pattern.length) != pattern.length:
            lengths = repeated(",".join(map(str, pattern.numbers)))
            raise BadValueError(
                f"the documents {lengths} are {pattern.length} tokens together, and {name} is {numbers[name]}; "
                "leave N out, or give their sum"
            )


def capacity(where: str, text: str) -> int:
    """The bytes that *text* says, written after *where*.

    Raises:
        BadValueError: it has no unit, or is no whole number of bytes.
    """
    found = _CAPACITY.fullmatch(text)
    if found is None:
        raise BadValueError(
            f"{where}{repeated(text)}: a capacity takes a unit, such as 50MiB (binary) or 50MB (decimal)"
        )
    size = Fraction(found[1]) * _BYTES[found[2]]
    if size < 1 or size > LARGEST or size.denominator != 1:
        raise BadValueError(f"{where}{repeated(text)}: a capacity is a whole number of bytes, at least 1 B")
    return int(size)


def _check_divisors(request: Request) -> None:
    for divisor, dividend in request.variant.divides:
        small, large = request.numbers.get(divisor.name), request.numbers.get(dividend.name)
        if large is None and dividend in request.variant.defaults:
            large = 1
        if small is None or large is None or dividend.name in request.open:
            continue
        if large % small:
            of = "N" if request.tied and dividend.name in ("N_q", "N_k") else MEANINGS[dividend.name].key
            what = MEANINGS[divisor.name].says.split(" (")[0]
            why = f"every {what[:-1]} serves a whole group of query heads"
            if dividend.name != "h":
                why = f"give a divisor of it for the {what}"
            raise BadValueError(f"{MEANINGS[divisor.name].key}={small} does not divide {of}={large}; {why}")


def _check_limits(request: Request) -> None:
    """No size beyond one that it is a part of."""
    from derive.exact import value

    for part, whole in request.variant.at_most:
        small, sizes = request.numbers.get(part.name), {s.name: s for s in whole.free_symbols}
        if small is None or not set(sizes) <= set(request.numbers):
            continue
        if small > (large := value(whole, request.numbers)):
            keys = (("N" if request.tied and n in ("N_q", "N_k") else MEANINGS[n].key, n) for n in sorted(sizes))
            given = ", ".join(f"{key}={request.numbers[n]}" for key, n in keys)
            raise BadValueError(
                f"{MEANINGS[part.name].key}={small}: there cannot be more {MEANINGS[part.name].says} than {large}, with "
                f"{given}; give at most {large}"
            )
