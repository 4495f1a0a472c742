"""Who may ask, and what every answer carries.

Rules:
- The Host must be this server's own name: a page of another site that was made to resolve to 127.0.0.1 has another.
- An Origin, where there is one, must be this server's own; what changes anything must have one.
- Everything under /api/ needs the token, which is in the fragment of the address that was opened, so that it is sent to
  nobody, and from there in a header. It is never logged.
- A request has a small body of a known length.
- The page may load nothing from elsewhere, run nothing that is written into it, and be framed by nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hmac import compare_digest

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN = "x-midst-token"
MOST_BODY = 512 * 1024  # bytes of a request
_SAFE = ("GET", "HEAD")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_CARRIED = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Access:
    """By what a request is known to come from the page.

    Attributes:
        port: of the server.
        token: of everything under /api/.
    """

    port: int
    token: str = field(repr=False)

    @property
    def hosts(self) -> tuple[str, str]:
        """What the server is called."""
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    @property
    def address(self) -> str:
        """Where to open the page, with the token."""
        return f"http://127.0.0.1:{self.port}/#token={self.token}"


class Gate:
    """Stands before an application."""

    def __init__(self, app: ASGIApp, keys: Access) -> None:
        """Guard an application.

        Args:
            app: what is behind the gate.
            keys: who is let through.
        """
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # a websocket that nobody accepts is closed

        async def carry(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_CARRIED)
            await send(message)

        fault = self._fault(scope)
        if fault is None:
            await self._app(scope, receive, carry)
        else:
            await JSONResponse({"text": fault[1]}, fault[0])(scope, receive, carry)

    def _fault(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        if headers.get("host") not in self._keys.hosts:
            return 403, "this page is only served as 127.0.0.1 or localhost"
        origin = headers.get("origin")
        if origin is None and scope["method"] not in _SAFE:
            return 403, "a request that starts something must come from this page"
        if origin is not None and origin not in tuple(f"http://{host}" for host in self._keys.hosts):
            return 403, "a request must come from this page, not from another site"
        opens = compare_digest(headers.get(TOKEN, "").encode(), self._keys.token.encode())
        if scope["path"].startswith("/api/") and not opens:
            return 401, "the token is missing or old; open the address that midst printed"
        if scope["method"] not in _SAFE:
            length = headers.get("content-length", "")
            if not length.isdecimal() or "transfer-encoding" in headers:
                return 411, "a request must say how long it is"
            if int(length) > MOST_BODY:
                return 413, f"a request may have {MOST_BODY:,} bytes"
        return None
