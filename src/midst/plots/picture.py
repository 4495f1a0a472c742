"""A figure that a notebook shows by itself, made without pyplot."""

from __future__ import annotations

from io import BytesIO

from midst.errors import MissingExtra

try:
    from matplotlib.figure import Figure
except ImportError:
    raise MissingExtra("matplotlib", "plot") from None


class Picture(Figure):
    """A matplotlib figure; Jupyter asks for its PNG."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()
