"""The dashboard for browsers: the files that `tools/dashboard.py` builds from the directory dashboard.

    /             the page; without a built dashboard, a page that says so
    /icon.svg     and all other built files, at the paths that the page refers to

The page is a client of the public API like any other, so this module serves files and nothing else. A file whose name
contains the digest of its content never changes, so browsers keep it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources.abc import Traversable
from typing import Final

from fastapi import Response
from fastapi.responses import HTMLResponse

from app.api.answers.responses import PRIVATE
from app.bundled import bundled_directory

# The page runs only its own scripts and styles, and sends requests only to this gateway. It creates no HTML from text.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_PAGE: Final = "index.html"
_HASHED: Final = "assets"  # the directory of files with the digest of their content in their names
_FOREVER: Final = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
_DAY: Final = {"Cache-Control": "public, max-age=86400", "Vary": "Accept-Encoding"}
_MEDIA_TYPES: Final = {
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_NOT_BUILT: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>jobgate</title></head>
<body>
<h1>jobgate</h1>
<p>The gateway works, but its dashboard was not built: <code>make setup</code> builds it if a registry of npm packages
can be reached.</p>
<p><a href="docs">The API</a></p>
</body>
</html>
"""


@dataclass(frozen=True, slots=True)
class BuiltFile:
    body: bytes
    media_type: str
    headers: Mapping[str, str]


def dashboard_page() -> Response:
    """Return the page for browsers."""
    page = read_built_files().get(_PAGE)
    headers = PRIVATE | {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer", "Vary": "Accept"}
    return HTMLResponse(_NOT_BUILT if page is None else page.body, headers=headers)


@cache
def read_built_files() -> Mapping[str, BuiltFile]:
    """Return the built files by their paths relative to the page; empty if the dashboard was not built."""
    built = bundled_directory("dashboard/built")
    if not built.joinpath(_PAGE).is_file():
        return {}
    return dict(_files_in(built, "", _DAY)) | dict(_files_in(built.joinpath(_HASHED), f"{_HASHED}/", _FOREVER))


def _files_in(directory: Traversable, prefix: str, headers: Mapping[str, str]) -> list[tuple[str, BuiltFile]]:
    found = []
    for entry in directory.iterdir():
        media_type = _MEDIA_TYPES.get(entry.name.rpartition(".")[2], "text/html")
        if entry.is_file():
            found.append((prefix + entry.name, BuiltFile(entry.read_bytes(), media_type, headers)))
    return found
