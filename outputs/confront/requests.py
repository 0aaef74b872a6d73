"""Bytes that AMD's L2 asks of memory, from requests of several sizes: what FETCH_SIZE and WRITE_SIZE are made of.

    read   =  128 n_128  +  32 n_32  +  64 (n - n_128 - n_32)
    write  =  64 n_64  +  32 (n - n_64)

Reads of 128 B, n_128 (TCC_BUBBLE), are gfx942's alone.

Source: rocprofiler-sdk, counter_defs.yaml, FETCH_SIZE and WRITE_SIZE of gfx90a and gfx942.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction

from derive.errors import BadValueError

READS, READS_32, READS_128 = "reads", "reads of 32 B", "reads of 128 B"
WRITES, WRITES_64 = "writes", "writes of 64 B"
COLUMNS: Mapping[str, str] = {
    **{f"TCC_{unit}_RDREQ_sum": READS for unit in ("EA", "EA0")},
    **{f"TCC_{unit}_RDREQ_32B_sum": READS_32 for unit in ("EA", "EA0")},
    "TCC_BUBBLE_sum": READS_128,
    **{f"TCC_{unit}_WRREQ_sum": WRITES for unit in ("EA", "EA0")},
    **{f"TCC_{unit}_WRREQ_64B_sum": WRITES_64 for unit in ("EA", "EA0")},
}
"""A column's requests; the unit that they leave the L2 by is EA on MI200 and EA0 on MI300."""


def bytes_of(requests: Mapping[str, Fraction], where: str, without: Collection[str] = ()) -> dict[str, Fraction]:
    """Bytes read and written, ``dram read`` and ``dram write``, where there are *requests* of them.

    Args:
        requests: how many of each size, and in all.
        where: what they were read from.
        without: what is known in bytes already.

    Raises:
        BadValueError: requests without those of the other size, or fewer in all than of one size.
    """
    found = {}
    for what, all_, of_a_size, columns in (
        ("dram read", READS, (READS_32, READS_128), "TCC_EA_RDREQ_sum and TCC_EA_RDREQ_32B_sum"),
        ("dram write", WRITES, (WRITES_64,), "TCC_EA_WRREQ_sum and TCC_EA_WRREQ_64B_sum"),
    ):
        if what in without or not {all_, *of_a_size} & requests.keys():
            continue
        if all_ not in requests or of_a_size[0] not in requests:
            size = "FETCH_SIZE" if all_ == READS else "WRITE_SIZE"
            raise BadValueError(f"{where}: {all_} are of two sizes; export both {columns}, or {size}")
        sizes = [requests.get(size, Fraction(0)) for size in of_a_size]
        if (others := requests[all_] - sum(sizes)) < 0:
            raise BadValueError(
                f"{where}: fewer {all_} in all than {' and '.join(of_a_size)}; measure them in one pass"
            )
        each = (32, 128, 64) if all_ == READS else (64, 32)
        found[what] = sum((n * size for n, size in zip((*sizes, others), each, strict=True)), Fraction(0))
    return found
