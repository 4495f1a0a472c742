"""What pictures and pages share, without matplotlib: colours, widths, numbers for people, which points are drawn."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from midst.types import Ints

Width = Literal["column", "page"]
WIDTHS: dict[Width, float] = {"column": 3.5, "page": 7.16}  # inches: one column of a journal of two, and both
WIDTH_NAMES: tuple[Width, ...] = get_args(Width)

# Okabe and Ito's colours, which stay apart for the colour-blind
BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9"
COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY)
MARKERS = ("o", "s", "^", "D", "v", "P")
GREY, LIGHT_GREY = "#777777", "#999999"
HIDDEN, EXPOSED = BLUE, VERMILION  # a node that never sent its own value, and one that did


def show_number(number: float | None, form: str = "g") -> str:
    """A number for people, with a proper minus."""
    return "the default" if number is None else format(number, form).replace("-", "−")


def short_name(label: str, most: int = 12) -> str:
    """The name of a node as a picture has it: of a long one both ends; never as a formula."""
    cut = label if len(label) <= most else f"{label[: most - 5]}…{label[-4:]}"
    return cut.replace("$", r"\$")


def tidy_power(word: str) -> str:
    """A number with as short a power of ten as people write: −1e6 and not -1e+06."""
    mantissa, _, power = word.partition("e")
    return (f"{mantissa}e{int(power)}" if power else mantissa).replace("-", "−")


def log_spaced(count: int, most: int) -> Ints:
    """All indices below count, or so many spread over a logarithmic axis, the first and the last among them."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.geomspace(1, count, most).round().astype(np.int64)) - 1
