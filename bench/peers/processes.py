"""Programs, one process a party: start all, give each its number, read what each says.

Rules:
- A number goes to its process by standard input, and is in no argument, file or message.
- What every socket carries is counted (`counted.py`), whatever the program.
- Nothing is left behind: whoever takes too long, or is not needed any more, is ended with all others.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Row = dict[str, Any]

COUNTED = Path(__file__).with_name("counted.py")
PATIENCE = 100  # seconds


class PartyFailed(Exception):  # noqa: N818
    """A party's process failed, or took too long. The message may have words of somebody else's program in it."""


def ask_all(
    python: str, commands: Sequence[Sequence[str]], values: Sequence[float], folder: Path, patience: float = PATIENCE
) -> Row:
    """Start all, give each its value; the figures of the run, from the JSON objects that each prints.

    They say the value, when the party was connected to all others (`up`), when it had the answer (`answered`), the CPU
    time between; and perhaps how many messages it sent each other party.

    Args:
        python: the interpreter.
        commands: a script and its arguments, one a party.
        values: of each.
        folder: where they run, and leave what was counted.
        patience: seconds after which all are ended.

    Raises:
        PartyFailed: one of them failed, or took too long.
    """
    started: list[subprocess.Popen[str]] = []
    counts, log = [folder / f"counts-{i}.json" for i in range(len(values))], folder / "log"

    def end_all() -> None:
        for process in started:
            process.kill()

    def listen(process: subprocess.Popen[str]) -> tuple[float, Row]:
        assert process.stdout is not None
        said, when = json.loads(process.stdout.readline() or "{}"), time.time()
        for line in process.stdout:
            said |= json.loads(line)
        if process.wait() != 0 or not said:
            raise PartyFailed(f"a party ended with code {process.returncode}: {log.read_text()[-500:]}")
        return when, said

    too_long = threading.Timer(patience, end_all)
    too_long.start()
    began = time.time()
    try:
        for command, value, file in zip(commands, values, counts, strict=True):
            full = [python, str(COUNTED), str(file), *command]
            with log.open("a") as errors:
                process = subprocess.Popen(
                    full, cwd=folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
                )
            started.append(process)
            assert process.stdin is not None
            with process.stdin:
                process.stdin.write(f"{value}\n")
        with ThreadPoolExecutor(len(started)) as pool:
            answers = list(pool.map(listen, started))
    finally:
        too_long.cancel()
        end_all()
        for process in started:
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
    carried = [json.loads(file.read_text()) for file in counts]
    (value,) = {said["value"] for _, said in answers}
    sent, received = (statistics.mean(each[way] for each in carried) for way in ("sent", "received"))
    return {
        "value": value,
        "seconds": max(said["answered"] for _, said in answers) - max(said["up"] for _, said in answers),
        "whole": max(when for when, _ in answers) - began,
        "cpu": sum(said["cpu"] for _, said in answers),
        "messages": statistics.mean(said.get("messages", 0) for _, said in answers),
        "sent": sent,
        "received": received,
        "bytes": sent + received,
    }


def until_done(work: Callable[[Sequence[float]], Row], values: Sequence[float], tries: int = 3) -> Row:
    """A run; another one where somebody else has taken a port in the meantime, for which MPyC waits for ever."""
    for _ in range(tries - 1):
        try:
            return work(values)
        except PartyFailed:
            continue
    return work(values)
