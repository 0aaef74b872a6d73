"""HTML and SVG built from values: text is escaped, and only what these functions made is markup."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from html import escape
from xml.etree import ElementTree as Xml

from outputs.formula import latex
from outputs.mathml import drawn

_FUNCTIONS = frozenset({"min", "max", "gcd", "exp", "log", "tanh", "softmax"})
"""Names that stand apart from what is beside them."""
_BARE = re.compile(r"[A-Za-z0-9_.#|:-]+", re.ASCII)
_VOID = frozenset({"meta", "br", "input", "col"})
_SHAPES = frozenset({"rect", "line", "path", "polyline", "polygon", "circle"})
"""Elements of SVG that close themselves when nothing stands in them."""


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Content = str | Markup | None | Iterable["str | Markup | None"]


def element(name: str, /, *content: Content, **attributes: object) -> Markup:
    """An element; text in *content* is escaped, markup is not.

    An attribute's name is written with ``_`` for ``-``, a trailing one dropped (``class_``); None and False leave it out.
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f"={_quoted(str(value))}")
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    if name in _SHAPES and not content:
        return Markup(f"<{name}{written} />")
    return Markup(f"<{name}{written}>{joined(*content)}</{name}>")


def _quoted(value: str) -> str:
    """An attribute's value; in quotes only where HTML needs them, which is a tenth of a page."""
    return value if _BARE.fullmatch(value) else f'"{escape(value)}"'


def joined(*content: Content) -> Markup:
    """Pieces one after another, text escaped."""
    return Markup("".join(_one(piece) for piece in content))


def _one(piece: Content) -> str:
    if piece is None:
        return ""
    if isinstance(piece, Markup):
        return piece
    if isinstance(piece, str):
        return escape(piece, quote=False)
    return "".join(map(_one, piece))


def formula(written: str) -> Markup:
    """LaTeX of the house drawn as MathML on a line of its own."""
    return _styled(written, display=True)


def inline(written: str) -> Markup:
    """The same within words or in a cell."""
    return Markup(_styled(written, display=False).replace(' display="inline"', ""))


@lru_cache(maxsize=4096)
def _styled(written: str, *, display: bool) -> Markup:
    """MathML whose styles are left to the style sheet: a policy without inline styles refuses them.

    HTML knows the element by its name, without a namespace.
    """
    root = drawn(written, display=display)
    for part in root.iter():
        part.attrib.pop("style", None)
    for row in [*root.iter("mrow"), *root.iter("math")]:
        for place in reversed(range(len(row))):
            if not _is_function(row[place]):
                continue
            if place + 1 < len(row) and row[place + 1].tag not in ("mo", "mspace"):
                row.insert(place + 1, Xml.Element("mspace", width="0.17em"))
            if place and row[place - 1].tag not in ("mo", "mspace"):
                row.insert(place, Xml.Element("mspace", width="0.17em"))
    return Markup(Xml.tostring(root, encoding="unicode"))


def _is_function(part: Xml.Element) -> bool:
    """Whether *part* is the name of a function, perhaps with limits below it."""
    named = part[0] if part.tag in ("msub", "munder") else part
    return (named.text or "") in _FUNCTIONS


def form(expression: object) -> Markup:
    """A closed form as MathML."""
    return formula(latex(expression))


def scrolled(*content: Content, label: str) -> Markup:
    """What may be wider than the page, in a box of its own that scrolls, by keyboard too."""
    return element("div", *content, class_="wide", role="region", tabindex="0", aria_label=label)
