"""The masks by name: each a short definition of the keys that query q sees, and the sizes it is written in.

``own`` is the position of a query's own key: q + N_k - N_q where the last query stands on the last key (bottom-right: a KV
cache, FlashAttention from 2.1 on), q where the first stands on the first (top-left: cuDNN, PyTorch's ``is_causal``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import sympy as sp

from derive.block_list import BlockList
from derive.density import Density
from derive.errors import BadValueError, nearest
from derive.extremes import down, least, most
from derive.interval import ZERO, Interval
from derive.mask import Mask
from derive.met_blocks import Rows
from derive.steps import steps
from derive.symbols import COPY, MEANINGS, ROW, C_k, N_g, N_p, N_s, W, W_l, W_r, n_d, symbol

Numbers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys that query ``ROW`` sees, ``own`` being the position of its own key.

    Attributes:
        says: in words, with ``{own}`` where the position of the query's own key is meant.
        intervals: as in ``Mask``.
    """

    says: str
    intervals: tuple[Interval, ...]


def _causal(own: sp.Expr, _: Numbers) -> Keys:
    return Keys("query q sees keys 0..{own}", (Interval(last=own),))


def _window(own: sp.Expr, _: Numbers) -> Keys:
    return Keys("query q sees the W keys up to {own}, its own included", (Interval(own - W + 1, own),))


def _two_sided(own: sp.Expr, _: Numbers) -> Keys:
    says = "query q sees keys {own} - left..{own} + right"
    return Keys(says, (Interval(own - W_l, own + W_r),))


def _chunk(own: sp.Expr, _: Numbers) -> Keys:
    says = "query q sees the keys of its own chunk of C, up to {own}"
    return Keys(says, (Interval(C_k * down(own / C_k), own),))


def _prefix(own: sp.Expr, _: Numbers) -> Keys:
    return Keys("query q sees the prefix and keys 0..{own}", (Interval(last=most(N_p - 1, own)),))


def _documents(own: sp.Expr, lengths: Numbers) -> Keys:
    first = steps(own, *_starts(lengths))
    return Keys(f"packed {_listed(lengths)}, query q sees its own document up to {{own}}", (Interval(first, own),))


def _whole_documents(own: sp.Expr, lengths: Numbers) -> Keys:
    starts, firsts = _starts(lengths)
    ends = steps(own, starts, list(accumulate(lengths)))
    says = f"packed {_listed(lengths)}, query q sees all of its own document"
    return Keys(says, (Interval(steps(own, starts, firsts), ends - 1),))


def _sinks(own: sp.Expr, _: Numbers) -> Keys:
    says = "query q sees the sinks, the first keys of all, and the W keys up to {own}"
    return Keys(says, (Interval(last=least(N_s - 1, own - W)), Interval(own - W + 1, own)))


def _global_local(own: sp.Expr, _: Numbers) -> Keys:
    says = "a query whose own key {own} is global sees all keys, another the global ones and keys {own} - left..{own} + right"
    others = most(N_g - own.xreplace({ROW: ZERO}), ZERO)  # the first query that is none of the global tokens
    return Keys(
        says,
        (
            Interval(until=others),
            Interval(last=N_g - 1, since=others),
            Interval(most(N_g, own - W_l), most(N_g - 1, own + W_r), since=others),
        ),
    )


def _dilated(own: sp.Expr, _: Numbers) -> Keys:
    key = own - (W - 1 - COPY) * n_d
    says = "query q sees W keys up to {own}, each as far from the next as the dilation says"
    return Keys(says, (Interval(key, key, copies=W),))


def _blocks(_: sp.Expr, kept: Rows) -> Keys:
    says = (
        f"{sum(map(len, kept))} blocks of C_b queries by C_b keys are kept, as listed; tiles(B_r, B_c) counts the tiles of B_r "
        "rows by B_c keys that meet one, rows, keys and pairs what is in them"
    )
    return Keys(says, ())


def _starts(lengths: Numbers) -> tuple[list[int], list[int]]:
    """Where each document starts, as the positions and as the values of a step function."""
    starts = [0, *accumulate(lengths[:-1])]
    return starts, starts


def _listed(lengths: Numbers) -> str:
    shown = ",".join(map(str, lengths[:6]))
    return f"{len(lengths)} documents of {shown}{',...' if len(lengths) > 6 else ''} tokens"


@dataclass(frozen=True, slots=True)
class Form:
    """One way in which a mask is given.

    Attributes:
        uses: keys of the sizes it is written in, as a person types them.
        keys: what a query sees, from the position of its own key and the list that was given.
        takes: key of the list it needs; empty when it needs none.
        needs: what that list is, with an example.
    """

    uses: tuple[str, ...]
    keys: Callable[[sp.Expr, Any], Keys]
    takes: str = ""
    needs: str = "the lengths of the documents, such as docs=512,512,1024"


FORMS: Mapping[str, tuple[Form, ...]] = {
    "causal": (Form((), _causal),),
    "window": (Form(("W",), _window), Form(("left", "right"), _two_sided)),
    "chunk": (Form(("C",), _chunk),),
    "prefix": (Form(("prefix",), _prefix),),
    "sinks": (Form(("sinks", "W"), _sinks),),
    "global-local": (Form(("globals", "left", "right"), _global_local),),
    "dilated": (Form(("W", "dilation"), _dilated),),
    "docs": (Form((), _documents, takes="docs"),),
    "docs-full": (Form((), _whole_documents, takes="docs"),),
    "blocks": (
        Form(("block",), _blocks, takes="blocks", needs="the kept blocks of each row, such as blocks=0/0,1/0,2"),
    ),
}
"""Each mask, bottom-right; ``-tl`` behind the name is top-left. The first form is meant when no size is given."""

SHARES: Mapping[str, str] = {"block-sparse": "s"}
"""Masks of which only the share of tiles that is kept is known, with the key of that share."""
TOP_LEFT = "-tl"
MASKS = ("full", *(name + align for name, forms in FORMS.items() if not forms[0].takes for align in ("", TOP_LEFT)))
"""Names of the masks that need no list."""
KNOWN = (*MASKS, *(name for name, forms in FORMS.items() if forms[0].takes), *SHARES)
"""Names of all masks."""
MASK_KEYS = frozenset(
    (*(key for forms in FORMS.values() for form in forms for key in (*form.uses, form.takes) if key), *SHARES.values())
)
"""Keys of sizes and lists that only a mask has."""
LIST_KEYS = frozenset(form.takes for forms in FORMS.values() for form in forms if form.takes)
"""Those of lists."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Which mask is meant: its name, the keys that were given, which choose the form, and its list, of lengths or of blocks.

    Raises:
        UnknownNameError: no mask has this name.
        BadValueError: a key that it does not use, or a list that it lacks.
    """

    name: str = "full"
    given: frozenset[str] = frozenset()
    numbers: Numbers = ()
    kept: Rows = ()

    def __post_init__(self) -> None:
        if self.name not in KNOWN:
            raise nearest("mask", self.name, KNOWN)
        form = self.form
        stray = sorted(self.given - _used(form) - {SHARES.get(self.name, "")})
        if stray:
            raise BadValueError(_unused(self.name, stray[0]))
        if form is not None and form.takes and not (self.kept or self.numbers):
            raise BadValueError(f"mask={self.name} needs {form.needs}")
        if form is not None and len(form.uses) > 1 and 0 < len(self.given) < len(form.uses) and len(self._forms) > 1:
            missing = next(key for key in form.uses if key not in self.given)
            raise BadValueError(f"mask={self.name} with {min(self.given)}= needs {missing}= too")

    @property
    def _forms(self) -> tuple[Form, ...]:
        return FORMS.get(self.name.removesuffix(TOP_LEFT), ())

    @property
    def form(self) -> Form | None:
        """The form that uses most of the keys that were given; ``None`` for no mask."""
        return max(self._forms, key=lambda form: len(self.given & _used(form)), default=None)

    @property
    def sizes(self) -> frozenset[str]:
        """Names of the symbols it is written in."""
        uses = {SHARES[self.name]} if self.name in SHARES else set() if self.form is None else set(self.form.uses)
        return frozenset(name for name, meaning in MEANINGS.items() if meaning.key in uses)

    @property
    def length(self) -> int | None:
        """The one length that queries and keys must have; ``None`` when any do."""
        return sum(self.numbers) if self.numbers else None

    def mask(self, rows: sp.Expr, columns: sp.Expr, row: str = "q", column: str = "k") -> Mask | None:
        """The mask of *rows* queries and *columns* keys; ``None`` when every query sees every key.

        Args:
            rows: number of queries.
            columns: number of keys.
            row: name of the query index.
            column: name of the key index.
        """
        if self.name in SHARES:
            share = next(symbol(name) for name in self.sizes)
            says = f"{self.name}: a share {share} of the tiles is kept, spread evenly; counts are means"
            return Density(self.name, says, row, column, rows, columns, share=share)
        if self.form is None:
            return None
        top_left = self.name.endswith(TOP_LEFT) or bool(self.form.takes)
        own = ROW if top_left else sp.expand(ROW + columns - rows)
        keys = self.form.keys(own, self.kept or self.numbers)
        words = keys.says.format(own="q" if top_left else "q + N_k - N_q")
        align = "" if self.form.takes else (", top-left" if top_left else ", bottom-right")
        says = f"{self.name.removesuffix(TOP_LEFT)}{align}: {words}"
        where = (self.name, says, row, column, rows, columns)
        if self.kept:
            return BlockList(*where, kept=self.kept)
        first, *others = keys.intervals
        return Mask(*where, first.first, first.last, tuple(others), first.since, first.until, first.copies)

    def __str__(self) -> str:
        rows = "/".join(",".join(map(str, row)) or "-" for row in self.kept)
        listed = rows or ",".join(map(str, self.numbers))
        return self.name + (f" {self.form.takes}={listed}" if self.form and listed else "")


def patterns(documents: tuple[Numbers, ...] = ()) -> list[Pattern]:
    """Every mask in every form, those that take documents once for each of *documents*; blocks are listed for one length."""
    found = [Pattern()]
    for name, forms in FORMS.items():
        for form in forms:
            if form.takes == "blocks":
                continue
            if form.takes:
                found += [Pattern(name, frozenset((form.takes,)), lengths) for lengths in documents]
            else:
                found += [Pattern(name + align, frozenset(form.uses)) for align in ("", TOP_LEFT)]
    return found


def _used(form: Form | None) -> frozenset[str]:
    return frozenset() if form is None else frozenset((*form.uses, form.takes))


def _unused(name: str, key: str) -> str:
    """Why *key* means nothing under the mask *name*."""
    users = [user for user, forms in FORMS.items() if any(key in _used(form) for form in forms)]
    users += [user for user, share in SHARES.items() if share == key]
    return f"{key}= is used by mask={' or '.join(users)}, and the mask is {name}; give one of these, or leave {key} out"
