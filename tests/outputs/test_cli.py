"""The command line as a program: what it prints where, with which exit code, and what it needs to start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from derive.attention import names as variant_names
from hardware import names as machine_names
from outputs.cli import VERSION
from rules.derivations import names as schedule_names
from tests.outputs.command import DERIVE, derive, derive_process

COMMANDS = ("explain", "steps", "check", "paper", "code", "bound", "tiles", "variants", "schedules", "machines")
QUESTION = ("explain", "mha", "N=8192", "d=128", "--on", "h100-sxm")


def test_help_names_every_command_and_needs_no_sympy() -> None:
    """Help answers before the engine is imported: neither SymPy nor NumPy is there when it is done."""
    code = (
        "import sys\nfrom outputs.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit as end: assert end.code == 0\n"
        "assert not {'sympy', 'numpy', 'networkx'} & set(sys.modules), 'heavy imports'"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert all(f"  {name}" in found.stdout for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    """Each command says what it does and how it is called."""
    answer = derive(command, "--help")
    assert answer.code == 0
    assert answer.out.startswith(f"Usage: derive {command}") or f" {command} " in answer.out.splitlines()[0]
    assert answer.err == ""


def test_the_help_of_a_question_says_how_symbols_are_set() -> None:
    """KEY=VALUE is explained where it is used, masks and the open value included."""
    out = derive("explain", "--help").out
    for word in ("N (both lengths)", "Nq, Nk", "8192, 8K or 8Ki", "mask=full | causal", "L2=50MiB", "KEY=?"):
        assert word in out


def test_the_version_is_the_distribution_s() -> None:
    """``--version`` and the project's metadata agree."""
    answer = derive("--version")
    assert (answer.code, answer.out) == (0, f"derive, version {VERSION}\n")
    assert f'\nversion = "{VERSION}"\n' in (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("command", "names"),
    [("variants", variant_names()), ("schedules", schedule_names()), ("machines", machine_names())],
)
def test_a_list_holds_every_name_once(command: str, names: tuple[str, ...]) -> None:
    """The list and its JSON hold what the registry holds, in its order, each with a sentence."""
    answer, as_json = derive(command), derive(command, "--json")
    assert answer.code == as_json.code == 0
    assert [line.split()[0] for line in answer.out.splitlines()] == list(names)
    assert [row["name"] for row in as_json.json] == list(names)
    assert all(row["says"] for row in as_json.json)


def test_a_machine_is_listed_with_the_source_of_every_constant() -> None:
    """No constant is shown without unit, kind, source and date."""
    rows = derive("machines", "h100-sxm", "--json").json
    by_name = {row["constant"]: row for row in rows}
    assert by_name["dram_bandwidth"]["value"] == "3.35 TB/s"
    assert by_name["dram_bandwidth"]["kind"] == "datasheet peak"
    for row in rows:
        assert row["kind"], row
        assert row["source"], row
        assert row["date"].startswith("20"), row
    text = derive("machines", "h100-sxm")
    assert text.code == 0
    assert all(row["constant"] in text.out for row in rows)


def test_json_is_all_there_is_on_stdout() -> None:
    """A script can pipe stdout into a JSON parser; stderr stays empty."""
    answer = derive_process(*QUESTION, "--json")
    assert (answer.code, answer.err) == (0, "")
    assert json.loads(answer.out)["variant"] == "mha"


def test_the_same_question_gets_the_same_bytes() -> None:
    """Nothing depends on the order of a hash table or on the time of day."""
    first = derive_process(*QUESTION, "--json", PYTHONHASHSEED="1")
    second = derive_process(*QUESTION, "--json", PYTHONHASHSEED="2")
    assert first.out == second.out
    assert derive_process(*QUESTION, PYTHONHASHSEED="1").out == derive_process(*QUESTION, PYTHONHASHSEED="2").out


def test_a_pipe_gets_no_escape_sequences() -> None:
    """Colour is for terminals: what goes to a file is plain text."""
    answer = derive_process(*QUESTION, TERM="xterm-256color")
    assert answer.code == 0
    assert "\x1b" not in answer.out
    assert "\x1b" not in answer.err


def _on_a_terminal(**environment: str) -> str:
    """What the question prints to a terminal of 120 columns."""
    import pty

    master, slave = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    env |= {"TERM": "xterm-256color", "COLUMNS": "120", **environment}
    with subprocess.Popen([*DERIVE, *QUESTION], stdin=slave, stdout=slave, stderr=slave, env=env) as process:
        os.close(slave)
        chunks = []
        while True:
            try:
                chunk = os.read(master, 65536)
            except OSError:  # Linux answers EIO once the other end is closed
                break
            if not chunk:
                break
            chunks.append(chunk)
        assert process.wait() == 0
    os.close(master)
    return b"".join(chunks).decode()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_gets_emphasis_unless_no_color_is_set() -> None:
    """On a terminal headings stand out; with NO_COLOR there is no colour, and with TERM=dumb no escape sequence at all."""
    assert "\x1b[1m" in _on_a_terminal()
    quiet = _on_a_terminal(NO_COLOR="1")
    assert not [code for code in ("\x1b[3", "\x1b[4", "\x1b[9") if code in quiet]
    assert "\x1b" not in _on_a_terminal(TERM="dumb")


def test_an_ascii_stdout_is_no_reason_to_fail() -> None:
    """A stream that takes ASCII alone still gets the whole answer."""
    answer = derive_process(*QUESTION, PYTHONIOENCODING="ascii", LC_ALL="C")
    assert (answer.code, answer.err) == (0, "")
    assert "272,629,760 B" in answer.out


def test_a_reader_that_leaves_early_is_no_error() -> None:
    """``derive explain ... | head -1`` ends quietly."""
    with subprocess.Popen([*DERIVE, *QUESTION, "--steps"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


def test_a_document_is_written_whole_and_named_on_stderr(tmp_path: Path) -> None:
    """``-o`` writes the file, says so on stderr and leaves no partial file; a file that exists is kept unless --force."""
    target = tmp_path / "flash2.tex"
    target.write_text("old", encoding="utf-8")
    question = ("explain", "mha", "N=8192", "d=128", "--schedule", "flash2", "-o", str(target))
    kept = derive(*question)
    assert (kept.code, target.read_text(encoding="utf-8")) == (2, "old")
    assert "add --force to replace it" in kept.err
    answer = derive(*question, "--force")
    assert (answer.code, answer.out) == (0, "")
    assert answer.err == f"wrote {target}\n"
    assert "\\" in target.read_text(encoding="utf-8")
    assert os.listdir(tmp_path) == ["flash2.tex"]


def test_steps_are_those_of_the_derivation_in_order() -> None:
    """``derive steps`` and the JSON tell one story."""
    steps = derive("explain", "mha", "--schedule", "flash2", "--json").json["schedules"]["flash2"]["steps"]
    text = derive("steps", "mha", "--schedule", "flash2").out
    places = [text.find(f"{number}  {step['rule']}") for number, step in enumerate(steps, start=1)]
    assert all(place >= 0 for place in places)
    assert places == sorted(places)
    assert [step["rule"] for step in steps[:4]] == ["split-softmax", "defer-division", "online-softmax", "fuse-pairs"]


def test_a_schedule_named_twice_is_answered_once() -> None:
    """``--schedule flash2,flash2`` is one column, and spaces around a comma do not matter."""
    assert list(derive("explain", "mha", "--schedule", "flash2, flash2 ,naive", "--json").json["schedules"]) == [
        "flash2",
        "naive",
    ]


@pytest.mark.parametrize(("written", "means"), [("8192", 8192), ("8K", 8192), ("8Ki", 8192), ("1M", 2**20), ("007", 7)])
def test_a_length_may_be_written_with_a_binary_multiple(written: str, means: int) -> None:
    """8192, 8K and 8Ki are one length."""
    parameters = derive("explain", "mha", f"N={written}", "d=64", "--json").json["parameters"]
    assert parameters["N_q"] == parameters["N_k"] == means


def test_a_symbol_with_a_default_can_be_left_open() -> None:
    """``h=?`` keeps h in the closed forms; otherwise it is 1 and gone."""

    def compulsory(*words: str) -> str:
        found: str = derive("explain", "mha", *words, "--json").json["schedules"]["flash2"]["bytes"]["compulsory"][
            "symbolic"
        ]
        return found

    assert "h" not in compulsory()
    assert "h" in compulsory("h=?")


def test_numbers_without_loss_at_ten_to_the_eighteen() -> None:
    """Sizes far beyond 64 bits are answered exactly, with what plain integers give."""
    n, d, tile, ctas = 10**18, 128, 128, 132
    blocks = -(-n // tile)
    found = derive("explain", "mha", f"N={n}", f"d={d}", "--on", "h100-sxm", "--json").json["schedules"]
    flash, naive = found["flash2"], found["naive"]
    assert flash["flops"]["matmul"]["value"] == 4 * n * n * d
    assert flash["flops"]["executed"]["value"] == 4 * tile * tile * d * blocks * blocks
    assert flash["flops"]["exp"]["value"] == n * n
    assert flash["bytes"]["compulsory"]["value"] == 4 * n * d * 2
    assert flash["bytes"]["sm"]["value"] == 2 * (2 * n * d + 2 * n * d * blocks)
    assert flash["bytes"]["dram"]["value"] == 2 * (2 * n * d + 2 * n * d * -(-blocks // ctas))
    assert naive["bytes"]["sm"]["value"] == 2 * (4 * n * n + 4 * n * d)
    assert naive["bytes"]["dram"]["value"] == 2 * (4 * n * n + 4 * n * d)
    causal = derive("explain", "mha", f"N={n}", f"d={d}", "mask=causal", "--schedule", "flash2", "--json").json
    assert causal["schedules"]["flash2"]["flops"]["matmul"]["value"] == 4 * d * (n * (n + 1) // 2)
    assert derive("explain", "mha", f"N={n}", f"d={d}", "--on", "h100-sxm").code == 0


def test_a_check_that_finds_nothing_wrong_ends_well() -> None:
    """Ten configurations, no mismatch, exit code 0, and an object that its schema accepts."""
    answer = derive("check", "mha", "--schedule", "flash2", "--samples", "10", "--seed", "3", "--json")
    assert (answer.code, answer.err) == (0, "")
    found = answer.json
    schema = json.loads((files("outputs") / "schema" / "check.json").read_text(encoding="utf-8"))
    jsonschema.validate(found, schema, jsonschema.Draft202012Validator)
    assert (found["variant"], found["schedules"], found["samples"], found["seed"]) == ("mha", ["flash2"], 10, 3)
    assert found["mismatches"] == 0
    assert sum(found["checked"].values()) >= 10


def test_a_check_that_finds_a_mismatch_ends_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1 tells a script that a closed form and its witness differ; stdout still holds the object."""
    found = types.SimpleNamespace(mismatches=1, as_json=lambda: {"mismatches": 1})
    stand_in = types.ModuleType("outputs.checking")
    stand_in.__dict__.update(check_schedules=lambda *_, **__: found, report=lambda _: [])
    monkeypatch.setitem(sys.modules, "outputs.checking", stand_in)
    monkeypatch.setattr("outputs.checking", stand_in, raising=False)
    answer = derive("check", "mha", "--samples", "5", "--json")
    assert (answer.code, answer.json) == (1, {"mismatches": 1})


def test_the_schema_of_a_check_is_valid_and_alive() -> None:
    """It is a JSON Schema, takes both outcomes, and refuses an unknown key and a mismatch without a failure."""
    schema = json.loads((files("outputs") / "schema" / "check.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    good = {
        "variant": "mha",
        "schedules": ["flash2"],
        "samples": 5,
        "mismatches": 0,
        "seed": 0,
        "checked": {"traffic": 5},
        "failure": None,
    }
    assert validator.is_valid(good)
    assert validator.is_valid(good | {"mismatches": 1, "failure": {"schedule": "flash2"}})
    assert not validator.is_valid(good | {"extra": 1})
    assert not validator.is_valid(good | {"mismatches": 1})
    assert not validator.is_valid({k: v for k, v in good.items() if k != "seed"})


def test_a_backward_pass_has_schedules_of_its_own() -> None:
    """None named: P saved beside P made again, each with the bytes that it must read; no decode step."""
    found = derive("explain", "mha-backward", "N=256", "d=64", "mask=causal", "--on", "h100-sxm")
    assert (found.code, found.err) == (0, "")
    assert "backward, causal, bottom-right" in found.out
    assert "4 N d (1 + N)" in found.out  # four products of half the pairs
    assert "5 N d (1 + N)" in found.out
    assert found.out.count("naive-backward") > 3
    assert "in decode" not in found.out
    checked = derive("check", "gqa-backward", "--samples", "10")
    assert (checked.code, checked.err) == (0, "")
    assert "naive-backward, flash2-backward: 10 configurations" in checked.out


def test_a_schedule_of_the_other_direction_is_refused() -> None:
    """One sentence that says where to look."""
    for words in (("mha", "flash2-backward"), ("mha-backward", "flash2")):
        found = derive("explain", words[0], "--schedule", words[1])
        assert found.code == 2
        assert found.err.count("\n") == 1
        assert "`derive schedules` lists both" in found.err
