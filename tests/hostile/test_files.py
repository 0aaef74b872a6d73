"""What stands in a file's place: folders, devices, pipes, links, names that no system takes; and a file that is there stays."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hostile.junk import JUNK
from tests.hostile.test_profiles import QUESTION
from tests.hostile.world import MEMORY, examples, watched
from tests.outputs.command import DERIVE, Answer, derive

SECONDS = 60
"""Of a process, start-up on a busy machine with it."""
WRITERS = {
    ".tex": ("paper", "mha", "--schedule", "flash2", "-o"),
    ".py": ("code", "mha", "--schedule", "flash2", "-o"),
    ".csv": ("sweep", "mha", "N=64", "d=8", "--schedule", "flash2", "-o"),
}
TABLE = "Kernel Name,dram__bytes_read.sum\nflash,8388608\n"


def bounded(*words: str, stdin: bytes = b"") -> Answer:
    """``derive WORDS...`` in a process of at most ``MEMORY`` bytes of address space and ``SECONDS``."""
    limited = ("bash", "-c", f'ulimit -v {MEMORY // 1024}; exec "$@"', "-", *DERIVE)
    found = subprocess.run([*limited, *words], input=stdin, capture_output=True, timeout=SECONDS, check=False)
    return Answer(found.returncode, found.stdout.decode(), found.stderr.decode())


def sentence(found: Answer, says: str = "") -> None:
    """One line on stderr, exit code 2."""
    assert (found.code, found.out) == (2, ""), found
    assert found.err.startswith("error: ")
    assert found.err[:-1].isprintable()
    assert says in found.err


def tree(folder: Path) -> dict[str, bytes | str | None]:
    """Everything in *folder*: bytes of files, targets of links."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return found


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/proc/self/mem"])
def test_a_device_is_read_no_further_than_the_bound(device: str) -> None:
    """Without end, of noise, of this process itself: a sentence, in bounded time and memory."""
    sentence(bounded(*QUESTION, device))
    sentence(bounded("reload", device))


@pytest.mark.parametrize("device", ["/dev/null", "/etc/passwd/x", "/etc/passwd"])
def test_a_system_s_file_is_no_data(device: str) -> None:
    """Nothing, no file, and text of another kind, none of which is repeated."""
    for words in ((*QUESTION, device), ("reload", device)):
        found = derive(*words)
        sentence(found)
        assert "root:" not in found.err


def test_a_pipe_that_nobody_writes_to_is_empty(tmp_path: Path) -> None:
    """No command waits for a writer that never comes."""
    os.mkfifo(tmp_path / "pipe.csv")
    sentence(derive(*QUESTION, str(tmp_path / "pipe.csv")), "is empty")
    sentence(derive("reload", str(tmp_path / "pipe.csv")))


def test_a_pipe_that_somebody_writes_to_is_read() -> None:
    """``--data <(zcat ncu.csv.gz)`` and ``derive steps --json | derive reload -`` work."""
    read, write = os.pipe()
    writer = threading.Thread(target=lambda: (os.write(write, TABLE.encode()), os.close(write)))
    writer.start()
    found = derive(*QUESTION, f"/dev/fd/{read}")
    writer.join()
    os.close(read)
    assert found.code == 0, found.err
    record = derive("steps", "mha", "--schedule", "flash2", "--json").out
    assert bounded("reload", "-", stdin=record.encode()).out.startswith("flash2: ")


@pytest.mark.parametrize(
    "name", ["folder", "", "no/such", "plain/x", "A" * 300, "loop", "new\nline", "\x1b[31m", "\udcff"]
)
def test_what_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    """Folders, nothing, names too long, links in a circle, names that no terminal should see."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "plain").touch()
    (tmp_path / "loop").symlink_to("loop")
    before = tree(tmp_path)
    sentence(derive(*QUESTION, f"{tmp_path}/{name}"))
    sentence(derive("reload", f"{tmp_path}/{name}"))
    assert tree(tmp_path) == before


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize(
    "name", ["folder", "no/such", "plain/x", "A" * 300, "new\nline", "\udcff\x1b[31m", "", "/proc/x"]
)
def test_what_cannot_be_written_is_named(name: str, suffix: str, tmp_path: Path) -> None:
    """Nothing is left behind, whatever is in the way: a sentence, or the file that was named and no other."""
    (tmp_path / f"folder{suffix}").mkdir()
    (tmp_path / "plain").touch()
    before = tree(tmp_path)
    target = f"{tmp_path}/{name}{suffix}" if not name.startswith("/") else f"{name}{suffix}"
    found = derive(*WRITERS[suffix], target)
    if found.code == 0:  # a name with a line in it is odd, and is a name
        written = set(tree(tmp_path)) - set(before)
        assert written == {f"{name}{suffix}"}
        assert found.err[:-1].isprintable()
    else:
        sentence(found)
        assert tree(tmp_path) == before


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_file_that_is_there_stays(suffix: str, tmp_path: Path) -> None:
    """Without ``--force`` its bytes stay, and so does a link, even one that leads nowhere."""
    target, nowhere = tmp_path / f"it{suffix}", tmp_path / f"nowhere{suffix}"
    target.write_text("mine")
    nowhere.symlink_to(tmp_path / "gone")
    before = tree(tmp_path)
    for path in (target, nowhere):
        sentence(derive(*WRITERS[suffix], str(path)), "exists; add --force")
    assert tree(tmp_path) == before


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_link_is_replaced_and_not_followed(suffix: str, tmp_path: Path) -> None:
    """With ``--force`` the file that a link leads to keeps its bytes: it was not the one named."""
    (tmp_path / "secret").write_text("mine")
    link = tmp_path / f"it{suffix}"
    link.symlink_to(tmp_path / "secret")
    assert derive(*WRITERS[suffix], str(link), "--force").code == 0
    assert (tmp_path / "secret").read_text() == "mine"
    assert not link.is_symlink()


@pytest.mark.parametrize("suffix", WRITERS)
def test_files_beside_the_one_named_stay(suffix: str, tmp_path: Path) -> None:
    """Even one that is called as an unfinished file might be, or a link by that name to somewhere else."""
    secret, folder = tmp_path / "secret", tmp_path / "there"
    secret.write_text("mine")
    folder.mkdir()
    (folder / f"it{suffix}.part").symlink_to(secret)
    (folder / f".it{suffix}.part").symlink_to(secret)
    (folder / f"it{suffix}.tmp").write_text("mine")
    before = tree(tmp_path)
    assert derive(*WRITERS[suffix], str(folder / f"it{suffix}")).code == 0
    after = tree(tmp_path)
    assert {name: after[name] for name in before} == before
    assert {name for name in after if name not in before} >= {f"there/it{suffix}"}
    mode = (folder / f"it{suffix}").stat().st_mode & 0o777
    (folder / "plain").touch()
    assert mode == (folder / "plain").stat().st_mode & 0o777


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_folder_that_is_closed(tmp_path: Path) -> None:
    """Neither read nor written, and said."""
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0)
    try:
        sentence(derive(*QUESTION, str(closed / "x.csv")), "Permission denied")
        for suffix, words in WRITERS.items():
            sentence(derive(*words, str(closed / f"x{suffix}")), "Permission denied")
    finally:
        closed.chmod(0o700)


def test_a_full_disk_is_said() -> None:
    """``derive ... > /dev/full`` ends with a sentence."""
    with open("/dev/full", "wb") as full:
        for words in (("explain", "mha", "--schedule", "flash2", "--json"), ("machines", "h100-sxm")):
            found = subprocess.run([*DERIVE, *words], stdout=full, stderr=subprocess.PIPE, timeout=SECONDS, check=False)
            assert found.returncode == 2, found.stderr
            assert found.stderr.decode() == "error: the answer cannot be written: No space left on device\n"


@pytest.mark.parametrize("columns", ["\u00b2", "9" * 5000, "99999999999", "-1", "0", "1e9", "\u0661", "", "nan"])
def test_a_terminal_of_any_width(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``COLUMNS`` is input too."""
    from outputs.commands import terminal

    monkeypatch.setenv("COLUMNS", columns)
    assert 40 <= terminal._columns() <= 1000


def test_a_file_s_name_never_ends_a_comment(tmp_path: Path) -> None:
    """The command that a document repeats is one line of it, so a name cannot bring TeX or Python with it."""
    evil = "a\n\\immediate\\write18{touch canary}%.tex"
    for words in (
        ("explain", "mha", "--schedule", "flash2"),
        ("bound", "mha", "--schedule", "flash2"),
        ("laws", "mha", "--schedule", "naive"),
    ):
        path = tmp_path / evil
        found = derive(*words, "-o", str(path))
        if found.code == 0:
            lines = path.read_text(encoding="utf-8").splitlines()
            assert not [line for line in lines if line.startswith("\\immediate")]
            path.unlink()
    assert list(tmp_path.iterdir()) == []


def can_be_typed(name: str) -> bool:
    """Whether a command line can hold it: some halves of surrogate pairs are no bytes at all."""
    try:
        return bool(os.fsencode(name)) or not name
    except UnicodeEncodeError:
        return False


@settings(max_examples=examples(25))
@given(
    name=(st.sampled_from(JUNK) | st.text(max_size=8)).filter(can_be_typed),
    words=st.sampled_from(list(WRITERS.values())),
    suffix=st.sampled_from([*WRITERS, ""]),
)
def test_any_name_touches_that_file_alone(
    tmp_path_factory: pytest.TempPathFactory, name: str, words: tuple[str, ...], suffix: str
) -> None:
    """Whatever a file is called, at most files of that folder are opened to be written, and none is left half."""
    folder = tmp_path_factory.mktemp("any")
    if "/" in name or "\x00" in name:  # another folder; and no shell can hand on a NUL
        return
    with watched() as deeds:
        found = derive(*words, f"{folder}/{name}{suffix}")
    assert found.code in (0, 2)
    assert all(deed.split(" ", 1)[1].startswith(str(folder)) for deed in deeds)
    assert not [path for path in folder.rglob("*") if ".part" in path.name and ".part" not in name]


def test_the_watch_sees() -> None:
    """What must not happen is seen when it does."""
    import tempfile

    with watched() as deeds, tempfile.NamedTemporaryFile():
        subprocess.run(["true"], check=True)
    assert any(deed.startswith("open ") for deed in deeds)
    assert any(deed.startswith("subprocess.Popen") for deed in deeds)
    with pytest.raises(MemoryError), watched():
        bytearray(MEMORY + 2**30)
