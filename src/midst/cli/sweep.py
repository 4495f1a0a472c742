"""`midst sweep`: the same experiment over a grid of settings."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from midst.cli.options import refuse_given
from midst.cli.terminal import phases, task_bar

_OUT = "A folder for the tables; made if it is not there."
_WORKERS = "Processes on this machine. The numbers do not depend on it."
_EXAMPLES = """\b
Example:
  midst sweep spec.toml --out results --workers 2
\b
with spec.toml:
  runs = 100
  [grid]
  graph = ["ring", "complete", {kind = "rgg", radius = 0.4}]
  n = [15, 51]
  c = [1.0, 10.0]"""


@click.command(epilog=_EXAMPLES, context_settings={"max_content_width": 100})
@click.argument("spec", type=click.Path(path_type=Path), metavar="SPEC.toml")
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help=_OUT)
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help=_WORKERS)
@click.option("--cluster", metavar="ADDRESS", help="Compute on the Dask cluster of this scheduler instead.")
@click.option("--resume", is_flag=True, help="Go on with a sweep that was begun in this folder.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object to stdout instead of a line.")
def command(spec: Path, out: Path, workers: int, cluster: str | None, resume: bool, as_json: bool) -> None:
    """Run the same experiment over a grid of settings.

    Writes a table with a row a run. A sweep that was killed goes on where it was with --resume.
    """
    from midst.studies.sweep import read_spec, run_sweep

    if cluster is not None:
        refuse_given(("workers",), "is of this machine; the workers of --cluster are its own")
    with phases() as say:
        say("checking every cell")
        sweep = read_spec(spec)
    with task_bar("sweep", of="cells") as progress:
        report = run_sweep(sweep, out, workers=workers, cluster=cluster, resume=resume, progress=progress)
    if as_json:
        click.echo(json.dumps(asdict(report) | {"out": str(out)}))
        return
    before = report.cells - report.computed
    known = f" ({before:,} done before)" if before else ""
    click.echo(
        f"{report.cells:,} cells{known}, {report.runs:,} runs, {report.certified:,} of them proved: "
        + ", ".join(str(out / table) for table in report.tables)
    )
