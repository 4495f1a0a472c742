"""`midst node`, which also says when it was linked to all its neighbours: midst's side of `bench.mpyc`.

    python bench/participant.py --charter FILE --name NAME --key FILE … < FILE

Arguments and output are those of `midst node --json`; after its answer one more JSON object follows: `up` (the time at
which the last link was there), `answered` (the time at which it had the answer, certified by all) and `cpu` (seconds of
CPU time between the two).
"""

from __future__ import annotations

import json
import sys
import time

from midst.cli import main
from midst.net.driver import Driver
from midst.net.peer import Peer

marks = {"linked": (0.0, 0.0), "found": (0.0, 0.0)}
linked, run = Driver.linked, Driver.run


def mark(what: str) -> None:
    marks[what] = time.time(), time.process_time()


def see_link(self: Driver, j: int) -> None:
    if len(self.links | {j}) == len(self.peer.neighbours):
        mark("linked")
    linked(self, j)


def see_end(peer: Peer) -> None:
    if peer.exchange.answer is not None:
        mark("found")


async def watched(self: Driver) -> object:
    self.peer._watch = see_end
    return await run(self)


if __name__ == "__main__":
    Driver.linked, Driver.run = see_link, watched  # type: ignore[method-assign, assignment]
    sys.argv[1:1] = ["node", "--json"]
    try:
        main()
    finally:
        (up, cpu_before), (answered, cpu_after) = marks["linked"], marks["found"]
        print(json.dumps({"up": up, "answered": answered, "cpu": cpu_after - cpu_before}), flush=True)
