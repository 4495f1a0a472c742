"""The addresses: the page, what it may ask for, and what it is told while it waits.

| address                | what                                                                        |
|------------------------|-----------------------------------------------------------------------------|
| /, /static/…           | the page                                                                    |
| GET /api/hello         | fields, presets, and which of the two pages this is                         |
| POST /api/runs         | start a run; the answer is a stream of events, and leaving it ends the run  |
| GET /api/runs/ID/PART  | the bytes of a run, or of its audit                                         |
| GET /api/page?run=ID   | a file with this run in it, or with two; own numbers only with values=1     |
| GET /api/live          | events of a running network, for as long as one listens                     |
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from midst._version import __version__
from midst.explorer.gate import Access, Gate
from midst.explorer.live import Feed
from midst.explorer.page import MOST_RUNS, STATIC, make_page
from midst.explorer.runs import Busy, RunStore

_GONE = {"text": "this run is not complete, or no longer kept; run it again"}
_BETWEEN_LOOKS = 0.1  # seconds between two looks at a feed
_LOOKS_PER_SIGN = 100  # so many looks without news, and a comment shows that the line is alive


def make_explorer(keys: Access, file: Path | None = None) -> ASGIApp:
    """The page on which runs are made.

    Args:
        keys: who may ask.
        file: a saved run to show first.
    """
    from midst.explorer import fields, presets

    runs = RunStore(file)
    hello = {
        "page": "explore",
        "version": __version__,
        "fields": fields.describe(),
        "presets": presets.describe(),
        "file": None if file is None else file.name,
    }

    async def start(request: Request) -> Response:
        try:
            settings = await request.json()
        except ValueError:
            settings = None
        if not isinstance(settings, dict):
            return JSONResponse({"text": "settings must be a JSON object"}, 400)
        events = runs.make(request.headers.get("x-midst-client", ""), settings)
        try:
            first = await anext(events)
        except Busy as busy:
            return JSONResponse({"text": str(busy)}, 409)
        return _stream(events, first)

    async def fetch(request: Request) -> Response:
        body = runs.part(request.path_params["run"], request.path_params["part"])
        if body is None:
            return JSONResponse(_GONE, 404)
        return Response(body, media_type="application/octet-stream")

    def save(request: Request) -> Response:  # no coroutine: it is run in a thread, since it compresses
        asked = request.query_params
        found = [runs.parts(each) for each in asked.getlist("run")[:MOST_RUNS]]
        parts = [each for each in found if each is not None]
        if not parts or len(parts) < len(found):
            return JSONResponse(_GONE, 404)
        return HTMLResponse(make_page(parts, values=asked.get("values") == "1"))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await runs.warm()
        yield
        await runs.close()

    routes = [
        Route("/api/runs", start, methods=["POST"]),
        Route("/api/runs/{run}/{part}", fetch),
        Route("/api/page", save),
    ]
    return Gate(Starlette(routes=[*_pages(hello), *routes], lifespan=lifespan), keys)


def make_live(keys: Access, feed: Feed) -> ASGIApp:
    """The page that follows a feed.

    Args:
        keys: who may ask.
        feed: what is followed.
    """

    async def follow(_: Request) -> Response:
        return _stream(_news(feed))

    hello = {"page": "live", "version": __version__}
    return Gate(Starlette(routes=[*_pages(hello), Route("/api/live", follow)]), keys)


def _pages(hello: Mapping[str, Any]) -> list[Route | Mount]:
    async def page(_: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def greet(_: Request) -> Response:
        return JSONResponse(hello)

    return [Route("/", page), Mount("/static", StaticFiles(directory=STATIC)), Route("/api/hello", greet)]


def _stream(events: AsyncIterator[dict[str, Any] | None], first: dict[str, Any] | None = None) -> StreamingResponse:
    def line(event: dict[str, Any] | None) -> bytes:
        return b":\n\n" if event is None else b"data: " + json.dumps(event, allow_nan=False).encode() + b"\n\n"

    async def lines() -> AsyncIterator[bytes]:
        try:
            if first is not None:
                yield line(first)
            async for event in events:
                yield line(event)
        finally:
            await events.aclose()  # type: ignore[attr-defined]

    return StreamingResponse(lines(), media_type="text/event-stream")


async def _news(feed: Feed) -> AsyncIterator[dict[str, Any] | None]:
    """What is new in a feed, a few times a second, until it is closed."""
    place, quiet = 0, 0
    while not feed.closed:
        place, news = feed.since(place)
        if news:
            yield news
            quiet = 0
            continue
        quiet += 1
        if quiet % _LOOKS_PER_SIGN == 0:
            yield None
        await asyncio.sleep(_BETWEEN_LOOKS)
