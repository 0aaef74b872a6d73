"""The dual simplex method against every basis: optimum, certificates, and forms that hold beyond the point asked about."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hypothesis import event, given, settings
from hypothesis import strategies as st

from derive.growth.linear import Infeasible, Optimum, Vector, dot, minimise
from tests.derive.growth.vertices import inner, vertices

small = st.integers(-3, 3).map(Fraction)
parameter = st.fractions(-4, 4, max_denominator=3)


@dataclass(frozen=True)
class Drawn:
    """A random program with two costs a variable, and two points of its parameters."""

    costs: list[Vector]
    rows: list[Vector]
    rights: list[Vector]
    at: Vector
    elsewhere: Vector

    @property
    def first(self) -> list[Fraction]:
        """The cost that counts first."""
        return [c[0] for c in self.costs]

    def corners(self, at: Vector) -> set[Vector]:
        """Every vertex of what is feasible at *at*."""
        return vertices(self.rows, [dot(r, at) for r in self.rights])


@st.composite
def programs(draw: st.DrawFn) -> Drawn:
    """One to three variables, one to four rows, one to three parameters; small whole numbers, so that ties are common."""
    variables, rows, size = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 3))

    def vector(element: st.SearchStrategy[Fraction], length: int) -> Vector:
        return tuple(draw(st.lists(element, min_size=length, max_size=length)))

    cost = st.integers(0, 3).map(Fraction)
    return Drawn(
        [vector(cost, 2) for _ in range(variables)],
        [vector(small, variables) for _ in range(rows)],
        [vector(small, size) for _ in range(rows)],
        vector(parameter, size),
        vector(parameter, size),
    )


@settings(max_examples=400)
@given(programs())
def test_the_optimum_is_the_least_of_all_vertices(drawn: Drawn) -> None:
    """A feasible set within the orthant has vertices, and costs that are not negative are least at one of them."""
    found = minimise(drawn.costs, drawn.rows, drawn.rights, drawn.at)
    corners = drawn.corners(drawn.at)
    event("feasible" if corners else "infeasible")
    assert isinstance(found, Optimum) == bool(corners)
    if isinstance(found, Optimum):
        assert dot(found.value, drawn.at) == min(inner(drawn.first, c) for c in corners)


@settings(max_examples=400)
@given(programs())
def test_ties_in_the_first_cost_are_broken_by_the_second(drawn: Drawn) -> None:
    """The costs are compared one after the other."""
    found = minimise(drawn.costs, drawn.rows, drawn.rights, drawn.at)
    if isinstance(found, Optimum):
        at = tuple(dot(x, drawn.at) for x in found.point)
        levels = [tuple(inner([c[n] for c in drawn.costs], p) for n in range(2)) for p in drawn.corners(drawn.at)]
        assert tuple(inner([c[n] for c in drawn.costs], at) for n in range(2)) == min(levels)


@settings(max_examples=400)
@given(programs())
def test_the_point_is_feasible_and_costs_the_optimum(drawn: Drawn) -> None:
    """The forms of the variables keep every row at the point asked about; their cost is the optimum at every point."""
    found = minimise(drawn.costs, drawn.rows, drawn.rights, drawn.at)
    if isinstance(found, Optimum):
        at = [dot(x, drawn.at) for x in found.point]
        assert min(at) >= 0
        assert all(inner(row, at) >= dot(r, drawn.at) for row, r in zip(drawn.rows, drawn.rights, strict=True))
        cost = [inner(drawn.first, [x[i] for x in found.point]) for i in range(len(drawn.at))]
        assert tuple(cost) == found.value


@settings(max_examples=400)
@given(programs())
def test_weights_prove_the_optimum_from_below(drawn: Drawn) -> None:
    """Non-negative, within each variable's cost, and the rows' right sides add up to the optimum's form with them.

    So the form is a lower bound wherever anything is feasible (weak duality), and the optimum here (strong duality).
    """
    found = minimise(drawn.costs, drawn.rows, drawn.rights, drawn.at)
    if isinstance(found, Optimum):
        assert min(found.weights) >= 0
        for n, cost in enumerate(drawn.first):
            assert inner([row[n] for row in drawn.rows], found.weights) <= cost
        for i, coefficient in enumerate(found.value):
            assert inner([r[i] for r in drawn.rights], found.weights) == coefficient
        corners = drawn.corners(drawn.elsewhere)
        assert all(dot(found.value, drawn.elsewhere) <= inner(drawn.first, c) for c in corners)


@settings(max_examples=400)
@given(programs())
def test_forms_hold_wherever_their_basis_does(drawn: Drawn) -> None:
    """Where the variables' forms still keep every row, the value's form is still the optimum."""
    found = minimise(drawn.costs, drawn.rows, drawn.rights, drawn.at)
    if isinstance(found, Optimum):
        there = [dot(x, drawn.elsewhere) for x in found.point]
        rights = [dot(r, drawn.elsewhere) for r in drawn.rights]
        if min(there) >= 0 and all(inner(row, there) >= r for row, r in zip(drawn.rows, rights, strict=True)):
            least = min(inner(drawn.first, c) for c in drawn.corners(drawn.elsewhere))
            assert dot(found.value, drawn.elsewhere) == least


@settings(max_examples=600)
@given(programs())
def test_what_is_infeasible_comes_with_a_proof(drawn: Drawn) -> None:
    """Farkas: weights under which no variable helps and the right sides are out of reach.

    The form that they give is negative at the point asked about, and nowhere negative where anything is feasible.
    """
    found = minimise(drawn.costs, drawn.rows, drawn.rights, drawn.at)
    if isinstance(found, Infeasible):
        assert dot(found.needs, drawn.at) < 0
        assert min(found.weights) >= 0
        assert all(inner([row[n] for row in drawn.rows], found.weights) <= 0 for n in range(len(drawn.costs)))
        for i, coefficient in enumerate(found.needs):
            assert inner([r[i] for r in drawn.rights], found.weights) == -coefficient
        if drawn.corners(drawn.elsewhere):
            assert dot(found.needs, drawn.elsewhere) >= 0


def test_the_optimum_of_a_degenerate_program_of_the_literature() -> None:
    """Beale 1955, Cycling in the dual simplex algorithm: a degenerate program whose optimum is 1/20, here through its dual."""
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    rows = [(-quarter, -half, Fraction(0)), (Fraction(60), Fraction(90), Fraction(0))]
    rows += [(Fraction(1, 25), Fraction(1, 50), Fraction(-1)), (Fraction(-9), Fraction(-3), Fraction(0))]
    rows = [tuple(-x for x in row) for row in rows]
    costs = [(Fraction(0),), (Fraction(0),), (Fraction(1),)]
    rights = [(Fraction(3, 4),), (Fraction(-150),), (Fraction(1, 50),), (Fraction(-6),)]
    found = minimise(costs, rows, rights, [Fraction(1)])
    assert isinstance(found, Optimum)
    least = min(inner([0, 0, 1], c) for c in vertices(rows, [r[0] for r in rights]))
    assert found.value == (least,) == (Fraction(1, 20),)
