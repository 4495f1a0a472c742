"""Ten clients of Flower learn to tell digits apart, three of them poisoned: the median found among them, and FedAvg.

Clients are threads of this process or, with --supernodes, processes of Flower's: a SuperLink and ten SuperNodes on this
machine, as they would be on eleven, which start the app anew for every message. Either way clients talk to each other
over TLS, and nothing is left afterwards. Their keys are all made here; in earnest each client makes its own.

Run: python examples/flower/run.py --out accuracy.png
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from digits.model import HIGHEST, LOWEST, new_model, poisoned
from flwr.app import Context, RecordDict
from matplotlib.ticker import MaxNLocator, PercentFormatter
from thread_grid import ThreadGrid

APP = Path(__file__).parent
BIN = Path(sys.executable).parent
RESOLUTION = 0.0001
QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}

Config = dict[str, str | int | float | bool]


def main() -> None:
    """Run all four ways, write down the accuracies, and draw them."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--out", type=Path, default=Path("accuracy.png"), help="the picture; the numbers go beside it")
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--clients", type=int, default=10)
    options.add_argument("--supernodes", action="store_true", help="clients as processes of Flower's own")
    given = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started ends too
    os.environ.update(QUIET)
    with tempfile.TemporaryDirectory(prefix="midst-flower-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        ports = free_ports()
        charters = agree(folder, given.clients, given.rounds, ports)
        ways: dict[str, Config] = {
            "FedAvg, nobody poisoned": {"poisoned": False},
            "mean around the median, found among the clients": {"charter": str(charters["mean around median"])},
            "median, found among the clients": {"charter": str(charters["median"])},
            "FedAvg": {},
        }
        with (
            on_supernodes(folder, given.clients, ports) if given.supernodes else in_threads(folder, given.clients) as go
        ):
            measured = {}
            for name, way in ways.items():
                accuracies = folder / f"{name}.json"
                usual: Config = {"charter": "", "poisoned": True, "clients": given.clients, "rounds": given.rounds}
                go({**usual, **way, "accuracies": str(accuracies)})
                if not accuracies.exists():
                    raise SystemExit("the run ended before its time; what Flower says about it is above")
                measured[name] = json.loads(accuracies.read_text())
    given.out.with_suffix(".json").write_text(json.dumps(measured, indent=1) + "\n")
    draw(measured, given.clients, given.out)


def agree(folder: Path, clients: int, rounds: int, ports: Iterator[int]) -> dict[str, Path]:
    """A key for each client, and what all agree on: a charter for each kind of aggregate."""
    np.savez(folder / "model.npz", **new_model())
    for i in range(clients):
        midst(f"keys init client{i} --folder {folder}/client{i}")
    charters = {}
    for objective, more in {"median": "", "mean around median": f"--trim {len(poisoned(clients))}"}.items():
        charter = charters[objective] = folder / f"{objective.replace(' ', '-')}.toml"
        places = [f"{folder}/client{i}/client{i}.crt@127.0.0.1:{next(ports)}" for i in range(clients)]
        what = f"--method search --objective '{objective}' {more} --arrays {folder}/model.npz --aggregates {rounds}"
        public = f"--session {charter.stem} --graph complete --bounds {LOWEST}:{HIGHEST} --resolution {RESOLUTION}"
        midst(f"charter new {what} {public} --out {charter} {' '.join(places)}")
    for i in range(clients):
        midst(f"keys trust {charters['median']} --folder {folder}/client{i}")  # the others have the same certificates
    return charters


def node_settings(folder: Path, number: int) -> Config:
    """What a client is told about itself when it is started."""
    return {"number": number, "folder": str(folder / f"client{number}")}


@contextmanager
def in_threads(folder: Path, clients: int) -> Iterator[Callable[[Config], None]]:
    """What runs the app, clients being threads."""
    from digits import client_app, server_app

    def run_app(config: Config) -> None:
        grid = ThreadGrid(client_app.app, [node_settings(folder, i) for i in range(clients)], config)
        server_app.app(grid, Context(1, 1, {}, RecordDict(), config))

    yield run_app


@contextmanager
def on_supernodes(folder: Path, clients: int, ports: Iterator[int]) -> Iterator[Callable[[Config], None]]:
    """What runs the app, clients being processes: a SuperLink and a SuperNode a client are there meanwhile."""
    port = next(ports)
    (folder / "flwr").mkdir()
    here = f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
    (folder / "flwr" / "config.toml").write_text(here)
    environment = {**os.environ, "FLWR_HOME": str(folder / "flwr"), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    processes: list[subprocess.Popen[bytes]] = []
    with ExitStack() as started:
        started.callback(end_all, processes)

        def start(name: str, *arguments: str) -> None:
            log = started.enter_context((folder / f"{name}.log").open("w"))
            command = [BIN / f"flower-{name.split('-')[0]}", "--insecure", *arguments]
            processes.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment))

        def run_app(config: Config) -> None:
            command = [BIN / "flwr", "run", APP, "here", "--stream", "--run-config", spell(config)]
            subprocess.run(command, env=environment, check=True)

        start("superlink", "--port", str(port), "--disable-runtime-dependency-installation")
        wait_for(port)
        for i in range(clients):
            own = ("--port", str(next(ports)), "--node-config", spell(node_settings(folder, i)))
            start(f"supernode-{i}", "--superlink", f"127.0.0.1:{port}", *own)
        yield run_app


def end_all(processes: list[subprocess.Popen[bytes]]) -> None:
    """Tell all to end before any is waited for."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait()


def spell(settings: Config) -> str:
    """Settings as Flower's commands take them."""
    return " ".join(f"{name}={json.dumps(value)}" for name, value in settings.items())


def draw(measured: Mapping[str, list[float]], clients: int, out: Path) -> None:
    """Accuracy over rounds."""
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for (name, accuracies), style in zip(measured.items(), ("k:", "C2-^", "C0-s", "C3-o"), strict=True):
        axes.plot(accuracies, style, label=name, markersize=4, clip_on=False)
    axes.set(xlabel="round", ylabel="digits told right, of 359 that no client has", ylim=(0, 1))
    axes.set_title(f"{clients} clients, {len(poisoned(clients))} of them poisoned", loc="left")
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.margins(x=0.01)
    axes.legend(loc="center right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(out, dpi=120)


def midst(command: str) -> None:
    """A command of midst."""
    subprocess.run([sys.executable, "-m", "midst", *shlex.split(command)], check=True, stdout=subprocess.DEVNULL)


def free_ports() -> Iterator[int]:
    """Ports on loopback that nobody uses, below those that a system hands out to whoever dials."""
    for port in range(random.randrange(20_000, 30_000), 32_000):
        with suppress(OSError):
            socket.create_server(("127.0.0.1", port)).close()
            yield port


def wait_for(port: int, seconds: float = 60) -> None:
    """Until somebody listens there."""
    end = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


if __name__ == "__main__":
    main()
