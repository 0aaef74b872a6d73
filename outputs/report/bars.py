"""Three byte counts of each tensor as bars: what must move, what enters and leaves the SMs, what reaches HBM."""

from __future__ import annotations

from outputs.pictures.amounts import COUNTS, counts
from outputs.quantities import size
from outputs.report.axes import WIDTH, picture
from outputs.report.markup import Markup, element, joined
from outputs.report.page import Page

LEFT, LONGEST, THICK, GAP = 64, 216, 11, 9
_TOP = 4
SAYS = {"compulsory": "compulsory", "sm": "SM-side", "dram": "DRAM"}
"""What the counts are called."""


def bars(page: Page) -> Markup:
    """A picture a schedule, all to one scale."""
    largest = max(
        (
            page.number(a.name, f"{c}.{t}")
            for a in page.accounts
            for c, moves in counts(a).items()
            for t in moves.by_tensor
        ),
        default=1,
    )
    key = joined(
        *(
            element("span", element("span", "", class_=f"swatch {count}"), f" {SAYS[count]} ", class_="key")
            for count in COUNTS
        )
    )
    drawn = [_schedule(page, a.name, float(largest)) for a in page.accounts]
    return joined(element("p", key, class_="keys"), element("div", *drawn, class_="pictures"))


def _schedule(page: Page, schedule: str, largest: float) -> Markup:
    account = next(a for a in page.accounts if a.name == schedule)
    moves = counts(account)
    tensors = list(dict.fromkeys(name for count in reversed(COUNTS) for name in moves[count].by_tensor))
    parts: list[Markup] = []
    y = _TOP
    for tensor in tensors:
        present = [count for count in COUNTS if tensor in moves[count].by_tensor]
        middle = y + len(present) * THICK / 2 + 4
        parts.append(element("text", tensor, x=LEFT - 6, y=middle, text_anchor="end"))
        for count in present:
            number = page.number(schedule, f"{count}.{tensor}")
            length = round(LONGEST * float(number) / (largest or 1), 2)
            of = f"{schedule}|{count}.{tensor}"
            parts.append(
                element("rect", x=LEFT, y=y + 1, width=length, height=THICK - 2, class_=f"bar {count}", data_bar=of)
            )
            parts.append(
                element("text", size(number), x=round(LEFT + length + 5, 2), y=y + 9.5, class_="small", data_of=of,
                        data_as="size")
            )  # fmt: skip
            y += THICK
        y += GAP
    describes = "; ".join(
        f"{tensor}: "
        + ", ".join(
            f"{SAYS[c]} {size(page.number(schedule, f'{c}.{tensor}'))}" for c in COUNTS if tensor in moves[c].by_tensor
        )
        for tensor in tensors
    )
    svg = picture(f"bars-{schedule}", f"Bytes of each tensor in {schedule}", describes, *parts, height=y, width=WIDTH)
    return element("figure", element("figcaption", f"{schedule}: bytes of each tensor"), svg)
