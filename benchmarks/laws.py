"""How long ``derive laws`` takes: processor time of every variant under every mask, each in a process of its own.

    python benchmarks/laws.py [VARIANT,...] [MASK,...]

A fork begins with everything imported, so that only the laws are timed; one beyond ``CAP`` seconds is given up.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys

from derive.attention import names
from outputs.cli import main as derive

CAP = 60
"""Seconds of processor time."""
MASKS = {
    "full": (),
    "causal": ("mask=causal",),
    "window": ("mask=window",),
    "sinks": ("mask=sinks",),
    "global-local": ("mask=global-local",),
    "chunk": ("mask=chunk",),
    "prefix": ("mask=prefix",),
    "docs": ("mask=docs", "docs=512,512,1024"),
    "dilated": ("mask=dilated",),
    "block-sparse": ("mask=block-sparse", "s=0.1"),
}


def seconds(variant: str, mask: str) -> tuple[float, int]:
    """Processor time of one answer, and its exit code: 2 where the variant refuses the mask, negative where it was stopped."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (CAP, CAP + 1))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        sys.argv = ["derive", "laws", variant, *MASKS[mask], "--json"]
        try:
            derive()
        except SystemExit as ended:
            os._exit(int(ended.code or 0))
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    return used.ru_utime + used.ru_stime, os.waitstatus_to_exitcode(status)


def main() -> None:
    """Print each that takes over 4 s as it ends, then how many take how long."""
    import outputs.commands.laws
    import outputs.laws_report  # noqa: F401  (what every fork shares)

    variants = sys.argv[1].split(",") if len(sys.argv) > 1 else names()
    masks = sys.argv[2].split(",") if len(sys.argv) > 2 else tuple(MASKS)
    taken = []
    for variant in variants:
        for mask in masks:
            spent, code = seconds(variant, mask)
            if code != 2:
                taken.append(spent)
            if spent > 4 or code not in (0, 2):
                print(f"{spent:7.2f} s  {variant} mask={mask}" + ("" if code >= 0 else "  given up"), flush=True)
    if taken:
        print(f"{len(taken)} answers: median {statistics.median(taken):.2f} s, worst {max(taken):.2f} s, ", end="")
        print(f"{sum(t > 4 for t in taken)} over 4 s, {sum(t > 10 for t in taken)} over 10 s")


if __name__ == "__main__":
    main()
