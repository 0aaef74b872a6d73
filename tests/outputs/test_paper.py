from __future__ import annotations

import os
import re
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sympy as sp

from derive.attention import variant
from derive.exact import Number, value
from derive.symbols import MEANINGS, N, dummy, symbol
from hardware import load
from outputs.explanation import Explanation
from outputs.formula import latex
from outputs.notation import put
from outputs.paper.document import body, files, wrapper
from outputs.paper.layout import LAYOUTS, NARROW, WIDE, claims
from outputs.paper.sources import cited
from outputs.paper.statement import amounts
from outputs.paper.tex import escaped
from outputs.reader import read
from outputs.request import read_request
from rules.derivations import names as schedule_names
from rules.derivations import plan
from tests.outputs.command import derive, tex_or_skip
from tests.outputs.latex_reader import as_text
from tests.strategies import ATTENTION, FORWARD

MASKS = ("full", "causal", "causal-tl")

UNITS = {"B": 1, "FLOP": 1, "op": 1, "FLOP/s": 1, "B/s": 1, "exp": 1, "s": Fraction(1), "ms": Fraction(1, 10**3)}
UNITS |= {"us": Fraction(1, 10**6), "ns": Fraction(1, 10**9)}
UNITS |= {prefix + "iB": 2 ** (10 * n) for n, prefix in enumerate("KMGTPE", 1)}
UNITS |= {p + unit: 10 ** (3 * n) for n, p in enumerate("kMGTPE", 1) for unit in ("FLOP", "op", "FLOP/s", "B/s")}
QUANTITY = re.compile(r"\\DeriveQty\{([^}]*)\}\{([^}]*)\}")
BAD = re.compile(
    r"^!|LaTeX Warning|Package .* Warning|Class .* Warning|Overfull|Missing character|Font Warning|\\end occurred"
)
ODD = {name: 3 + 2 * n for n, name in enumerate(MEANINGS)}
HOSTS = {
    "article": r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{lmodern}",
    "twocolumn": r"\documentclass[twocolumn]{article}\usepackage[T1]{fontenc}\usepackage{lmodern}",
    "IEEEtran": r"\documentclass[conference]{IEEEtran}\usepackage[T1]{fontenc}\usepackage{lmodern}",
    "acmart": r"\documentclass[sigconf,nonacm]{acmart}",
    "acmsmall": r"\documentclass[acmsmall,nonacm]{acmart}",
}
NARROW_HOSTS = ("twocolumn", "IEEEtran", "acmart")


def answer(
    *words: str, name: str = "mha", schedules: tuple[str, ...] = ("naive", "flash2"), on: str = ""
) -> Explanation:
    """What ``derive paper NAME WORDS... --schedule ... --on ON`` prints."""
    return Explanation(read_request(variant(name), words), schedules, load(on) if on else None)


SEED = ("N=8192", "d=128")


@pytest.fixture(scope="module")
def seed() -> Explanation:
    """The seed's question."""
    return answer(*SEED, on="h100-sxm")


# --- what it says -----------------------------------------------------------------------------------------------------


def displays(text: str) -> dict[str, list[str]]:
    """Right sides by left side of every displayed equation, in order."""
    found: dict[str, list[str]] = {}
    flat = " ".join(text.split())
    for formula in re.findall(r"\\\[ (.*?) \\\]", flat):
        left, equals, right = formula.partition(" = ")
        if equals and "aligned" not in formula:
            found.setdefault(left, []).append(right.partition(r" \quad ")[0])
    return found


def expression(formula: str, parts: dict[str, list[str]]) -> Any:
    """A displayed formula as an expression, the parts that it was cut into put back."""
    names = {N.name: N} | {s.name: s for s in map(symbol, MEANINGS)}
    definitions: dict[str, Any] = {}
    shorthand = [left for left in parts if re.fullmatch(r"[TXx]_(\w|\{\d+\})", left)]
    for left in shorthand:
        name = left.replace("{", "").replace("}", "")
        names[name] = sp.Symbol(name, real=True)
    for left in shorthand:
        name = left.replace("{", "").replace("}", "")
        assert len(parts[left]) == 1, "a name means one thing"
        definitions[names[name]] = put(read(as_text(_plain(parts[left][-1])), names | _INDICES), definitions)
    return put(read(as_text(_plain(formula)), names), definitions)


_INDICES = {name: dummy(name) for name in ("i", "j", "w")}


def _plain(formula: str) -> str:
    return re.sub(r"([TXx])_\{(\d+)\}", r"\1_\2", formula)


@pytest.mark.parametrize("layout", [WIDE, NARROW], ids=lambda layout: layout.name)
@pytest.mark.parametrize("name", ATTENTION)
@pytest.mark.parametrize("mask", MASKS)
def test_the_count_adds_up_to_the_claim(name: str, mask: str, layout: Any) -> None:
    """Read back from the LaTeX: elements of each tensor times its width are the bytes claimed, and those are the engine's."""
    found = answer(f"mask={mask}", name=name, schedules=("flash2",))
    account = found.accounts[0]
    text = body(found, layout, "")
    statement, _ = text.split(r"\begin{proof}", 1)
    claimed, counted = displays(statement), displays(text)
    at = {**ODD, "N": ODD["N_k"]}
    if found.tied:
        at["N_q"] = at["N_k"]
    expected = value(put(account.sm.total.amount, found.shown), at)
    assert value(expression(claimed[r"D_{\mathrm{SM}}"][0], claimed), at) == expected
    graph = account.derivation.schedule.graph
    widths = {n.replace("_", ""): value(put(t.width, found.shown), at) for n, t in graph.tensors.items()}
    total = Fraction(0)
    for left, rights in counted.items():
        if moved := re.fullmatch(r"[RW]_\{\\mathrm\{(\w+)\}\}", left):
            assert len(rights) == 1 or len(account.sm.by_tensor) > 0
            total += value(expression(rights[0], counted), at) * widths[moved[1]]
    assert total == expected


@pytest.mark.parametrize(
    ("name", "schedule", "words"),
    [
        ("gqa", "flash2", ("N=8192", "d=128", "h=32", "hk=8", "mask=causal")),
        ("mha", "square", ("N=512", "d=64", "mask=causal")),
        ("mha-backward", "naive-backward", ("N=3000", "d=64")),
        ("gla", "op-by-op", ("N=4096", "dv=64", "d=64", "C=64")),
    ],
)
def test_many_cases_are_parts_that_add_up(name: str, schedule: str, words: tuple[str, ...]) -> None:
    """Each part in the case that holds, all parts stated and none twice: together the engine's HBM bytes."""
    found = answer(*words, name=name, schedules=(schedule,), on="h100-sxm")
    account = found.accounts[0]
    made = claims(found, amounts(account), {}, WIDE)
    assert len({c.symbol for c in made.stated}) == len(made.stated)
    of = {latex(symbol): symbol for _, part in made.definitions for symbol in part.free_symbols}
    of |= {latex(s): s for c in made.stated for pair in c.forms for part in pair for s in part.free_symbols}
    meaning = dict(made.definitions)
    stated = {of[c.symbol]: c for c in made.stated if c.symbol in of}
    at = {"N": account.values.get("N_k", account.values["N_q"]), **account.values}

    def number(form: sp.Basic) -> Number:
        names = {s for s in form.free_symbols if s in meaning or s in stated}
        return value(form, {**at, **{s.name: of_name(s) for s in names}})

    def of_name(s: sp.Symbol) -> Number:
        if s in meaning:
            return number(meaning[s])
        return next(number(a) for a, condition in stated[s].forms if condition == sp.true or number(condition))

    (total,) = (c for c in made.stated if "HBM" in c.symbol)
    held = next(number(a) for a, condition in total.forms if condition == sp.true or number(condition))
    assert held == account.exact(account.dram.total.amount)
    assert not [c for c in made.stated if len(c.forms) > 4]


def test_every_quantity_parses_back_to_the_exact_number(seed: Explanation) -> None:
    """Half a unit in the last place, times its unit; and the column of exact bytes is exact."""
    rows = [line for line in body(seed, WIDE, "").replace("\n", " ").split(r"\\") if QUANTITY.search(line)]
    exact = {
        (level, account.name): Fraction(account.exact(moves.total.amount))
        for account in seed.accounts
        for level, moves in (("SM-side", account.sm), ("HBM", account.dram), ("compulsory", account.compulsory))
    }
    checked = 0
    for row in rows:
        cells = [c.strip().split(" ")[-1] for c in row.split("&")]
        if len(cells) < 2:
            continue
        key = (cells[0], cells[1] if cells[0] != "compulsory" else "flash2")
        found = QUANTITY.findall(row)
        if key not in exact:
            continue
        for digits, unit in found:
            place = Fraction(1, 10 ** len(digits.partition(".")[2])) * UNITS[unit]
            assert abs(Fraction(digits) * UNITS[unit] - exact[key]) <= place / 2
        digits, unit = found[-1]
        assert (Fraction(digits), unit) == (exact[key], "B")
        checked += len(found)
    assert checked == 10


def test_every_quantity_of_every_variant_has_a_known_unit() -> None:
    """ASCII unit keys, plain digits: a regular expression reads them."""
    for name in ATTENTION:
        for digits, unit in QUANTITY.findall(
            body(answer("N=8192" if name != "decode" else "Nk=8192", "d=128", name=name, on="h100-sxm"), WIDE, "")
        ):
            assert re.fullmatch(r"\d+(\.\d+)?(e[+-]\d+)?", digits)
            assert unit in UNITS, unit


def test_the_body_holds_what_a_paper_needs(seed: Explanation) -> None:
    """Each part once for each schedule, every step with its rule and reference, cited and derived told apart."""
    text = body(seed, WIDE, "")
    flat = " ".join(text.split())
    for account in seed.accounts:
        assert rf"\label{{derive:mha-{account.name}}}" in text
        for n, step in enumerate(account.derivation.steps, 1):
            assert rf"\DeriveStep{{Step {n}, {escaped(str(step.rule))}}}" in flat
            assert all(escaped(reason) in flat for reason in step.reasons)
            assert cited(step.rule.reference) in flat
    assert flat.count(r"\begin{proof}") == len(seed.accounts)
    assert r"\Theta\left(N d + \frac{N^{2} d^{2}}{M}\right)" in flat
    assert r"$d \le M \le N d$" in flat
    for number in re.findall(r"\\DeriveCite(?:\[[^]]*\])?\{arXiv:([\d.]+)\}", flat):
        assert f"[arXiv:{number}]" in flat
    assert all(
        word in flat for word in ("(derived)", "(modelled)", "Cited:", "cited, not derived", "Measured: nothing")
    )


def test_no_schedule_is_printed_that_was_not_derived(seed: Explanation) -> None:
    """Regenerating gives the same bytes; another question gives others."""
    assert files(seed, "a", WIDE, "x") == files(answer(*SEED, on="h100-sxm"), "a", WIDE, "x")
    assert body(seed, WIDE, "") != body(answer("N=4096", "d=128", on="h100-sxm"), WIDE, "")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_body_is_plain_text(layout: str) -> None:
    """ASCII, no tabs, no line over 100 characters, no blank line (it would end a formula)."""
    for schedule in FORWARD:
        text = body(answer("mask=causal", name="gqa", schedules=(schedule,)), LAYOUTS[layout], "")
        assert text.isascii()
        assert "\t" not in text
        assert max(map(len, text.splitlines())) <= 100
        assert "" not in text.splitlines()


def test_words_are_escaped() -> None:
    """TeX's signs are printed, never obeyed."""
    assert escaped(r"\input{/etc/passwd} 100% #1 a_b $x$ ~ ^ & <") == (
        r"\textbackslash{}input\{/etc/passwd\} 100\% \#1 a\_b \$x\$ \textasciitilde{} \textasciicircum{} \& $<$"
    )


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_writes_a_body_a_wrapper_and_the_papers(tmp_path: Path) -> None:
    """Three files, named on stderr; nothing on stdout, nothing left over."""
    found = derive("paper", "mha", *SEED, "-o", str(tmp_path / "flash2.tex"))
    assert (found.code, found.out) == (0, "")
    names = ["flash2-standalone.tex", "flash2.bib", "flash2.tex"]
    assert sorted(os.listdir(tmp_path)) == names
    assert all(name in found.err for name in names)
    assert r"\input{flash2.tex}" in (tmp_path / "flash2-standalone.tex").read_text(encoding="utf-8")


def test_a_file_that_exists_is_kept_unless_forced(tmp_path: Path) -> None:
    """Nothing is half-written: with one file in the way, none is."""
    mine = tmp_path / "a-standalone.tex"
    mine.write_text("mine", encoding="utf-8")
    refused = derive("paper", "mha", "-o", str(tmp_path / "a.tex"))
    assert refused.code == 2
    assert "exists; add --force" in refused.err
    assert os.listdir(tmp_path) == ["a-standalone.tex"]
    assert mine.read_text(encoding="utf-8") == "mine"
    assert derive("paper", "mha", "-o", str(tmp_path / "a.tex"), "--force").code == 0
    assert mine.read_text(encoding="utf-8") != "mine"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("mha", "-o", "a.pdf"), "name a file such as flash2.tex"),
        (("mha", "-o", "a%b.tex"), "name a file such as flash2.tex"),
        (("mha", "-o", r"a\input.tex"), "name a file such as flash2.tex"),
        (("mha", "-o", "no/such/folder/a.tex"), "cannot be written: No such file or directory"),
        (("mah", "-o", "a.tex"), "did you mean mha?"),
        (("mha", "-o", "a.tex", "--layout", "broad"), "broad"),
        (("mha", "N=0", "-o", "a.tex"), "must be at least 1"),
    ],
)
def test_bad_input_is_one_sentence(words: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: Any) -> None:
    """Exit code 2, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    found = derive("paper", *words)
    assert found.code == 2
    assert says in found.err
    assert len(found.err.strip().splitlines()) == 1
    assert os.listdir(tmp_path) == []


# --- TeX --------------------------------------------------------------------------------------------------------------


def complaints(folder: Path, main: str) -> list[str]:
    """Lines of the log of two runs that report an error, a warning or an overfull box."""
    for _ in range(2):
        command = ["pdflatex", "-interaction=nonstopmode", "-no-shell-escape", main]
        subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    log = (folder / main).with_suffix(".log").read_text(encoding="latin-1")
    assert (folder / main).with_suffix(".pdf").exists(), log[-2000:]
    return [line for line in log.splitlines() if BAD.search(line)]


def hosted(folder: Path, host: str, bodies: dict[str, str]) -> list[str]:
    """What a host paper that takes in *bodies* complains about, and does not without them."""
    packages = r"\usepackage{amsmath,amsthm,booktabs}"
    acm = r"\title{T}\author{A}\affiliation{\institution{I}\country{C}}\begin{abstract}x\end{abstract}\maketitle"
    opening = acm if host.startswith("acm") else r"\title{T}\author{A}\maketitle"
    for name, text in bodies.items():
        (folder / f"{name}.tex").write_text(text, encoding="utf-8")
    inputs = "\n".join(rf"\input{{{name}}}\clearpage" for name in bodies)
    for name, inside in (("plain", "x"), ("full", inputs)):
        document = f"{HOSTS[host]}{packages}\\begin{{document}}{opening}\n{inside}\n\\end{{document}}\n"
        (folder / f"{name}.tex").write_text(document, encoding="utf-8")
    own = complaints(folder, "plain.tex")
    assert not any(line.startswith("!") for line in own), own
    return [line for line in complaints(folder, "full.tex") if line not in own]


def catalogue(layout: Any) -> dict[str, str]:
    """Bodies of every variant and mask, with and without numbers."""
    bodies = {}
    for name in ATTENTION:
        for mask in MASKS:
            words = [f"mask={mask}"]
            if mask == "full":
                words += ["d=128", "Nk=8192"] + ([] if name == "decode" else ["Nq=4096"])
            found = answer(
                *words, name=name, schedules=("naive", "flash1", "flash2"), on="h100-sxm" if mask == "full" else ""
            )
            bodies[f"{name}-{mask}"] = body(found, layout, "")
    return bodies


@pytest.mark.parametrize("host", HOSTS)
def test_the_catalogue_compiles_in_every_host_without_a_warning(host: str, tmp_path: Path) -> None:
    """All variants and masks, in one and two columns: no error, no warning and no overfull box of ours."""
    tex_or_skip("IEEEtran.cls", "acmart.cls", "booktabs.sty", "lmodern.sty")
    layout = NARROW if host in NARROW_HOSTS else WIDE
    assert hosted(tmp_path, host, catalogue(layout)) == []


def test_the_wrapper_compiles_alone(tmp_path: Path, seed: Explanation) -> None:
    """And a broken body does not: the check is alive."""
    tex_or_skip("booktabs.sty", "lmodern.sty")
    for layout in (WIDE, NARROW):
        for name, text in files(seed, "a", layout, "x").items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        assert complaints(tmp_path, "a-standalone.tex") == []
    broken = body(seed, WIDE, "").replace(r"\frac{N}{B_r}", r"\frac{N}{B_r", 1)
    (tmp_path / "a.tex").write_text(broken, encoding="utf-8")
    (tmp_path / "a-standalone.tex").write_text(wrapper("a", WIDE), encoding="utf-8")
    assert complaints(tmp_path, "a-standalone.tex")


def test_a_host_may_cite_with_its_own_bibliography(tmp_path: Path, seed: Explanation) -> None:
    r"""With ``\DeriveCite`` as ``\cite`` and the BibTeX file, nothing is undefined."""
    tex_or_skip("booktabs.sty", "lmodern.sty")
    for name, text in files(seed, "a", WIDE, "x").items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    main = (
        HOSTS["article"] + r"\usepackage{amsmath,amsthm,booktabs}\newcommand{\DeriveSources}[1]{}\begin{document}"
        r"\let\DeriveCite\cite\input{a}\bibliographystyle{plain}\bibliography{a}\end{document}"
    )
    (tmp_path / "main.tex").write_text(main, encoding="utf-8")
    complaints(tmp_path, "main.tex")
    ran = subprocess.run(["bibtex", "main"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout
    assert "Warning" not in ran.stdout
    assert complaints(tmp_path, "main.tex") == []


def test_every_plan_is_published_or_says_what_it_is() -> None:
    """References are papers, or are printed as they stand."""
    for name in schedule_names():
        assert "arXiv" in cited(plan(name).reference) or cited(plan(name).reference).startswith("(")
