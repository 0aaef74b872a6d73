"""How the tokens of a sequence are dealt to the devices of a ring, and the pairs that each then has to work on.

Contiguous: device r holds chunk r of R. Zig-zag: the tokens are cut in 2 R chunks, and device r holds chunks r and
2 R - 1 - r, an early one and a late one.

Source: Liu et al. 2023, arXiv:2310.01889 (contiguous); the zig-zag deal is that of Llama 3, arXiv:2407.21783, section 3.3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.mask import Mask
from derive.parallel.rectangle import Range, pairs_in
from derive.symbols import R, dummy

READER, OWNER = dummy("r"), dummy("j")
"""The device that works, and the device whose keys it works on."""


@dataclass(frozen=True, slots=True)
class Shards:
    """A deal of chunks to devices.

    Attributes:
        zigzag: whether each device holds an early and a late chunk instead of one.
    """

    zigzag: bool = False

    @property
    def pieces(self) -> int:
        """Chunks that a device holds."""
        return 2 if self.zigzag else 1

    def chunks(self, device: sp.Expr, devices: sp.Expr) -> tuple[sp.Expr, ...]:
        """The chunks that *device* of *devices* holds, by number."""
        return (device, 2 * devices - 1 - device) if self.zigzag else (device,)


def device_pairs(
    mask: Mask | None,
    chunk: sp.Expr,
    keys: sp.Expr,
    shards: Shards,
    reader: sp.Expr = READER,
    devices: sp.Expr = R,
) -> sp.Expr:
    """Pairs of the queries that device *reader* holds, with all keys.

    Args:
        mask: the mask of the whole sequence.
        chunk: queries of one chunk.
        keys: keys of the whole sequence.
        shards: who holds what.
        reader: the device.
        devices: how many there are.
    """
    everything = (sp.Integer(0), keys)
    return sp.Add(*(pairs_in(mask, _positions(c, chunk), everything) for c in shards.chunks(reader, devices)))


def shard_pairs(
    mask: Mask | None,
    chunk: tuple[sp.Expr, sp.Expr],
    shards: Shards,
    reader: sp.Expr = READER,
    owner: sp.Expr = OWNER,
    devices: sp.Expr = R,
) -> sp.Expr:
    """Pairs of the queries that device *reader* holds with the keys that device *owner* holds: the work of one ring step.

    Args:
        mask: the mask of the whole sequence.
        chunk: queries and keys of one chunk.
        shards: who holds what.
        reader: the device that works.
        owner: the device whose keys it works on.
        devices: how many there are.
    """
    rows, keys = chunk
    return sp.Add(
        *(
            pairs_in(mask, _positions(a, rows), _positions(b, keys))
            for a in shards.chunks(reader, devices)
            for b in shards.chunks(owner, devices)
        )
    )


def _positions(chunk: sp.Expr, size: sp.Expr) -> Range:
    return sp.expand(chunk * size), sp.expand((chunk + 1) * size)
