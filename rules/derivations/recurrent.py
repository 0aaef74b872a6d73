"""A launch every B_r steps: the state goes through memory, as it does in decoding."""

import sympy as sp

from derive.rewrite import WherePossible
from derive.symbols import B_r
from rules.plan import Plan
from rules.schedule import fuse, keep_resident, launch_sequences, state_in_memory, steps

PLAN = Plan(
    name="recurrent",
    says="B_r steps at a time (tokens, or chunks), the state read from memory before and written after them, as in decoding",
    reference="Katharopoulos et al. 2020, arXiv:2006.16236, section 3.4",
    algebra=(),
    schedule=(
        fuse.ALL,
        steps.ROWS,
        launch_sequences.RULE,
        state_in_memory.RULE,
        WherePossible(keep_resident.FORWARD),
    ),
    tiles={B_r: sp.Integer(1)},
)
