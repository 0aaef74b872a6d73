"""What is cited: found in the references of rules, schedules and the variant, and printed with authors and title."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from outputs.paper.tex import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable

_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})((?:, [^;,\]]+)*)")


@dataclass(frozen=True, slots=True)
class Citation:
    """One paper and the place in it.

    Attributes:
        number: its arXiv number.
        place: section or algorithm; empty for the whole paper.
    """

    number: str
    place: str

    @property
    def latex(self) -> str:
        r"""``\DeriveCite[section 3]{arXiv:2205.14135}``, written as ``\cite`` would be."""
        place = f"[{escaped(self.place)}]" if self.place else ""
        return rf"\DeriveCite{place}{{arXiv:{self.number}}}"


def citations(reference: str) -> list[Citation]:
    """The papers that a reference names."""
    return [Citation(m[1], m[2].removeprefix(", ")) for m in _ARXIV.finditer(reference)]


def cited(reference: str) -> str:
    """A reference as LaTeX; one that names no paper is printed as it stands."""
    found = citations(reference)
    words = re.sub(r",\s*(?=;|$)", "", _ARXIV.sub("", reference).strip()).strip("; ")
    if not found:
        return f"({escaped(reference)})"
    places = ", ".join(c.latex for c in found)
    return f"({escaped(words)}; {places})" if words and ";" in reference else places


def numbers(references: Iterable[str]) -> list[str]:
    """Every paper once, in the order of its number."""
    return sorted({c.number for reference in references for c in citations(reference)})


@lru_cache(maxsize=1)
def _known() -> dict[str, dict[str, Any]]:
    return tomllib.loads((files("outputs.paper") / "sources.toml").read_text(encoding="utf-8"))


def entry(number: str) -> str:
    """One paper as a line of a list."""
    known = _known().get(number)
    if known is None:
        return f"arXiv:{number}."
    return f"{escaped(known['authors'])}. {escaped(known['title'])}. {known['year']}. arXiv:{number}."


def _authors(names: str) -> str:
    """Names as BibTeX wants them; one without initials is a team's, and no first name is looked for in it."""
    return " and ".join(name if ". " in name else f"{{{name}}}" for name in names.split(", "))


def bibtex(found: list[str]) -> str:
    r"""The papers as BibTeX, for a host that lets ``\DeriveCite`` be ``\cite``."""
    entries = []
    for number in found:
        known = _known().get(number, {"authors": "{arXiv:" + number + "}", "title": f"arXiv:{number}", "year": ""})
        year = known["year"] or f"20{number[:2]}"
        entries.append(
            f"@misc{{arXiv:{number},\n"
            f"  author = {{{_authors(known['authors'])}}},\n"
            f"  title = {{{{{escaped(known['title'])}}}}},\n"
            f"  year = {{{year}}},\n"
            f"  note = {{arXiv:{number}}}\n}}\n"
        )
    return "\n".join(entries)
