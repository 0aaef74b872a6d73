"""The dataflow graph and each schedule drawn: what is fused, what is tiled, and where each tensor lives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from derive.einsum import Map, Reduce
from derive.footprint import Place, tiled_kernels, tiles_by_place
from outputs.notation import text
from outputs.report.layers import Box, layered
from outputs.report.markup import Content, Markup, element, joined

if TYPE_CHECKING:
    from derive.einsum import Einsum, Tensor
    from derive.graph import Graph
    from derive.schedule import Kernel, Schedule
    from outputs.account import Account

_SIGNS = {
    Map.COPY: "{0}",
    Map.MUL: "{0} {1}",
    Map.ADD: "{0} + {1}",
    Map.SUB: "{0} - {1}",
    Map.DIV: "{0} / {1}",
    Map.NEG: "-{0}",
    Map.EXP: "exp {0}",
    Map.LOG: "log {0}",
    Map.TANH: "tanh {0}",
    Map.VIEW: "{0}",
    Map.SOFTMAX: "softmax {0}",
}
"""How an operation is written; others by their name."""
_KINDS = {
    "input": "read from HBM",
    "chip": "made on chip and never in HBM",
    "spilled": "made on chip, visits memory between tiles",
    "output": "made on chip and written to HBM",
}


def graph_drawn(graph: Graph, name: str) -> Markup:
    """A graph before anything is scheduled: every tensor, and what makes it."""
    boxes = {t.name: Box((_tensor(t),), "input") for t in graph.inputs}
    edges = []
    for e in graph.einsums:
        kind = "output" if e.output.name in graph.outputs else "chip plain"
        boxes[e.output.name] = Box((_tensor(e.output), operation(e)), kind)
        edges += [(t.name, e.output.name) for t in e.inputs if t.name in boxes]
    svg = layered(name, "Dataflow graph", boxes, edges)
    return element("figure", element("figcaption", "what is computed: each tensor below those it is made of"), svg)


def schedules_drawn(accounts: Iterable[Account]) -> Markup:
    """Schedules of one page; a kernel that several have is drawn once."""
    said: _Said = {}
    return joined(*(_schedule(account, account.name, said) for account in accounts))


def schedule_drawn(account: Account, title: str) -> Markup:
    """Each kernel with what it reads, keeps and writes, under *title*."""
    return _schedule(account, title, {})


@dataclass(frozen=True)
class _Drawn:
    """A kernel that a page has drawn: under which schedule and number, and the id of its picture."""

    schedule: str
    number: int
    picture: str


_Said = dict[Markup, _Drawn]
"""What is drawn already, by all that is said of a kernel but its number."""


def _schedule(account: Account, title: str, said: _Said) -> Markup:
    schedule = account.derivation.schedule
    again: list[tuple[int, _Drawn]] = []
    figures: list[list[int]] = []
    kernels = {n: _boxes(account, schedule, kernel) for n, kernel in enumerate(schedule.kernels, 1)}
    words = {n: _words(k, tiled=k in tiled_kernels(schedule)) for n, k in enumerate(schedule.kernels, 1)}
    cached = {n: k.residency.tensors if k.residency else () for n, k in enumerate(schedule.kernels, 1)}
    for n, (boxes, edges) in kernels.items():
        key = joined(*words[n], str(cached[n]), str(boxes), str(edges))
        if (before := said.get(key)) is not None:
            again.append((n, before))
            continue
        if figures and figures[-1][-1] == n - 1 and len(words[n]) == 1 and words[n] == words[n - 1]:
            figures[-1].append(n)  # operations one by one make one picture
        else:
            figures.append([n])
        said[key] = _Drawn(account.name, n, f"kernel-{account.name}-{figures[-1][0]}")
    drawn = [_figure(account, numbers, kernels, words, cached) for numbers in figures]
    count = len(schedule.kernels)
    says = f"{title}: {count} kernel{'s' if count > 1 else ''}"
    return joined(
        element("h3", says), element("p", *_elsewhere(again), class_="why") if again else None,
        element("div", *drawn, class_="pictures") if drawn else None,
    )  # fmt: skip


def _figure(
    account: Account,
    numbers: Sequence[int],
    kernels: Mapping[int, tuple[dict[str, Box], list[tuple[str, str]]]],
    words: Mapping[int, list[Markup]],
    cached: Mapping[int, tuple[str, ...]],
) -> Markup:
    """A kernel; or several operations that run one after another, each a kernel."""
    first, last = numbers[0], numbers[-1]
    which = f"kernel {first}" if first == last else f"kernels {first} to {last}"
    boxes: dict[str, Box] = {}
    for n in numbers:
        boxes |= {name: box for name, box in kernels[n][0].items() if name not in boxes or box.kind != "input"}
    edges = list(dict.fromkeys(edge for n in numbers for edge in kernels[n][1]))
    svg = layered(f"kernel-{account.name}-{first}", f"{account.name}, {which}", boxes, edges)
    caption = element("figcaption", f"{which}: {'each ' if first != last else ''}", words[first][0])
    held = _cached({n: cached[n] for n in numbers})
    return element("figure", caption, *words[first][1:], held, svg, class_="kernel")


def _cached(tensors: Mapping[int, tuple[str, ...]]) -> Markup | None:
    """What kernels, by number, read from the L2, as it is modelled."""
    readers: dict[str, list[str]] = {}
    for n, names in tensors.items():
        for name in names:
            readers.setdefault(name, []).append(str(n))
    if not readers:
        return None
    held = (name if len(tensors) == 1 else f"{name} (in {', '.join(numbers)})" for name, numbers in readers.items())
    return element("p", f"modelled in the L2: {', '.join(held)}", class_="why")


def _elsewhere(again: Sequence[tuple[int, _Drawn]]) -> list[Content]:
    """Where kernels are drawn that an earlier schedule has too; those that follow one another in both in one phrase."""
    runs: list[list[tuple[int, _Drawn]]] = []
    for n, at in again:
        if runs and runs[-1][-1] == (n - 1, _Drawn(at.schedule, at.number - 1, runs[-1][-1][1].picture)):
            runs[-1].append((n, at))
        else:
            runs.append([(n, at)])
    said: list[Content] = []
    for run in runs:
        (n, at), (end, until) = run[0], run[-1]
        here, there = (f"kernel{f's {a} to' if a != z else ''} {z}" for a, z in ((n, end), (at.number, until.number)))
        link = element("a", f"{there} of {at.schedule}", href=f"#{at.picture}")
        said += ["; " if said else "drawn above: ", f"{here}, as ", link]
    return said


def legend() -> Markup:
    """What the boxes mean."""
    return element(
        "p",
        *(
            element("span", element("span", "", class_=f"swatch box-{kind}"), f" {words} ", class_="key")
            for kind, words in _KINDS.items()
        ),
        class_="keys",
    )


def _boxes(account: Account, schedule: Schedule, kernel: Kernel) -> tuple[dict[str, Box], list[tuple[str, str]]]:
    """What a kernel reads and makes, and which of it is made of which."""
    tiled = kernel in tiled_kernels(schedule)
    boxes = {
        tensor.name: Box((_tensor(tensor), *_tile(kernel, tensor, tiled)), "input")
        for tensor in tiles_by_place(schedule, kernel)[Place.SHARED]
    }
    edges = []
    for e in schedule.nodes(kernel):
        kind = lives(account, kernel, e.output.name)
        boxes[e.output.name] = Box((_tensor(e.output), operation(e), *_tile(kernel, e.output, tiled)), kind)
        edges += [(t.name, e.output.name) for t in e.inputs if t.name in boxes]
    return boxes, edges


def _words(kernel: Kernel, *, tiled: bool) -> list[Markup]:
    """What a kernel fuses and where its tiles live; then its loops, and what else there is to say."""
    fused = f"{len(kernel.einsums)} operations fused" if len(kernel.einsums) > 1 else "one operation"
    where = "; tiles of what it reads in shared memory, of what it makes in registers" if tiled else ""
    nest = [element("ol", *(element("li", str(loop)) for loop in kernel.loops), class_="nest")] if kernel.loops else []
    words = [joined(f"{fused}{where}{'' if nest else ', on whole operands'}"), *nest]
    if kernel.skips_masked:
        words.append(element("p", "tiles that the mask empties are skipped", class_="why"))
    return words


def lives(account: Account, kernel: Kernel, name: str) -> str:
    """Where a tensor lives for *kernel*: one of the kinds of the legend."""
    schedule = account.derivation.schedule
    if name not in kernel.einsums:
        return "input"
    if name in {t.name for t in schedule.outputs_of(kernel)}:
        return "output"
    moved = account.sm.by_tensor.get(name)
    return "chip" if moved is None or moved.read + moved.write == 0 else "spilled"


def _tensor(tensor: Tensor) -> str:
    return f"{tensor.name}[{','.join(i.name for i in tensor.indices)}]" if tensor.indices else tensor.name


def _tile(kernel: Kernel, tensor: Tensor, tiled: bool) -> tuple[str, ...]:
    """The size of a tile: looped indices by their tile, the others whole."""
    if not tiled or not tensor.indices:
        return ()
    sizes = []
    for index in tensor.indices:
        loop = kernel.loop_of(index.name)
        size = text(index.extent) if loop is None else text(loop.tile)
        if size != "1":
            sizes.append(size)
    return (f"tile {' x '.join(sizes)}" if sizes else "tile 1",)


def operation(einsum: Einsum) -> str:
    """An operation in few words: ``sum_d Q K``."""
    names = [t.name for t in einsum.inputs]
    sign = _SIGNS.get(einsum.map)
    words = sign.format(*names) if sign is not None else f"{einsum.map.value}({', '.join(names)})"
    if einsum.reduce is not None:
        over = ",".join(i.name for i in einsum.reduced)
        words = f"{'sum' if einsum.reduce is Reduce.SUM else einsum.reduce.value}_{over} {words}"
    return words + (f", by {einsum.rescale}" if einsum.rescale else "")
