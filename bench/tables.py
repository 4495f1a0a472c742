"""Rows as Markdown tables, and the command of a benchmark that has parts."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path


def table(rows: Sequence[Mapping[str, object]]) -> str:
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


def run_parts(name: str, parts: Mapping[str, Callable[[bool], Iterable[Mapping[str, object]]]]) -> None:
    """All parts, or those asked for; each is called with whether to be quick, and gives rows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="little of each, to see whether everything runs")
    parser.add_argument("--only", nargs="*", choices=list(parts), default=list(parts))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that no process is left
    options.out.mkdir(parents=True, exist_ok=True)
    about = {"cores": len(os.sched_getaffinity(0)), "load_before": os.getloadavg()[0], "python": sys.version.split()[0]}
    print(f"{about}", flush=True)
    found = {}
    for part in options.only:
        found[part] = list(parts[part](options.quick))
        print(f"\n## {part}\n\n{table(found[part])}\n", flush=True)
    (options.out / f"{name}.json").write_text(json.dumps({"about": about, "parts": found}, indent=1))
    page = [f"## {part}\n\n{table(rows)}\n" for part, rows in found.items()]
    (options.out / f"{name}.md").write_text("\n".join(page))
