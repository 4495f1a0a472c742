"""Aggregation of long vectors: simulated, against `numpy.median` on the same array; and ten processes over TLS.

    python -m bench.federated [--quick] [--only PART …] [--out bench/results]

Prints Markdown, and writes it to federated.md and the rows to federated.json. Ratios are of one run on one machine.
Answers are asserted.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bench.tables import run_parts

from midst import graphs
from midst.federated import Client, coordinate_median, mean_around_median, trimmed_mean
from midst.net.identity.keys import load_identity
from midst.net.local import make_party

Row = dict[str, Any]

SIZE = 1_000_000
TRIMMED, BOUNDS, RESOLUTION = 3, (-8.0, 8.0), 2**-12


# Simulated


def simulated(clients: int, coordinates: int, against: bool) -> Row:
    rng = np.random.default_rng(1)
    updates = [rng.standard_normal(coordinates, np.float32) for _ in range(clients)]
    found, took = measure(lambda: coordinate_median(updates).value)
    row = {"what": f"median, {clients} × {coordinates:,} float32, simulated", "seconds": took}
    if against:
        array = np.stack(updates)
        right, beside = measure(lambda: np.median(array, axis=0))
        assert np.array_equal(found, right)
        row["times numpy.median"] = took / beside
    return row | {"peak GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}


def others(clients: int, coordinates: int) -> Iterator[Row]:
    rng = np.random.default_rng(2)
    updates = [rng.standard_normal(coordinates, np.float32).clip(-7, 7) for _ in range(clients)]
    rounded = np.sort([np.rint(update / RESOLUTION) for update in updates], axis=0)
    nearest = np.argsort(np.abs(rounded - rounded[(clients - 1) // 2]), axis=0, kind="stable")[:-TRIMMED]
    ways = {
        "trimmed mean": (trimmed_mean, rounded[TRIMMED:-TRIMMED]),
        "mean around median": (mean_around_median, np.take_along_axis(rounded, nearest, axis=0)),
    }
    for name, (way, kept) in ways.items():
        found, took = measure(partial(way, updates, TRIMMED, bounds=BOUNDS, resolution=RESOLUTION))
        assert np.abs(found.value - RESOLUTION * kept.mean(axis=0)).max() < 1e-6
        yield {"what": f"{name}, {clients} × {coordinates:,}", "seconds": took}


def measure(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    found = call()
    return found, time.perf_counter() - start


# Over the network


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


# The parts


def medians(quick: bool) -> Iterator[Row]:
    yield simulated(11, 2_000 if quick else SIZE, against=True)


def large(quick: bool) -> Iterator[Row]:
    yield simulated(50, 2_000 if quick else 10 * SIZE, against=False)


def means(quick: bool) -> Iterator[Row]:
    yield from others(11, 2_000 if quick else SIZE)


def networks(quick: bool) -> Iterator[Row]:
    clients, size = (3, 2_000) if quick else (10, SIZE)
    yield over_tls(clients, size)
    yield over_tls(clients, size, bounds=list(BOUNDS), resolution=RESOLUTION)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--client"]:
        live(Path(sys.argv[2]), sys.argv[3])
    else:
        run_parts("federated", {"medians": medians, "means": means, "networks": networks, "large": large})
