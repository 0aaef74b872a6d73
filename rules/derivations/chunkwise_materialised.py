"""The state of every step is written by one kernel; another reads them, all steps at once."""

from derive.rewrite import WherePossible
from rules.plan import Plan
from rules.schedule import keep_resident, launch_sequences, split_at_states, steps

PLAN = Plan(
    name="chunkwise-materialised",
    says="two kernels: one runs step after step and writes every state, another reads them, a CTA for each step",
    reference="Yang et al. 2023, arXiv:2312.06635, algorithm 1, materialised",
    algebra=(),
    schedule=(
        split_at_states.RULE,
        steps.ONE,
        launch_sequences.RULE,
        launch_sequences.RULE,
        WherePossible(keep_resident.FORWARD),
    ),
)
