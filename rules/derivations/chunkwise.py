"""One CTA a sequence and head runs step after step, its state on chip: each operand is read once."""

from derive.rewrite import WherePossible
from rules.plan import Plan
from rules.schedule import fuse, keep_resident, launch_sequences, steps

PLAN = Plan(
    name="chunkwise",
    says="one kernel, a CTA for each head that runs step after step (chunks, or tokens) with the state on chip",
    reference="Yang et al. 2023, arXiv:2312.06635, algorithm 1, not materialised",
    algebra=(),
    schedule=(fuse.ALL, steps.ONE, launch_sequences.RULE, WherePossible(keep_resident.FORWARD)),
)
