"""One matrix product, the yardstick: N_q x d by d x N_k, the scores of one head before any softmax."""

from derive.symbols import N_k, N_q, d
from derive.variant import Variant

VARIANT = Variant(
    name="matmul",
    says="one matrix product S = Q K^T, no softmax: what tiling alone can do",
    text="S[q,k] = sum[d] Q[q,d] * K[k,d]",
    extents={"q": N_q, "k": N_k, "d": d},
    reference="Hong & Kung 1981, I/O complexity: the red-blue pebble game",
    defaults={},
    outputs=("S",),
    schedules=("naive", "square"),
)
