r"""The house's LaTeX as MathML Core: the one place where latex2mathml is called, held to the subset that it renders right.

latex2mathml never fails: what it does not know it prints as source, runs rows together, or writes as broken XML. So only
listed commands are let through, words never reach it (they are put in afterwards, escaped), what browsers no longer read is
repaired (alignment, upright letters, limits of sums), and every letter and digit must be found again in the result.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from html import unescape
from xml.etree import ElementTree as Xml

from derive.errors import DomainError, clipped

COMMANDS = frozenset(
    {r"\frac", r"\sqrt", r"\left", r"\right", r"\lceil", r"\rceil", r"\lfloor", r"\rfloor", r"\sum", r"\min", r"\max"}
    | {
        r"\gcd",
        r"\exp",
        r"\log",
        r"\tanh",
        r"\partial",
        r"\le",
        r"\ne",
        r"\times",
        r"\triangleright",
        r"\Theta",
        r"\begin",
        r"\end",
        r"\\",
        r"\,",
        r"\;",
    }
    | {
        r"\quad",
        r"\qquad",
        r"\alpha",
        r"\beta",
        r"\gamma",
        r"\delta",
        r"\eta",
        r"\theta",
        r"\kappa",
        r"\lambda",
        r"\mu",
    }
    | {r"\rho", r"\sigma", r"\tau", r"\phi", r"\text", r"\mathrm", r"\operatorname"}
)
"""What may stand in a formula."""
ARITY = {"mfrac": 2, "msub": 2, "msup": 2, "munder": 2, "msubsup": 3, "munderover": 3}
ELEMENTS = frozenset({"math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "msqrt", "mtable", "mtr", "mtd", *ARITY})
"""What comes out: elements of MathML Core that Chromium and Firefox draw alike."""
_ROWS = frozenset({"mtd", "msqrt"})
"""Elements that make a row of what they hold; ``math`` does too, until a style sheet gives it another box."""
_NAMESPACE = "http://www.w3.org/1998/Math/MathML"
_WORDS = re.compile(r"\\(text|mathrm|operatorname)\{([^{}\\$]*)\}")
_FORMULA = re.compile(r"[A-Za-z0-9 {}_^&+\-*/=<>()\[\]',.:;|\\]*", re.ASCII)
_LIMITS = frozenset({"∑", "max", "min"})
_FENCES = frozenset("()[]⌈⌉⌊⌋")
_FUNCTIONS = frozenset({"max", "min", "gcd", "exp", "log", "tanh"})


@lru_cache(maxsize=4096)
def mathml(latex: str, *, display: bool = False) -> str:
    """A formula as one ``<math>`` element, written out; arguments and errors as of ``drawn``."""
    root = drawn(latex, display=display)
    root.set("xmlns", _NAMESPACE)
    return Xml.tostring(root, encoding="unicode")


def drawn(latex: str, *, display: bool = False) -> Xml.Element:
    r"""A formula as a ``math`` element of its own.

    Args:
        latex: one formula of the house; ``cases`` is the only environment, text stands in ``\text{...}``.
        display: whether it stands on a line of its own.

    Raises:
        DomainError: a command, environment or character outside the subset, or a conversion that lost something.
    """
    words: list[tuple[str, str]] = []

    def put_aside(found: re.Match[str]) -> str:
        words.append((found[1], found[2]))
        return rf"\text{{w{len(words) - 1}w}}"

    formula = _WORDS.sub(put_aside, latex)
    _refuse(formula, latex)
    from latex2mathml.converter import convert_to_element  # only once something is to be drawn

    try:
        root = convert_to_element(formula, display="block" if display else "inline")
    except Exception as error:  # latex2mathml raises a dozen classes of its own, and KeyError and IndexError besides
        raise DomainError(f"{_short(latex)} is not balanced LaTeX ({type(error).__name__})") from None
    del root.attrib["xmlns"]
    for element in root.iter():
        element.text, element.tail = (text and unescape(text) for text in (element.text, element.tail))
    _check_nothing_lost(formula, root, latex)
    _repair(root, words)
    _unwrap(root)
    return root


def _refuse(formula: str, latex: str) -> None:
    depth = 0
    for brace in re.findall(r"[{}]", formula):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            break
    if depth != 0:
        raise DomainError(f"{_short(latex)} is not balanced LaTeX (braces)")
    for command in re.findall(r"\\(?:[A-Za-z]+\*?|.)", formula):
        if command not in COMMANDS:
            raise DomainError(f"{command} in {_short(latex)} is not in the LaTeX that is drawn as MathML")
    for environment in re.findall(r"\\(?:begin|end)\{(\w*\*?)\}", formula):
        if environment != "cases":
            raise DomainError(f"the environment {environment} is not drawn as MathML; lay rows out one formula each")
    if re.search(r"\\\\\s*\[", formula) or _FORMULA.fullmatch(formula) is None:
        wrong = next((c for c in formula if _FORMULA.fullmatch(c) is None), "[")
        raise DomainError(f"{wrong!a} in {_short(latex)} is not in the LaTeX that is drawn as MathML")
    inside = 0
    for token in re.findall(r"\\begin|\\end|&", formula):
        inside += {r"\begin": 1, r"\end": -1}.get(token, 0)
        if token == "&" and not inside:
            raise DomainError(f"an & outside cases in {_short(latex)}")


def _check_nothing_lost(formula: str, root: Xml.Element, latex: str) -> None:
    """Every letter and digit of the formula is in the result, and nothing else."""
    plain = re.sub(r"\\(begin|end)\{cases\}", "", formula)
    plain = re.sub(r"\\(text|mathrm|operatorname)(?=\{)", "", plain)
    plain = re.sub(rf"\\({'|'.join(sorted(_FUNCTIONS))})(?![A-Za-z])", r" \1 ", plain)
    plain = re.sub(r"\\(?:[A-Za-z]+|.)", "", plain)
    signs = re.compile(r"[A-Za-z0-9]", re.ASCII)
    before, after = Counter(signs.findall(plain)), Counter(signs.findall("".join(root.itertext())))
    if before != after or any(c in "".join(root.itertext()) for c in "\\&$"):
        raise DomainError(f"{_short(latex)} comes out of the conversion changed")


def _repair(root: Xml.Element, words: list[tuple[str, str]]) -> None:
    for element in root.iter():
        element.attrib.pop("columnalign", None)
        _put_word(element, words)
        text = element.text or ""
        if element.tag == "mtd":
            element.set("style", "text-align: left")
        elif element.tag == "mi" and len(text) == 1 and "Α" <= text <= "Ω":
            element.set("mathvariant", "normal")  # a capital Greek letter names a class, not a variable
        elif element.tag == "mi" and text in (";", ":", "."):
            element.tag = "mo"
        elif element.text in _FUNCTIONS:
            element.tag = "mi"
            element.attrib.clear()
        elif element.tag == "mo" and text in _FENCES:
            element.attrib.clear()  # what they do at the ends of a row is theirs by the operator dictionary
        if element.tag in ("msub", "msubsup") and (element[0].text in _LIMITS):
            element.tag = {"msub": "munder", "msubsup": "munderover"}[element.tag]
            element[0].set("movablelimits", "false")
        if element.tag not in ELEMENTS or len(element) != ARITY.get(element.tag, len(element)):
            raise DomainError(
                f"the conversion made a <{element.tag}> of {len(element)} parts, which browsers do not draw"
            )


def _unwrap(element: Xml.Element) -> None:
    """Rows that group nothing taken away: of one part, or all that an element holds which makes a row of it by itself."""
    for place, part in enumerate(element):
        while part.tag == "mrow" and len(part) == 1 and not part.attrib:
            element[place] = part = part[0]
        _unwrap(part)
    if element.tag in _ROWS and len(element) == 1 and element[0].tag == "mrow":
        element[:] = list(element[0])


def _put_word(element: Xml.Element, words: list[tuple[str, str]]) -> None:
    """The word that was put aside, in the element for its kind; the XML writer escapes it."""
    if element.tag != "mtext" or (found := re.fullmatch(r"w(\d+)w", element.text or "")) is None:
        return
    kind, word = words[int(found[1])]
    if kind == "text":
        element.text = re.sub(r"^ | $", "\N{NO-BREAK SPACE}", word)
        return
    element.tag, element.text = "mi", word
    if len(word) == 1:
        element.set("mathvariant", "normal")  # a single letter would be slanted


def _short(latex: str) -> str:
    return ascii(clipped(latex))
