"""Products without a softmax between them, reassociated: K^T V first, a kernel each, and no scores."""

from derive.rewrite import WherePossible
from rules.algebra import reassociate, split_softmax
from rules.plan import Plan
from rules.schedule import fuse, keep_resident

PLAN = Plan(
    name="reassociated",
    says="K^T V first, then Q times that: two kernels, no scores, FLOPs linear in N",
    reference="Katharopoulos et al. 2020, arXiv:2006.16236, section 3.2",
    algebra=(reassociate.RULE, WherePossible(reassociate.RULE), WherePossible(split_softmax.RULE)),
    schedule=(WherePossible(fuse.PROLOGUE), WherePossible(keep_resident.FORWARD)),
)
