"""Which requests a web page may cause where no token protects the gateway.

A page of any site can have its visitor's browser send requests to a gateway on the visitor's machine:

- under a name of its own that resolves to 127.0.0.1 (DNS rebinding): the page then reads the answers, too, and the
  request names the page's host in Host
- to the gateway's own address, with methods and content types that need no permission: the browser names the page in
  Origin, and says cross-site or same-site in Sec-Fetch-Site

Programs that are not browsers send neither Origin nor Sec-Fetch-Site. Where tokens are required, none of this is
checked: a page does not know the token, and behind a proxy a gateway is reached under any name.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.errors import problem
from app.domain.errors import FieldError, shorten

LOOPBACK_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OF_OTHERS: Final = frozenset({"cross-site", "same-site"})


def host_name(host: str) -> str:
    """The name in a Host header or URL authority, without the port, in lower case and without a trailing dot."""
    name = host.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0].rstrip(".")


class BrowserGuard:
    """Answers 421 to a Host that is not this gateway's, and 403 to a change that a page of another origin asks for."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...], origins: tuple[str, ...]) -> None:
        self._app = app
        self._hosts = frozenset(host_name(host) for host in hosts)
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        error = self._refusal(scope) if scope["type"] == "http" else None
        if error is None:
            await self._app(scope, receive, send)
            return
        status = HTTPStatus.MISDIRECTED_REQUEST if error.code == "UnknownHost" else HTTPStatus.FORBIDDEN
        await problem(status, error.code, error.detail, errors=[error])(scope, receive, send)

    def _refusal(self, scope: Scope) -> FieldError | None:
        # A header that is given more than once counts as wrong: the values are joined.
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            key, text = name.decode("latin-1"), value.decode("latin-1")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        if host_name(headers.get("host", "")) not in self._hosts:
            return self._unknown_host(headers.get("host"))
        if scope["method"] in _SAFE_METHODS or self._is_own(headers):
            return None
        return FieldError(
            pointer="/header/Origin",
            code="CrossOrigin",
            detail="a page of another origin may not change anything here",
            accepted="a request of this origin, of one in JOBGATE_CORS_ORIGINS, or of a program that is not a browser",
        )

    def _is_own(self, headers: Mapping[str, str]) -> bool:
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site") not in _OF_OTHERS
        return origin in self._origins or origin.partition("://")[2].lower() == headers["host"].lower()

    def _unknown_host(self, host: str | None) -> FieldError:
        named = "no host is named" if host is None else f'"{shorten(host)}" is not a name of this gateway'
        return FieldError(
            pointer="/header/Host",
            code="UnknownHost",
            detail=named,
            accepted=f"{', '.join(sorted(self._hosts))}, or what JOBGATE_ALLOWED_HOSTS adds",
        )
