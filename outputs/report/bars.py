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
        parts.append(element("text", tensor, x=-6, y=middle, class_="tensor"))
        for count in present:
            number = page.number(schedule, f"{count}.{tensor}")
            length = round(LONGEST * float(number) / (largest or 1), 2)
            parts.append(element("rect", y=y + 1, width=length, class_=count))
            parts.append(element("text", size(number), x=round(length + 5, 2), y=y + 9.5))
            y += THICK
        y += GAP
    describes = f"Of each tensor {', '.join(SAYS.values())}. " + "; ".join(
        f"{tensor}: "
        + ", ".join(
            size(page.number(schedule, f"{c}.{tensor}")) if tensor in moves[c].by_tensor else "none" for c in COUNTS
        )
        for tensor in tensors
    )
    drawn = element("g", *parts, class_="bars", data_schedule=schedule, transform=f"translate({LEFT})")
    svg = picture(f"bars-{schedule}", f"Bytes of each tensor in {schedule}", describes, drawn, height=y, width=WIDTH)
    return element("figure", element("figcaption", f"{schedule}: bytes of each tensor"), svg)
