"""A question at many numbers: one row for each combination and schedule, every count exact."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from itertools import product
from typing import TYPE_CHECKING

from derive.errors import BadValueError, repeated
from derive.flops import Pipe
from derive.masks import LIST_KEYS
from derive.symbols import MEANINGS
from outputs.request import plain_length

if TYPE_CHECKING:
    from outputs.account import Account
    from outputs.explanation import Explanation

MOST = 20_000
"""No more rows than this."""
_STEP = re.compile(r"(\d{1,9})(x?)", re.ASCII)
Cell = int | float | str | bool | None
Row = dict[str, Cell]


def grid(words: Iterable[str]) -> list[tuple[str, ...]]:
    """Every combination of KEY=VALUE words, the last key fastest.

    A value may be a list, ``64,128``, or a range with both ends in it: ``1K:128K:2x`` by factors, ``64:512:64`` by steps.

    Raises:
        BadValueError: a range that is none, or more combinations than ``MOST``.
    """
    choices = []
    count = 1
    for word in words:
        key, equals, text = word.partition("=")
        values = (
            [text] if not equals or key in LIST_KEYS else [v for part in text.split(",") for v in _range(key, part)]
        )
        choices.append([f"{key}{equals}{value}" for value in values])
        count *= len(values)
        if count > MOST:
            raise BadValueError(f"these lists have more than {MOST} combinations; use larger steps, or several files")
    return list(product(*choices))


def _range(key: str, text: str) -> list[str]:
    """The values of one part of a list."""
    if ":" not in text:
        return [text]
    parts = text.split(":")
    first, last = (plain_length(part) for part in (parts[0], parts[1]))
    step = _STEP.fullmatch(parts[2]) if len(parts) == 3 else None
    if first is None or last is None or step is None or int(step[1]) < (2 if step[2] else 1) or not 0 < first <= last:
        raise BadValueError(
            f"{key}={repeated(text)}: a range is FIRST:LAST:STEP, such as 1K:128K:2x by factors or 64:512:64 by steps"
        )
    found, number = [], first
    while number <= last:
        found.append(str(number))
        if len(found) > MOST:
            raise BadValueError(f"{key}={repeated(text)}: more than {MOST} values; use a larger step")
        number = number * int(step[1]) if step[2] else number + int(step[1])
    return found


def row(answer: Explanation, account: Account) -> Row:
    """What one schedule costs at one combination; sizes in bytes, times in seconds."""
    found = _question(answer, account.name)
    found |= {name: _plain(account.values[name]) for name in MEANINGS if MEANINGS[name].key and name in account.values}
    counts = {
        "compulsory_bytes": account.compulsory.total.amount,
        "sm_bytes": account.sm.total.amount,
        "dram_bytes": account.dram.total.amount,
        "matmul_flop": account.executed[Pipe.MMA],
        "useful_matmul_flop": account.useful[Pipe.MMA],
        "exp_operations": account.executed[Pipe.SFU],
        "vector_operations": account.executed[Pipe.VECTOR],
        "hbm_peak_bytes": account.memory_peak,
    }
    found |= {name: account.whole(amount) for name, amount in counts.items()}
    found["shared_memory_bytes"] = None if account.footprint is None else account.whole(account.footprint)
    found["fits_l2"] = account.fits
    found["flop_per_dram_byte"] = None if account.intensity is None else float(account.intensity)
    found |= {"seconds": account.seconds, "bound": account.bound, "error": None}
    return found


def refused(variant: str, schedule: str, machine: str | None, words: Sequence[str], reason: str) -> Row:
    """A row for a combination that cannot exist: its words and why."""
    numbers: Row = {key: plain_length(text) or text for key, _, text in (word.partition("=") for word in words)}
    typed = {MEANINGS[name].key: name for name in MEANINGS if MEANINGS[name].key}
    named: Row = {}
    for key, number in numbers.items():
        for name in ("N_q", "N_k") if key == "N" else (typed.get(key, key),):
            named[name] = number
    return {"variant": variant, "schedule": schedule, "machine": machine, **named, "error": reason}


def _question(answer: Explanation, schedule: str) -> Row:
    request = answer.request
    return {
        "variant": request.variant.name,
        "schedule": schedule,
        "machine": answer.machine.id if answer.machine else None,
        "mask": request.pattern.name,
        "dtype": request.operand.name,
    }


def _plain(number: object) -> Cell:
    """A whole number as it is, a share as a float."""
    return number if isinstance(number, int) else float(number)  # type: ignore[arg-type]


def columns(rows: Sequence[Row]) -> list[str]:
    """Every column, in the order of the fullest row; those that only refused rows have come before the counts."""
    fullest = max(rows, key=len)
    others = dict.fromkeys(name for each in rows for name in each if name not in fullest)
    return [*fullest, *others]


def as_csv(rows: Sequence[Row]) -> str:
    """The rows as comma-separated values with a head; what is not known is empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns(rows), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if cell is None else cell for name, cell in each.items()} for each in rows)
    return out.getvalue()


def as_parquet(rows: Sequence[Row]) -> bytes:
    """The same as Parquet.

    Raises:
        BadValueError: pyarrow is not installed, or a count does not fit the 64 bits of a Parquet integer.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise BadValueError(
            "Parquet is written with pyarrow, and it is not installed; pip install 'attn-derive[parquet]', or name FILE.csv"
        ) from None
    names = columns(rows)
    for each in rows:
        for name, cell in each.items():
            if isinstance(cell, int) and cell >= 2**63:
                raise BadValueError(
                    f"{name} = {cell} does not fit the 64 bits of a Parquet integer; name FILE.csv, which is exact"
                )
    table = pa.table({name: [each.get(name) for each in rows] for name in names})
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()
