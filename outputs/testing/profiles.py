"""A profiler's file as numbers, for the rows of a table."""

from __future__ import annotations

from pathlib import Path

from derive.exact import Number


def read_counters(path: Path | str, kernel: str = "") -> dict[str, Number]:
    """What a profiler counted, by counter: ``dram read``, ``dram write``, ``l2 read``, ... in bytes, ``seconds``, ``hit rate``.

    Launches of one kernel are averaged, different kernels added up, as ``derive confront`` does.

    Args:
        path: a CSV file of Nsight Compute, Nsight Systems or rocprof, in any form that ``derive confront`` reads.
        kernel: text that a kernel's name must contain; every kernel unless given.

    Raises:
        BadValueError: it is no such file, or has no such kernel.
    """
    from outputs.confront.profile_csv import read_profile  # which reads tables as this package does

    return dict(read_profile(Path(path), kernel).counters)
