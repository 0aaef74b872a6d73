"""Hypothesis strategies for what the engine can be asked about, by the keys a person types; all shrink towards 1."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from derive.dtype import DType, dtype
from derive.errors import BadValueError, nearest
from derive.graph import Graph
from derive.masks import Pattern, patterns
from derive.symbols import MAY_BE_ZERO, MEANINGS
from derive.variant import Variant
from hardware.machine import Machine

LARGEST = {"N": 4096, "Nq": 4096, "Nk": 4096, "d": 256, "dv": 256, "Br": 256, "Bc": 256, "h": 32, "hk": 8, "B": 8}
"""The largest value of a size that is drawn unless another is given; of one not named here, 64."""
_MAY_BE_ZERO = frozenset(MEANINGS[name].key for name in MAY_BE_ZERO)
_KEYS = frozenset({"N", *(meaning.key for meaning in MEANINGS.values() if meaning.key)})
_DTYPES = ("fp32", "bf16", "fp16", "fp8")


def shapes(*keys: str, **largest: int) -> st.SearchStrategy[dict[str, int]]:
    """A value for each of *keys*, such as ``shapes("N", "d", "Br", N=1024)``; ragged: nothing need divide anything.

    Where both ``h`` and ``hk`` are asked for, hk divides h.

    Args:
        keys: sizes and tiles as a person types them.
        largest: the largest value of a key.

    Raises:
        UnknownNameError: a key that does not exist.
        BadValueError: a largest value below 1.
    """
    asked = tuple(dict.fromkeys((*keys, *largest)))
    for key in asked:
        if key not in _KEYS:
            raise nearest("size", key, sorted(_KEYS))
        if largest.get(key, 1) < 1:
            raise BadValueError(f"{key}={largest[key]}: the largest value of a size is at least 1")
    drawn = {key: st.integers(int(key not in _MAY_BE_ZERO), largest.get(key, LARGEST.get(key, 64))) for key in asked}
    grouped = {"h", "hk"} <= set(asked)

    def divided(found: dict[str, int]) -> dict[str, int]:
        return {**found, "h": found["hk"] * max(1, found["h"] // found["hk"])} if grouped else found

    return st.fixed_dictionaries(drawn).map(divided)


def tiles(*keys: str, multiple: int = 1, most: int = 256) -> st.SearchStrategy[dict[str, int]]:
    """Tile sizes, ``{"Br": .., "Bc": ..}`` unless other *keys* are named: multiples of *multiple*, at most *most*.

    Raises:
        BadValueError: no multiple lies below *most*.
    """
    if not 1 <= multiple <= most:
        raise BadValueError(f"multiple={multiple}, most={most}: a tile has at least one row, and at most {most}")
    one = st.integers(1, most // multiple).map(lambda n: n * multiple)
    return st.fixed_dictionaries(dict.fromkeys(keys or ("Br", "Bc"), one))


def heads(most: int = 8) -> st.SearchStrategy[dict[str, int]]:
    """Query and key/value heads, ``{"h": .., "hk": ..}``, hk a divisor of h; both at most *most*."""
    return st.integers(1, most).flatmap(
        lambda kv: st.integers(1, most // kv).map(lambda group: {"h": kv * group, "hk": kv})
    )


def masks(*, documents: tuple[tuple[int, ...], ...] = ()) -> st.SearchStrategy[Pattern]:
    """A mask in one of its forms, the full one first; packed documents where their lengths are given."""
    return st.sampled_from(patterns(documents))


def dtypes(*names: str) -> st.SearchStrategy[DType]:
    """An element type: one of *names*, or of fp32, bf16, fp16 and fp8."""
    return st.sampled_from([dtype(name) for name in names or _DTYPES])


def machines() -> st.SearchStrategy[Machine]:
    """A machine of the catalogue."""
    from hardware.machine import load, names

    return st.sampled_from(names()).map(load)


def variants(fits: Callable[[str], bool] | None = None) -> st.SearchStrategy[str]:
    """The name of a variant, perhaps only of those that *fits* accepts."""
    from derive.attention import names

    return st.sampled_from([name for name in names() if fits is None or fits(name)])


def applies(variant: str, schedule: str, mask: str = "full") -> bool:
    """Whether every rule of *schedule* applies to *variant* under *mask*: FlashAttention needs a softmax, say."""
    from derive.attention import variant as find_variant
    from derive.errors import PreconditionError
    from rules.derivations import plan

    try:
        plan(schedule).derive(find_variant(variant).graph(mask))
    except PreconditionError:
        return False
    return True


def schedules(variant: str, mask: str = "full") -> st.SearchStrategy[str]:
    """The name of a schedule all of whose rules apply to *variant* under *mask*."""
    from rules.derivations import names

    return st.sampled_from([name for name in names() if applies(variant, name, mask)])


def graphs(variant: str | None = None) -> st.SearchStrategy[Graph]:
    """The graph of a variant, of any one unless it is named, under a mask that it takes."""
    from derive.attention import variant as find_variant

    def masked(name: str) -> st.SearchStrategy[Graph]:
        found = find_variant(name)
        taken = [pattern for pattern in patterns(()) if _takes(found, pattern)]
        return st.sampled_from(taken).map(found.graph)

    return (st.just(variant) if variant is not None else variants()).flatmap(masked)


def _takes(variant: Variant, pattern: Pattern) -> bool:
    from derive.errors import DeriveError

    try:
        variant.graph(pattern)
    except DeriveError:
        return False
    return True
