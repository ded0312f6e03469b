"""The entry of a gateway: the dashboard for browsers, a short index for programs, and the OpenAPI document as a page.

    /        the dashboard for browsers (app.api.pages.dashboard); other clients get an index in JSON
    /docs    Swagger UI; this process serves all of its files, so that the page works without the internet

None of these needs a token. The pages send requests with the token that their user enters.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse

from app.api.answers.responses import JSON, PRIVATE
from app.api.pages.dashboard import BuiltFile, dashboard_page, read_built_files
from app.base.offload import offload

DOCS_PATH: Final = "/docs"
# Swagger UI writes style attributes and shows images from data URLs. It runs no code of other origins.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# URLs are relative, so that the page also works behind a proxy that adds a prefix.
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>jobgate API</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="icon" href="data:,">
</head>
<body>
<div id="page"></div>
<noscript>This page needs JavaScript. The document is <a href="openapi.json">openapi.json</a>.</noscript>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""
_START: Final = """SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#page",
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "none",
  persistAuthorization: false,
  validatorUrl: null
});
"""
# The files of Swagger UI that the page needs.
_ASSETS: Final = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}
_PACKAGE: Final = "fastapi_offline"  # contains these files; none of its code is imported
# The files change only with an upgrade of the gateway, and a day of old ones does no harm.
_CACHED: Final = {"Cache-Control": "public, max-age=86400", "Vary": "Accept-Encoding"}

_Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


def add_start_page(app: FastAPI, openapi_path: str, resources: Mapping[str, str]) -> None:
    """Add the routes of this module. `resources` are the paths of the lists by the names of the resources."""
    endpoints: dict[str, _Endpoint] = {
        "/": _index_of(app, openapi_path, resources),
        DOCS_PATH: _page,
        f"{DOCS_PATH}/start.js": _start,
    }
    endpoints |= {f"{DOCS_PATH}/{name}": _asset_of(name, media_type) for name, media_type in _ASSETS.items()}
    endpoints |= {f"/{path}": _serve_file(file) for path, file in read_built_files().items()}
    for path, endpoint in endpoints.items():
        app.add_route(path, endpoint, methods=["GET"], include_in_schema=False)


def _index_of(app: FastAPI, openapi_path: str, resources: Mapping[str, str]) -> _Endpoint:
    links: dict[str, Any] = {
        "name": app.title,
        "version": app.version,
        "docs": DOCS_PATH,
        "openapi": openapi_path,
        "kinds": "/api/v1/kinds",
        "resources": resources,
        "live": "/livez",
        "ready": "/readyz",
        "metrics": "/metrics",
    }

    async def index(request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return dashboard_page()
        return Response(msgspec.json.encode(links), media_type=JSON, headers=PRIVATE | {"Vary": "Accept"})

    return index


def _serve_file(file: BuiltFile) -> _Endpoint:
    async def built_file(_: Request) -> Response:
        return Response(file.body, media_type=file.media_type, headers=file.headers)

    return built_file


async def _page(_: Request) -> Response:
    return HTMLResponse(_PAGE, headers={"Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer"} | PRIVATE)


async def _start(_: Request) -> Response:
    return Response(_START, media_type="text/javascript", headers=_CACHED)


def _asset_of(name: str, media_type: str) -> _Endpoint:
    async def asset(_: Request) -> Response:
        return Response(await offload(_asset, name), media_type=media_type, headers=_CACHED)

    return asset


@cache
def _asset(name: str) -> bytes:
    """Return a file of Swagger UI. Importing the package would import a second application."""
    package = find_spec(_PACKAGE)
    assert package is not None, "the package is a dependency"
    assert package.origin is not None, "the package has files"
    return (Path(package.origin).parent / "static" / name).read_bytes()
