"""How long growth classes take: random programs far larger than any schedule's, and every schedule of two variants."""

from __future__ import annotations

import statistics
import time
from fractions import Fraction
from random import Random

import sympy as sp

from derive.attention import variant
from derive.errors import DomainError, PreconditionError
from derive.growth import growth
from derive.growth.cone import Cone
from derive.growth.parameters import Parameters
from derive.growth.program import Envelope, Program, envelope
from derive.symbols import N_k, N_q, d_v, h, h_k
from rules.derivations import names, plan

SEEDS = 10
TILES, PARAMETERS, TERMS = 8, 6, 12
TIED = {N_k: N_q}


def random_program(seed: int) -> Program:
    """8 tiles, 12 traffic and 12 footprint monomials in 6 parameters, the last of which is the memory."""
    random = Random(seed)
    parameters = Parameters((*sp.symbols(f"p:{PARAMETERS - 1}", positive=True), sp.Symbol("q", positive=True)))
    tiles = sp.symbols(f"t:{TILES}", positive=True)
    *sizes, memory = parameters.symbols
    extents = [{random.choice(sizes): Fraction(1)} for _ in tiles]
    empty = Program(parameters, tiles, (), (), ())

    def term() -> dict[sp.Symbol, Fraction]:
        """A tensor of two or three sizes, read again for each tile of one more: the re-read rule."""
        tile = random.randrange(TILES)
        found = {s: Fraction(1) for s in random.sample(sizes, 2)}
        for size in extents[tile]:
            found[size] = found.get(size, Fraction(0)) + 1
        return found | {tiles[tile]: Fraction(-1)}

    def held() -> dict[sp.Symbol, Fraction]:
        """A buffer of two tiles, or of a tile and a whole dimension."""
        chosen = random.sample(tiles, 2) if random.random() < 0.5 else [random.choice(tiles), random.choice(sizes)]
        return {**dict.fromkeys(chosen, Fraction(1)), memory: Fraction(-1)}

    traffic = [empty.row(f"term {n}", term()) for n in range(TERMS)]
    limits = [empty.row(f"{n} <= M", held()) for n in range(TERMS)]
    for tile, extent in zip(tiles, extents, strict=True):
        limits.append(empty.row(f"{tile}", {tile: Fraction(1), **{s: -x for s, x in extent.items()}}))
    return Program(parameters, tiles, tuple(map(parameters.form, extents)), tuple(traffic), tuple(limits))


def solve(seed: int) -> tuple[float, Envelope]:
    """Seconds for the class of one random program, and the class."""
    program = random_program(seed)
    start = time.perf_counter()
    found = envelope(program, Cone.orthant(PARAMETERS))
    return time.perf_counter() - start, found


def main() -> None:
    """Print the median and the worst of the random programs, then a line a schedule."""
    solved = [solve(seed) for seed in range(SEEDS)]
    seconds = [taken for taken, _ in solved]
    pieces = [len(found.pieces) for _, found in solved]
    print(
        f"{TILES} tiles, {TERMS} traffic and {TERMS} footprint monomials, {PARAMETERS} parameters, {SEEDS} seeds: median "
        f"{statistics.median(seconds):.2f} s, worst {max(seconds):.2f} s, {min(pieces)} to {max(pieces)} monomials a class"
    )
    print(f"{'variant':<10}{'schedule':<16}{'time':>8}   class")
    for name, given in (("mha", ()), ("gqa", (d_v, h, h_k))):
        for each in names():
            try:
                schedule = plan(each).derive(variant(name).graph(given=given)).schedule
                start = time.perf_counter()
                found = growth(schedule, TIED)
            except PreconditionError:
                continue
            except DomainError as refused:
                print(f"{name:<10}{each:<16}{'':>10}   {refused}")
                continue
            print(f"{name:<10}{each:<16}{time.perf_counter() - start:>6.2f} s   {found.total}")


if __name__ == "__main__":
    main()
