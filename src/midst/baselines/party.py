"""The median of numbers by MPyC, as its demos do it: what each party runs, as a process of its own.

    python party.py 16 100 -P 127.0.0.1:7001 -P 127.0.0.1:7002 -P 127.0.0.1:7003 -I 0 < FILE

Standard input holds this party's number. Multiplied by the second argument it is a whole number, of as many bits as the
first argument says. Standard output gets one JSON object: `value`, the low median; `up`, when this party was connected
to all others; `answered`, when it had the median; and what it sent the others in the time between: `messages`, the mean
over all others, and `bytes`, the sum. This file needs MPyC, and nothing of midst.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from typing import Any


async def find(bits: int, per_unit: float) -> None:
    """Connect, find the median, tell it."""
    from mpyc import asyncoro, statistics
    from mpyc.runtime import mpc

    messages, send = 0, asyncoro.MessageExchanger.send

    def send_counted(self: Any, *message: Any) -> None:
        nonlocal messages
        messages += 1
        send(self, *message)

    number = mpc.SecInt(bits)(round(per_unit * float(sys.stdin.readline())))
    mpc._loop.create_server = partial(mpc._loop.create_server, host="127.0.0.1")  # MPyC itself would listen everywhere
    await mpc.start()
    asyncoro.MessageExchanger.send = send_counted
    up = time.time()
    found = await mpc.output(statistics.median_low(mpc.input(number)))
    others = [party.protocol for party in mpc.parties if party.pid != mpc.pid]
    told = {
        "value": int(found) / per_unit,
        "up": up,
        "answered": time.time(),
        "messages": messages / len(others),
        "bytes": sum(link.nbytes_sent for link in others),
    }
    print(json.dumps(told), flush=True)
    await mpc.shutdown()


def main() -> None:
    """The arguments of this file come first: MPyC reads the others when it is imported."""
    bits, per_unit = int(sys.argv.pop(1)), float(sys.argv.pop(1))
    from mpyc.runtime import mpc

    mpc.run(find(bits, per_unit))


if __name__ == "__main__":
    main()
