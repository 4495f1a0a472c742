"""Who is let in, what is asked of the server, and what becomes of a run that nobody waits for."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from midst.errors import InputError, MissingExtra
from midst.explorer import runs as runs_module
from midst.explorer.app import make_explorer, make_live
from midst.explorer.gate import MOST_BODY, TOKEN, Access
from midst.explorer.live import Feed
from midst.explorer.page import STATIC
from midst.explorer.runs import RunStore
from midst.explorer.server import serving

LONG = {"method": "consensus", "n": "400", "init": "sealed"}  # its audit takes most of a minute


@dataclass(frozen=True)
class Site:
    """A server, and the headers that open it."""

    base: str
    headers: dict[str, str]

    @property
    def port(self) -> int:
        return urlsplit(self.base).port or 0

    def get(self, path: str, **changed: str | None) -> httpx.Response:
        return httpx.get(self.base + path, headers=self._with(changed), timeout=30)

    def post(self, content: Any = b"{}", **changed: str | None) -> httpx.Response:
        return httpx.post(f"{self.base}/api/runs", headers=self._with(changed), content=content, timeout=30)

    def stream(self, settings: dict[str, str], client: str = "") -> Any:
        headers = {**self.headers, "x-midst-client": client}
        return httpx.stream("POST", f"{self.base}/api/runs", headers=headers, json=settings, timeout=30)

    def _with(self, changed: dict[str, str | None]) -> list[tuple[str, bytes]]:
        """The headers with some of them changed, or left out where None."""
        named = {name.replace("_", "-"): text for name, text in changed.items()}
        named = {**self.headers, **{(TOKEN if name == "token" else name): text for name, text in named.items()}}
        return [(name, text.encode()) for name, text in named.items() if text is not None]


def site_at(address: str) -> Site:
    parts = urlsplit(address)
    base = f"http://{parts.netloc}"
    return Site(base, {TOKEN: parts.fragment.removeprefix("token="), "origin": base})


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serving(make_explorer) as address:
        yield site_at(address)


def events(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    for line in answer.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line[6:])


# The gate


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/api/hello", "/nowhere"])
def test_every_answer_is_fenced(site: Site, path: str) -> None:
    for headers in (site.get(path).headers, site.get(path, host="evil.example").headers):
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "*" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{}", "127.0.0.1:80", "127.0.0.1", "localhost:1", "[::1]:{}"]
)
@pytest.mark.parametrize("path", ["/", "/static/main.js", "/api/hello"])
def test_a_wrong_host_is_refused(site: Site, host: str, path: str) -> None:
    assert site.get(path).status_code == 200
    assert site.get(path, host=host.format(site.port)).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:80", "https://127.0.0.1:{}", ""])
def test_a_wrong_origin_is_refused(site: Site, origin: str) -> None:
    assert site.get("/api/hello", origin=origin.format(site.port)).status_code == 403
    assert site.post(origin=origin.format(site.port)).status_code == 403


def test_what_starts_work_must_have_an_origin(site: Site) -> None:
    assert site.post(origin=None).status_code == 403
    assert site.get("/api/hello", origin=None).status_code == 200


@pytest.mark.parametrize("token", [None, "", "guess", "{}-", "sécret"])
def test_without_the_token_nothing_is_told_or_started(site: Site, token: str | None) -> None:
    wrong = None if token is None else token.format(site.headers[TOKEN])
    assert site.get("/api/hello", token=wrong).status_code == 401
    assert site.get("/api/runs/0/run", token=wrong).status_code == 401
    answer = site.post(token=wrong)
    assert answer.status_code == 401
    assert site.headers[TOKEN] not in answer.text


def test_localhost_is_this_server_too(site: Site) -> None:
    name = f"localhost:{site.port}"
    assert site.get("/api/hello", host=name, origin=f"http://{name}").status_code == 200


def test_a_body_is_small_and_of_a_known_length(site: Site) -> None:
    assert site.post(b"x" * (MOST_BODY + 1)).status_code == 413
    assert site.post(iter([b"{}"])).status_code == 411


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"1", b"\xff"])
def test_a_body_must_be_an_object(site: Site, body: bytes) -> None:
    assert site.post(body).status_code == 400


def test_a_websocket_is_not_opened(site: Site) -> None:
    asks = {"connection": "Upgrade", "upgrade": "websocket", "sec_websocket_version": "13"}
    answer = site.get("/api/live", **asks, sec_websocket_key="dGhlIHNhbXBsZSBub25jZQ==")
    assert answer.status_code in (400, 403, 404)


def test_nothing_outside_the_folder_is_served(site: Site) -> None:
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/vendor/%2e%2e/%2e%2e/gate.py", "/static/"):
        assert site.get(path).status_code == 404


def test_the_keys_do_not_show_the_token() -> None:
    keys = Access(8642, "secret-token")
    assert "secret" not in repr(keys)
    assert keys.address == "http://127.0.0.1:8642/#token=secret-token"


# The page's files


def test_the_page_has_nothing_inline_and_asks_nobody_else() -> None:
    page = (STATIC / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", page)
    for file in [*STATIC.glob("*.js"), STATIC / "index.html", STATIC / "style.css"]:
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, file.name
        assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|\beval\b", text), file.name


def test_libraries_of_others_have_their_version_and_licence() -> None:
    vendor = STATIC / "vendor"
    listed = (vendor / "README.md").read_text()
    for file in vendor.glob("*.js"):
        assert file.name in listed
        name = file.name.removesuffix(".js").removesuffix(".esm")
        assert "opyright" in (vendor / f"{name}.LICENSE").read_text()
        version = re.search(r"\(?v(\d+\.\d+\.\d+)", file.read_text())
        assert version is not None
        assert version[1] in listed


# Runs


def test_hello_names_fields_and_presets(site: Site) -> None:
    said = site.get("/api/hello").json()
    assert said["page"] == "explore"
    told = " ".join(preset["text"] for preset in said["presets"])
    assert all(f"{figure}:" in told for figure in ("Fig. 1", "Fig. 2", "Fig. 2 (b)", "Fig. 3", "Fig. 4"))
    assert said["file"] is None


def test_a_run_is_told_as_it_goes(site: Site) -> None:
    with site.stream({"n": "5"}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        told = list(events(answer))
    assert [event["kind"] for event in told] == ["started", "run", "auditing", "audit", "done"]
    run = told[1]["run"]
    assert len(site.get(f"/api/runs/{run}/run").content) == told[1]["bytes"]
    assert site.get(f"/api/runs/{run}/audit").status_code == 200
    assert site.get(f"/api/runs/{run}/other").status_code == 404
    assert site.get("/api/runs/none/run").status_code == 404


def test_a_run_as_one_file_is_for_those_with_the_token(site: Site) -> None:
    with site.stream({"n": "5"}) as answer:
        run = next(event["run"] for event in events(answer) if event["kind"] == "audit")
    told = site.get(f"/api/page?run={run}")
    assert told.headers["content-type"].startswith("text/html")
    assert 'id="a.audit"' in told.text
    assert 'id="b.run"' not in told.text
    assert 'id="b.run"' in site.get(f"/api/page?run={run}&run={run}&run=none").text  # two fit, and no more are read
    for path in ("/api/page", "/api/page?run=none", f"/api/page?run={run}&run=none"):
        assert site.get(path).status_code == 404
    assert site.get(f"/api/page?run={run}", token=None).status_code == 401


def test_bad_settings_are_refused_by_field(site: Site) -> None:
    with site.stream({"method": "consensus", "c": "-1"}) as answer:
        assert list(events(answer)) == [{"kind": "refused", "fields": {"c": "c must be positive"}}]


def test_one_run_at_a_time_and_leaving_ends_it(site: Site) -> None:
    with site.stream(LONG, "mine") as answer:
        told = events(answer)
        assert any(event["kind"] == "auditing" for event in told)
        refused = site.post(x_midst_client="mine")
        assert refused.status_code == 409
        assert "cancel" in refused.json()["text"]
        assert site.post(x_midst_client="other").status_code == 200
    for _ in range(100):  # what it did is over long before it would have been done
        again = site.post(x_midst_client="mine")
        if again.status_code == 200:
            break
        time.sleep(0.05)
    assert '"done"' in again.text


def test_runs_in_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_module, "MOST_KEPT", 3)
    monkeypatch.setattr(runs_module, "MOST_BYTES", 100)
    kept = RunStore()
    for k in range(6):
        kept._keep(str(k), "run", b"x" * 10)
    assert [kept.part(str(k), "run") is not None for k in range(6)] == [False] * 3 + [True] * 3
    kept._keep("large", "run", b"x" * 95)
    assert kept.part("5", "run") is None
    assert kept.parts("large") is None  # its audit is not there
    assert kept.part("large", "run") is not None


def test_too_many_are_refused_and_a_process_that_dies_is_reported(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_module, "MOST_AT_ONCE", 1)
    with site.stream(LONG, "one") as answer:
        told = events(answer)
        assert next(told)["kind"] == "started"
        refused = site.post(x_midst_client="two")
        assert refused.status_code == 409
        assert "other pages" in refused.json()["text"]
        for child in psutil.Process().children():
            if "midst.explorer.worker" in child.cmdline():
                child.kill()
        assert list(told)[-1]["kind"] == "failed"
    assert '"done"' in site.post(x_midst_client="two").text


# The server


def test_it_listens_on_this_machine_only() -> None:
    with serving(make_explorer) as address:
        parts = urlsplit(address)
        assert parts.hostname == "127.0.0.1"
        with pytest.raises(OSError, match=r"refused|unreachable|timed out"):
            socket.create_connection(("127.0.0.2", parts.port), timeout=1)  # type: ignore[arg-type]


def test_a_port_that_is_taken_is_refused_or_passed_over() -> None:
    feed = Feed()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port}"), serving(lambda keys: make_live(keys, feed), port):
            pass
        with serving(lambda keys: make_live(keys, feed), port, any_port=True) as address:
            assert urlsplit(address).port != port


def test_each_server_has_its_own_token() -> None:
    feed = Feed()
    with serving(lambda keys: make_live(keys, feed)) as one, serving(lambda keys: make_live(keys, feed)) as two:
        assert urlsplit(one).fragment != urlsplit(two).fragment
        assert len(urlsplit(one).fragment) > 40


def test_it_leaves_no_thread_behind() -> None:
    def servers() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == "midst explorer"}

    before = servers()
    with serving(make_explorer):
        assert len(servers() - before) == 1
    assert servers() <= before


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[explore\]'$"), serving(make_explorer):
        pass


def test_a_file_is_named_and_not_its_folder(saved: Path) -> None:
    with serving(lambda keys: make_explorer(keys, saved)) as address:
        said = site_at(address).get("/api/hello")
    assert said.json()["file"] == "run.npz"
    assert str(saved.parent) not in said.text
