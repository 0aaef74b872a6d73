"""One sheet of paper: how lines and markers look, where labels go, and how it becomes bytes."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from derive.errors import BadValueError

KINDS = ("png", "svg", "pdf")
"""What a sheet is written as."""
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8A6D00", "#000000")
"""Okabe and Ito 2008, told apart by colour-blind readers; yellow darkened, so that all stand out in grey."""
_MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = {"compulsory": (0, (1, 2)), "sm": (0, (5, 2)), "dram": "-"}
"""A line style for each byte count."""
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "attn-derive",
    "pdf.fonttype": 42,
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "figure.dpi": 200,
}
_UNDATED: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
_GAP = 9.5
"""Points between the middles of two labels in a column."""


@contextmanager
def sheet(width: float = 5.0, height: float = 3.2) -> Iterator[Sheet]:
    """An empty sheet, in inches.

    Raises:
        BadValueError: matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise BadValueError(
            "plots are drawn with matplotlib, and it is not installed; pip install 'attn-derive[plots]'"
        ) from None
    with rc_context(_SETTINGS):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)  # measures words before they are placed
        yield Sheet(figure, figure.add_subplot())


@dataclass(frozen=True)
class Sheet:
    """A figure with one pair of axes.

    Attributes:
        figure: matplotlib's figure.
        axes: its axes.
    """

    figure: Any
    axes: Any

    def written(self, kind: str) -> bytes:
        """The sheet as PNG, SVG or PDF; no date and no version in it."""
        out = io.BytesIO()
        self.figure.savefig(out, format=kind, metadata=_UNDATED[kind])
        return out.getvalue()

    def logarithmic(self, x: str, y: str, title: str) -> None:
        """Both axes logarithmic, with what they measure and in which unit."""
        self.axes.set_xscale("log", base=2)
        self.axes.set_yscale("log", base=2)
        self.axes.set_xlabel(x)
        self.axes.set_ylabel(y)
        self.axes.set_title(title)
        self.axes.minorticks_off()

    def note(self, x: float, row: int, words: str, shade: str, *, left: bool) -> None:
        """Words beside an upright line at *x*, on the row-th line below the top, to its left or right."""
        self.axes.annotate(
            words,
            xy=(x, 0.98 - 0.06 * row),
            xycoords=("data", "axes fraction"),
            xytext=(-3 if left else 3, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="top",
            color=shade,
            fontsize=7,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
        )

    def label_ends(self, ends: Sequence[tuple[float, float, str, str]]) -> None:
        """Labels to the right of the frame, one beside each line's end (x, y, words, colour), moved apart where they meet."""
        self.figure.canvas.draw()
        scale = self.figure.dpi / 72
        box = self.axes.get_window_extent()
        heights = [(self.axes.transData.transform((x, y))[1], n) for n, (x, y, _, _) in enumerate(ends)]
        placed: dict[int, float] = {}
        last = float("-inf")
        for height, n in sorted(heights):
            last = max(min(max(height, box.y0), box.y1), last + _GAP * scale)
            placed[n] = last
        over = max(0.0, last - box.y1)
        for n, (x, y, words, colour) in enumerate(ends):
            share = (placed[n] - over - box.y0) / (box.y1 - box.y0)
            self.axes.annotate(
                words,
                xy=(x, y),
                xycoords="data",
                xytext=(1.03, share),
                textcoords="axes fraction",
                va="center",
                color=colour,
                arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "shrinkA": 1, "shrinkB": 1},
                annotation_clip=False,
            )

    def label_points(self, points: Sequence[tuple[float, float, str, str]]) -> None:
        """A label near each point (x, y, words, colour), where it meets neither another label nor a point nor a line."""
        from matplotlib.transforms import Bbox

        self.figure.canvas.draw()
        paths = [line.get_transform().transform_path(line.get_path()) for line in self.axes.lines]
        lines = [path for path in paths if len({x for x, _ in path.vertices}) > 1]  # upright ones may pass behind words
        scale = self.figure.dpi / 72
        frame = self.axes.get_window_extent()
        at = [self.axes.transData.transform((x, y)) for x, y, _, _ in points]
        taken = [(x - 4 * scale, y - 4 * scale, x + 4 * scale, y + 4 * scale) for x, y in at]
        for (x, y, words, colour), here in zip(points, at, strict=True):
            width, height = len(words) * 4.9 * scale, 9 * scale
            fallback = None
            for n in range(80):  # above, below, right, left, then further out
                side, far = n % 4, (n // 4) * 6 * scale
                dx = (-width / 2, -width / 2, 7 * scale + far, -7 * scale - width - far)[side]
                dy = (5 * scale + far, -5 * scale - height - far, -height / 2, -height / 2)[side]
                box = (here[0] + dx, here[1] + dy, here[0] + dx + width, here[1] + dy + height)
                within = frame.x0 <= box[0] and box[2] <= frame.x1 and frame.y0 <= box[1] and box[3] <= frame.y1
                crossed = any(path.intersects_bbox(Bbox.from_extents(*box), filled=False) for path in lines)
                if within and not any(_meet(box, other) for other in taken):
                    fallback = fallback or (box, far)
                    if not crossed:
                        break
            else:
                box, far = fallback or (box, far)
            taken.append(box)
            line = {"arrowstyle": "-", "color": colour, "linewidth": 0.5} if far else None
            offset = ((box[0] - here[0]) / scale, (box[1] + height / 2 - here[1]) / scale)
            self.axes.annotate(
                words,
                xy=(x, y),
                xytext=offset,
                textcoords="offset points",
                va="center",
                color=colour,
                arrowprops=line,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.85},
            )


def _meet(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def colour(place: int) -> str:
    """The colour of the schedule at *place*."""
    return _COLOURS[place % len(_COLOURS)]


def marker(place: int) -> str:
    """Its marker."""
    return _MARKERS[place % len(_MARKERS)]
