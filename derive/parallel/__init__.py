"""Several devices: one more level of memory, above HBM. A device is to its HBM what a CTA is to its fast memory.

The loop nest of a schedule over devices is written in the same loops, with tiles of N/R tokens or of h/R heads; the rule
that counts a CTA's re-reads (``derive.traffic``) then counts what a device reads, and all but the share it holds itself
crosses a link.
"""
