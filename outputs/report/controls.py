"""A slider and a field for each number that a reader may change."""

from __future__ import annotations

from outputs.pictures.start import Slider
from outputs.quantities import size
from outputs.report.markup import Markup, element
from outputs.report.page import Page
from outputs.spelling import spelling


def controls(page: Page) -> Markup:
    """The form; the script shows it, so that without one nothing stands there that does nothing."""
    rows = [_row(n, slider) for n, slider in enumerate(page.sliders)]
    return element(
        "form",
        element("fieldset", element("legend", "Change a number; everything on this page follows"), *rows,
                element("button", "Back to the start", type="button", id="reset"),
                element("p", "", id="status", role="status", aria_live="polite")),
        id="controls",
        hidden=True,
    )  # fmt: skip


def _row(n: int, slider: Slider) -> Markup:
    name = slider.symbol + (f" of {slider.schedule}" if slider.schedule else "")
    spelt = spelling(slider.symbol)
    unit = f" [{spelt.unit}]" if spelt.unit else ""
    written = "" if spelt.unit != "bytes" or slider.value < 1024 else f" ({size(slider.value)} at the start)"
    return element(
        "div",
        element("label", element("b", name), f": {spelt.says}{unit}{written}", for_=f"range-{n}"),
        element("input", type="range", id=f"range-{n}", min=0, max=len(slider.steps) - 1, step=1,
                value=slider.steps.index(slider.value), data_slider=slider.key, aria_valuetext=str(slider.value)),
        element("input", type="text", inputmode="numeric", id=f"number-{n}", value=str(slider.value), data_number=slider.key,
                aria_label=f"{name}, exactly", autocomplete="off", spellcheck="false"),
        class_="slider",
    )  # fmt: skip


def data(page: Page) -> dict[str, object]:
    """The sliders, for the script; each names its row of numbers, which many share."""
    rows = list(dict.fromkeys(tuple(str(n) for n in s.steps) for s in page.sliders))
    sliders = [
        {
            "key": s.key,
            "symbol": s.symbol,
            "schedule": s.schedule,
            "value": str(s.value),
            "steps": rows.index(tuple(str(n) for n in s.steps)),
            "whole": spelling(s.symbol).base != "b" and s.symbol != "s",
            "least": str(min(s.steps[0], 1)),
        }
        for s in page.sliders
    ]
    return {"sliders": sliders, "steps": rows}
