"""The median of numbers by MPyC, as its demos do it: the other side of `bench.mpyc`, one process a party.

    python bench/parties.py integers 16 -P 127.0.0.1:7001 -P 127.0.0.1:7002 -P 127.0.0.1:7003 -I 0 < FILE

Standard input holds this party's number, which has two decimals at most; `integers` of so many bits hold a hundred
times as much, `fixed` point numbers of so many bits have half of them behind the point. Standard output gets one JSON
object: the median, `up` (when this party was connected to all others), `answered` (when it had
the median) and `cpu` (seconds of CPU time between the two). This file needs MPyC, and nothing of midst.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial

KIND, BITS = sys.argv.pop(1), int(sys.argv.pop(1))  # before MPyC reads the others

from mpyc import statistics  # noqa: E402
from mpyc.runtime import mpc  # noqa: E402


async def main() -> None:
    own = float(sys.stdin.readline())
    number = mpc.SecInt(BITS)(round(100 * own)) if KIND == "integers" else mpc.SecFxp(BITS)(own)
    mpc._loop.create_server = partial(mpc._loop.create_server, host="127.0.0.1")  # MPyC itself would listen everywhere
    await mpc.start()
    up, cpu = time.time(), time.process_time()
    found = await mpc.output(statistics.median(mpc.input(number)))
    answered, spent = time.time(), time.process_time() - cpu
    value = int(found) / 100 if KIND == "integers" else round(float(found), 2)
    print(json.dumps({"value": value, "up": up, "answered": answered, "cpu": spent}), flush=True)
    await mpc.shutdown()


if __name__ == "__main__":
    mpc.run(main())
