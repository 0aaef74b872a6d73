# ruff: noqa: E501  (tables)
"""Machine files: any TOML, and what is none, gives a machine or one sentence."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.errors import MachineDataError
from hardware.machine import LONGEST_LINE, MOST_BYTES, load_file
from tests.hostile.junk import JUNK, junk, with_junk
from tests.hostile.world import examples, harmless

HEAD = 'id = "toy"\nname = "Toy"\nvendor = "Nobody"\n'
GOOD = {
    "value": "3.35",
    "unit": '"TB/s"',
    "kind": '"datasheet peak"',
    "source": '"its data sheet"',
    "date": "2026-11-28",
}
SECONDS = 10
VALUES = (
    "inf", "-inf", "nan", "+nan", "1e999999999", "1e-999999999", "1e99999999999999999999", "-0.0", "0", "-1", "9" * 1000,
    "0x" + "f" * 1000, "0b1", "0o7", "1_000", "true", "false", '"3.35"', "'''a'''", "[]", "{}", "[1, 2]", "{a = 1}", "[[1]]",
    "2026-11-28", "2026-11-28T00:00:00", "12:00:00", "9999-99-99", "[" * 400 + "]" * 400, "{a=" * 300 + "1" + "}" * 300, '"\\u0000"',
    '"\\ud800"', '"' + "A" * 1500 + '"', "3.35" + "0" * 1000, "", "\x00", "é", '"\x1b[31m"', '"\\u001b[31m"',
)  # fmt: skip
FILES = {
    "nothing": "",
    "a byte order mark": "\ufeff" + HEAD,
    "a dotted key of many parts": HEAD + ".".join("a" * 900) + " = 1",
    "tables of many parts": HEAD + "\n".join(f"[{'.'.join(['a'] * 900)}.b{n}]" for n in range(100)),
    "dotted keys of many parts": HEAD + "\n".join(f"{'.'.join(['a'] * 900)}.b{n} = 1" for n in range(100)),
    "one long line": HEAD + "a = " + "9" * 10_000,
    "too many bytes": HEAD + "# comment\n" * 40_000,
    "many tables": HEAD + "\n".join(f"[a{n}]" for n in range(20_000)),
    "many lists": HEAD + "a = [\n" + "[\n" * 20_000,
    "many inline tables": HEAD + "a = [\n" + "{a = [\n" * 20_000,
    "a name of ten thousand": HEAD + f'["{"A" * 1900}"]\nvalue = 1',
    "a name that moves the cursor": HEAD + '["\\u001b[31m"]\nvalue = 1',
    "a list in the head": 'id = ["toy"]\nname = "Toy"\nvendor = "Nobody"\n',
    "aliases of aliases": HEAD + "aliases = [[]]",
    "a stray number": HEAD + "dram_bandwidth = " + "9" * 1900,
    "absent of a number": HEAD + "[peak_fp8]\nabsent = " + "9" * 1900,
    "a reading without end": HEAD + "[dram_bandwidth]\nabsent = true\nreason = 'x'\ndate = 2026-11-28\n"
    "readings = [{value = 1e999999999, unit = 'TB/s', source = 'x'}]",
    "a reading that is deep": HEAD + "[x]\nabsent = true\nreason = 'x'\ndate = 2026-11-28\nreadings = [" + "{a=" * 200 + "1" + "}" * 200 + "]",
}  # fmt: skip


def refused(path: Path) -> None:
    """Loading *path* ends soon, and with a machine or a sentence."""
    begun = time.monotonic()
    harmless(lambda: load_file(path), (MachineDataError,))
    assert time.monotonic() - begun < SECONDS


def table(**fields: str) -> str:
    """One constant, its fields written as they stand."""
    return HEAD + "[dram_bandwidth]\n" + "\n".join(f"{key} = {text}" for key, text in fields.items()) + "\n"


def test_the_table_is_good() -> None:
    """What is spoilt below is a machine before."""
    assert len(VALUES) > 30
    assert table(**GOOD).count("=") == 8


@pytest.mark.parametrize("field", [*GOOD, "sparsity", "note", "readings", "absent", "unheard_of"])
def test_any_value_in_any_field(field: str, tmp_path: Path) -> None:
    """Infinite, enormous, deep, of another kind, with control characters."""
    path = tmp_path / "toy.toml"
    for text in VALUES:
        path.write_text(table(**{**GOOD, field: text}), encoding="utf-8", errors="surrogatepass")
        refused(path)


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_files_that_would_take_for_ever(text: str, tmp_path: Path) -> None:
    """Size, depth and dotted keys are bounded."""
    path = tmp_path / "toy.toml"
    path.write_text(text, encoding="utf-8")
    refused(path)
    assert [p.name for p in tmp_path.iterdir()] == ["toy.toml"]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """UTF-16, NUL, and half a character."""
    path = tmp_path / "toy.toml"
    for raw in (HEAD.encode("utf-16"), b"\x00" * 100, b"\xff\xfe", HEAD.encode() + b"\xed\xa0\x80", b"\x80"):
        path.write_bytes(raw)
        refused(path)


def test_the_bounds_leave_room() -> None:
    """The machines that are there have at most a quarter of what is read."""
    from hardware.machine import DATA

    for path in DATA.glob("*.toml"):
        text = path.read_text(encoding="utf-8")
        assert 4 * len(text) < MOST_BYTES
        assert 4 * max(map(len, text.splitlines())) < LONGEST_LINE


_FIELDS = st.dictionaries(
    with_junk(st.sampled_from([*GOOD, "sparsity", "note", "readings", "absent", "reason"])),
    st.one_of(st.sampled_from([*GOOD.values(), *VALUES]), junk),
    max_size=6,
)


@settings(max_examples=examples(100))
@given(
    head=with_junk(st.just(HEAD)),
    name=with_junk(st.sampled_from(["dram_bandwidth", "peak_bf16", "sm_count"])),
    fields=_FIELDS,
)
def test_any_table_is_a_machine_or_refused(
    tmp_path_factory: pytest.TempPathFactory, head: str, name: str, fields: dict[str, str]
) -> None:
    """Real fields and values, and junk for each."""
    path = tmp_path_factory.getbasetemp() / "toy.toml"
    text = f"{head}\n[{name}]\n" + "\n".join(f"{key} = {value}" for key, value in fields.items())
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    refused(path)


@settings(max_examples=examples(50))
@given(st.binary(max_size=200))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    """Bytes alone."""
    path = tmp_path_factory.getbasetemp() / "toy.toml"
    path.write_bytes(raw)
    refused(path)


def test_junk_as_a_table_s_name(tmp_path: Path) -> None:
    """Each junk word, quoted as TOML wants it."""
    path = tmp_path / "toy.toml"
    for word in JUNK:
        escaped = "".join(f"\\U{ord(c):08x}" for c in word[:100])
        path.write_text(f'{HEAD}["{escaped}"]\nvalue = 1\nunit = "{escaped}"\n', encoding="utf-8")
        refused(path)
