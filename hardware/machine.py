"""A machine as its data file states it, found by name.

``dram_capacity`` is the vendor's label, ``dram_bandwidth`` and every ``peak_*`` what the vendor prints for dense work:
what a program reaches is lower, and stated apart as ``measured_*``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from derive.errors import BadValueError, MachineDataError, UnknownNameError, nearest, one_line, path_named, repeated
from derive.reading import read_text
from hardware.constant import Absent, Constant, Reading, constant

__all__ = ["DATA", "Absent", "Constant", "Machine", "Reading", "load", "load_file", "names"]

DATA = Path(__file__).parent / "data"
"""One file a machine; the file's name is the machine's id."""
MOST_BYTES = 2**18
"""Of a machine file; the longest has 15 KB."""
LONGEST_LINE = 2000
"""Characters: the time that a parser takes for a dotted key grows with the square of its parts."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One device as a program sees it: a GPU, one die of a pair that shows as two devices, or one chip.

    Attributes:
        id: the name of its file, e.g. ``h100-sxm``.
        name: as a person writes it.
        vendor: who makes it.
        aliases: other names ``load`` knows it by.
        constants: what is known, by name.
        absent: what is stated not to exist or not to have been found, by name.
    """

    id: str
    name: str
    vendor: str
    aliases: tuple[str, ...]
    constants: Mapping[str, Constant] = field(hash=False)
    absent: Mapping[str, Absent] = field(hash=False)

    def __getitem__(self, name: str) -> Constant:
        """The constant *name*.

        Raises:
            UnknownNameError: it is stated absent, or the file does not speak of it.
        """
        if name in self.constants:
            return self.constants[name]
        if name in self.absent:
            raise UnknownNameError(f"{self.id}: {name} is stated absent ({self.absent[name].reason})")
        near = get_close_matches(name, self.constants, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UnknownNameError(f"{self.id}: there is no constant {name}{hint}")

    def get(self, name: str) -> Constant | None:
        """The constant *name*, or None where it is absent or unknown."""
        return self.constants.get(name)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Types whose dense matrix rate is known, in the order of the file."""
        peaks = (name.removeprefix("peak_") for name in self.constants if name.startswith("peak_"))
        return tuple(dtype for dtype in peaks if "_" not in dtype)

    def peak(self, dtype: str) -> Constant:
        """The dense peak of *dtype* in FLOP/s (op/s for integers).

        Raises:
            UnknownNameError: the machine has none, or none was found.
        """
        if dtype in self.dtypes:
            return self.constants[f"peak_{dtype}"]
        absent = self.absent.get(f"peak_{dtype}")
        why = f" ({absent.reason})" if absent else ""
        raise UnknownNameError(f"{self.id} has no {dtype} rate{why}; it has {', '.join(self.dtypes)}")

    def l2(self, reading: Literal["nominal", "effective"] = "nominal") -> Constant:
        """Bytes of one L2; ``l2_count`` says how many private ones the machine has.

        Nominal is the whole cache. Effective is the largest working set, read by every SM, that still runs at full L2
        speed: on a cache in two halves, data wanted by both is held twice, and the whole is never reached.

        Raises:
            UnknownNameError: there is no L2, or its effective size was not measured on the machine or a sibling.
            ValueError: *reading* is neither of the two.
        """
        if reading == "nominal":
            return self["l2_size"]
        if reading == "effective":
            return self.get("measured_l2_full_speed_capacity") or self["l2_effective"]
        raise ValueError(f"an L2 is read as nominal or effective, not {reading!r}")

    @property
    def l2_count(self) -> int:
        """Private L2 caches of the machine: data read by every SM is held once in each.

        Raises:
            UnknownNameError: there is no L2.
        """
        return int(self["l2_count"].value)

    @property
    def matmul_clock(self) -> Constant:
        """The clock in Hz at which the matrix peaks hold, often below the maximum.

        Raises:
            UnknownNameError: no clock was found.
        """
        return self.get("tensor_peak_clock") or self["boost_clock"]


def names() -> tuple[str, ...]:
    """Ids of all machines, from the names of their files."""
    return tuple(sorted(path.stem for path in DATA.glob("*.toml")))


def load(name: str) -> Machine:
    """The machine called *name*: its id or an alias, in any case, with hyphens, spaces or underscores.

    Raises:
        UnknownNameError: there is no such machine.
        MachineDataError: its file lacks something.
    """
    wanted = _plain(name)
    known = names()
    if wanted in known:
        return load_file(DATA / f"{wanted}.toml")
    aliases = {_plain(alias): id_ for id_ in known for alias in _aliases(DATA / f"{id_}.toml")}
    if wanted in aliases:
        return load_file(DATA / f"{aliases[wanted]}.toml")
    raise nearest("machine", name, [*known, *aliases], "derive machines")


def load_file(path: Path) -> Machine:
    """The machine in the file *path*.

    Raises:
        MachineDataError: it is not TOML, or a constant lacks its unit, kind, source or date, or makes no sense.
    """
    where = path_named(path.name)
    tables = _tables(path)
    header = {key: tables.pop(key, None) for key in ("id", "name", "vendor", "aliases")}
    for key in ("id", "name", "vendor"):
        if not isinstance(header[key], str) or not header[key]:
            raise MachineDataError(f'{where} has no {key}: state it above the first table, e.g. {key} = "..."')
    aliases = header["aliases"] or []
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise MachineDataError(f'{where} has aliases that are not a list of names: write aliases = ["h100"]')
    if stray := next((key for key, table in tables.items() if not isinstance(table, dict)), None):
        raise MachineDataError(
            f"{where} has {repeated(stray)} outside a table: a constant is a table, [{repeated(stray)}]"
        )
    found = [constant(key, table, where) for key, table in tables.items()]
    return Machine(
        id=header["id"],
        name=header["name"],
        vendor=header["vendor"],
        aliases=tuple(aliases),
        constants=MappingProxyType({c.name: c for c in found if isinstance(c, Constant)}),
        absent=MappingProxyType({c.name: c for c in found if isinstance(c, Absent)}),
    )


def _tables(path: Path, head_only: bool = False) -> dict[str, Any]:
    where = path_named(path.name)
    try:
        text = read_text(path, MOST_BYTES, "TOML")
    except BadValueError as error:
        raise MachineDataError(f"{where} cannot be read as TOML: {error}") from None
    if (longest := max(map(len, text.split("\n")))) > LONGEST_LINE:
        raise MachineDataError(f"{where} has a line of {longest} characters; at most {LONGEST_LINE} are read: break it")
    if head_only:
        text, _, _ = text.partition("\n[")
    try:
        # Decimal keeps the digits as printed and becomes a Fraction without rounding; float would do neither
        return tomllib.loads(text, parse_float=Decimal)
    except RecursionError:
        raise MachineDataError(f"{where} cannot be read as TOML: lists or tables are nested too deep") from None
    except (ValueError, ArithmeticError) as error:  # no TOML, or a number of thousands of digits
        raise MachineDataError(f"{where} cannot be read as TOML: {one_line(str(error), 200)}") from None


def _aliases(path: Path) -> list[str]:
    # only the lines above the first table are parsed: looking an alias up stays quick however many machines there are
    aliases: list[str] = _tables(path, head_only=True).get("aliases", [])
    return aliases


def _plain(name: str) -> str:
    return "-".join(name.lower().replace("_", " ").replace("-", " ").split())
