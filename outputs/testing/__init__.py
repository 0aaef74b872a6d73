"""For the tests of one's own kernels, simulators and profiles: strategies, closed forms to agree with, and known slips.

    from outputs.testing import agree, closed_form, shapes

    def test_my_byte_counter():
        agree(my_bytes, closed_form("mha", "flash2", "sm"), over=shapes("N", "d", "Br", "Bc"))

``agree`` draws sizes, compares exactly (or within ``tolerance``), and raises ``Disagreement`` with the smallest sizes at which
the two differ, the powers with which both grow, and what slip explains it, where one does. ``obey`` tests how a count grows,
``obey(my_bytes, law_of(form, "Br"), over=...)``. ``agree_table`` and ``obey_table`` take a CSV file, or rows, not a callable.
"""

from outputs.testing.agreement import agree, agree_table
from outputs.testing.closed_form import QUANTITIES, ClosedForm, closed_form
from outputs.testing.disagreement import Agreement, Disagreement
from outputs.testing.exponents import Exponent, exponents
from outputs.testing.obedience import NothingTested, law_of, obey, obey_table
from outputs.testing.profiles import read_counters
from outputs.testing.slip import Slip
from outputs.testing.slips import slips
from outputs.testing.strategies import dtypes, graphs, heads, machines, masks, schedules, shapes, tiles, variants
from outputs.testing.table import read_table

__all__ = [
    "QUANTITIES",
    "Agreement",
    "ClosedForm",
    "Disagreement",
    "Exponent",
    "NothingTested",
    "Slip",
    "agree",
    "agree_table",
    "closed_form",
    "dtypes",
    "exponents",
    "graphs",
    "heads",
    "law_of",
    "machines",
    "masks",
    "obey",
    "obey_table",
    "read_counters",
    "read_table",
    "schedules",
    "shapes",
    "slips",
    "tiles",
    "variants",
]
