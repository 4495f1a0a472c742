"""A run as one HTML file: what is in it, and what a person does with it, opened from disk."""

from __future__ import annotations

import json
import re
import socket
import struct
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from explorer_pages import Blocks, Opened, parts
from playwright.sync_api import Page, expect

import midst
from midst.cli import main
from midst.explorer.app import make_explorer
from midst.explorer.packing import unpack
from midst.explorer.page import bundle
from midst.explorer.server import serving
from midst.system import streams

Visit = Callable[..., Opened]
FAR = (
    "--graph",
    "rgg",
    "--nodes",
    "15",
    "--seed",
    "7",
    "--method",
    "consensus",
    "--mu",
    "-10",
    "--sigma",
    "1",
    "--c",
    "1",
    "--stop",
    "certified",
)
SERVED = "a.method=consensus&a.n=15&a.mu=-10&a.sigma=1&a.c=1&a.seed=7&a.stop=certified"
SHOWN = (".headline", ".outcome", ".node", ".proof", ".of-known .key", "tbody")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.html"


def write(file: Path, *options: str) -> str:
    """A page by the command; where to open it."""
    done = CliRunner().invoke(main, ["run", *options, "--page", str(file)])
    assert done.exit_code == 0, done.output
    return file.as_uri()


def drawn(n: int = 15) -> np.ndarray:
    """The numbers of FAR."""
    return streams(7).values.standard_normal(n)


# What is in it


@pytest.mark.parametrize("method", ["consensus", "search"])
def test_private_values_are_in_it_only_where_they_are_asked_for(method: str) -> None:
    values = drawn()
    result = midst.median(values, "complete", rng=7, method=method, bounds=(-5, 5))
    hidden = [value for i, value in enumerate(values) if i not in result.exposed and value != result.value]
    assert len(hidden) > 5
    asked, unasked = parts(result.page(values=True)), parts(result.page())
    assert asked.keys() == unasked.keys() == {"a.run", "a.audit"}
    assert all(struct.pack("<d", value) in asked["a.run"] for value in hidden)
    for part in unasked.values():
        assert not any(struct.pack("<d", value) in part or f"{value:.6g}".encode() in part for value in hidden)
    for name in (b'"values"', b'"held"', b'"dots"'):
        assert name not in unasked["a.run"]


def test_the_right_answer_is_in_it_only_where_it_was_found() -> None:
    values = drawn()
    result = midst.median(values, "ring", rng=7, method=midst.Consensus(mu=-10, sigma=1, c=1, stop=midst.After(3)))
    middle = float(np.median(values))
    assert result.exposed == ()
    asked, unasked = (unpack(parts(page)["a.run"]) for page in (result.page(values=True), result.page()))
    assert asked[0]["answer"]["low"] == middle
    assert str(middle).encode() not in parts(result.page())["a.run"]
    assert unasked[0]["answer"] is None
    assert "error" not in unasked[1]


def test_its_policy_allows_what_is_in_it_and_nothing_else() -> None:
    page = midst.median(drawn(), "ring", rng=7).page()
    found = Blocks(page)
    rules = dict(rule.split(" ", 1) for rule in found.policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    hashes = {f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in found.code}
    assert hashes == set(f"{rules['script-src']} {rules['style-src']}".split())
    assert not re.search(r"/static/|\b(src|href)=\"(?!data:|#)", page)
    assert json.loads(found.data["hello"]) == {
        "page": "saved",
        "version": midst.__version__,
        "runs": 1,
        "values": False,
    }


def test_libraries_of_others_come_with_their_licences() -> None:
    code = bundle("main.js")
    for package, words in (("uPlot", "Leon Sorokin"), *((f"d3-{name}", "Mike Bostock") for name in ("force", "timer"))):
        licence = code.partition(f"/*! {package}\n")[2].partition("*/")[0]
        assert words in licence
        assert "WARRANT" in licence


def test_of_a_mean_everybody_is_exposed() -> None:
    page = midst.mean(drawn(), "ring", rng=7, method="consensus", record="all").page()
    assert "<th>exposed</th><td>every node, to an observer of z(0)</td>" in page


def test_the_same_run_gives_the_same_bytes() -> None:
    one, other = (midst.median(drawn(), "ring", rng=7).page() for _ in range(2))
    assert one == other


def test_a_page_needs_no_server() -> None:
    code = """if True:
        import sys, midst
        sys.modules |= dict.fromkeys(["starlette", "uvicorn", "matplotlib"])
        page = midst.median([1.0, 2.0, 4.0], "ring", rng=7).page()
        sys.exit(not page.startswith("<!doctype html>"))"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_of_vectors_it_has_the_first_coordinate(file: Path) -> None:
    values = np.column_stack([drawn(9), drawn(9) + 100])
    result = midst.median(values, "ring", rng=7)
    assert result.page(file, values=True) is None
    assert np.ascontiguousarray(values[:, 0]).tobytes() in parts(file.read_text())["a.run"]


def test_what_cannot_be_shown_is_refused(file: Path) -> None:
    result = midst.median(drawn(), "ring", rng=7, method="consensus", record="none")
    with pytest.raises(midst.InputError, match="this trace has no segments; run with record audit"):
        result.page(file)
    lists = midst.median([[1.0, 2.0], [3.0], [4.0, 9.0]], "ring", method="search", pooled=True, bounds=(0, 10))
    with pytest.raises(midst.InputError, match="these have lists; leave the private values out"):
        lists.page(file, values=True)
    assert "a.run" in parts(lists.page())
    with pytest.raises(midst.InputError, match=r"run.png: a page ends in .html"):
        lists.page(file.with_suffix(".png"))
    many = midst.median(np.arange(2001.0), "ring", method="search", bounds=(0, 3000))
    with pytest.raises(midst.InputError, match="2,001 nodes and 2,001 edges are more than the page holds"):
        many.page(file)
    assert not list(file.parent.iterdir())


def test_bits_are_by_the_public_bounds_unless_a_prior_is_given() -> None:
    salaries = [52100.0, 65400.0, 40900.0, 84300.0, 71300.0, 58100.0, 57900.0]
    result = midst.median(salaries, "ring", rng=7, bounds=(20_000, 100_000))
    uniform = midst.audit(result.trace, prior=midst.priors.Uniform(20_000.0, 100_000.0)).total_bits
    assert f'"bits": {uniform}'.encode() in parts(result.page())["a.audit"]
    assert b"Uniform(low=20000.0, high=100000.0)" in parts(result.page())["a.run"]
    normal = midst.priors.Normal(60_000, 15_000)
    expected = midst.audit(result.trace, prior=normal).total_bits
    assert f'"bits": {expected}'.encode() in parts(result.page(prior=normal))["a.audit"]


@pytest.mark.parametrize("method", ["search", "consensus"])
def test_without_bounds_bits_are_by_a_prior_of_the_numbers_own_size(method: str, file: Path) -> None:
    salaries = np.array([52100.0, 65400.0, 40900.0, 84300.0, 71300.0, 58100.0, 57900.0])
    (values := file.with_name("salaries.txt")).write_text("\n".join(map(str, salaries)))
    for power in (1.0, 1e-10, -1.0):
        result = midst.median(salaries * power, "ring", rng=7, method=method)
        told = json.loads(json.dumps(unpack(parts(result.page())["a.audit"])[0]))["audit"]["nodes"]
        assert all(0 <= node["bits"] < 60 for node in told)
    write(file, "--graph", "ring", "--values", str(values), "--method", method)
    assert b"Normal(mean=58100.0" in parts(file.read_text())["a.run"]
    write(file, "--graph", "ring", "--nodes", "7", "--method", method)
    assert b"Normal(mean=0.0, std=1.0)" in parts(file.read_text())["a.run"]


# What is done with it


def ready(page: Page, count: int = 1) -> None:
    expect(page.locator(".panel[data-state=done]")).to_have_count(count, timeout=20_000)


def go_to(page: Page, t: int) -> None:
    page.locator("#slider").focus()
    page.keyboard.press("Home")
    for _ in range(t):
        page.keyboard.press("ArrowRight")
    expect(page.locator("output")).to_contain_text(f"t = {t} of")


def test_opened_from_disk_it_is_the_page_that_is_served(visit: Visit, address: str, file: Path) -> None:
    write(file, *FAR, "--prior", "normal:0,1", "--show-values")
    pages = [visit(address, SERVED).page, visit(file.as_uri(), offline=True).page]
    for page in pages:
        ready(page)
        page.get_by_label("Node", exact=True).select_option("3")
        page.get_by_text("All nodes as a table").click()
    for key in ("Home", "End"):
        told = []
        for page in pages:
            page.locator("#slider").focus()
            page.keyboard.press(key)
            for _ in range(3 if key == "Home" else 0):
                page.keyboard.press("Shift+ArrowRight")
            expect(page.locator("output")).to_contain_text("t = 30 of" if key == "Home" else "t = 745 of")
            told.append([page.locator(each).first.inner_text() for each in SHOWN])
        assert told[0] == told[1]
        assert "own number" in told[0][2]


def test_everything_follows_time_and_the_node(visit: Visit, file: Path) -> None:
    ring = ("--graph", "ring", "--nodes", "8", "--seed", "7", "--method", "consensus")
    page = visit(write(file, *ring), offline=True).page
    ready(page)
    expect(page.locator("#status")).to_contain_text("The own numbers are not in this file")
    expect(page.get_by_label("Show own numbers")).to_have_count(0)
    expect(page.locator(".key .own").first).to_be_hidden()
    expect(page.locator("form")).to_have_count(0)
    chooser = page.get_by_label("Node", exact=True)
    box = page.locator(".of-network canvas").last.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 30)  # a ring has node 0 at the top
    expect(chooser).to_have_value("0")
    page.mouse.move(5, 5)
    expect(chooser).to_have_value("")
    chooser.select_option("3")
    expect(page.locator(".node")).not_to_contain_text("own number")
    curves = page.locator(".of-curves .u-over").bounding_box()
    assert curves is not None
    page.mouse.click(curves["x"] + 2, curves["y"] + 20)
    expect(page.locator("output")).to_contain_text("t = 0 of")
    go_to(page, 4)
    page.wait_for_url("**t=4&node=3")
    page.reload()
    ready(page)
    expect(page.locator("output")).to_contain_text("t = 4 of")
    expect(chooser).to_have_value("3")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="PNG", exact=True).click()
    assert Path(waiting.value.path()).read_bytes().startswith(b"\x89PNG")
    expect(page.get_by_role("button", name="Page", exact=True)).to_have_count(0)


def test_both_methods_are_side_by_side(visit: Visit, file: Path) -> None:
    both = ("--graph", "rgg", "--nodes", "15", "--seed", "7", "--bounds", "-3:3", "--method", "both", "--show-values")
    page = visit(write(file, *both), offline=True).page
    ready(page, 2)
    expect(page.locator("#status")).to_contain_text("The own numbers are in this file")
    one, other = page.locator(".panel").all()
    expect(one.locator(".headline strong")).to_have_text("2 of 15")
    expect(other.locator(".headline strong")).to_have_text("Nobody")
    page.get_by_label("Node", exact=True).first.select_option("4")
    switch = page.get_by_label("Show own numbers")
    expect(switch).to_be_checked()
    expect(other.locator(".node")).to_contain_text("own number")
    switch.uncheck()
    expect(other.locator(".node")).not_to_contain_text("own number")
    page.get_by_label("Compare").uncheck()
    expect(page.locator(".panel")).to_have_count(1)


def test_it_cannot_ask_anybody(visit: Visit, file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        nobody.settimeout(0.2)
        opened = visit(write(file, "--graph", "ring", "--nodes", "5", "--seed", "7"))
        ready(opened.page)
        there = f"http://127.0.0.1:{nobody.getsockname()[1]}/"
        tries = "there => { new Image().src = there; return fetch(there).then(() => 'asked', () => 'refused'); }"
        assert opened.page.evaluate(tries, there) == "refused"
        with pytest.raises(TimeoutError):
            nobody.accept()
    assert all("Content Security Policy" in each for each in opened.complaints)
    assert opened.complaints
    opened.complaints.clear()
    opened.asked.discard(there)  # Chromium names what it then blocks


def test_without_javascript_it_says_what_came_out(visit: Visit, address: str, file: Path) -> None:
    url = write(file, "--graph", "rgg", "--nodes", "15", "--seed", "7", "--bounds", "-3:3", "--method", "both")
    page = visit(url, java_script_enabled=False).page
    expect(page.locator(".facts")).to_contain_text("asks no other address")
    for words in ("0.28846128", "exact, by the totals of 5 probes", "consensus", "2 of 15 nodes: 6, 8", "nobody"):
        expect(page.locator(".facts")).to_contain_text(words)
    expect(page.locator(".facts")).to_contain_text(f"midst {midst.__version__}")
    served = visit(address, java_script_enabled=False).page  # of what a browser then shows, this switch leaves it out
    assert "midst run --page run.html" in (served.locator("noscript").text_content() or "")


def test_a_damaged_file_says_so(visit: Visit, file: Path) -> None:
    url = write(file, "--graph", "ring", "--nodes", "5", "--seed", "7")
    page = file.read_text()
    place = page.index('id="a.run">') + 300
    file.write_text(page[:place] + "AAAAAAAA" + page[place + 8 :])
    damaged = visit(url).page
    expect(damaged.locator("#status")).to_contain_text("this file is damaged")
    file.write_text(page[: page.rindex("modules")])
    short = visit(url).page
    expect(short.locator(".facts")).to_contain_text("not all of the file is here")


def test_a_button_saves_what_is_shown(visit: Visit, address: str, file: Path) -> None:
    page = visit(address, "a.n=5&a.method=consensus&b.n=7&b.graph=ring&compare=1&values=0").page
    ready(page, 2)

    def save() -> str:
        with page.expect_download() as waiting:
            page.get_by_role("button", name="Page", exact=True).first.click()
        waiting.value.save_as(file)
        return file.read_text()

    found = parts(save())
    assert found.keys() == {"a.run", "a.audit", "b.run", "b.audit"}
    assert drawn(5).tobytes() not in found["a.run"]
    expect(page.locator("#status")).to_contain_text("without the own numbers")
    headlines = page.locator(".headline").all_inner_texts()
    saved = visit(file.as_uri(), offline=True).page
    ready(saved, 2)
    expect(saved.locator(".headline")).to_have_text(headlines)
    page.get_by_label("Show own numbers").check()
    page.get_by_label("Compare").uncheck()
    found = parts(save())
    assert found.keys() == {"a.run", "a.audit"}
    assert drawn(5).tobytes() in found["a.run"]


def test_a_file_of_another_format_is_refused_beside_the_field(visit: Visit, saved: Path) -> None:
    midst.median(drawn(5), "ring", rng=7).trace.save(saved)
    with serving(lambda keys: make_explorer(keys, saved)) as address:
        with np.load(saved) as archive:
            arrays = dict(archive)
        manifest = json.loads(str(arrays.pop("manifest"))) | {"format_version": 99}
        np.savez(saved, allow_pickle=False, manifest=np.array(json.dumps(manifest)), **arrays)
        page = visit(address).page
        expect(page.locator("#a-source-error")).to_contain_text("trace format 99, this midst reads 2")
        expect(page.get_by_label("run", exact=True)).to_be_focused()
        page.close()
