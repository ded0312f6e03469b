"""Protects a gateway without tokens against requests that a web page makes through its visitor's browser.

A page of any site can make the browser of its visitor send requests to a gateway on the visitor's machine:

- DNS rebinding: the page resolves a name of its own to 127.0.0.1. It can also read the answers. The request has the
  page's host in Host.
- Cross-site request forgery: the page sends requests to the address of the gateway, with methods and content types that
  need no CORS preflight. The browser sends Origin, and `cross-site` or `same-site` in Sec-Fetch-Site.

Programs other than browsers send neither Origin nor Sec-Fetch-Site. A gateway that requires tokens does not need these
checks, because a page does not know the token. It may also be reached under any name behind a proxy.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from starlette.responses import Response
from starlette.types import Scope

from app.api.answers.errors import problem
from app.domain.errors import FieldError, shorten

_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OTHER_ORIGINS: Final = frozenset({"cross-site", "same-site"})


def host_name(host: str) -> str:
    """Return the name in a Host header or URL authority, in lower case, without port and trailing dot."""
    # A port forward changes the port that the client sees, so only the name counts.
    name = host.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0].rstrip(".")


class BrowserGuard:
    """Refuses requests through a browser: 421 for a Host that is not a name of this gateway, and 403 for an unsafe
    method from another origin.
    """

    def __init__(self, hosts: tuple[str, ...], origins: tuple[str, ...]) -> None:
        self._hosts = frozenset(host_name(host) for host in hosts)
        self._origins = frozenset(origins)

    def refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that is refused, otherwise None."""
        error = self._error(scope)
        if error is None:
            return None
        status = HTTPStatus.MISDIRECTED_REQUEST if error.code == "UnknownHost" else HTTPStatus.FORBIDDEN
        return problem(status, error.code, error.detail, errors=[error])

    def _error(self, scope: Scope) -> FieldError | None:
        # Values of a repeated header are joined, and the result matches no accepted value.
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            key, text = name.decode("latin-1"), value.decode("latin-1")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        if host_name(headers.get("host", "")) not in self._hosts:
            return self._unknown_host(headers.get("host"))
        if scope["method"] in _SAFE_METHODS or self._is_same_origin(headers):
            return None
        return FieldError(
            pointer="/header/Origin",
            code="CrossOrigin",
            detail="a web page of another origin may not change anything in this gateway",
            accepted="the origin of this gateway, an origin of JOBGATE_CORS_ORIGINS, or a client other than a browser",
        )

    def _is_same_origin(self, headers: Mapping[str, str]) -> bool:
        origin = headers.get("origin")
        if origin is None:
            # Old browsers send no Sec-Fetch-Site, but they send Origin with every unsafe cross-origin request.
            return headers.get("sec-fetch-site") not in _OTHER_ORIGINS
        return origin in self._origins or origin.partition("://")[2].lower() == headers["host"].lower()

    def _unknown_host(self, host: str | None) -> FieldError:
        detail = "the request has no Host" if host is None else f'"{shorten(host)}" is not a name of this gateway'
        return FieldError(
            pointer="/header/Host",
            code="UnknownHost",
            detail=detail,
            accepted=f"one of {', '.join(sorted(self._hosts))}; JOBGATE_ALLOWED_HOSTS adds names",
        )
