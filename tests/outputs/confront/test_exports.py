"""Exports as profilers write them, languages and all: every one is read as what it says, or refused with the reason.

Heads are those of the command lines of Nsight Compute and Nsight Systems, of rocprof's file plugin (both versions), and of
rocprofv3.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from derive.errors import BadValueError
from outputs.confront.profile_csv import Profile, read_profile
from outputs.testing import read_table
from outputs.testing.numerals import decimal_mark, number
from tests.outputs.command import derive

KERNEL = "void flash::flash_fwd_kernel<Traits<128, 128, 64, 4, cutlass::bfloat16_t>, false, true>(Flash_fwd_params)"
_HEADS = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device",
    "CC",
)  # fmt: skip
_LAUNCH = ("0", "4711", "python3", "127.0.0.1", KERNEL, "1", "7", "(128, 1, 1)", "(64, 1, 1)", "0", "9.0")
COUNTERS = (
    "dram__bytes_read.sum", "dram__bytes_write.sum", "gpu__time_duration.sum", "lts__t_sectors_op_read.sum",
    "lts__t_sector_hit_rate.pct",
)  # fmt: skip
UNITS = ("Mbyte", "Kbyte", "us", "sector", "%")
ENGLISH = ("6.31", "1,104.90", "55.17", "8,454,144", "97.7")
GERMAN = ("6,31", "1.104,90", "55,17", "8.454.144", "97,7")
FRENCH = ("6,31", "1\u202f104,90", "55,17", "8\u202f454\u202f144", "97,7")
SWISS = ("6.31", "1'104.90", "55.17", "8\u2019454\u2019144", "97.7")
BEFORE = '==PROF== Connected to process 4711\nepoch 1, loss 0.25, "fine\nNames follow\n==PROF== Disconnected\n\n'
READ = {
    "dram read": 6_310_000,
    "dram write": 1_104_900,
    "l2 read": 8_454_144 * 32,
    "hit rate": 0.977,
    "seconds": 55.17e-6,
}


def quoted(cells: tuple[str, ...] | list[str], mark: str = ",") -> str:
    """A line of a CSV file as ncu writes it, every cell in quotes."""
    return mark.join(f'"{cell}"' for cell in cells) + "\n"


def raw(*launches: tuple[str, ...], mark: str = ",") -> str:
    """Nsight Compute's raw page: heads, units, a row for each launch."""
    heads = quoted([*_HEADS, *COUNTERS], mark) + quoted([*("" for _ in _HEADS), *UNITS], mark)
    return heads + "".join(quoted([*_LAUNCH, *launch], mark) for launch in launches)


def details(*rows: tuple[str, str, str]) -> str:
    """Nsight Compute's details page: a row for each metric, and one for a rule, which has none."""
    tail = ("Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name", "Rule Type", "Rule Description")
    text = quoted([*_HEADS, *tail])
    text += quoted(
        [*_LAUNCH, "SpeedOfLight", "", "", "", "SOLBottleneck", "WRN", "The grid is too small, it fills half"]
    )
    return text + "".join(quoted([*_LAUNCH, "Some section", *row, "", "", ""]) for row in rows)


def profile_of(text: str, path: Path, kernel: str = "", encoding: str = "utf-8") -> Profile:
    """What a file of *text* measured."""
    target = path / "export.csv"
    target.write_bytes(text.encode(encoding))
    return read_profile(target, kernel)


def refusal(text: str, path: Path, kernel: str = "") -> str:
    """Why a file of *text* is refused."""
    with pytest.raises(BadValueError, match=r"export\.csv") as caught:
        profile_of(text, path, kernel)
    return str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        raw(ENGLISH), raw(GERMAN), raw(FRENCH), raw(SWISS), raw(GERMAN, mark=";"), raw(ENGLISH, mark="\t"),
        "\ufeff" + raw(ENGLISH).replace("\n", "\r\n"),
        f"{BEFORE}{raw(ENGLISH)}",
        raw(ENGLISH) + raw(ENGLISH),
        details(
            ("dram__bytes_read.sum", "Mbyte", "6.31"), ("dram__bytes_write.sum", "Kbyte", "1,104.90"),
            ("Duration", "us", "55.17"), ("lts__t_sectors_op_read.sum", "sector", "8,454,144"), ("L2 Hit Rate", "%", "97.7"),
            ("Elapsed Cycles", "cycle", "86,120"), ("Function Cache Configuration", "", "CachePreferNone"),
        ),
    ],
    ids=["English", "German", "French", "Swiss", "semicolons", "tabs", "BOM and CRLF", "output before", "twice", "details"],
)  # fmt: skip
def test_a_language_and_a_page_change_nothing(text: str, tmp_path: Path) -> None:
    """The same numbers in every one; the kernel's name keeps its commas."""
    found = profile_of(text, tmp_path)
    assert found.names == (KERNEL,)
    assert {name: float(n) for name, n in found.counters.items()} == pytest.approx(READ)


@pytest.mark.parametrize(
    ("cells", "mark"),
    [
        (["1,000"], "."), (["1.000"], "."), (["1,000", "0,125"], ","), (["1.000", "0.125"], "."), (["1.000", "12,5"], ","),
        (["1.234.567"], ","), (["1,234,567"], "."), (["1.234,5"], ","), (["1,234.5"], "."), (["12.3456"], "."), (["7"], "."),
        ([",5"], ","), (["9" * 70 + ",5"], "."), (["Mbyte", "n/a", ""], "."), (["-3,25"], ","),
    ],
)  # fmt: skip
def test_the_decimal_mark_is_told_by_the_cells_that_tell(cells: list[str], mark: str) -> None:
    """Three digits behind a separator tell nothing, unless a zero stands alone before them."""
    assert decimal_mark(cells, "it") == mark


@pytest.mark.parametrize(
    ("text", "mark", "value"),
    [
        ("1.234,5", ",", 1234.5), ("1,234.5", ".", 1234.5), ("1 234,5", ",", 1234.5), ("1\u00a0234", ".", 1234),
        ("1'234'567", ".", 1234567), ("1.5e3", ".", 1500), ("1,5e3", ",", 1500), ("+2", ".", 2), (".5", ".", 0.5),
    ],
)  # fmt: skip
def test_a_number_is_read_in_its_language(text: str, mark: str, value: float) -> None:
    """Exactly."""
    assert number(text, "a cell", mark) == value


@pytest.mark.parametrize(
    "text",
    [
        "1.5",
        "1,5,0",
        "1 2",
        "12 34",
        "1.23.456",
        ",",
        ".",
        "",
        "1e",
        "1 234 56",
        "0x10",
        "\u00b2",
        "\uff11",
        "\u0663",
        "9" * 61,
    ],
)
def test_what_is_no_number_in_its_language_is_refused(text: str) -> None:
    """Of a file with decimal commas."""
    with pytest.raises(BadValueError, match="no number"):
        number(text, "a cell", ",")


def test_two_languages_in_one_file_are_refused(tmp_path: Path) -> None:
    """Both cells are shown."""
    says = refusal(raw(ENGLISH, GERMAN), tmp_path)
    assert "has 6.31 and 6,31: is a comma the decimal sign or between thousands?" in says


def test_a_table_of_ones_own_may_have_decimal_commas(tmp_path: Path) -> None:
    """Semicolons between cells, as spreadsheets write them then."""
    path = tmp_path / "own.csv"
    path.write_text("N;us\n64;1,5\n128;1.250,25\n", encoding="utf-8")
    assert [row["us"] for row in read_table(path)] == [1.5, 1250.25]


def test_a_counter_that_was_not_to_be_had_is_left_out(tmp_path: Path) -> None:
    """n/a or an empty cell: the others are read; of all rows, it is refused with what is there."""
    assert set(profile_of(raw(("n/a", "", *ENGLISH[2:])), tmp_path).counters) == set(READ) - {"dram read", "dram write"}
    assert "dram__bytes_read.sum is n/a in every row" in refusal(raw(("n/a", "", "n/a", "N/A", "-")), tmp_path)
    assert "is nan: a measurement is a finite number" in refusal(raw(("nan", *ENGLISH[1:])), tmp_path)


def test_another_kernels_cells_are_no_business_of_a_chosen_one(tmp_path: Path) -> None:
    """A share of nothing is nan in a kernel that is not asked about."""
    heads = "Kernel Name,dram__bytes_read.sum,lts__t_sector_hit_rate.pct\n"
    text = f"{heads}attend,7,90\nfill,3,nan\n"
    assert profile_of(text, tmp_path, "attend").counters["dram read"] == 7
    assert "nan" in refusal(text, tmp_path)


def test_two_columns_of_one_counter_are_one_launch(tmp_path: Path) -> None:
    """Sectors and bytes, or a counter's two names: the first of the list is read, and nothing is averaged with itself."""
    found = profile_of("Kernel_Name,FetchSize,FETCH_SIZE\nattend,9,8\n", tmp_path)
    assert (found.launches, found.counters["dram read"]) == (1, 8192)
    sectors = profile_of("Kernel Name,dram__sectors_read.sum,lts__t_bytes.sum\nattend,9,70\n", tmp_path)
    assert (sectors.counters["dram read"], sectors.counters["l2"]) == (9 * 32, 70)


def test_launches_that_agree_are_no_constant_file(tmp_path: Path) -> None:
    """One kernel twice with the same bytes is a good measurement; zeros, and two kernels alike in all, are none."""
    assert profile_of("Kernel Name,dram__bytes_read.sum\nf,7\nf,7\n", tmp_path).launches == 2
    assert "every counter is 0" in refusal("Kernel Name,dram__bytes_read.sum\nf,0\nf,0\n", tmp_path)
    assert "every counter is 7" in refusal("Kernel Name,dram__bytes_read.sum,dram__bytes_write.sum\nf,7,7\n", tmp_path)


def test_launches_that_differ_are_told(tmp_path: Path) -> None:
    """Their mean is compared, and the answer says between what they lie; within a tenth they are averaged in silence."""
    path = tmp_path / "export.csv"
    path.write_text("Kernel Name,dram__bytes_read.sum\nattend,6291456\nattend,99614720\n", encoding="utf-8")
    answer = derive("confront", "mha", "--data", str(path), "--schedule", "flash2", "N=8192", "d=128")
    assert "launches of attend differ in dram read, from 6 MiB to 95 MiB: their mean is compared" in answer.out
    asked = ("confront", "mha", "--data", str(path), "--schedule", "flash2", "N=8192", "d=128", "--json")
    assert "differ in dram read" in derive(*asked).json["schedules"]["flash2"]["warning"]
    assert profile_of("Kernel Name,dram__bytes_read.sum\nf,100\nf,109\n", tmp_path).spread == ()


def test_what_was_not_measured_is_asked_for(tmp_path: Path) -> None:
    """Times alone fit no reading, and are not said to lie beside all of them."""
    path = tmp_path / "export.csv"
    path.write_text("Kernel Name,gpu__time_duration.sum\nattend,55170\n", encoding="utf-8")
    answer = derive("confront", "mha", "--data", str(path), "--schedule", "flash2", "N=8192", "d=128")
    assert "DRAM reads were not measured: export dram__bytes_read.sum (ncu) or FETCH_SIZE (rocprof)" in answer.out
    assert "no reading lies within" not in answer.out


ROCPROF_1 = (
    "Index,KernelName,gpu-id,queue-id,sig,obj,FETCH_SIZE,WRITE_SIZE,L2CacheHit,DispatchNs,BeginNs,EndNs,CompleteNs\n"
    '0,"attend(float*, float*) [clone .kd]",4,0,0x0,0x7f,6144.0,2048.0,95.2,100,1000,56170,57000\n'
)
ROCPROF_2 = (
    "Dispatch_ID,GPU_ID,Queue_ID,PID,Grid_Size,Kernel_Name,Start_Timestamp,End_Timestamp,Correlation_ID,FETCH_SIZE\n\n"
    '1,4,1,1584730,16384,"attend(float*, float*) [clone .kd]",1000,56170,0,6144.000000\n'
)
NSYS_SUM = (
    "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
    '100.0,110340,2,55170.0,55170.0,55000,55340,12.5,"attend(float*, float*) [clone .kd]"\n'
)
NSYS_TRACE = (
    "Start (ns),Duration (ns),CorrId,GrdX,Bytes (MB),Throughput (MB/s),Device,Name\n"
    '1000,55170,12,64,,,NVIDIA H100 (0),"attend(float*, float*) [clone .kd]"\n'
    "900,2000,11,,4.194,2000.0,NVIDIA H100 (0),[CUDA memcpy Host-to-Device]\n"
)
ROCPROF_STATS = (
    '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n'
    '"attend(float*, float*) [clone .kd]",2,110340,55170,100\n'
)


@pytest.mark.parametrize("text", [ROCPROF_1, ROCPROF_2, NSYS_SUM, NSYS_TRACE, ROCPROF_STATS])
def test_a_time_is_read_wherever_a_tool_writes_it(text: str, tmp_path: Path) -> None:
    """Between two stamps, as a duration, or as a mean; what is copied is no kernel."""
    found = profile_of(text, tmp_path)
    assert found.names == ("attend(float*, float*) [clone .kd]",)
    assert float(found.counters["seconds"]) == pytest.approx(55.17e-6)
    if "FETCH_SIZE" in text:
        assert found.counters["dram read"] == 6 * 2**20


def test_rocprof_states_a_hit_rate(tmp_path: Path) -> None:
    """In per cent."""
    assert float(profile_of(ROCPROF_1, tmp_path).counters["hit rate"]) == pytest.approx(0.952)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters\n",
            "has no row; the profiler says: ERR_NVGPUCTRPERM - The user does not have permission to access counters",
        ),
        ("==PROF== Connected to process 9\n", "is empty"),
        (
            "one\ntwo\n\nKernel Name,dram__bytes_read.sum\nf,3\nf,many\n",
            "export.csv, row 6, dram__bytes_read.sum is many, no number",
        ),
        ("one\n\nKernel Name,dram__bytes_read.sum\nf,3,4\n", "export.csv, row 4: 3 cells under 2 heads"),
        ("Kernel Name,dram__bytes_read.sum\n,Mbyte\n", "column heads and units and no row"),
        ("dram__bytes_read.sum\nMbyte\n", "column heads and units and no row"),
        ("Kernel Name,dram__bytes_read.sum\nKernel Name,dram__bytes_read.sum\n", "column heads and no row"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_refused_with_its_line(text: str, says: str, tmp_path: Path) -> None:
    """Rows are numbered as an editor does, whatever was left out before them; a profiler's own error is passed on."""
    assert says in refusal(text, tmp_path)


def test_units_below_heads_without_a_kernel_are_units(tmp_path: Path) -> None:
    """A file of counters alone."""
    assert profile_of("dram__bytes_read.sum\nMbyte\n3\n", tmp_path).counters == {"dram read": 3_000_000}


def test_spaces_around_heads_and_cells_mean_nothing(tmp_path: Path) -> None:
    """As in a file that somebody laid out by hand."""
    text = "Kernel Name , dram__bytes_read.sum , gpu__time_duration.sum\n f , 3 , 9\n"
    found = profile_of(text, tmp_path)
    assert (found.names, found.counters["dram read"]) == (("f",), 3)
    path = tmp_path / "own.csv"
    path.write_text("N , us\n64 , 3\n", encoding="utf-8")
    assert read_table(path) == [{"N": 64, "us": 3}]


def test_a_unit_in_a_head_stays_where_the_row_of_units_has_none(tmp_path: Path) -> None:
    """Some columns have theirs in brackets, some below."""
    text = "Kernel Name,dram__bytes_read.sum [Mbyte],gpu__time_duration.sum\n,,us\nf,3,9\n"
    found = profile_of(text, tmp_path).counters
    assert (found["dram read"], float(found["seconds"])) == (3_000_000, pytest.approx(9e-6))


def test_a_launch_is_timed_once_however_many_rows_it_has(tmp_path: Path) -> None:
    """Told by its name and its stamps."""
    heads = "Kernel_Name,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp\n"
    rows = "f,FETCH_SIZE,8,100,200\nf,WRITE_SIZE,8,100,200\nf,FETCH_SIZE,8,300,700\nf,WRITE_SIZE,8,300,700\n"
    found = profile_of(heads + rows + "f,SQ_WAVES,8,300,700\n", tmp_path)
    assert (found.launches, float(found.counters["seconds"])) == (2, pytest.approx(250e-9))


def test_stamps_that_are_missing_time_nothing(tmp_path: Path) -> None:
    """As in a run without timestamps."""
    text = "Kernel_Name,FETCH_SIZE,Start_Timestamp,End_Timestamp\nf,8,,\n"
    assert set(profile_of(text, tmp_path).counters) == {"dram read"}
