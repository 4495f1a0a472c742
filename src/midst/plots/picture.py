"""A figure that a notebook shows by itself, made without pyplot; and panels in it, or in axes that are given.

Rules:
- A picture is a few panels, each drawn into one axes by one function. `draw` puts all of them, or one, into a figure;
  or one of them into axes that somebody else has made.
- Without a width a figure is for a screen, with a headline. With one it is for a journal: as wide as a column of two or
  as the page, smaller letters, and no headline, since there a caption says it.
- A PDF has its fonts as TrueType (type 42), since many journals refuse type 3; no setting of the user's is changed.
- All pictures import matplotlib's classes from here, behind one guard: its object interface, and no pyplot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import Any, TypedDict, Unpack

from midst.errors import InputError, MissingExtra, closest
from midst.plots.style import WIDTH_NAMES, WIDTHS, Width

try:
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.lines import Line2D
    from matplotlib.patches import Polygon, Rectangle
    from matplotlib.patheffects import withStroke
    from matplotlib.text import Text
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, PercentFormatter
except ImportError:
    raise MissingExtra("matplotlib", "plot") from None

__all__ = ["Axes", "ConstrainedLayoutEngine", "Figure", "FuncFormatter", "Line2D", "LineCollection", "LogLocator"]
__all__ += ["MaxNLocator", "NullFormatter", "PercentFormatter", "Polygon", "Rectangle", "withStroke"]

Panel = Callable[[Axes], None]


class Where(TypedDict, total=False):
    """Where panels are drawn, and which.

    Attributes:
        ax: axes to draw one panel into, instead of a figure.
        of: the panel to draw alone; all, or into axes the main one, if not given.
        width: "column" or "page" of a journal; for a screen if not given.
    """

    ax: Axes | None
    of: str | None
    width: Width | None


_PRINTED = 0.8  # of the size on a screen: letters of 6.4 to 8 points
_TICKS, _LARGEST = 8, 10  # points, on a screen


class Picture(Figure):
    """A matplotlib figure; Jupyter asks for its PNG."""

    def savefig(self, *args: Any, **options: Any) -> None:
        """Save it as matplotlib does, with fonts of type 42 in a PDF."""
        with rc_context({"pdf.fonttype": 42, "ps.fonttype": 42}):
            super().savefig(*args, **options)

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()


def draw(
    panels: Mapping[str, Panel],
    *,
    main: str,
    size: tuple[float, float],
    title: str = "",
    ratios: Sequence[float] | None = None,
    **where: Unpack[Where],
) -> Figure | Axes:
    """All panels in a figure of their own, which is returned; or one of them, in axes that are given, which are.

    Args:
        panels: what draws each, by name.
        main: which is drawn where axes are given and none is asked for.
        size: width and height on a screen, all panels side by side, in inches.
        title: over a figure for a screen.
        ratios: of the panels' widths on a screen; all alike if not given.
        where: see `Where`.

    Raises:
        InputError: what is asked for is not there, or axes have a width of their own.
    """
    ax, of, width = where.get("ax"), where.get("of"), where.get("width")
    check_choice("of", of, list(panels))
    check_choice("width", width, WIDTH_NAMES)
    if ax is not None:
        if not isinstance(ax, Axes):
            raise InputError("ax must be axes of matplotlib, such as pyplot.subplots makes")
        if width is not None:
            raise InputError("the width is that of the figure whose axes are given; leave width out")
        panels[of or main](ax)
        return ax
    names = [of] if of else list(panels)
    if width is None:
        share = 1.0 if of is None else 1.2 / len(panels)
        figure = make_figure(size[0] * min(share, 1.0), size[1])
        if title:
            figure.suptitle(title, fontsize=13)
        axes = figure.subplots(1, len(names), squeeze=False, width_ratios=ratios if of is None else None)[0]
        for name, each in zip(names, axes, strict=True):
            panels[name](each)
        return figure
    rows: Any = arrange_panels(names, width)
    figure = make_figure(WIDTHS[width] / _PRINTED, 0.85 * size[1] * len(rows))
    for name, each in figure.subplot_mosaic(rows).items():
        panels[name](each)
    print_size(figure, width)
    return figure


def make_figure(across: float, down: float) -> Picture:
    """An empty figure, in inches."""
    return Picture(figsize=(across, down), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08))


def arrange_panels(names: Sequence[str], width: Width) -> list[list[str]]:
    """Rows of panels: in a column one under another, on a page two in a row, of which an odd first one has its own."""
    if width == "column":
        return [[name] for name in names]
    odd = len(names) % 2
    first = [[names[0]] * 2] if odd and len(names) > 1 else [[names[0]]] if odd else []
    return first + [list(names[k : k + 2]) for k in range(odd, len(names), 2)]


def print_size(figure: Figure, width: Width) -> None:
    """Make a figure as wide as a journal has it, and everything in it smaller than on a screen."""
    texts, lines, dots, edges = (figure.findobj(kind) for kind in (Text, Line2D, PathCollection, LineCollection))
    artist: Any
    for artist in texts:
        artist.set_fontsize(_PRINTED * min(artist.get_fontsize(), _LARGEST))
    for artist in lines:
        artist.set(linewidth=_PRINTED * artist.get_linewidth(), markersize=_PRINTED * artist.get_markersize())
    for artist in dots:
        artist.set_sizes(_PRINTED**2 * artist.get_sizes())
    for artist in edges:
        artist.set_linewidth([_PRINTED * each for each in artist.get_linewidth()])
    for axes in figure.axes:
        axes.tick_params(which="both", labelsize=_PRINTED * _TICKS)
    across, down = figure.get_size_inches()
    figure.set_size_inches(WIDTHS[width], down * WIDTHS[width] / across)


def check_choice(what: str, chosen: object, known: Sequence[str]) -> None:
    """Refuse what is none of these; None is.

    Raises:
        InputError: with what is nearest.
    """
    if chosen is not None and chosen not in known:
        raise InputError(f"{what} must be one of {', '.join(known)}{closest(chosen, known)}")
