"""The median of whole numbers by MPyC, as its demos do it: the other side of `bench.network`, one process a party.

    python bench/parties.py -P 127.0.0.1:7001 -P 127.0.0.1:7002 -P 127.0.0.1:7003 -I 0 < FILE

Standard input holds this party's number. Standard output gets one JSON object as soon as the median is there: its
value, `up` (the time at which this party was connected to all others) and `sent` (bytes, by MPyC's own count: headers
and payloads, without what sets up connections and keys, and without TLS).
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial

from mpyc import statistics
from mpyc.runtime import mpc

BITS = 32


async def main() -> None:
    number = mpc.SecInt(BITS)
    own = number(int(sys.stdin.readline()))
    mpc._loop.create_server = partial(mpc._loop.create_server, host="127.0.0.1")  # MPyC itself would listen everywhere
    await mpc.start()
    up = time.time()
    value = int(await mpc.output(statistics.median(mpc.input(own))))
    sent = sum(party.protocol.nbytes_sent for party in mpc.parties if party.pid != mpc.pid)
    print(json.dumps({"value": value, "up": up, "sent": sent}), flush=True)
    await mpc.shutdown()


if __name__ == "__main__":
    mpc.run(main())
