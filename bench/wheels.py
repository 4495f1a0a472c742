"""The calls that people make, by two versions of midst in turn: an older commit, and the working tree.

    python -m bench.wheels --old COMMIT [--pairs 9] [--only NAME …]

Builds a wheel of each, installs each in a virtual environment of its own, and makes every call by one and then by the
other, each time in a new process. Prints Markdown: the median seconds of both, and the median of the pairs' ratios, new
over old, with the smallest and the largest. A ratio above 1 means that the working tree is slower.

A row's time is that of the call, with what it needs first (graph, problem) included, and without the interpreter; of
commands and of `import midst` it is the whole process. Short calls are made several times in a process, after one that
is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
import venv
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TIMED = """
import time
{setup}
def call():
    {call}
for _ in range({warm}):
    call()
began = time.perf_counter()
for _ in range({times}):
    call()
print((time.perf_counter() - began) / {times})
"""
BEGIN = "import numpy as np, midst; rng = np.random.default_rng(1)"


class Call(NamedTuple):
    """A line of Python with what comes before it, or the words of a command."""

    call: str | tuple[str, ...]
    setup: str = BEGIN
    times: int = 1
    warm: int = 1


CALLS = {
    "median of 15, search": Call(
        "midst.median(values, graph='ring', bounds=(-9, 9))", BEGIN + "; values = rng.normal(size=15)", 200, 3
    ),
    "median of 15, consensus": Call(
        "midst.median(values, graph='ring', method='consensus', rng=7)",
        BEGIN + "; values = rng.normal(size=15)",
        100,
        3,
    ),
    "describe": Call(
        "midst.describe(sites, 'ring', ['median', 'p95', 'mean', 'std'], bounds=(0, 100), resolution=1)",
        BEGIN + "; sites = [rng.integers(0, 100, 200).tolist() for _ in range(5)]",
        20,
    ),
    "solve_ensemble, 10,000 × 15, search": Call(
        "midst.solve_ensemble(midst.Problem(midst.graphs.rgg(15, rng=1), values, scale=1.0))",
        BEGIN + "; values = rng.normal(size=(15, 10_000))",
        10,
    ),
    "solve_ensemble, 10,000 × 15, consensus": Call(
        "midst.solve_ensemble(midst.Problem(midst.graphs.rgg(15, rng=1), values, scale=1.0), 'consensus', rng=1)",
        BEGIN + "; values = rng.normal(size=(15, 10_000))",
    ),
    "search over 10^7": Call(
        "midst.solve(midst.Problem(midst.graphs.ring(10_000_000), values, bounds=(-9, 9)))",
        BEGIN + "; values = rng.normal(size=10_000_000)",
        5,
    ),
    "coordinate_median, 11 × 10^6": Call(
        "coordinate_median(updates)",
        BEGIN + "; from midst.federated import coordinate_median"
        "; updates = [{'w': rng.normal(size=1_000_000).astype(np.float32)} for _ in range(11)]",
        3,
    ),
    **{
        f"solve on 10^6, consensus, {name}": Call(
            f"midst.solve(midst.Problem(midst.graphs.{graph}, values, scale=1.0),"
            " midst.Consensus(stop=midst.After(30)), rng=1, record='none', throw=False)",
            BEGIN + "; values = rng.normal(size=1_000_000)",
            warm=0,
        )
        for name, graph in (("ring", "ring(1_000_000)"), ("8-regular", "regular(1_000_000, 8, rng=1)"))
    },
    "import midst": Call(("python", "-c", "import midst")),
    "import midst, and its names": Call(("python", "-c", "from midst import *")),
    **{
        f"midst up, {n} nodes": Call(("midst", *f"up --graph ring --nodes {n} --seed-values 1 --json".split()))
        for n in (5, 15, 50)
    },
}


def install(folder: Path, source: Path) -> Path:
    """Install a wheel of a source tree into an environment of its own; return the folder of its commands."""
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--constraint", str(ROOT / "requirements-dev.txt"), f"{source}[federated]"], check=True)
    return folder / "bin"


def seconds(commands: Path, call: Call) -> float:
    """Make a call in a new process, and time it."""
    if isinstance(call.call, str):
        script = TIMED.format(**call._asdict())
        done = subprocess.run([commands / "python", "-c", script], check=True, capture_output=True, text=True)
        return float(done.stdout)
    program, *words = call.call
    began = time.perf_counter()
    subprocess.run([commands / program, *words], check=True, capture_output=True)
    return time.perf_counter() - began


def main() -> None:
    """Measure, and print a row a call."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", required=True, metavar="COMMIT")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--only", nargs="+", default=list(CALLS), metavar="NAME")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "source").mkdir()
        packed = subprocess.run(["git", "archive", asked.old], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "x", "-C", folder / "source"], input=packed, check=True)
        old, new = install(folder / "old", folder / "source"), install(folder / "new", ROOT)
        print("| call | old, s | new, s | new / old | least | most |\n|---|---|---|---|---|---|")
        for title in asked.only:
            pairs = [(seconds(old, CALLS[title]), seconds(new, CALLS[title])) for _ in range(asked.pairs)]
            ratios = [after / before for before, after in pairs]
            before, after = (statistics.median(each) for each in zip(*pairs, strict=True))
            numbers = (
                f"{before:.4g} | {after:.4g} | {statistics.median(ratios):.3f} | {min(ratios):.3f} | {max(ratios):.3f}"
            )
            print(f"| {title} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
