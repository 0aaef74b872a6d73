"""Finding machines and constants, and being told what is not there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from derive.errors import UnknownNameError
from hardware import load, names
from hardware.machine import DATA


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("h100-sxm", "h100-sxm"),
        ("H100", "h100-sxm"),
        ("h100_sxm5", "h100-sxm"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("a100", "a100-sxm-80gb"),
        ("RTX 4090", "rtx-4090"),
        ("trillium", "tpu-v6e"),
    ],
)
def test_a_machine_answers_to_its_id_and_aliases_in_any_case(name: str, id_: str) -> None:
    """Case, spaces, hyphens and underscores make no difference."""
    assert load(name).id == id_


def test_an_unknown_machine_is_answered_with_the_nearest() -> None:
    """A slip gets the likely name and the way to the list."""
    with pytest.raises(UnknownNameError, match="no machine 'h100-sxn'; did you mean h100-sxm"):
        load("h100-sxn")


def test_a_name_that_resembles_none_still_gets_the_way_out() -> None:
    """No guess is better than a wild one."""
    with pytest.raises(UnknownNameError, match="no machine 'abacus'; `derive machines` lists"):
        load("abacus")


def test_a_name_is_not_a_path() -> None:
    """Only names in the list open files."""
    with pytest.raises(UnknownNameError, match=r"no machine '\.\./data/l4'"):
        load("../data/l4")


def test_names_are_the_files() -> None:
    """The list costs no parsing."""
    assert set(names()) == {path.stem for path in DATA.glob("*.toml")}
    assert "h100-sxm" in names()


def test_an_absent_constant_says_why() -> None:
    """A100 fp8 is a stated fact, not a gap and not zero."""
    a100 = load("a100")
    assert a100.get("peak_fp8") is None
    with pytest.raises(UnknownNameError, match=r"peak_fp8 is stated absent \(not supported; .* int8 only\)"):
        a100["peak_fp8"]


def test_a_misspelt_constant_is_answered_with_the_nearest() -> None:
    """A slip gets the likely name."""
    with pytest.raises(UnknownNameError, match=r"no constant dram_bandwith; did you mean dram_bandwidth\?"):
        load("h100")["dram_bandwith"]


def test_a_type_without_a_rate_lists_those_with_one() -> None:
    """The way out of a missing type is another type of the same machine."""
    with pytest.raises(
        UnknownNameError, match=r"a100-sxm-80gb has no fp8 rate .* it has fp64, fp32, tf32, bf16, fp16, int8"
    ):
        load("a100").peak("fp8")


def test_an_unmeasured_effective_l2_is_not_guessed() -> None:
    """No sweep of a two-die Blackwell was found, so its effective L2 is unknown, not 126.5 MiB."""
    with pytest.raises(UnknownNameError, match=r"l2_effective is stated absent .*no shared-read sweep"):
        load("b200").l2("effective")


def test_a_machine_without_l2_says_so() -> None:
    """A scratchpad is not a cache."""
    with pytest.raises(UnknownNameError, match=r"l2_size is stated absent .*scratchpad"):
        load("tpu-v5p").l2()
    with pytest.raises(UnknownNameError, match="l2_count is stated absent"):
        _ = load("tpu-v5p").l2_count


def test_an_l2_is_read_in_two_ways_only() -> None:
    """A third word is a slip, not a default."""
    with pytest.raises(ValueError, match="nominal or effective, not 'real'"):
        load("h100").l2("real")  # type: ignore[arg-type]


def test_the_matmul_clock_is_the_maximum_where_no_other_is_stated() -> None:
    """An A100 holds its tensor peak at its boost clock; an H100 does not."""
    assert load("a100").matmul_clock.name == "boost_clock"
    assert load("h100").matmul_clock.name == "tensor_peak_clock"


def test_importing_the_package_does_not_import_sympy() -> None:
    """Listing machines is quick: SymPy comes with ``hardware.roofline`` alone."""
    code = (
        "import sys, derive.errors; before = 'sympy' in sys.modules; import hardware; hardware.load('h100'); "
        "raise SystemExit(('sympy' in sys.modules) != before)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=DATA.parents[1]).returncode == 0
