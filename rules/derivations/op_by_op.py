"""Op by op: one kernel an Einsum, as an eager framework without fusion runs it; every intermediate crosses memory."""

from derive.rewrite import WherePossible
from rules.algebra import split_softmax
from rules.plan import Plan
from rules.schedule import keep_resident

PLAN = Plan(
    name="op-by-op",
    says="one kernel an operation: scale, QK^T, max, subtract, exp, sum, divide, PV",
    reference="eager execution",
    algebra=(WherePossible(split_softmax.RULE),),
    schedule=(WherePossible(keep_resident.FORWARD),),
)
