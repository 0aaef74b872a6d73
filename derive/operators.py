"""What each operator makes of arrays (NumPy, float64): one table for ``Map``, one for ``Reduce``.

Points outside an Einsum's domain are not computed: an elementwise result is 0 there, a sum and a maximum skip them. A sum of
nothing is 0, a maximum of nothing is -inf, -inf less anything is -inf and 0/0 is 0, so a query that sees no key gets a row of
zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from derive.einsum import Einsum, Map, Reduce

Array = npt.NDArray[np.float64]
Kept = npt.NDArray[np.bool_]


class Block(NamedTuple):
    """An array, or a part of one, whose axes have names."""

    axes: tuple[str, ...]
    values: npt.NDArray[Any]

    def over(self, space: Sequence[str]) -> npt.NDArray[Any]:
        """The array with the axes of *space*, of length 1 where it lacks one."""
        order = [self.axes.index(axis) for axis in space if axis in self.axes]
        return self.values.transpose(order)[tuple(slice(None) if axis in self.axes else None for axis in space)]


def _difference(_: Kept, a: Array, b: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(a), -np.inf, a - b)


def _quotient(_: Kept, a: Array, b: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((a == 0) & (b == 0), 0.0, a / b)


def _softmax(kept: Kept, a: Array) -> Array:
    scores = np.where(kept, a, -np.inf)
    exponentials = np.exp(_difference(kept, scores, scores.max(axis=-1, keepdims=True)))
    return _quotient(kept, exponentials, exponentials.sum(axis=-1, keepdims=True))


def _softmax_gradient(kept: Kept, p: Array, dp: Array) -> Array:
    p, dp = (np.where(kept, np.broadcast_to(x, kept.shape), 0.0) for x in (p, dp))
    jacobian = p[..., :, None] * (np.eye(p.shape[-1]) - p[..., None, :])
    pulled: Array = np.einsum("...k,...kj->...j", dp, jacobian)
    return pulled


def _inverse(_: Kept, a: Array) -> Array:
    return np.linalg.inv(np.eye(a.shape[-1]) + np.tril(a, -1)).astype(np.float64)


def _logarithm(_: Kept, a: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(a)


MAPS: dict[Map, Callable[..., Array]] = {
    Map.COPY: lambda _, a: a,
    Map.VIEW: lambda _, a: a,
    Map.MUL: lambda _, a, b: a * b,
    Map.ADD: lambda _, a, b: a + b,
    Map.SUB: _difference,
    Map.DIV: _quotient,
    Map.NEG: lambda _, a: -a,
    Map.EXP: lambda _, a: np.exp(a),
    Map.LOG: _logarithm,
    Map.TANH: lambda _, a: np.tanh(a),
    Map.SIGMOID: lambda _, a: np.exp(-np.logaddexp(0.0, -a)),
    Map.RELU: lambda _, a: np.maximum(a, 0.0),
    Map.MAXIMUM: lambda _, a, b: np.maximum(a, b),
    Map.TOP: lambda _, made: made,
    Map.GATHER: lambda _, made: made,
    Map.POSITION: lambda _, made: made,
    Map.KEEP: lambda _, made: made,
    Map.INVERSE: _inverse,
    Map.SOFTMAX: _softmax,
    Map.SOFTMAX_GRADIENT: _softmax_gradient,
}
"""What each operator makes of the points that are kept and of its operands; softmax and its gradient run along
the result's last index, an inverse along its last two. The operand of one that generates is what ``generated`` has made, that
of a selection what ``derive.selection`` has."""

REDUCES: dict[Reduce, Callable[[Array, tuple[int, ...], Kept], Array]] = {
    Reduce.SUM: lambda points, axes, kept: points.sum(axis=axes, where=kept),
    Reduce.MAX: lambda points, axes, kept: points.max(axis=axes, where=kept, initial=-np.inf),
}
"""How the points that are kept are combined along *axes*."""


def compute(einsum: Einsum, axes: Sequence[str], operands: Sequence[Block], kept: Block | None) -> Array:
    """The values of one Einsum, or of a part of its iteration space.

    Args:
        einsum: whose operators are used.
        axes: the result's axes.
        operands: what it reads; an axis that the result lacks is reduced.
        kept: the points that are computed; ``None`` for all.
    """
    if renamed := einsum.renamed:
        operands = [Block(tuple(renamed.get(axis, axis) for axis in block.axes), block.values) for block in operands]
    reduced = dict.fromkeys(axis for block in operands for axis in block.axes if axis not in axes)
    space = (*axes, *reduced)
    aligned = [block.over(space) for block in operands]
    keep = np.ones((1,) * len(space), bool) if kept is None else kept.over(space)
    shape = np.broadcast_shapes(*(a.shape for a in aligned), keep.shape)
    keep = np.broadcast_to(keep, shape)
    with np.errstate(over="ignore", invalid="ignore"):
        points = np.broadcast_to(MAPS[einsum.map](keep, *aligned), shape)
    if einsum.reduce is None:
        return np.where(keep, points, 0.0)
    return REDUCES[einsum.reduce](points, tuple(range(len(axes), len(space))), keep)


def generated(einsum: Einsum, shape: Sequence[int], scalars: Mapping[str, Array]) -> Array:
    """All of what an Einsum makes of coordinates and scalars alone.

    Args:
        einsum: whose operator generates its result.
        shape: the result's.
        scalars: the value of each scalar it reads, by name.
    """
    if einsum.map is Map.POSITION:
        return np.arange(prod(shape), dtype=np.float64).reshape(shape)
    rate = float(scalars[einsum.inputs[0].name])
    seed = [len(einsum.output.axes), *einsum.output.name.encode()]  # a seed of its own for each mask, cut up or not
    drawn = np.random.default_rng(seed).random(shape)
    return np.where(drawn < rate, 0.0, 1 / (1 - rate))
