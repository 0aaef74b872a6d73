"""The bibliography: complete, without idle entries, and in agreement with what rules and variants say of the same papers."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import Any

import pytest

from derive.attention import names as variant_names
from derive.attention import variant
from derive.theorems.theorem import theorems
from outputs.explanation import Explanation
from outputs.paper.document import body
from outputs.paper.layout import WIDE
from outputs.paper.sources import bibtex, cited, numbers
from outputs.request import read_request
from rules.catalogue import ALL
from rules.derivations import names as schedule_names
from rules.derivations import plan

ENTRIES: dict[str, Any] = tomllib.loads((files("outputs.paper") / "sources.toml").read_text(encoding="utf-8"))
REFERENCES = (
    *(variant(name).reference for name in variant_names()),
    *(rule.reference for rule in ALL),
    *(plan(name).reference for name in schedule_names()),
)
"""What a paper may cite."""
SAID = sorted(
    {
        (found["who"].strip(), int(found["year"]), found["number"])
        for reference in (*REFERENCES, *(theorem.source for theorem in theorems()))
        for found in re.finditer(
            r"(?P<who>[A-Z][^;:,]*?) (?P<year>\d{4}),(?: [\w-]+( \w+)?,)? arXiv:(?P<number>[\d.]+\d)", reference
        )
        if found["number"] in ENTRIES
    }
)
"""Authors, year and number as the project names them beside a reference."""


def disagreement(who: str, year: int, number: str, entry: dict[str, Any]) -> str:
    """What *entry* has otherwise than a reference to the same paper; empty when they agree."""
    authors = entry["authors"].split(", ")
    surnames = [name.split(". ")[-1] for name in authors]
    first, rest = who.split(" ")[0], who.partition(" et al.")[1]
    if not surnames[0].startswith(first):
        return f"first author {surnames[0]}, not {first}"
    if " & " in who and surnames != who.split(" & "):
        return f"authors {surnames}, not {who}"
    if (rest and len(authors) < 3) or (not rest and " & " not in who and len(authors) > 1):
        return f"{len(authors)} authors, not {who}"
    if not entry["year"] <= year <= entry["year"] + 2:  # a paper is printed up to two years behind its preprint
        return f"year {entry['year']}, not {year}"
    return "" if entry["year"] == 2000 + int(number[:2]) else f"year {entry['year']} of arXiv:{number}"


def test_words_between_two_papers_end_without_a_comma() -> None:
    """What stood before a number goes with the number."""
    found = cited(
        "Katharopoulos et al. 2020, arXiv:2006.16236; in chunks: Yang et al. 2023, arXiv:2312.06635, section 2.2"
    )
    places = r"\DeriveCite{arXiv:2006.16236}, \DeriveCite[section 2.2]{arXiv:2312.06635}"
    assert found == f"(Katharopoulos et al. 2020; in chunks: Yang et al. 2023; {places})"


def test_every_paper_that_may_be_cited_has_an_entry_and_every_entry_is_cited() -> None:
    """By number; each with authors, a title and a year."""
    assert sorted(ENTRIES) == numbers(REFERENCES)
    for entry in ENTRIES.values():
        assert set(entry) == {"authors", "title", "year"}
        assert all(entry.values())
        assert entry["title"] == entry["title"].strip()
    assert len({entry["title"] for entry in ENTRIES.values()}) == len(ENTRIES)


@pytest.mark.parametrize(("who", "year", "number"), SAID)
def test_entries_agree_with_what_the_project_says_beside_the_reference(who: str, year: int, number: str) -> None:
    """First author, how many there are, and the year; the year of the preprint is in its number."""
    assert disagreement(who, year, number, ENTRIES[number]) == ""


def test_most_entries_are_named_elsewhere() -> None:
    """So that the comparison is not one of nothing."""
    assert len({number for _, _, number in SAID}) >= 20


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"authors": "T. Dao, A. Gu", "year": 2022}, "2 authors"),
        ({"authors": "D. Tao, D. Y. Fu, S. Ermon", "year": 2022}, "first author Tao"),
        ({"authors": "T. Dao, D. Y. Fu, S. Ermon", "year": 2023}, "year 2023, not 2022"),
        ({"authors": "T. Dao, D. Y. Fu, S. Ermon", "year": 2021}, "year 2021 of arXiv"),
    ],
)
def test_a_wrong_entry_is_noticed(entry: dict[str, Any], says: str) -> None:
    """Each field, wrong alone."""
    assert disagreement("Dao et al.", 2022, "2205.14135", entry).startswith(says)


@pytest.mark.parametrize("name", ["mha", "dsa", "gla", "mla", "linear-chunkwise"])
def test_a_paper_lists_what_it_cites_and_nothing_else(name: str) -> None:
    """In the body's list, and in the BibTeX file; a team's name is one author."""
    found = variant(name)
    written = body(Explanation(read_request(found, ()), found.schedules, None), WIDE, "")
    text = " ".join(written.split())
    cited = set(re.findall(r"\\DeriveCite(?:\[[^\]]*\])?\{arXiv:([\d.]+)\}", text))
    listed = re.findall(r"\[arXiv:([\d.]+)\]", text)
    assert cited == set(listed)
    assert len(listed) == len(set(listed))
    made = bibtex(sorted(cited))
    assert re.findall(r"@misc\{arXiv:([\d.]+),", made) == sorted(cited)
    for number in cited:
        authors = ENTRIES[number]["authors"].split(", ")
        assert " and ".join(a if ". " in a else f"{{{a}}}" for a in authors) in made
