"""The median of numbers by MPyC, as its demos do it: what each party runs, as a process of its own.

    python party.py integers 16 100 -P 127.0.0.1:7001 -P 127.0.0.1:7002 -P 127.0.0.1:7003 -I 0 < FILE

Standard input holds this party's number: a whole number once it is multiplied by the third argument. `integers` of so
many bits hold that product, `fixed` point numbers of so many bits hold the number, half of them behind the point.
Standard output gets one JSON object: the low median, `up` (when this party was connected to all others), `answered`
(when it had the median), and of the time between the two `cpu` (seconds of CPU time) and `messages` (that it sent each
other party, in the mean). This file needs MPyC, and nothing of midst.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from typing import Any


async def find(kind: str, bits: int, per_unit: float) -> None:
    """Connect, find the median, tell it."""
    from mpyc import asyncoro, statistics
    from mpyc.runtime import mpc

    messages, send = 0, asyncoro.MessageExchanger.send

    def send_counted(self: Any, *message: Any) -> None:
        nonlocal messages
        messages += 1
        send(self, *message)

    own = float(sys.stdin.readline())
    number = mpc.SecInt(bits)(round(per_unit * own)) if kind == "integers" else mpc.SecFxp(bits)(own, integral=False)
    mpc._loop.create_server = partial(mpc._loop.create_server, host="127.0.0.1")  # MPyC itself would listen everywhere
    await mpc.start()
    asyncoro.MessageExchanger.send = send_counted
    up, cpu = time.time(), time.process_time()
    found = await mpc.output(statistics.median_low(mpc.input(number)))
    told = {"up": up, "answered": time.time(), "cpu": time.process_time() - cpu}
    value = (int(found) if kind == "integers" else round(per_unit * float(found))) / per_unit
    others = max(len(mpc.parties) - 1, 1)
    print(json.dumps({"value": value, "messages": messages / others, **told}), flush=True)
    await mpc.shutdown()


def main() -> None:
    """The arguments of this file come first: MPyC reads the others when it is imported."""
    kind, bits, per_unit = sys.argv.pop(1), int(sys.argv.pop(1)), float(sys.argv.pop(1))
    from mpyc.runtime import mpc

    mpc.run(find(kind, bits, per_unit))


if __name__ == "__main__":
    main()
