"""A folder that a person works in with the command line: any order of commands leaves in it what they were told to, whole.

After each step every file is either as it was or a whole new one, nothing else stands in the folder, and a question that was
asked before has the same answer, byte for byte.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from click.testing import CliRunner
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from outputs.cli import main
from tests.hostile.test_files import tree
from tests.hostile.world import examples

QUESTIONS = st.sampled_from([
    ("mha", "--schedule", "flash2"),
    ("mha", "N=256", "d=16", "--schedule", "naive"),
    ("gqa", "h=4", "hk=2", "N=100", "d=8", "--schedule", "flash2"),
    ("decode", "Nk=320", "d=8", "h=4", "hk=2", "splits=4", "--schedule", "split-kv"),
])  # fmt: skip
WRITERS = {".tex": ("paper",), ".py": ("code",), ".svg": ("plot", "traffic"), ".html": ("report",)}


class Session(RuleBasedStateMachine):
    """One folder, and what must be in it."""

    records = Bundle("records")
    tables = Bundle("tables")

    @initialize()
    def begin(self) -> None:
        """An empty folder."""
        self.folder = Path(tempfile.mkdtemp(prefix="session"))
        self.expected: dict[str, bytes | str | None] = {}
        self.answers: dict[tuple[str, ...], bytes] = {}
        self.runner = CliRunner()

    def teardown(self) -> None:
        """The folder goes."""
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def run(self, *words: str) -> tuple[int, str, str]:
        """``derive WORDS...``."""
        found = self.runner.invoke(main, list(words))
        assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
        return found.exit_code, found.stdout, found.stderr

    def same(self, key: tuple[str, ...], content: bytes) -> None:
        """The answer that *key* had before, if it was asked."""
        assert self.answers.setdefault(key, content) == content

    @rule(target=records, question=QUESTIONS, name=st.sampled_from(["a.json", "b.json"]))
    def record(self, question: tuple[str, ...], name: str) -> str:
        """``derive steps --json > FILE``."""
        code, out, _ = self.run("steps", *question, "--json")
        assert code == 0
        self.same(("steps", *question), out.encode())
        (self.folder / name).write_text(out)
        self.expected[name] = out.encode()
        return name

    @rule(name=records)
    def reload(self, name: str) -> None:
        """A record reads back, as often as one likes."""
        code, out, err = self.run("reload", str(self.folder / name))
        steps = json.loads(str((self.folder / name).read_text()))["derivations"][0]["steps"]
        assert (code, err) == (0, "")
        assert f": {len(steps)} steps hold" in out

    @rule(name=records, cut=st.integers(2, 200))
    def reload_a_part(self, name: str, cut: int) -> None:
        """A record whose end is missing, more of it than the new line, is refused, and stays as it is."""
        half = self.folder / "half.json"
        half.write_bytes((self.folder / name).read_bytes()[:-cut])
        code, out, err = self.run("reload", str(half))
        half.unlink()
        assert (code, out) == (2, "")
        assert err.startswith("error: ")

    @rule(
        question=QUESTIONS,
        suffix=st.sampled_from(list(WRITERS)),
        stem=st.sampled_from(["one", "two"]),
        force=st.booleans(),
    )
    def write(self, question: tuple[str, ...], suffix: str, stem: str, force: bool) -> None:
        """``paper``, ``code``, ``plot`` and ``report``: a file that is there stays unless ``--force`` is given."""
        name = f"{stem}{suffix}"
        names = [name, f"{stem}-standalone.tex", f"{stem}.bib"] if suffix == ".tex" else [name]
        there = [n for n in names if n in self.expected]
        before = tree(self.folder)
        command = WRITERS[suffix]
        code, out, err = self.run(*command, *question, "-o", str(self.folder / name), *(["--force"] if force else []))
        after = tree(self.folder)
        assert out == ""
        if there and not force:
            assert (code, "exists; add --force" in err) == (2, True)
            assert after == before
            return
        assert code == 0, err
        for n in names:
            content = after[n]
            assert isinstance(content, bytes)
            self.same((*command, *question, n), content)
            self.expected[n] = content

    @rule(question=QUESTIONS, suffix=st.sampled_from(list(WRITERS)))
    def write_nowhere(self, question: tuple[str, ...], suffix: str) -> None:
        """A folder that is not there is not made."""
        code, out, err = self.run(*WRITERS[suffix], *question, "-o", str(self.folder / "no" / f"it{suffix}"), "--force")
        assert (code, out, "cannot be written" in err) == (2, "", True)

    @rule(target=tables, lengths=st.sampled_from(["64", "64,128", "32:128:2x"]), force=st.booleans())
    def sweep(self, lengths: str, force: bool) -> str:
        """``derive sweep`` to a table."""
        words = ("mha", f"N={lengths}", "d=16", "--schedule", "flash2", "--on", "h100-sxm")
        there = "table.csv" in self.expected
        code, out, err = self.run(
            "sweep", *words, "-o", str(self.folder / "table.csv"), *(["--force"] if force else [])
        )
        assert out == ""
        if there and not force:
            assert (code, "exists; add --force" in err) == (2, True)
        else:
            assert code == 0, err
            content = (self.folder / "table.csv").read_bytes()
            self.same(("sweep", *words), content)
            self.expected["table.csv"] = content
        return "table.csv"

    @rule(name=tables, times=st.sampled_from([1, 2]))
    def confront(self, name: str, times: int) -> None:
        """The last row of a table, confronted as a profiler writes it: its own count leaves no residual, twice it does."""
        heads, *rows = (line.split(",") for line in (self.folder / name).read_text().splitlines())
        row = dict(zip(heads, rows[-1], strict=True))
        counted = int(row["dram_bytes"])
        profile = self.folder / "ncu.csv"
        profile.write_text(f"Kernel Name,dram__bytes.sum\nflash,{counted * times}\n")
        question = ("mha", f"N={row['N_q']}", f"d={row['d']}", "--schedule", "flash2", "--on", "h100-sxm")
        code, out, err = self.run("confront", *question, "--data", str(profile), "--json")
        profile.unlink()
        assert (code, err) == (0, "")
        residual = json.loads(out)["schedules"]["flash2"]["counters"]["dram"]["residual"]
        assert residual == counted * (times - 1)
        self.same(("confront", *question, str(times)), out.encode())

    @invariant()
    def nothing_else_is_there(self) -> None:
        """The folder holds what was written to it, whole, and nothing besides."""
        if hasattr(self, "folder"):
            assert tree(self.folder) == self.expected


# eight steps need no shrinking, which runs hundreds of sessions
Session.TestCase.settings = settings(
    max_examples=examples(4), stateful_step_count=8, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
TestSession = Session.TestCase
