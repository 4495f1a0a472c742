"""Rows as Markdown tables, and the command of every benchmark."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

Row = Mapping[str, object]
RESULTS = Path(__file__).parent / "results"


def table(rows: Sequence[Row]) -> str:
    """One line a row; the heads are the first row's names."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([shown(part) for part in row.values()] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def shown(part: object) -> str:
    """A figure, short."""
    if part is None:
        return ""
    if isinstance(part, float):
        return f"{part:.3g}" if abs(part) < 1000 else f"{part:,.0f}"
    return f"{part:,}" if isinstance(part, int) else str(part)


def make_parser(parts: Iterable[str] = ()) -> argparse.ArgumentParser:
    """The options of every benchmark, which may add its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="little of each, to see whether everything runs")
    parser.add_argument("--out", type=Path, help="default: bench/results; with --quick, bench/results/quick")
    if names := list(parts):
        parser.add_argument("--only", nargs="*", choices=names, default=names)
    return parser


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """What was typed; the folder for results is there."""
    options = parser.parse_args()
    options.out = options.out or (RESULTS / "quick" if options.quick else RESULTS)
    options.out.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that no process is left
    return options


def run_parts(
    name: str, parts: Mapping[str, Callable[[bool], Iterable[Row]]], given: argparse.Namespace | None = None
) -> dict[str, list[Row]]:
    """Run all parts, or those asked for; print their rows, and write them to NAME.json and NAME.md after each part.

    Args:
        name: of the files.
        parts: each is called with whether to be quick, and gives rows.
        given: what `parse` found, where a benchmark has options of its own.
    """
    given = given or parse(make_parser(parts))
    about = {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "machine": platform.processor() or platform.machine(),
    }
    print(f"{about}", flush=True)
    found: dict[str, list[Row]] = {}
    for part in getattr(given, "only", parts):
        found[part] = list(parts[part](given.quick))
        print(f"\n## {part}\n\n{table(found[part])}\n", flush=True)
        (given.out / f"{name}.json").write_text(json.dumps({"about": about, "parts": found}, indent=1))
        page = [f"## {part}\n\n{table(rows)}\n" for part, rows in found.items()]
        (given.out / f"{name}.md").write_text("\n".join(page))
    return found
