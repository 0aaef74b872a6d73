"""The dataflow graph and each schedule drawn: what is fused, what is tiled, and where each tensor lives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from derive.einsum import Map, Reduce
from derive.footprint import Place, tiled_kernels, tiles_by_place
from outputs.notation import text
from outputs.report.layers import Box, layered
from outputs.report.markup import Markup, element, joined

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


def schedule_drawn(account: Account, title: str = "") -> Markup:
    """Each kernel with what it reads, keeps and writes, under *title* or the schedule's name."""
    schedule = account.derivation.schedule
    drawn = [_kernel(account, schedule, kernel, n) for n, kernel in enumerate(schedule.kernels, 1)]
    count = len(schedule.kernels)
    says = f"{title or account.name}: {count} kernel{'s' if count > 1 else ''}"
    return joined(element("h3", says), element("div", *drawn, class_="pictures"))


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


def _kernel(account: Account, schedule: Schedule, kernel: Kernel, n: int) -> Markup:
    tiled = kernel in tiled_kernels(schedule)
    held = tiles_by_place(schedule, kernel)
    boxes: dict[str, Box] = {}
    for tensor in held[Place.SHARED]:
        boxes[tensor.name] = Box((_tensor(tensor), *_tile(kernel, tensor, tiled)), "input")
    edges = []
    for e in schedule.nodes(kernel):
        kind = lives(account, kernel, e.output.name)
        boxes[e.output.name] = Box((_tensor(e.output), operation(e), *_tile(kernel, e.output, tiled)), kind)
        edges += [(t.name, e.output.name) for t in e.inputs if t.name in boxes]
    svg = layered(f"kernel-{account.name}-{n}", f"{account.name}, kernel {n}", boxes, edges)
    fused = f"{len(kernel.einsums)} operations fused" if len(kernel.einsums) > 1 else "one operation"
    nest = [element("li", str(loop)) for loop in kernel.loops] or [element("li", "no loops of its own: whole operands")]
    where = ""
    if tiled:
        where = "; tiles of what it reads in shared memory, of what it makes in registers"
    words = f"kernel {n}: {fused}{where}"
    notes = [element("ol", *nest, class_="nest")]
    if kernel.skips_masked:
        notes.append(element("p", "tiles that the mask empties are skipped", class_="why"))
    if kernel.residency is not None and kernel.residency.tensors:
        notes.append(element("p", f"modelled in the L2: {', '.join(kernel.residency.tensors)}", class_="why"))
    return element("figure", element("figcaption", words), *notes, svg, class_="kernel")


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
