from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from derive.attention import variant
from derive.exact import value
from hardware import load
from outputs.commands.plot import KINDS
from outputs.explanation import Explanation
from outputs.pictures.start import Start, start
from outputs.plots import kinds
from outputs.plots import sheet as sheets
from outputs.plots.kinds import plot
from outputs.plots.sheet import sheet
from outputs.request import read_request
from tests.outputs.command import derive

if not os.environ.get("CI"):  # where a missing program is a failure
    pytest.importorskip("matplotlib", reason="no matplotlib on this machine; pip install 'attn-derive[plots]'")
QUESTIONS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...], str]] = {
    "seed": ("mha", ("N=8192", "d=128"), ("naive", "flash2"), "h100-sxm"),
    "heads": ("gqa", ("h=32", "hk=8", "mask=causal"), ("naive", "flash2", "flash2-packed"), "a100-sxm-80gb"),
    "three": ("mha", ("d=64",), ("naive", "flash1", "flash2"), "h200-sxm"),
}
every_question = pytest.mark.parametrize("question", QUESTIONS)
every_kind = pytest.mark.parametrize("kind", KINDS)
BEGINS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@lru_cache(maxsize=8)
def begun(question: str) -> Start:
    """A question at numbers."""
    name, words, schedules, machine = QUESTIONS[question]
    return start(Explanation(read_request(variant(name), words), schedules, load(machine)))


@lru_cache(maxsize=32)
def svg(kind: str, question: str) -> str:
    """A plot as SVG."""
    return plot(kind, begun(question), "svg").decode()


def texts(written: str) -> list[str]:
    """Its words, written as text and not as curves."""
    return ["".join(e.itertext()) for e in Xml.fromstring(written).iter("{http://www.w3.org/2000/svg}text")]


@every_kind
@pytest.mark.parametrize("written_as", BEGINS)
def test_every_kind_is_written_in_every_format(kind: str, written_as: str) -> None:
    """A picture of that format, the same twice, and small."""
    made = plot(kind, begun("seed"), written_as)
    assert made.startswith(BEGINS[written_as])
    assert made == plot(kind, begun("seed"), written_as)
    assert len(made) < 200_000


def test_another_process_writes_the_same_bytes() -> None:
    """No date, no version, no order of a set."""
    program = (
        "import hashlib; from tests.outputs.test_plot import begun, plot;"
        "kinds = [(k, w) for k in ('traffic', 'regimes') for w in ('svg', 'pdf')];"
        "print(*[hashlib.sha256(plot(k, begun('seed'), w)).hexdigest() for k, w in kinds])"
    )
    environment = {"PYTHONHASHSEED": "5", "PATH": "", "SOURCE_DATE_EPOCH": "1"}
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    own = [
        hashlib.sha256(plot(k, begun("seed"), w)).hexdigest() for k in ("traffic", "regimes") for w in ("svg", "pdf")
    ]
    assert ran.stdout.split() == own


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("roofline", ["FLOP / s", "useful matrix FLOP / byte of the level", "1 PFLOP/s", "flash2, HBM", "HBM ridge 295.3"]),
        ("traffic", ["N (tokens)", "bytes moved", "8 GiB", "flash2 DRAM", "compulsory", "flash2: L2 holds to 102,400"]),
        ("regimes", ["M (elements of fast memory)", "M = d^2 = 16,384", "M = N d = 1,048,576", "N^2 d^2/M: flash1, flash2"]),
        ("tiles", ["B_r (query rows of a tile)", "SM-side bytes", "flash2: fits 227 KiB to B_r = 652"]),
    ],
)  # fmt: skip
def test_axes_have_units_and_lines_have_labels(kind: str, words: list[str]) -> None:
    """Words as words, units among them, and the numbers of the engine."""
    assert set(words) <= set(texts(svg(kind, "seed")))


def drawn(kind: str, question: str) -> Any:
    """The axes of a plot."""
    with sheet(**kinds._SIZES.get(kind, {})) as made:
        kinds._KINDS[kind](begun(question), made)
        made.figure.canvas.draw()
        return made


def meetings(made: Any) -> list[str]:
    """Pairs of words that stand on each other, and words that leave the picture."""
    from matplotlib.text import Text

    axes, renderer = made.axes, made.figure.canvas.get_renderer()
    words = [*axes.texts, axes._left_title, axes.xaxis.label, axes.yaxis.label]
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        words += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    boxes = [(t.get_text(), Text.get_window_extent(t, renderer)) for t in words if t.get_text()]
    found = []
    for (a, p), (b, q) in combinations(boxes, 2):
        across, down = min(p.x1, q.x1) - max(p.x0, q.x0), min(p.y1, q.y1) - max(p.y0, q.y0)
        if across > 2 and down > 4:
            found.append(f"{a} on {b}")
    whole = made.figure.bbox
    found += [f"{a} leaves the picture" for a, p in boxes if p.x0 < -1 or p.x1 > whole.x1 + 1 or p.y1 > whole.y1 + 1]
    return found


@every_kind
@every_question
def test_no_words_stand_on_words(kind: str, question: str) -> None:
    """Labels, ticks and titles all have a place of their own."""
    assert meetings(drawn(kind, question)) == []


def test_words_on_words_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where labels are put without looking, some meet."""
    monkeypatch.setattr(sheets, "_meet", lambda *_: False)
    assert meetings(drawn("roofline", "seed"))
    monkeypatch.setattr(sheets, "_GAP", 0.5)
    assert meetings(drawn("traffic", "three"))


@every_question
def test_lines_differ_without_colour(question: str) -> None:
    """Each line of bytes against N has its own style and marker."""
    lines = [x for x in drawn("traffic", question).axes.lines if len(x.get_xdata()) > 2]
    looks = [(x.get_linestyle(), x.get_marker(), x.get_color()) for x in lines]
    assert len(set(looks)) == len(looks)
    markers = [m for _, m, _ in looks if m != "None"]
    assert len(set(markers)) == len(markers) == len(QUESTIONS[question][2])


@every_question
def test_what_is_drawn_is_what_the_engine_counts(question: str) -> None:
    """The bytes of each line at a length are the account's there."""
    found = begun(question)
    lines = drawn("traffic", question).axes.lines
    numbers = {(float(x), float(y)) for line in lines for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}
    for account in found.answer.accounts:
        for length in (128, 4096, 65536):
            at = {**account.values, "N_q": length, "N_k": length}
            for moves in (account.compulsory, account.sm, account.dram):
                assert (float(length), float(value(moves.total.amount, at))) in numbers


def test_the_command_writes_one_file_and_keeps_another(tmp_path: Path) -> None:
    """Says what it stood in for; a file that exists is kept unless forced."""
    target = tmp_path / "a b'.svg"
    words = ("plot", "traffic", "mha", "d=64", "--on", "h100-sxm", "-o", str(target))
    first = derive(*words)
    assert (first.code, first.out) == (0, "")
    assert first.err == f"wrote {target}\nnot in the question, so drawn at N_k = 8192, N_q = 8192\n"
    before = target.read_bytes()
    again = derive(*words)
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "exists; add --force" in again.err
    assert derive(*words, "--force").code == 0
    assert target.read_bytes() == before
    assert [f.name for f in tmp_path.iterdir()] == [target.name]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("roofline", "mha", "-o", "x.jpg"), 2, "name a file that ends in .png, .svg or .pdf"),
        (("rooflin", "mha", "-o", "x.png"), 2, "'rooflin' is not one of"),
        (("roofline", "mha", "-o", "x.png"), 2, "a roofline needs a machine whose rates are known; name one with --on"),
        (("traffic", "mha", "mask=docs", "docs=8,8", "-o", "x.png"), 2, "has one length"),
        (("tiles", "mha", "--schedule", "naive", "-o", "x.png"), 2, "no schedule of naive has a row tile B_r"),
        (("traffic", "mha", "-o", "no/such/x.png"), 2, "cannot be written"),
        (("traffic", "mhaa", "-o", "x.png"), 2, "mha"),
        (("traffic", "mha"), 2, "Missing option '-o'"),
    ],
)
def test_bad_input_is_one_sentence(
    words: tuple[str, ...], code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    answer = derive("plot", *words)
    assert answer.code == code
    assert says in answer.err
    assert answer.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence that says what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    answer = derive("plot", "traffic", "mha", "-o", str(tmp_path / "x.png"))
    assert answer.code == 2
    assert re.fullmatch(r"error: plots are drawn with matplotlib.*pip install 'attn-derive\[plots\]'\n", answer.err)
    assert list(tmp_path.iterdir()) == []
