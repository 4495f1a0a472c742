"""Aggregation of long vectors: simulated, against `numpy.median` on the same array; and ten processes over TLS.

    python -m bench.federated [--quick] [--out bench/results]

Prints Markdown, and writes it to federated.md and the rows to federated.json. Ratios are of one run on one machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from midst import graphs
from midst.federated import Client, coordinate_median, mean_around_median, trimmed_mean
from midst.net.identity.keys import load_identity
from midst.net.local import make_party

Row = dict[str, Any]


def simulated(clients: int, coordinates: int, against: bool) -> Row:
    rng = np.random.default_rng(1)
    updates = [rng.standard_normal(coordinates, np.float32) for _ in range(clients)]
    took = measure(lambda: coordinate_median(updates))
    row = {"what": f"median, {clients} × {coordinates:,} float32, simulated", "seconds": took}
    if against:
        array = np.stack(updates)
        row["times numpy.median"] = took / measure(lambda: np.median(array, axis=0))
    row["peak GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return row


def others(clients: int, coordinates: int) -> list[Row]:
    rng = np.random.default_rng(2)
    updates = [rng.standard_normal(coordinates, np.float32).clip(-7, 7) for _ in range(clients)]
    options: Any = {"bounds": (-8, 8), "resolution": 2**-12}
    ways = {"trimmed mean": trimmed_mean, "mean around median": mean_around_median}
    return [
        {"what": f"{name}, {clients} × {coordinates:,}", "seconds": measure(lambda way=way: way(updates, 3, **options))}
        for name, way in ways.items()
    ]


def measure(call: Any) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def over_tls(clients: int, coordinates: int, **settings: Any) -> Row:
    """Every client a process of its own; from the first start to the last end."""
    rng = np.random.default_rng(3)
    updates = rng.standard_normal((clients, coordinates), np.float32).clip(-7, 7)
    arrays = [{"name": "w", "shape": [coordinates], "dtype": "float32"}]
    with make_party(graphs.complete(clients), method="search", arrays=arrays, **settings) as party:
        folder = party.folder
        (folder / "charter.toml").write_text(party.charter.to_toml())
        for name, update in zip(party.charter.names, updates, strict=True):
            np.save(folder / f"{name}.npy", update)
        start = time.perf_counter()
        program = [sys.executable, "-m", "bench.federated", "--client", str(folder)]
        one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        running = [
            subprocess.Popen([*program, name], stdout=subprocess.PIPE, env=one_thread) for name in party.charter.names
        ]
        ends = [json.loads(process.communicate()[0]) for process in running]
        seconds = time.perf_counter() - start
        right = np.sort(updates, axis=0)[(clients - 1) // 2]
        worst = max(float(np.abs(np.load(folder / f"{name}-found.npy") - right).max()) for name in party.charter.names)
    assert worst <= settings.get("resolution", 0.0) / 2, "an aggregate is wrong"
    return {
        "what": f"median, {clients} processes × {coordinates:,} float32 over TLS{', 16 bits' if settings else ''}",
        "seconds": seconds,
        "CPU seconds of all": sum(end["cpu"] for end in ends),
        "MB sent, most": max(end["sent"] for end in ends) / 1e6,
        "MB of memory, most": max(end["memory"] for end in ends) / 1e3,
    }


def live(folder: Path, name: str) -> None:
    """One client."""
    own = load_identity(folder / name / f"{name}.key")
    own = replace(own, trusted=tuple(path for path in folder.glob("*/*.crt") if path.stem != name))
    with Client(folder / "charter.toml", name, own, state=folder / f"state-{name}") as client:
        found = client.aggregate({"w": np.load(folder / f"{name}.npy")})
    np.save(folder / f"{name}-found.npy", found.value["w"])
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"sent": found.sent, "cpu": time.process_time(), "memory": memory}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    parser.add_argument("--client", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.client:
        live(Path(given.client[0]), given.client[1])
        return
    size = 20_000 if given.quick else 1_000_000
    rows = [simulated(11, size, against=True), *others(11, size)]
    rows += [over_tls(10, size), over_tls(10, size, bounds=[-8, 8], resolution=2**-12)]
    rows.append(simulated(50, 10 * size, against=False))
    lines = ["# Federated learning", ""]
    for row in rows:
        rest = ", ".join(f"{name} {value:.3g}" for name, value in row.items() if name not in ("what", "seconds"))
        lines.append(f"- {row['what']}: {row['seconds']:.2f} s{', ' + rest if rest else ''}")
    text = "\n".join(lines) + "\n"
    print(text)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "federated.md").write_text(text)
    (given.out / "federated.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
