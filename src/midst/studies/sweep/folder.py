"""The folder of a sweep: what is done, what is left, and the table in the end.

    DIR/manifest.json       the spec, its cells and the versions; written first
    DIR/cells/000007.csv    a cell, once it is done
    DIR/runs.csv            all of them, a row a run; written last (and runs.parquet, with midst[parquet])

Rules:
- Every file is written whole or not at all, so a killed sweep has lost at most the cells it was at.
- A folder with another sweep in it is refused, and so is one with anything else.
- Resuming computes what is missing and nothing else.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from midst._version import __version__
from midst.errors import InputError, whole_number
from midst.files import write_bytes, write_whole
from midst.frames import as_csv
from midst.progress import watch_tasks
from midst.studies.sweep.cells import Task, compute
from midst.studies.sweep.outcome import PARQUET, RUNS, Sweep
from midst.studies.sweep.spec import WORDS, Spec, check_memory
from midst.workers import TaskProgress, on_cluster, run_as_done

MANIFEST = "manifest.json"
FORMAT = 1


def run_sweep(
    spec: Spec,
    out: str | Path,
    *,
    workers: int = 1,
    cluster: str | None = None,
    resume: bool = False,
    progress: TaskProgress | bool | None = None,
) -> Sweep:
    """Compute the cells that are not done yet, and the table.

    Args:
        spec: the sweep.
        out: its folder; made if it is not there.
        workers: processes on this machine.
        cluster: the address of a Dask scheduler to compute there instead.
        resume: go on with a sweep that was begun in this folder.
        progress: True for a bar, in a notebook or on a terminal; or a function, told how many cells of how many are
            done.

    Raises:
        InputError: the folder holds something else, the sweep would not fit into memory, or the cluster is not there.
        MissingExtra: what `cluster` needs is not installed.
    """
    whole_number("workers", workers)
    check_memory(spec, at_once=min(workers, len(spec.cells)))
    folder, manifest = Path(out), _describe(spec)
    done = _done(folder, manifest, resume)
    machine = nullcontext(partial(run_as_done, workers=workers)) if cluster is None else on_cluster(cluster)
    with machine as run, watch_tasks(progress, "sweep", "cells") as told:
        if not (folder / MANIFEST).exists():
            (folder / "cells").mkdir(parents=True, exist_ok=True)
            write_bytes(folder / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False).encode())
        left = [Task(cell, spec.runs, spec.seed, spec.options) for cell in spec.cells if cell.number not in done]
        for count, (number, rows) in enumerate(run(compute, left), start=len(done) + 1):
            write_bytes(_cell_file(folder, number), as_csv(rows).encode())
            if told is not None:
                told(count, len(spec.cells))
    first, *others = (_cell_file(folder, number).read_bytes() for number in range(len(spec.cells)))
    table = first + b"".join(cell.partition(b"\n")[2] for cell in others)
    write_bytes(folder / RUNS, table)
    _write_parquet(folder, table)
    return replace(load_sweep(folder), computed=len(left))


def load_sweep(folder: str | Path) -> Sweep:
    """A sweep that was done before.

    Raises:
        InputError: there is none in that folder, or it was not finished.
    """
    folder = Path(folder)
    manifest = _read_manifest(folder)
    if manifest is None:
        raise InputError(f"{folder} holds no sweep; give the folder that midst sweep wrote")
    if not (folder / RUNS).exists():
        raise InputError(f"the sweep in {folder} was not finished; midst sweep goes on with it, with --resume")
    with (folder / RUNS).open(encoding="utf-8", newline="") as file:
        certified = sum(row["certified"] == "True" for row in csv.DictReader(file))
    tables = tuple(name for name in (RUNS, PARQUET) if (folder / name).exists())
    cells = len(manifest["cells"])
    return Sweep(folder, cells, 0, cells * manifest["runs"], certified, tables)


def _describe(spec: Spec) -> dict[str, Any]:
    """The manifest of a sweep; its digest tells one sweep from another."""
    cells = [
        {name: value for name, value in vars(cell).items() if name not in ("kind", "options")} | {"graph": cell.graph}
        for cell in spec.cells
    ]
    meant = {"runs": spec.runs, "seed": spec.seed, "options": spec.options, "cells": cells}
    return {
        "format": "midst-sweep",
        "format_version": FORMAT,
        "digest": hashlib.sha256(json.dumps(meant, sort_keys=True).encode()).hexdigest(),
        "versions": {"midst": __version__, "numpy": np.__version__},
    } | meant


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest in a folder; None where that holds no sweep."""
    try:
        found: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return found if found["format"] == "midst-sweep" and found.keys() >= {"runs", "cells"} else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _done(folder: Path, manifest: dict[str, Any], resume: bool) -> set[int]:
    """The cells that need not be computed."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder")
    if not folder.exists():
        if not folder.parent.is_dir():
            raise InputError(f"{folder}: folder {folder.parent} does not exist; make it first")
        return set()
    if not any(folder.iterdir()):
        return set()
    known = _read_manifest(folder)
    if known is None:
        raise InputError(f"{folder} is not empty and holds no sweep; give another folder")
    if known.get("format_version") != FORMAT or known.get("digest") != manifest["digest"]:
        raise InputError(f"{folder} holds another sweep; give another folder, or the spec it was begun with")
    if not resume:
        raise InputError(f"{folder} holds this sweep already; add --resume to go on with it")
    return {number for number in range(len(manifest["cells"])) if _cell_file(folder, number).exists()}


def _cell_file(folder: Path, number: int) -> Path:
    return folder / "cells" / f"{number:06d}.csv"


def _write_parquet(folder: Path, table: bytes) -> None:
    """The same table as Parquet, where pyarrow is installed."""
    try:
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        return
    words = dict.fromkeys(WORDS, pyarrow.string())
    numbers = dict.fromkeys(("c", "theta", "mu", "sigma", "error", "bits"), pyarrow.float64())
    whole = dict.fromkeys(("arity", "certain"), pyarrow.int64())
    options = pyarrow.csv.ConvertOptions(column_types=words | numbers | whole)
    columns = pyarrow.csv.read_csv(io.BytesIO(table), convert_options=options)
    write_whole(folder / PARQUET, lambda file: pyarrow.parquet.write_table(columns, file), mode=0o644)
