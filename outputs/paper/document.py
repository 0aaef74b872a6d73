r"""The files of ``derive paper``: a body to ``\input``, a wrapper that compiles alone, and the papers cited as BibTeX.

The body needs amsmath, amsthm and booktabs in the host and nothing else. What it prints quantities, citations and headings
with are macros that the host may define first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outputs.paper.layout import WIDE, Layout, claims
from outputs.paper.numbers import numbers
from outputs.paper.proof import counted, proof
from outputs.paper.sources import bibtex, entry
from outputs.paper.sources import numbers as papers
from outputs.paper.statement import amounts, assumptions, notation, proposition, tile_values
from outputs.paper.tex import escaped, wrapped

if TYPE_CHECKING:
    from outputs.explanation import Explanation

_MACROS = r"""
\makeatletter
\providecommand{\DeriveTheoremEnv}{proposition}
\providecommand{\DeriveTheoremName}{Proposition}
\@ifundefined{\DeriveTheoremEnv}{\newtheorem{\DeriveTheoremEnv}{\DeriveTheoremName}}{}
\@ifundefined{derive@unit@us}{\@namedef{derive@unit@us}{\ensuremath{\mu}s}}{}
\providecommand{\DeriveUnit}[1]{\@ifundefined{derive@unit@#1}{#1}{\@nameuse{derive@unit@#1}}}
\providecommand{\DeriveQty}[2]{\mbox{#1\,\DeriveUnit{#2}}}
\providecommand{\DeriveCite}[2][]{[#2\def\derive@place{#1}\ifx\derive@place\@empty\else, #1\fi]}
\providecommand{\DeriveHeading}[1]{\par\addvspace{\medskipamount}\noindent\textbf{#1.}\enspace}
\providecommand{\DeriveStep}[1]{\par\addvspace{\smallskipamount}\noindent\textit{#1.}}
\providecommand{\DeriveSources}[1]{\DeriveHeading{Sources}#1\par}
\makeatother
"""


def files(explanation: Explanation, stem: str, layout: Layout, command: str) -> dict[str, str]:
    """Contents by file name.

    Args:
        explanation: the answer that is printed; two questions give two bodies that may stand in one paper.
        stem: name of the body without ``.tex``.
        layout: how wide a column is.
        command: what was typed, for the comment at the top.
    """
    found = {f"{stem}.tex": body(explanation, layout, command), f"{stem}-standalone.tex": wrapper(stem, layout)}
    cited = _cited(explanation)
    return {**found, f"{stem}.bib": bibtex(cited)} if cited else found


def body(explanation: Explanation, layout: Layout, command: str) -> str:
    r"""What a paper takes in by ``\input``."""
    request = explanation.request
    prefix = f"derive:{request.variant.name}" + ("" if request.mask == "full" else f"-{request.mask}")
    lines = [
        f"% {' '.join(command.split()).encode('ascii', 'replace').decode('ascii')}",
        r"% Needs amsmath, amsthm and booktabs. Generated: run the command again instead of editing.",
        *_MACROS.strip().splitlines(),
        r"\begingroup\emergencystretch=3em\hbadness=10000\relax",
        r"\DeriveHeading{Notation}",
        *notation(explanation, layout),
    ]
    tiles = [f"{escaped(a.name)} with {t}" for a in explanation.accounts if (t := tile_values(a))]
    lines += [rf"\noindent Tiles: {'; '.join(tiles)}.\par"] if tiles else []
    lines += [r"\DeriveHeading{Assumptions}", *assumptions(explanation)]
    for account in explanation.accounts:
        label = f"{prefix}-{account.name}"
        made = claims(explanation, amounts(account), counted(account), layout)
        lines += proposition(explanation, account, made, label)
        lines += proof(explanation, account, made, label)
    lines += numbers(explanation, layout)
    lines += [
        r"\DeriveHeading{Status}",
        "Derived: FLOP, compulsory and SM-side bytes, footprints and growth classes, from the rewritten graph. Modelled:"
        " HBM bytes, by the cache of the assumptions. Cited: the papers behind the rules and the machine's constants. Measured:"
        " nothing.",
    ]
    if cited := _cited(explanation):
        lines += [r"\DeriveSources{%", *(rf"\par\noindent [arXiv:{n}] {entry(n)}" for n in cited), "}"]
    return wrapped([*lines, r"\endgroup"])


def single(explanation: Explanation, command: str) -> str:
    """The same in one file that compiles alone."""
    around = wrapper("-", WIDE)
    return around.replace("\\input{-.tex}\n", body(explanation, WIDE, command))


def wrapper(stem: str, layout: Layout) -> str:
    """A document around the body."""
    columns = "[twocolumn]" if not layout.closed_forms else ""
    return "\n".join(
        [
            rf"\documentclass{columns}{{article}}",
            r"\usepackage[T1]{fontenc}",
            r"\usepackage{lmodern}",
            r"\usepackage{amsmath,amsthm,booktabs}",
            r"\begin{document}",
            rf"\input{{{stem}.tex}}",
            r"\end{document}",
            "",
        ]
    )


def _cited(explanation: Explanation) -> list[str]:
    """Every paper that is cited, once."""
    steps = (step for account in explanation.accounts for step in account.derivation.steps)
    return papers([explanation.request.variant.reference, *(step.rule.reference for step in steps)])
