"""Hypothesis strategies for what the engine can be asked about, by the keys a person types; all shrink towards 1."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from derive.dtype import DType, dtype
from derive.masks import Pattern, patterns
from derive.symbols import MAY_BE_ZERO, MEANINGS
from hardware.machine import Machine

LARGEST = {"N": 4096, "Nq": 4096, "Nk": 4096, "d": 256, "dv": 256, "Br": 256, "Bc": 256, "h": 32, "hk": 8, "B": 8}
"""The largest value of a size that is drawn unless another is given; of one not named here, 64."""
_MAY_BE_ZERO = frozenset(MEANINGS[name].key for name in MAY_BE_ZERO)
_DTYPES = ("fp32", "bf16", "fp16", "fp8")


def shapes(*keys: str, **largest: int) -> st.SearchStrategy[dict[str, int]]:
    """A value for each of *keys*, such as ``shapes("N", "d", "Br", N=1024)``; ragged: nothing need divide anything.

    Where both ``h`` and ``hk`` are asked for, hk divides h.

    Args:
        keys: sizes and tiles as a person types them.
        largest: the largest value of a key.
    """
    asked = tuple(dict.fromkeys((*keys, *largest)))
    drawn = {key: st.integers(int(key not in _MAY_BE_ZERO), largest.get(key, LARGEST.get(key, 64))) for key in asked}
    grouped = {"h", "hk"} <= set(asked)

    def divided(found: dict[str, int]) -> dict[str, int]:
        return {**found, "h": found["hk"] * max(1, found["h"] // found["hk"])} if grouped else found

    return st.fixed_dictionaries(drawn).map(divided)


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
