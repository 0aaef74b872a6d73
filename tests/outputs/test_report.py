from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from derive.attention import names as variant_names
from derive.attention import variant
from derive.exact import Number, value
from derive.symbols import b
from hardware import load
from outputs.as_json import as_json
from outputs.explanation import Explanation
from outputs.pictures.start import start
from outputs.report.dataflow import lives
from outputs.report.document import report
from outputs.report.page import FORMATS, Page
from outputs.request import read_request
from outputs.threshold import longest
from tests.outputs.browser import Shown, show, show_narrow
from tests.outputs.command import derive
from tests.strategies import PAIRS

LARGEST = 300_000
"""Bytes of a page."""
QUESTIONS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...] | None, str | None]] = {
    "seed": ("mha", ("N=8192", "d=128"), None, "h100-sxm"),
    "open": ("mha", (), ("flash1", "flash2"), None),
    "causal": ("gqa", ("mask=causal", "h=12", "hk=4", "kv=fp8"), ("flash2", "flash2-packed"), "a100-sxm-80gb"),
    "backward": ("mha-backward", ("N=4096", "d=64"), None, "h100-sxm"),
    "decode": ("decode", ("Nk=?", "h=?", "hk=?"), None, "mi300x"),
    "packed": ("mha", ("mask=docs", "docs=512,512,1024"), None, None),
    "window": ("cross", ("mask=window", "Nq=1000", "dtype=fp16"), None, "t4"),
}  # fmt: skip
every_question = pytest.mark.parametrize("question", QUESTIONS)
VOID = {"meta", "br", "input"}


def explanation(question: str) -> Explanation:
    """What the command would ask."""
    name, words, schedules, machine = QUESTIONS[question]
    found = variant(name)
    chosen = schedules or found.named_schedules(None)
    return Explanation(read_request(found, words), chosen, load(machine) if machine else None)


@lru_cache(maxsize=16)
def page(question: str) -> str:
    """The page of a question."""
    return report(explanation(question), f"derive report {question}")


class Tree(HTMLParser):
    """Tags in order, each closed where HTML and XML agree that it ends."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self.data: list[tuple[dict[str, str], str]] = []
        self.feed(text)
        assert self.open == [], f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        found = {name: value or "" for name, value in attrs}
        self.tags.append((tag, found))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "data":
            self.data.append((found, ""))

    def handle_endtag(self, tag: str) -> None:
        """It ends where it should."""
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> in the wrong place"

    def handle_data(self, data: str) -> None:
        """Its text."""
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)
            if self.open[-1] == "data":
                self.data[-1] = (self.data[-1][0], data)


def check_markup(text: str) -> None:
    """It parses, ids are unique, and every reference and label has its target."""
    tree = Tree(text)
    ids = [a["id"] for _, a in tree.tags if "id" in a]
    assert len(ids) == len(set(ids)), f"ids twice: {sorted(i for i in ids if ids.count(i) > 1)}"
    for tag, attributes in tree.tags:
        if "href" in attributes:
            assert attributes["href"].removeprefix("#") in ids, f"<{tag} href={attributes['href']}> points nowhere"
        for key in ("for", "aria-labelledby"):
            for target in attributes.get(key, "").split():
                assert target in ids, f"<{tag} {key}={target}> points nowhere"
        if tag == "input":
            labelled = any(a.get("for") == attributes["id"] for t, a in tree.tags if t == "label")
            assert labelled or attributes.get("aria-label"), f"<input id={attributes['id']}> has no label"
        if attributes.get("role") == "img":
            assert attributes.get("aria-labelledby"), "a picture without words"


def check_policy(text: str) -> None:
    """A policy that allows one script and one style sheet, by their hashes, and nothing else."""
    policy = re.search(r'http-equiv=Content-Security-Policy content="([^"]*)"', text)
    assert policy, "no policy"
    rules = dict(rule.split(" ", 1) for rule in policy[1].replace("&#x27;", "'").split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    for element in ("script", "style"):
        bodies = re.findall(rf"<{element}>(.*?)</{element}>", text, flags=re.DOTALL)
        assert len(bodies) == len(re.findall(rf"<{element}\b", text)) == 1
        digest = base64.b64encode(hashlib.sha256(bodies[0].encode()).digest()).decode()
        assert rules[f"{element}-src"] == f"'sha256-{digest}'"


def check_asks_for_nothing(text: str) -> None:
    """No address but of a place on the page itself, no inline handler, no inline style."""
    for tag, attributes in Tree(text).tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "image", "use"), f"<{tag}>"
        for key, content in attributes.items():
            assert key != "href" or (tag == "a" and content.startswith("#")), f"<{tag} {key}={content}>"
            assert key not in ("src", "xlink:href", "style", "action", "srcset"), f"<{tag} {key}>"
            assert not key.startswith("on"), f"<{tag} {key}>"
            assert "url(" not in content or re.fullmatch(r"url\(#\w+\)", content), f"<{tag} {key}={content}>"
    assert not re.search(r"https?:|@import|url\((?!#)|fetch\(|XMLHttp|import\(|\beval\b|innerHTML", text)


def check_size(text: str) -> None:
    """Small enough to mail."""
    assert len(text.encode()) < LARGEST


CHECKS: tuple[Callable[[str], None], ...] = (check_markup, check_policy, check_asks_for_nothing, check_size)


@every_question
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_page_is_whole_alone_and_small(check: Callable[[str], None], question: str) -> None:
    """Every question's page, by every check of its text."""
    check(page(question))


@pytest.mark.parametrize(
    ("check", "whole", "broken"),
    [
        (check_markup, "</figure>", ""),
        (check_markup, "id=roofline-title", "id=lengths-title"),
        (check_markup, "for=range-0", "for=range-99"),
        (check_markup, ' aria-label="N, exactly"', ""),
        (check_markup, "href=#step-", "href=#stop-"),
        (check_policy, '"use strict"', '"use  strict"'),
        (check_policy, "default-src", "default-source"),
        (check_policy, "</body>", "<script></script></body>"),
        (check_asks_for_nothing, "<main>", '<main><img src="x">'),
        (check_asks_for_nothing, "<main>", '<main onclick="1">'),
        (check_asks_for_nothing, "<main>", '<main style="color: red">'),
        (check_asks_for_nothing, "<main>", "<main>see http://example.org"),
        (check_asks_for_nothing, "href=#step-", "href=other.html#step-"),
        (check_asks_for_nothing, "<main>", '<main><link href="#answer">'),
        (check_size, "<main>", "<main>" + "x" * LARGEST),
    ],
)
def test_each_check_notices_its_fault(check: Callable[[str], None], whole: str, broken: str) -> None:
    """A page with one seeded fault fails the check that is about it."""
    text = page("seed") if whole in page("seed") else page("open")
    assert whole in text
    with pytest.raises((AssertionError, KeyError)):
        check(text.replace(whole, broken, 1))


@pytest.mark.parametrize("name", ["mha-backward", "cascade"])
def test_a_page_with_every_schedule_is_small_too(name: str) -> None:
    """The largest of the catalogue: what schedules share is said once, and nothing is left out."""
    schedules = tuple(schedule for variant, schedule in PAIRS if variant == name and schedule != "row-resident")
    made = Explanation(read_request(variant(name), ()), schedules, load("h100-sxm"))
    text = report(made, "")
    assert len(text.encode()) < LARGEST
    check_markup(text)
    for account in made.accounts:
        assert f"<summary>{account.name}, {len(account.derivation.steps)} steps</summary>" in text
    names = set(re.findall(r"\bY_\d+\b", " ".join(Tree(text).texts.get("td", []) + Tree(text).texts.get("li", []))))
    assert names <= {f"Y_{n}" for n in range(1, len(re.findall("rowgroup", text)) + 1)}


@pytest.mark.parametrize("name", variant_names())
def test_every_variant_has_a_page(name: str) -> None:
    """With nothing given: every formula is drawn as MathML, and every number begins somewhere."""
    found = variant(name)
    schedules = tuple(schedule for schedule in found.schedules if (name, schedule) in PAIRS)
    text = report(Explanation(read_request(found, ()), schedules), "")
    check_markup(text)
    assert "<math" in text


def amounts_of(json_: Any) -> dict[str, tuple[float, float]]:
    """What `derive explain --json` says, under the names of the page, with how exactly it says it."""
    found: dict[str, tuple[float, float]] = {}
    for schedule, s in json_["schedules"].items():
        named: dict[str, Any] = {count: s["bytes"][count]["value"] for count in s["bytes"]}
        for count, c in s["bytes"].items():
            named |= {f"{count}.{t}": both["read"] + both["write"] for t, both in c["tensors"].items()}
        named |= {
            "flop": s["flops"]["executed"]["value"],
            "converted": s["flops"]["convert"]["value"],
            "peak": s["memory_peak"]["value"],
            "footprint": s["footprint"]["value"],
        }
        named |= {"intensity": s["intensity"]}
        if s.get("time"):
            named |= {f"time.{pipe}": s["time"][pipe] for pipe in ("mma", "exp", "vector", "shared", "l2", "dram")}
            named["seconds"] = s["time"]["seconds"]
        found |= {
            f"{schedule}|{key}": (n, 1e-12 if isinstance(n, float) else 0.0)
            for key, n in named.items()
            if n is not None
        }
    return found


@every_question
def test_every_number_is_the_engines(question: str) -> None:
    """Each marked number, in tables and pictures alike, is what `derive explain --json` says at the same question."""
    made = Page(start(explanation(question)), "")
    told = amounts_of(as_json(made.start.answer))
    marked = [(a, t) for a, t in Tree(page(question)).data]
    pictures = re.findall(r"<g class=bars data-schedule=(\S+) [^>]*>(.*?)</g>", page(question))
    drawn = []
    for name, bars in pictures:
        for tensor, of_tensor in re.findall(r"class=tensor>([^<]*)</text>(.*?)(?=<text [^>]*class=tensor|$)", bars):
            pairs = re.findall(r"<rect [^>]*class=(\w+) /><text [^>]*>([^<]*)<", of_tensor)
            drawn += [(f"{name}|{count}.{tensor}", text) for count, text in pairs]
    assert len(marked) > 12
    assert len(drawn) > 12
    seen = 0
    for of, as_, exact, text in [
        *((a["data-of"], a.get("data-as", "size"), Fraction(a["value"]), t) for a, t in marked),
        *((of, "size", None, text) for of, text in drawn),
    ]:
        if of not in told:
            assert of.split("|")[1] in ("useful", "readers")
            continue
        number, error = told[of]
        seen += 1
        if exact is not None:
            assert -(-exact // 1) == number if not error else float(exact) == pytest.approx(number, rel=error)
        if not error:
            assert text == FORMATS[as_](exact if exact is not None else int(number))
    assert seen > 20


def test_the_same_question_gives_the_same_bytes() -> None:
    """In another process, where sets have another order."""
    asked = ("seed", "causal")
    program = (
        "import hashlib; from tests.outputs.test_report import page;"
        f"print(*[hashlib.sha256(page(q).encode()).hexdigest() for q in {asked!r}])"
    )
    environment = {"PYTHONHASHSEED": "77", "PATH": ""}
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert ran.stdout.split() == [hashlib.sha256(page(q).encode()).hexdigest() for q in asked]


def test_each_tensor_is_drawn_where_it_lives() -> None:
    """What is never moved is drawn on chip, and nothing else is: partial sums that visit memory are told apart."""
    for name in ("open", "backward", "causal"):
        for account in explanation(name).accounts:
            schedule = account.derivation.schedule
            drawn = {
                (kernel.name, t.name): lives(account, kernel, t.name)
                for kernel in schedule.kernels
                for t in schedule.tensors_of(kernel)
            }
            moved = {t for t, m in account.sm.by_tensor.items() if m.read + m.write != 0}
            assert {t for (_, t), kind in drawn.items() if kind != "chip"} == moved
            assert {t for (_, t), kind in drawn.items() if kind == "output"} >= set(schedule.graph.outputs)
    flash1 = next(a for a in explanation("open").accounts)
    (kernel,) = flash1.derivation.schedule.kernels
    assert {lives(flash1, kernel, t) for t in ("m", "l", "U_O")} == {"spilled"}


def test_names_cannot_become_markup() -> None:
    """What a person typed is shown, never run."""
    text = report(explanation("seed"), 'derive <script>alert(1)</script> & "x" </style>')
    for check in CHECKS:
        check(text)
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp;" in text


# --- in a browser -----------------------------------------------------------------------------------------------------

PROBE = Path(__file__).with_name("report_probe.js").read_text(encoding="utf-8")


def probed(text: str, asked: dict[str, Any]) -> str:
    """*text* with a script of the test before its own, allowed by a hash beside the page's."""
    script = f"{{ const ASKED = {json.dumps(asked)};\n{PROBE} }}".replace("</", "<\\/")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = text.replace("script-src &#x27;", f"script-src &#x27;sha256-{digest}&#x27; &#x27;", 1)
    assert allowed != text
    return allowed.replace("<body>", f"<body><script>{script}</script>", 1)


def moves_of(made: Page, draws: int, seed: int) -> list[dict[str, int]]:
    """Random positions of every slider."""
    drawn = random.Random(seed)
    moves: list[dict[str, int]] = []
    heads = {name for pair in made.start.asked.request.variant.divides for name in (pair[0].name, pair[1].name)}
    for _ in range(draws):
        chosen = {}
        for slider in made.sliders:
            steps = [n for n, number in enumerate(slider.steps) if slider.symbol not in heads or _power_of_two(number)]
            chosen[slider.key] = drawn.choice([n for n in steps if slider.steps[n] <= 2**17 or slider.symbol == "C_L2"])
        for small, large in made.start.asked.request.variant.divides:
            if {small.name, large.name} <= set(chosen) and chosen[small.name] > chosen[large.name]:
                chosen[small.name], chosen[large.name] = chosen[large.name], chosen[small.name]
        moves.append(chosen)
    return moves


def _power_of_two(number: Number) -> bool:
    return int(number) & (int(number) - 1) == 0


def points_of(made: Page, draws: int, seed: int) -> list[tuple[str, dict[str, str]]]:
    """Random values for the symbols of every amount, on and off the tiles' multiples, both sides of the cache's size."""
    drawn = random.Random(seed)
    found = []
    for schedule, amounts in made.amounts.items():
        for key in amounts:
            for _ in range(draws):
                heads = drawn.choice((1, 2, 4))
                at: dict[str, Number] = {n: drawn.choice((1, 3, 64, 100, 128)) for n in made.values[schedule]}
                at |= {n: drawn.choice((1, 63, 777, 4096, 12345)) for n in ("N", "N_q", "N_k") if n in at}
                at |= {n: drawn.choice((10**4, 10**6, 10**8)) for n in ("C_L2",) if n in at}
                at |= {n: v for n, v in (("h_k", heads), ("h", 3 * heads)) if n in at}
                at |= {
                    n: drawn.choice((Fraction(1, 2), 1, Fraction(33, 32), 2, 4)) for n in at if n.split("_")[0] == "b"
                }
                found.append((f"{schedule}|{key}", {n: str(v) for n, v in at.items()}))
    return found


def format_samples() -> list[tuple[str, str]]:
    """Numbers at the edges of units and of rounding."""
    drawn = random.Random(5)
    plain: list[Number] = [0, 1, 999, 1000, 1023, 1024, 1025, 10**6 - 1, 10**6, 2**20, 2**60 + 1, 12345 * 10**30]
    exact: list[Number] = [
        Fraction(1, 3),
        Fraction(99995, 10),
        Fraction(12345, 10),
        Fraction(12355, 10),
        Fraction(1, 10**9),
    ]
    exact += [Fraction(drawn.randint(1, 10**9), drawn.randint(1, 10**6)) for _ in range(60)]
    found = [(as_, str(n)) for as_ in FORMATS for n in (*plain, *exact) if not (as_ == "seconds" and n == 0)]
    return [(as_, n) for as_, n in found if not (as_ == "number" and Fraction(n) == 0)]


@lru_cache(maxsize=16)
def shown_with(question: str, folder: Path) -> tuple[Page, dict[str, Any], dict[str, Any], Shown]:
    """The page in a narrow window, its sliders moved, its functions asked."""
    made = Page(start(explanation(question)), "")
    asked = {"moves": moves_of(made, 5, 3), "points": points_of(made, 4, 7), "formats": format_samples()}
    shown = show_narrow(folder, probed(page(question), asked), 400)
    return made, asked, json.loads(shown.text_of("found")), shown


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place for pages."""
    return tmp_path_factory.mktemp("report")


IN_BROWSER = pytest.mark.parametrize("question", ["seed", "open", "causal", "decode"])


@IN_BROWSER
def test_nothing_fails_overflows_or_overlaps(question: str, folder: Path) -> None:
    """No error and no refused request, no horizontal scroll at 400 px, no text on another: at the start and after moves."""
    _, _, found, shown = shown_with(question, folder)
    assert found["errors"] == []
    assert shown.console == ()
    for state in found["states"]:
        assert state["width"] == 400
        assert state["wide"] <= 400
        assert state["overlaps"] == []
        assert state["stacked"] == []


@IN_BROWSER
def test_sliders_recompute_exactly(question: str, folder: Path) -> None:
    """After each move every number on the page is the engine's at the sliders' values, and written as the engine writes it."""
    made, asked, found, _ = shown_with(question, folder)
    assert len(found["states"]) == len(asked["moves"]) + 2
    for moves, state in zip([{}, *asked["moves"], {}], found["states"], strict=True):
        assert state["status"] == ""
        chosen = {s.key: s.steps[moves[s.key]] if s.key in moves else s.value for s in made.sliders}
        assert {k: Fraction(v) for k, v in state["values"].items()} == chosen
        for of, as_, exact, text in state["numbers"]:
            schedule, key = of.split("|")
            at = dict(made.values[schedule])
            at |= {s.symbol: chosen[s.key] for s in made.sliders if s.schedule in ("", schedule)}
            expected = value(made.amounts[schedule][key], at)
            assert Fraction(exact) == expected, (of, at)
            assert text == FORMATS[as_](expected)
    assert found["refused"] == "true"


@IN_BROWSER
def test_the_script_computes_what_sympy_does(question: str, folder: Path) -> None:
    """Every amount at random points: equal, not only to 1e-12."""
    made, asked, found, _ = shown_with(question, folder)
    assert len(asked["points"]) > 100
    for (of, at), got in zip(asked["points"], found["computed"], strict=True):
        schedule, key = of.split("|")
        assert Fraction(got) == value(made.amounts[schedule][key], {n: Fraction(v) for n, v in at.items()}), (of, at)


def test_the_script_writes_numbers_as_python_does(folder: Path) -> None:
    """Units, rounding half to even, exponents."""
    _, asked, found, _ = shown_with("seed", folder)
    for (as_, exact), got in zip(asked["formats"], found["formats"], strict=True):
        assert got == FORMATS[as_](Fraction(exact)), (as_, exact)


@IN_BROWSER
def test_thresholds_follow_the_sliders(question: str, folder: Path) -> None:
    """The length up to which the cache serves what is read again, found by halving in the page as in the engine."""
    made, asked, found, _ = shown_with(question, folder)
    compared = 0
    for moves, state in zip([{}, *asked["moves"]], found["states"], strict=False):
        for account in made.accounts:
            if account.name not in state["thresholds"]:
                continue
            chosen = {
                s.symbol: s.steps[moves[s.key]] for s in made.sliders if s.schedule in ("", account.name) and moves
            }
            at = {**account.values, **chosen}
            if "N" in chosen:
                at |= {"N_q": chosen["N"], "N_k": chosen["N"]}
            at |= {s.name: at["b"] for s, shown in made.start.answer.shown.items() if shown == b}
            if account.sharing is not None and value(account.sharing[1].sharers * account.sharing[1].rounds, at) <= 1:
                assert state["thresholds"][account.name] == "any length"
                continue
            expected = longest(account, at, tied=made.start.answer.tied)
            assert state["thresholds"][account.name] == ("any length" if expected is None else f"{expected:,}")
            compared += 1
    assert compared


def test_what_is_too_long_for_the_page_is_said_and_never_stale(folder: Path) -> None:
    """A sum of 2^20 terms: no number of before is left standing, every other one is right, and the reason is given."""
    made = Page(start(explanation("causal")), "")
    steps = {s.key: [int(n) if n.denominator == 1 else n for n in s.steps] for s in made.sliders}
    moves = {"N": steps["N"].index(2**20), "B_r": steps["B_r"].index(1)}
    shown = show_narrow(folder, probed(page("causal"), {"moves": [moves], "points": [], "formats": []}), 400)
    found = json.loads(shown.text_of("found"))
    before, after = found["states"][:2]
    assert found["errors"] == []
    assert before["status"] == ""
    assert "not computed here: a sum of more than 200000 terms" in after["status"]
    assert any(text == "not computed" for *_, text in after["numbers"])
    for of, _, exact, text in after["numbers"]:
        if text != "not computed":
            schedule, key = of.split("|")
            at = made.values[schedule] | {"N": 2**20, "B_r": 1}
            assert Fraction(exact) == value(made.amounts[schedule][key], at)


def test_without_javascript_the_values_are_there(folder: Path) -> None:
    """No form that does nothing; every number and picture as the engine computed them."""
    text = re.sub(r"script-src &#x27;sha256-[^ ]*&#x27;", "script-src &#x27;none&#x27;", page("seed"))
    assert text != page("seed")
    shown = show(folder, text)
    assert re.search(r'<form id="?controls"? hidden', shown.dom)
    assert len(shown.console) == 1
    assert "Content Security Policy" in shown.console[0]
    texts = re.findall(r"<data [^>]*>([^<]*)</data>", shown.dom)
    assert texts == [t for _, t in Tree(page("seed")).data]
    assert {"260 MiB", "520 MiB", "8 MiB"} <= set(texts)
    assert shown.dom.count("<svg") == page("seed").count("<svg") > 8
    assert 'points="' in shown.dom


def test_the_browser_checks_notice_their_faults(folder: Path) -> None:
    """Too wide, a word on another, a formula stacked, an error, a refused request and a rounding down: all are found."""
    text = page("seed")
    broken = text.replace("<main>", '<main><div><svg width="700" viewBox="0 0 700 20"><text x="5" y="12">one</text>'
                          '<text x="6" y="12">two</text></svg></div><math display="block"><mi>a</mi><mi>b</mi></math>'
                          '<img src="https://example.org/x.png">')  # fmt: skip
    script = re.search(r"<script>(.*)</script>", broken, flags=re.DOTALL)
    assert script
    changed = script[1].replace("const ceil = (a, b) => -floor(", "const ceil = (a, b) => floor(a, b) || -floor(")
    changed = changed.replace("};\nfollow();", '};\nfollow();\nsetTimeout(() => { throw new Error("seeded"); }, 1);')
    assert changed.count("seeded") == 1
    old, new = (base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in (script[1], changed))
    broken = broken.replace(script[1], changed).replace(old, new)
    made = Page(start(explanation("seed")), "")
    asked: dict[str, Any] = {"moves": [], "points": points_of(made, 4, 7), "formats": []}
    shown = show_narrow(folder, probed(broken, asked), 400)
    found = json.loads(shown.text_of("found"))
    assert any("seeded" in error for error in found["errors"])
    assert any(error.startswith("policy: img-src") for error in found["errors"])
    assert shown.console
    assert found["states"][0]["wide"] > 400
    assert any("one on two" in words for words in found["states"][0]["overlaps"])
    assert len(found["states"][0]["stacked"]) == 1
    exact = [
        value(made.amounts[k.split("|")[0]][k.split("|")[1]], {n: Fraction(v) for n, v in at.items()})
        for k, at in asked["points"]
    ]
    assert any(Fraction(got) != right for got, right in zip(found["computed"], exact, strict=True))


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_writes_one_file_and_keeps_another(tmp_path: Path) -> None:
    """The same bytes each time; a file that exists is kept unless forced."""
    target = tmp_path / "a <b> & 'c'.html"
    asked = ("report", "mha", "N=1K", "d=64", "-o", str(target))
    first = derive(*asked)
    assert (first.code, first.out, first.err) == (0, "", f"wrote {target}\n")
    before = target.read_bytes()
    again = derive(*asked)
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "exists; add --force" in again.err
    assert derive(*asked, "--force").code == 0
    assert target.read_bytes() == before
    assert [f.name for f in tmp_path.iterdir()] == [target.name]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("-o", "report.txt"), 2, "-o report.txt: name a file that ends in .html"),
        (("-o", "no/such/folder/report.html"), 2, "cannot be written: No such file or directory"),
        (("-o", "folder.html"), 2, "folder.html is a folder; name a file"),
        ((), 2, "Missing option '-o'"),
        (("-o", "x.html", "--on", "h1000"), 2, "h1000"),
        (("-o", "x.html", "--schedule", "flsh2"), 2, "flash2"),
        (
            ("-o", "x.html", "Br=4096", "--on", "h100-sxm", "--schedule", "flash2"),
            3,
            "the largest B_r that fits is 640",
        ),
    ],
)
def test_bad_input_is_one_sentence(
    words: tuple[str, ...], code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2, or 3 for what cannot exist; nothing is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    answer = derive("report", "mha", "N=8192", "d=128", *words)
    assert answer.code == code
    assert says in answer.err
    assert answer.err.count("\n") == 1
    assert [f.name for f in tmp_path.iterdir()] == ["folder.html"]
