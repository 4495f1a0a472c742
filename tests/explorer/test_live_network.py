"""The page that follows real processes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from explorer_pages import Opened
from playwright.sync_api import expect

from midst import graphs
from midst.explorer.live import Feed, serve
from midst.net.events import Round, Searching, Start
from midst.net.local import make_party

Visit = Callable[..., Opened]
PATIENCE = 60_000  # milliseconds; processes start slowly on a machine with other work to do
pytestmark = pytest.mark.timeout(120)


def start(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "midst", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def find_address(process: subprocess.Popen[str]) -> str:
    """By the file that is named where nobody is at a terminal: the token is not in what was written."""
    assert process.stderr is not None
    for line in process.stderr:
        assert "token" not in line
        if found := re.search(r"file://(\S+\.html)", line):
            page = re.search(r"http://127\.0\.0\.1:[^\"]+", Path(found[1]).read_text())
            assert page is not None
            return page[0]
    raise AssertionError("no page was named")


def test_a_network_of_processes_is_followed(visit: Visit) -> None:
    network = start(
        "up", "--graph", "ring", "--nodes", "5", "--seed-values", "3", "--method", "consensus", "--explore", "--json"
    )
    try:
        page = visit(find_address(network)).page
        expect(page.locator(".outcome")).to_contain_text("known to 5 of 5 nodes", timeout=PATIENCE)
        expect(page.locator(".outcome")).to_contain_text("−0.452649")
        page.get_by_text("All nodes as a table").click()
        expect(page.locator("tbody tr")).to_have_count(5)
        page.keyboard.press("Home")
        expect(page.locator("output")).to_contain_text("t = 0 of")
    finally:
        network.send_signal(signal.SIGINT)
        out, _ = network.communicate(timeout=30)
    assert '"value": -0.452649' in out
    assert network.returncode == 0


def test_a_network_that_searches_is_followed(visit: Visit) -> None:
    words = ("up", "--graph", "ring", "--nodes", "5", "--seed-values", "3", "--method", "search", "--explore", "--json")
    network = start(*words)
    try:
        page = visit(find_address(network)).page
        expect(page.locator(".outcome")).to_contain_text("known to 5 of 5 nodes", timeout=PATIENCE)
        expect(page.locator(".headline strong")).to_have_text("Nobody")
        expect(page.locator(".of-funnel canvas")).to_have_attribute("aria-label", re.compile("−0.452649"))
        expect(page.locator(".of-curves")).to_be_hidden()
        expect(page.locator("output")).to_contain_text("step")
    finally:
        network.send_signal(signal.SIGINT)
        out, _ = network.communicate(timeout=30)
    assert '"value": -0.452649' in out


def test_contributions_arrive(visit: Visit) -> None:
    feed = Feed()
    names = ("ann", "ben", "cat", "dan", "eve")
    feed.publish(Start(names, [[0, 1], [0, 4]], "median", "search", all=False, own=0))
    with serve(feed) as address:
        page = visit(address).page
        network = page.locator(".of-network canvas").last

        def arrive(step: int, inside: int, *awaited: int) -> None:
            searching = Searching(step, [(0.0, 2.0 * inside, inside)], list(awaited))
            feed.publish(Round(0, step, [], [], searching))

        here, awaited = "its contribution is here", "its contribution is awaited"
        arrive(1, 5, 2, 3)
        expect(network).to_have_attribute("aria-label", re.compile(f"3 {here}, 2 {awaited}"))
        expect(page.locator(".outcome")).to_contain_text("waiting for cat, dan")
        arrive(1, 5, 3)
        expect(network).to_have_attribute("aria-label", re.compile(f"4 {here}, 1 {awaited}"))
        arrive(2, 1)
        expect(network).to_have_attribute("aria-label", re.compile(f"5 {here}"))
        expect(page.locator(".marks")).to_contain_text(awaited)


def test_a_real_node_s_page_shows_itself_and_nobody_else(visit: Visit, tmp_path: Path) -> None:
    with make_party(graphs.ring(3), bounds=[0, 10], method="consensus") as party:
        (tmp_path / "charter.toml").write_text(party.charter.to_toml())
        for i, identity in enumerate(party.identities):
            trusted = identity.key_file.parent / "trusted"
            trusted.mkdir()
            for other in identity.trusted:
                (trusted / other.name).write_bytes(other.read_bytes())
            (tmp_path / f"{i}.txt").touch(mode=0o600)
            (tmp_path / f"{i}.txt").write_text(str(3.5 + i))

        def node(i: int, *more: str) -> subprocess.Popen[str]:
            name = party.charter.names[i]
            key = party.identities[i].key_file
            files = ["--charter", tmp_path / "charter.toml", "--key", key, "--value-file", tmp_path / f"{i}.txt"]
            return start("node", "--name", name, *map(str, files), "--state", str(tmp_path / name), "--json", *more)

        nodes = [node(1, "--explore")]
        try:
            page = visit(find_address(nodes[0])).page
            expect(page.locator(".headline")).to_contain_text("node1")
            nodes += [node(0), node(2)]
            expect(page.locator(".outcome")).to_contain_text("4.5", timeout=PATIENCE)
            expect(page.locator(".outcome")).not_to_contain_text("linked to 0")
            page.get_by_text("All nodes as a table").click()
            sent = page.locator("tbody td:nth-child(3)").all_inner_texts()
            assert [bool(text) for text in sent] == [False, True, False]
        finally:
            for each in nodes:
                out, _ = each.communicate(timeout=30)
                assert '"value": 4.5' in out
