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
from functools import partial
from pathlib import Path

import numpy as np

from midst._version import __version__
from midst.errors import InputError
from midst.files import write_whole
from midst.progress import watch_tasks
from midst.studies.sweep.cells import Task, compute
from midst.studies.sweep.outcome import RUNS, Sweep, count_certified
from midst.studies.sweep.spec import Spec, check_memory, described
from midst.types import Row
from midst.workers import TaskProgress, on_cluster, run_as_done

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
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InputError("workers must be a whole number of at least 1")
    check_memory(spec, at_once=min(workers, len(spec.cells)))
    folder = Path(out)
    done = _done(folder, spec, resume)
    machine = nullcontext(partial(run_as_done, workers=workers)) if cluster is None else on_cluster(cluster)
    with machine as run, watch_tasks(progress, "sweep", "cells") as told:
        _begin(folder, spec)
        left = [Task(cell, spec.runs, spec.seed, spec.options) for cell in spec.cells if cell.number not in done]
        for count, (number, rows) in enumerate(run(compute, left), start=len(done) + 1):
            _write(_cell_file(folder, number), _csv(rows))
            if told is not None:
                told(count, len(spec.cells))
    table = "".join(_read_cell(folder, cell.number, header=cell.number == 0) for cell in spec.cells)
    _write(folder / RUNS, table)
    tables = (RUNS, *_write_parquet(folder, table))
    cells = len(spec.cells)
    return Sweep(folder, cells, len(left), cells * spec.runs, count_certified(folder), tables)


def _done(folder: Path, spec: Spec, resume: bool) -> set[int]:
    """The cells that need not be computed."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder")
    if not folder.exists():
        if not folder.parent.is_dir():
            raise InputError(f"{folder}: folder {folder.parent} does not exist; make it first")
        return set()
    if not any(folder.iterdir()):
        return set()
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        known = manifest["format"] == "midst-sweep"
    except (OSError, ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise InputError(f"{folder} is not empty and holds no sweep; give another folder")
    if manifest.get("format_version") != FORMAT or manifest.get("digest") != _digest(spec):
        raise InputError(f"{folder} holds another sweep; give another folder, or the spec it was begun with")
    if not resume:
        raise InputError(f"{folder} holds this sweep already; add --resume to go on with it")
    return {cell.number for cell in spec.cells if _cell_file(folder, cell.number).exists()}


def _begin(folder: Path, spec: Spec) -> None:
    if (folder / "manifest.json").exists():
        return
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    manifest = {
        "format": "midst-sweep",
        "format_version": FORMAT,
        "digest": _digest(spec),
        "versions": {"midst": __version__, "numpy": np.__version__},
        "runs": spec.runs,
        "seed": spec.seed,
        "options": spec.options,
        "cells": list(described(spec)),
    }
    _write(folder / "manifest.json", json.dumps(manifest, indent=1, ensure_ascii=False))


def _digest(spec: Spec) -> str:
    """What tells one sweep from another."""
    meant = {"runs": spec.runs, "seed": spec.seed, "options": spec.options, "cells": list(described(spec))}
    return hashlib.sha256(json.dumps(meant, sort_keys=True).encode()).hexdigest()


def _cell_file(folder: Path, number: int) -> Path:
    return folder / "cells" / f"{number:06d}.csv"


def _read_cell(folder: Path, number: int, header: bool) -> str:
    text = _cell_file(folder, number).read_text(encoding="utf-8")
    return text if header else text.partition("\n")[2]


def _csv(rows: list[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _write_parquet(folder: Path, table: str) -> list[str]:
    """The same table as Parquet, where pyarrow is installed."""
    try:
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        return []
    words = dict.fromkeys(("graph", "method", "objective", "prior", "adversary"), pyarrow.string())
    numbers = dict.fromkeys(("c", "theta", "mu", "sigma", "error", "bits"), pyarrow.float64())
    whole = dict.fromkeys(("arity", "certain"), pyarrow.int64())
    options = pyarrow.csv.ConvertOptions(column_types=words | numbers | whole)
    columns = pyarrow.csv.read_csv(io.BytesIO(table.encode()), convert_options=options)
    write_whole(folder / "runs.parquet", lambda file: pyarrow.parquet.write_table(columns, file), mode=0o644)
    return ["runs.parquet"]


def _write(path: Path, text: str) -> None:
    write_whole(path, lambda file: file.write(text.encode()), mode=0o644)
