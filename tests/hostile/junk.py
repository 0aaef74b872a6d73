# ruff: noqa: E501  (tables)
"""Words that mean harm: code, look-alikes, numbers beyond any size, brackets without end, control characters."""

from __future__ import annotations

from hypothesis import strategies as st

CODE = (
    "__import__('os').system('touch canary')",
    "exec(\"open('canary', 'w')\")",
    "().__class__.__base__.__subclasses__()",
    "(lambda: 0)()",
    "[x for x in 'abc']",
    "N if open('canary', 'w') else N",
    'f\'{__import__("os").system("touch canary")}\'',
    "$(touch canary)",
    "`touch canary`",
    "; touch canary",
    "| touch canary",
    "\\immediate\\write18{touch canary}",
    "!!python/object/apply:os.system ['touch canary']",
    "{{7*7}}",
    "{0.__class__.__init__.__globals__}",
    "%(canary)s",
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    "__builtins__",
)
LOOKALIKES = (
    "\u039d",  # Greek capital nu
    "\uff2e",  # full-width N
    "\u0410",  # Cyrillic A
    "\u0435xp",  # Cyrillic e
    "\uff18\uff11\uff19\uff12",  # full-width 8192
    "\u0661\u0662",  # Arabic-Indic digits
    "\u00b2",  # superscript two
    "\u2460",  # circled one
    "\u22121",  # the minus sign of typography
    "8\u2009192",  # a thin space
    "N\u200d",  # a joiner of no width
    "\u202e2918",  # text from right to left
    "\ufeffN",  # a byte order mark
    "8192\u212a",  # the kelvin sign
    "\ud800",  # half a character
    "\udcff",  # a byte that is no UTF-8, as Python hands it on
)
NUMBERS = (
    "0", "-0", "-1", "00008", "1e400", "1E+99", "1e-400", "nan", "inf", "-inf", "0x10", "1_000", "1,000", "1.", ".5", "0/0",
    "10**10**10", "9**9**9", "9" * 31, "1" + "0" * 400, "9" * 5000, "1" * 100_000, "2^2^2^2^2^2", "10^(10^10)", "8Ki", "1T", "999999T",
    "18446744073709551616", "1/3", "1/0", "999999999/999999999", "5GiB", "0.0000001", "1KiB", "?", "??",
)  # fmt: skip
SHAPES = (
    "", " ", "\t", "\x00", "\n", "\r\n", "\x1b[31m", "\x1b]0;canary\x07", "\x7f", "\x85", "\u2028", "=", "==", "=8", "N=", "--", "-",
    "-o", "--force", "@/etc/passwd", "/etc/passwd", "../../etc/passwd", "~", "*", "?", "C:\\", "A" * 10_000, "(" * 500 + ")" * 500,
    "[" * 500, "{" * 500, "\\" * 200, "'" * 99, '"', "%s%n", "%", "a,b,,c", ",", ":", "1:2", "1:0:1", "1:9:0", "1:1T:1", "..", "\U0001f600",
)  # fmt: skip
JUNK = (*CODE, *LOOKALIKES, *NUMBERS, *SHAPES)

junk = st.one_of(
    st.sampled_from(JUNK),
    st.text(max_size=12),
    st.text(alphabet=st.characters(categories=["Cc", "Cf", "Cs", "Nd", "No", "Lu"]), max_size=6),
    st.integers(-(10**30), 10**30).map(str),
)
"""A word that nobody should type."""


def with_junk(real: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Real words mostly, junk between."""
    return st.one_of(real, real, real, junk)
