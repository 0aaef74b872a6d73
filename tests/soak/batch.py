"""What a batch of configurations found, and the search for the smallest one that disagrees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Numbers = dict[str, int]


@dataclass(frozen=True)
class Counterexample:
    """A configuration at which a closed form and its witness disagree.

    Attributes:
        what: which program, in words.
        formula, witness: what each says.
        numbers: the sizes, as small as they could be made.
        command: what a person types to see it again.
    """

    what: str
    formula: str
    witness: str
    numbers: Numbers
    command: str

    def __str__(self) -> str:
        sizes = " ".join(f"{name}={number}" for name, number in self.numbers.items())
        again = f"\n  again with  {self.command}" if self.command else ""
        return f"{self.what}\n  at          {sizes}\n  closed form {self.formula}\n  witness     {self.witness}{again}"


@dataclass
class Found:
    """What a batch found.

    Attributes:
        kind: what was compared.
        tried: configurations tried.
        visits: tiles that the witness visited.
        programs: programs tried, 1 or 0 for a batch; 0 where the engine refuses to count one.
        refused: programs that have no closed form.
        mismatches: configurations that disagree.
        smallest: the smallest of them.
    """

    kind: str
    tried: int = 0
    visits: int = 0
    programs: int = 0
    refused: int = 0
    mismatches: int = 0
    smallest: Counterexample | None = field(default=None)

    def add(self, other: Found) -> None:
        """Count *other* too."""
        self.tried += other.tried
        self.visits += other.visits
        self.programs += other.programs
        self.refused += other.refused
        self.mismatches += other.mismatches
        self.smallest = self.smallest or other.smallest


def smallest(numbers: Numbers, fails: Callable[[Numbers], bool], least: Mapping[str, int]) -> Numbers:
    """*numbers* made smaller one at a time while it still *fails*; none is below its *least* value, 1 where none is given."""
    found, changed = dict(numbers), True
    while changed:
        changed = False
        for name in found:
            low = least.get(name, 1)
            for smaller in dict.fromkeys((low, found[name] // 2, found[name] - 1)):
                if low <= smaller < found[name] and fails({**found, name: smaller}):
                    found[name], changed = smaller, True
                    break
    return found
