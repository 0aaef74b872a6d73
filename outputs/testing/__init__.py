"""For the tests of one's own kernels, simulators and profiles: strategies, closed forms to agree with, and known slips.

    from outputs.testing import agree, closed_form, shapes

    def test_my_byte_counter():
        agree(my_bytes, closed_form("mha", "flash2", "sm"), over=shapes("N", "d", "Br", "Bc"))

``agree`` draws sizes, compares exactly (or within ``tolerance``), and raises ``Disagreement`` with the smallest sizes at which
the two differ, the powers with which both grow, and what slip explains it, where one does.
"""

from outputs.testing.agreement import Agreement, Disagreement, agree, agree_table, obey
from outputs.testing.closed_form import QUANTITIES, ClosedForm, closed_form
from outputs.testing.exponents import Exponent, exponents
from outputs.testing.slips import Slip, slips
from outputs.testing.strategies import dtypes, heads, machines, masks, schedules, shapes, variants
from outputs.testing.table import read_table

__all__ = [
    "QUANTITIES",
    "Agreement",
    "ClosedForm",
    "Disagreement",
    "Exponent",
    "Slip",
    "agree",
    "agree_table",
    "closed_form",
    "dtypes",
    "exponents",
    "heads",
    "machines",
    "masks",
    "obey",
    "read_table",
    "schedules",
    "shapes",
    "slips",
    "variants",
]
