"""`midst node`, which also says when it was linked to all its neighbours: midst's side of `bench.mpyc`.

    python bench/participant.py --charter FILE --name NAME --key FILE … < FILE

Arguments and output are those of `midst node --json`; after its answer one more JSON object follows: `up` (the time at
which the last link was there) and `cpu` (seconds of CPU time from then to the end).
"""

from __future__ import annotations

import json
import sys
import time

from midst.cli import main
from midst.net.driver import Driver

marks = [(0.0, 0.0)]
linked = Driver.linked


def mark(self: Driver, j: int) -> None:
    if len(self.links | {j}) == len(self.seat.neighbours):
        marks[:] = [(time.time(), time.process_time())]
    linked(self, j)


if __name__ == "__main__":
    Driver.linked = mark  # type: ignore[method-assign]
    sys.argv[1:1] = ["node", "--json"]
    try:
        main()
    finally:
        [(up, cpu)] = marks
        print(json.dumps({"up": up, "cpu": time.process_time() - cpu}), flush=True)
