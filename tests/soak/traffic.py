"""Elements that cross into the SMs: the closed forms of the catalogue against the tile walk, tensor by tensor."""

from __future__ import annotations

from random import Random

from derive.errors import DomainError
from derive.exact import value
from derive.replay_arrays import Walker
from derive.schedule import Schedule
from derive.traffic import traffic
from tests.soak.batch import Counterexample, Found, Numbers, smallest
from tests.soak.compiled import Compiled
from tests.soak.drawing import Program, catalogue, drawn, fitted, least, sizes

KIND = "catalogue: traffic, tile walk"
Moved = dict[str, tuple[int, int]]
STRIDE = 1009
"""A prime: programs next to each other in the catalogue are far apart in a run."""


class Forms:
    """The traffic of one schedule: as closed forms, and as what a walk counts.

    Raises:
        DomainError: the engine has no closed form for it.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.moves = traffic(schedule).by_tensor
        self.compiled = Compiled(
            {f"{n}.{way}": getattr(m, way) for n, m in self.moves.items() for way in ("read", "write")}
        )
        self.walker = Walker(schedule)
        self.visits = 0

    def counted(self, numbers: Numbers) -> Moved:
        """What the closed forms say, tensors that do not move left out."""
        at = self.compiled(numbers)
        return _moving({name: (at[f"{name}.read"], at[f"{name}.write"]) for name in self.moves})

    def evaluated(self, numbers: Numbers) -> Moved:
        """The same by the engine's own evaluation, which adds up long sums without visiting their terms."""
        return _moving({n: (value(m.read, numbers), value(m.write, numbers)) for n, m in self.moves.items()})

    def walked(self, numbers: Numbers) -> Moved:
        """What the walk counts."""
        found = self.walker.walk(numbers)
        self.visits += found.tile_visits
        return _moving(found.moves)

    def agree(self, numbers: Numbers) -> bool:
        """Whether both count the same."""
        return self.counted(numbers) == self.walked(numbers)

    def difference(self, numbers: Numbers) -> tuple[str, str]:
        """The first tensor that they differ on, as each counts it."""
        counted, walked = self.counted(numbers), self.walked(numbers)
        name = next(n for n in (*counted, *walked) if counted.get(n) != walked.get(n))
        return _said(name, counted.get(name, (0, 0))), _said(name, walked.get(name, (0, 0)))


def _moving(moves: Moved) -> Moved:
    return {name: moved for name, moved in moves.items() if moved != (0, 0)}


def _said(name: str, moved: tuple[int, int]) -> str:
    return f"{name}: {moved[0]} elements read, {moved[1]} written"


def batch(seed: int, number: int, configurations: int) -> Found:
    """Try one program of the catalogue, the next one at every *number*, at so many *configurations*."""
    random = Random(f"traffic {seed} {number}")
    found = Found(KIND)
    programs = catalogue()
    program = drawn(programs[(number * STRIDE + seed) % len(programs)], random)
    if program is None:
        return found
    schedule = program.derive().schedule
    try:
        forms = Forms(schedule)
    except DomainError:
        found.refused = 1
        return found
    found.programs = 1
    for tried in range(configurations):
        numbers = sizes(program, schedule, random)
        found.tried += 1
        same_as_evaluated = tried > 0 or forms.evaluated(numbers) == forms.counted(numbers)
        if not (forms.agree(numbers) and same_as_evaluated):
            found.mismatches += 1
            found.smallest = found.smallest or _shrunk(program, forms, numbers)
    found.visits = forms.visits
    return found


def _shrunk(program: Program, forms: Forms, numbers: Numbers) -> Counterexample:
    """The smallest configuration near *numbers*; where the witness agrees, the printed form and the evaluated one do not."""

    def fails(at: Numbers) -> bool:
        return fitted(program, at) == at and not forms.agree(at)

    if not fails(numbers):
        said = f"as printed {forms.counted(numbers)}", f"as evaluated {forms.evaluated(numbers)}"
        return Counterexample(str(program), *said, numbers, "")
    at = smallest(numbers, fails, least(program))
    return Counterexample(str(program), *forms.difference(at), at, f"derive check {program.at(at)} --samples 1")
