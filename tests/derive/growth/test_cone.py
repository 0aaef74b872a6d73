"""Cones against every choice of bounding forms: rays, combinations, facets, what a region implies."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp
from hypothesis import event, given, settings
from hypothesis import strategies as st

from derive.growth.cone import Cone, Form, dot, primitive, rank
from tests.derive.growth.vertices import extreme_rays, inner, is_combination, whole


def forms(size: int, least: int, most: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Random forms with small coefficients."""
    coefficients = st.lists(st.integers(-3, 3), min_size=size, max_size=size).map(tuple)
    return st.lists(coefficients.filter(any), min_size=least, max_size=most)


cuts = st.integers(2, 4).flatmap(lambda size: forms(size, 1, 6))
a_cut_and_a_form = st.integers(2, 4).flatmap(lambda size: st.tuples(forms(size, 1, 5), forms(size, 1, 1)))


def cone(normals: Sequence[Form]) -> Cone:
    """The orthant, cut."""
    return Cone.orthant(len(normals[0])).cut_all(normals)


@settings(max_examples=300)
@given(cuts)
def test_rays_are_the_extreme_rays(normals: list[Form]) -> None:
    """Every ray that enough bounding forms leave, each once, and no other."""
    found = cone(normals)
    event(f"{len(found.rays)} rays, {'an' if found.has_interior else 'no'} inside")
    assert set(found.rays) == extreme_rays(normals)
    assert len(set(found.rays)) == len(found.rays)


@settings(max_examples=300)
@given(cuts)
def test_no_ray_breaks_a_bounding_form(normals: list[Form]) -> None:
    """Each ray satisfies what the cone was cut by, and lies in the orthant."""
    found = cone(normals)
    assert all(inner(n, ray) >= 0 for n in (*normals, *found.normals) for ray in found.rays)
    assert all(min(ray) >= 0 and any(ray) and whole(ray) == ray for ray in found.rays)


@settings(max_examples=100)
@given(cuts, st.data())
def test_every_point_is_a_combination_of_rays(normals: list[Form], data: st.DataObject) -> None:
    """Points of a grid that satisfy every bounding form; those that break one are no combination."""
    found = cone(normals)
    coordinates = st.lists(st.integers(0, 5), min_size=found.size, max_size=found.size)
    for point in data.draw(st.lists(coordinates, min_size=4, max_size=4)):
        inside = all(inner(n, point) >= 0 for n in normals)
        event("inside" if inside else "outside")
        assert is_combination(point, found.rays) == inside


@settings(max_examples=300)
@given(cuts)
def test_an_inside_is_where_every_bounding_form_is_positive(normals: list[Form]) -> None:
    """The sum of all extreme rays is positive wherever any point is; ``middle`` is such a point."""
    found = cone(normals)
    rays = extreme_rays(normals)
    units = Cone.orthant(found.size).normals
    total = [sum(column) for column in zip(*rays, strict=True)] if rays else [0] * found.size
    assert found.has_interior == all(inner(n, total) > 0 for n in (*normals, *units))
    if found.has_interior:
        assert all(inner(n, found.middle) > 0 for n in (*normals, *units))


@settings(max_examples=300)
@given(a_cut_and_a_form)
def test_a_region_implies_what_no_point_of_it_breaks(drawn: tuple[list[Form], list[Form]]) -> None:
    """A form follows when it and the region's extreme rays agree, each found by trying every basis."""
    normals, (form,) = drawn
    found = cone(normals)
    breaks = {ray for ray in extreme_rays([*normals, tuple(-x for x in form)]) if inner(form, ray) < 0}
    assert found.implies(form) == (not breaks)
    assert found.implies([x * 7 for x in form]) == found.implies(form)


@settings(max_examples=300)
@given(cuts)
def test_facets_are_the_forms_that_nothing_else_implies(normals: list[Form]) -> None:
    """With that parameters are at least 1 they bound the same cone; without any one of them it is larger."""
    found = cone(normals)
    if not found.has_interior:
        return
    units = list(Cone.orthant(found.size).normals)
    facets = list(found.facets)
    assert not set(facets) & set(units)
    assert extreme_rays([*facets, *units]) == set(found.rays)
    for facet in facets:
        rest = [f for f in facets if f != facet]
        assert any(inner(facet, ray) < 0 for ray in extreme_rays([*rest, *units]))


@settings(max_examples=200)
@given(cuts, st.randoms(use_true_random=False))
def test_the_order_of_cuts_changes_nothing(normals: list[Form], random: object) -> None:
    """Nor does cutting twice."""
    shuffled = [*normals, *normals[:1]]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = cone(normals), cone(shuffled)
    assert set(one.rays) == set(other.rays)
    assert set(one.facets) == set(other.facets)
    assert set(one.normals) == set(other.normals)


def test_neighbours_alone_make_new_rays() -> None:
    """A square with one corner cut off: the line from it to the opposite corner meets the cut inside, at no corner."""
    square = cone([(1, 0, -1), (0, 1, -1), (-1, 0, 2), (0, -1, 2)])
    assert set(square.rays) == {(1, 1, 1), (2, 1, 1), (1, 2, 1), (2, 2, 1)}
    cut = square.cut((2, 2, -5))
    assert set(cut.rays) == {(3, 2, 2), (2, 3, 2), (2, 1, 1), (1, 2, 1), (2, 2, 1)}


@given(st.lists(st.fractions(-3, 3, max_denominator=5), min_size=1, max_size=4))
def test_a_primitive_form_is_the_same_form(numbers: list[object]) -> None:
    """Scaled by a positive number, to whole coefficients without a common divisor."""
    found = primitive(numbers)  # type: ignore[arg-type]
    assert found == whole(numbers)  # type: ignore[arg-type]
    scale = next((x / y for x, y in zip(found, numbers, strict=True) if y), 1)  # type: ignore[operator]
    assert scale > 0
    assert [scale * x for x in numbers] == list(found)  # type: ignore[operator]


@given(cuts)
def test_rank_is_the_rank(vectors: list[Form]) -> None:
    """Against SymPy; no vectors have rank 0."""
    assert rank(vectors) == sp.Matrix(vectors).rank()
    assert rank([]) == 0


def test_the_inner_product() -> None:
    """Of whole vectors."""
    assert dot((1, -2, 3), (4, 5, 6)) == 12
