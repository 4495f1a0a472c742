"""Sweeps: the same experiment over a grid of settings, many runs of each.

| file    | one idea                                                                           |
|---------|------------------------------------------------------------------------------------|
| spec    | what is asked for: a TOML file, checked whole before anything runs                  |
| cells   | one cell of the grid: its runs, as rows of a table                                 |
| folder  | what is done and what is left, in a folder that a killed sweep can be resumed from |
| outcome | a sweep that is done: its table, what matters of every cell, a picture             |

Run k of cell j draws everything from child (j, k) of the seed, so the numbers do not depend on who computes them.
"""

from midst.studies.sweep.folder import load_sweep, run_sweep
from midst.studies.sweep.outcome import CellSummary, Sweep
from midst.studies.sweep.spec import GridPoint, Spec, read_spec

__all__ = ["CellSummary", "GridPoint", "Spec", "Sweep", "load_sweep", "read_spec", "run_sweep"]
