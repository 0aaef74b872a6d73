"""A graph drawn in layers: boxes of words, each below what it reads, lines that pass between the boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise

from outputs.report.axes import WIDTH, picture
from outputs.report.markup import Markup, element, joined

_CHARACTER, _PADDING, _BETWEEN, _ROW, _LINE = 6.4, 12, 10, 30, 14
_SWEEPS = 6


@dataclass(frozen=True)
class Box:
    """A node of the drawing.

    Attributes:
        lines: its words, a line each; none for the bend of a line that passes a layer.
        kind: its class.
    """

    lines: tuple[str, ...]
    kind: str

    @property
    def width(self) -> float:
        """Units across."""
        return max((len(line) for line in self.lines), default=0) * _CHARACTER + (_PADDING if self.lines else 0)

    @property
    def height(self) -> float:
        """Units down."""
        return len(self.lines) * _LINE + 8


def layered(name: str, title: str, boxes: Mapping[str, Box], edges: Sequence[tuple[str, str]]) -> Markup:
    """*boxes* and the lines between them, everything that is read above what reads it."""
    rows, links, all_boxes = _rows(boxes, edges)
    rows = _untangled(rows, links)
    width = max(WIDTH, *(sum(all_boxes[n].width for n in row) + (len(row) + 1) * _BETWEEN for row in rows))
    centre: dict[str, tuple[float, float, float]] = {}
    y = 4.0
    for row in rows:
        tall = max(all_boxes[n].height for n in row)
        spare = (width - sum(all_boxes[n].width for n in row)) / (len(row) + 1)
        x = spare
        for n in row:
            centre[n] = (x + all_boxes[n].width / 2, y, tall)
            x += all_boxes[n].width + spare
        y += tall + _ROW
    lines = [_line(centre[a], centre[b], all_boxes[a], all_boxes[b]) for a, b in links]
    lines += [f"M{_r(cx)} {_r(top)}v{_r(tall)}" for n, (cx, top, tall) in centre.items() if not all_boxes[n].lines]
    edges_drawn = [element("path", d="".join(lines), class_="edge")] if lines else []
    drawn = [_box(all_boxes[n], *centre[n]) for row in rows for n in row if all_boxes[n].lines]
    says = "; ".join(
        " ".join(box.lines)
        + (" from " + ", ".join(a for a, b in edges if b == n) if any(b == n for _, b in edges) else "")
        for n, box in boxes.items()
    )
    boxes_drawn = element("g", *drawn, class_="boxes")
    return picture(name, title, says, *edges_drawn, boxes_drawn, height=_r(y - _ROW + 6), width=_r(width))


def _r(x: float) -> float | int:
    rounded = round(x, 1)
    return int(rounded) if rounded == int(rounded) else rounded


def _box(box: Box, cx: float, top: float, tall: float) -> Markup:
    y = top + (tall - box.height) / 2
    words = [
        element(
            "text",
            line,
            x=_r(cx),
            y=_r(y + 4 + _LINE * (n + 0.75)),
            class_="name" if n == 0 else None,
        )
        for n, line in enumerate(box.lines)
    ]
    shape = element(
        "rect",
        x=_r(cx - box.width / 2),
        y=_r(y),
        width=_r(box.width),
        height=_r(box.height),
        class_=box.kind,
    )
    return joined(shape, *words)


def _line(a: tuple[float, float, float], b: tuple[float, float, float], above: Box, below: Box) -> str:
    """From under one box to above the other, as a piece of a path."""
    start = a[1] + (a[2] + above.height) / 2 if above.lines else a[1] + a[2]
    end = b[1] + (b[2] - below.height) / 2 if below.lines else b[1]
    return f"M{_r(a[0])} {_r(start)}L{_r(b[0])} {_r(end)}"


def _rows(
    boxes: Mapping[str, Box], edges: Sequence[tuple[str, str]]
) -> tuple[list[list[str]], list[tuple[str, str]], dict[str, Box]]:
    """Layers by longest path, inputs just above their first reader; a line across several layers gets a bend in each."""
    read = {n: [a for a, b in edges if b == n] for n in boxes}
    depth: dict[str, int] = {}
    for n in TopologicalSorter(read).static_order():
        depth[n] = 1 + max((depth[a] for a in read[n]), default=-1)
    for n in boxes:
        readers = [depth[b] for a, b in edges if a == n]
        if not read[n] and readers:
            depth[n] = min(readers) - 1
    rows: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for n in boxes:
        rows[depth[n]].append(n)
    links: list[tuple[str, str]] = []
    found = dict(boxes)
    for a, b in dict.fromkeys(edges):
        before = a
        for layer in range(depth[a] + 1, depth[b]):
            bend = f"{a}>{layer}"  # lines from one box share their bends
            if bend not in found:
                found[bend] = Box((), "bend")
                rows[layer].append(bend)
            if (before, bend) not in links:
                links.append((before, bend))
            before = bend
        links.append((before, b))
    return rows, links, found


def _untangled(rows: list[list[str]], links: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Each layer ordered by the middle of its neighbours, down and up in turn."""
    rows = [list(row) for row in rows]
    best, fewest = rows, _crossings(rows, links)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        order = range(1, len(rows)) if down else range(len(rows) - 2, -1, -1)
        for layer in order:
            fixed = rows[layer - 1 if down else layer + 1]
            place = {n: i / max(1, len(fixed) - 1) for i, n in enumerate(fixed)}
            middle: dict[str, float] = {}
            for i, n in enumerate(rows[layer]):
                near = (
                    [place[a] for a, b in links if b == n and a in place]
                    if down
                    else [place[b] for a, b in links if a == n and b in place]
                )
                middle[n] = sum(near) / len(near) if near else i / max(1, len(rows[layer]) - 1)
            rows[layer] = sorted(rows[layer], key=lambda n: middle[n])
        if (now := _crossings(rows, links)) < fewest:
            best, fewest = [list(row) for row in rows], now
    return best


def _crossings(rows: list[list[str]], links: Sequence[tuple[str, str]]) -> int:
    """How many pairs of lines cross."""
    count = 0
    for upper, lower in pairwise(rows):
        a, b = ({n: i for i, n in enumerate(row)} for row in (upper, lower))
        between = [(a[x], b[y]) for x, y in links if x in a and y in b]
        count += sum((p[0] - q[0]) * (p[1] - q[1]) < 0 for i, p in enumerate(between) for q in between[i + 1 :])
    return count
