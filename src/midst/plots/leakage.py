"""Pictures of a leakage: bounds and bits of each node, and who is not yet exposed over time.

Rules:
- Colours of Okabe and Ito, which stay apart for the colour-blind; exposed nodes also have another mark.
- What is drawn is what the adversary knows, and nothing else: no value that it cannot tell.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

import numpy as np

from midst.plots.picture import Axes, Figure, MaxNLocator, Where, draw
from midst.plots.style import EXPOSED, HIDDEN, LIGHT_GREY, short_name
from midst.privacy.audit import Leakage

_NUMBERED = 40  # up to so many nodes each has its number on the axis


def draw_leakage(leakage: Leakage, **where: Unpack[Where]) -> Figure | Axes:
    """Bounds, bits and the share not yet exposed, beside each other; see `draw`."""
    draws = {"bounds": draw_bounds, "bits": draw_bits, "share": draw_share}
    return draw(
        {name: partial(each, leakage=leakage) for name, each in draws.items()},
        main="bits",
        size=(13, 4.6),
        title=f"{leakage.exposed_count} of {leakage.honest} honest nodes exposed, {leakage.mean_bits:.2f} bits a node"
        f"{leakage.split} ({leakage.kind}; {leakage.audience})",
        **where,
    )


def draw_bounds(axes: Axes, leakage: Leakage) -> None:
    """An interval a node, with an arrow where it has no end; a diamond where the value is known."""
    nodes = np.flatnonzero(np.isfinite(leakage.bits))
    lower, upper = leakage.lower[nodes], leakage.upper[nodes]
    finite = np.concatenate([lower, upper])
    finite = finite[np.isfinite(finite)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (-1.0, 1.0)
    margin = 0.15 * (high - low) or 1.0
    known = lower == upper
    for node, start, stop in zip(nodes[~known], lower[~known], upper[~known], strict=True):
        ends = (max(start, low - margin), min(stop, high + margin))
        axes.plot((node, node), ends, color=HIDDEN, linewidth=2, solid_capstyle="butt")
        for end, open_end, mark in ((ends[0], np.isinf(start), "v"), (ends[1], np.isinf(stop), "^")):
            axes.plot(node, end, marker=mark if open_end else "_", color=HIDDEN, markersize=6)
    axes.plot(nodes[known], lower[known], "D", color=EXPOSED, markersize=6)
    axes.set_title("what it can bound (diamond: value known)")
    axes.set_ylabel("value")
    _finish(axes, leakage)


def draw_bits(axes: Axes, leakage: Leakage) -> None:
    """A bar a node, with the sampler's error, and a line across it where the answer alone would end."""
    nodes = np.flatnonzero(np.isfinite(leakage.bits))
    exposed = leakage.exposed[nodes]
    for which, colour, hatch, label in ((~exposed, HIDDEN, "", "not exposed"), (exposed, EXPOSED, "//", "exposed")):
        if (group := nodes[which]).size:
            error: Any = 2 * leakage.bits_error[group] if leakage.bits_error[group].any() else None
            bar: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": "white", "label": label}
            axes.bar(group, leakage.bits[group], yerr=error, **bar)
    floor = leakage.floor[nodes]
    if np.isfinite(floor).any():
        axes.hlines(floor, nodes - 0.4, nodes + 0.4, color="black", linewidth=1.5, label="floor: the answer alone")
    axes.set_title("how much that tells")
    axes.set_ylabel("bits")
    axes.legend(fontsize=8)
    _finish(axes, leakage)


def draw_share(axes: Axes, leakage: Leakage) -> None:
    """The share of honest nodes not yet seen inside, after each iteration."""
    share = leakage.share_over_time
    axes.step(np.arange(len(share)) + 1, share, where="post", color=HIDDEN)
    axes.set_ylim(0, 1.02)
    if leakage.searched:
        axes.set_title("nodes whose value is not yet certain")
        axes.set_xlabel("steps of the search")
    else:
        axes.set_xscale("log")
        axes.set_title("nodes not yet seen to send their value")
        axes.set_xlabel("iterations")
    axes.set_ylabel("share of honest nodes")
    axes.grid(color=LIGHT_GREY, alpha=0.3)


def _finish(axes: Axes, leakage: Leakage) -> None:
    axes.set_xlabel("node")
    axes.grid(axis="y", color=LIGHT_GREY, alpha=0.3)
    count = len(leakage.bits)
    if count <= _NUMBERED:
        axes.set_xticks(range(count))
        axes.tick_params(axis="x", labelsize=8)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    names = [short_name(leakage.graph.label(i)) for i in range(count)]
    axes.xaxis.set_major_formatter(lambda x, _: names[round(x)] if 0 <= x <= count - 1 else "")
    if leakage.graph.labels is not None and max(map(len, names)) > 3:
        axes.tick_params(axis="x", rotation=90)
