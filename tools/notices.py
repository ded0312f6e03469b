"""The licence notices of the packages whose code the built dashboard contains, and of the pages of the API.

Those of the pages are in dashboard/notices, where tools/offline_notices.py writes them.

Their licences permit to distribute them with their notices only. Vite takes code from the packages that the dashboard
depends on, directly or not, and adds a little of its own and of Rolldown. As tools/dashboard.py, which calls it, this
module imports only the standard library.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

NAME: Final = "notices.txt"
# Packages of the build that add code of their own to what they build.
BUILDERS: Final = ("rolldown", "vite")
# Vite lists the licences of the tools that it contains itself after its own, and builds nothing from them.
_OF_TOOLS: Final = "\n# Licenses of bundled dependencies"
_NOTICE_FILE: Final = re.compile(r"(licen[cs]e|notice|copying)(\W.*)?", re.IGNORECASE)
_HEAD: Final = """\
The dashboard of jobgate contains code of the packages below. Each is distributed under its own licence. jobgate itself
is distributed under the Apache License 2.0, as are the descriptions of the Kubernetes API that it contains, Copyright
The Kubernetes Authors.
"""
# For a package that names the licence and contains no text of it.
_TEXTS: Final = {
    "MIT": """\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
""",
}


class NoticeError(Exception):
    """A package has no notice. The text names it."""


class Package(NamedTuple):
    name: str
    version: str
    licence: str
    directory: Path

    @property
    def title(self) -> str:
        return f"{self.name} {self.version} ({self.licence})"


def packages(dashboard: Path) -> list[Package]:
    """Return the packages whose code the build can contain, in the order of their names."""
    locked = json.loads((dashboard / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    found = []
    for path, entry in locked.items():
        name = path.rpartition("node_modules/")[2]
        # The entry without a path is the dashboard itself.
        if path and (not entry.get("dev") or name in BUILDERS):
            found.append(Package(name, entry["version"], entry["license"], dashboard / path))
    return sorted(found)


def notices(dashboard: Path) -> str:
    """Return the notices of all packages, and those of the directory `notices` of the dashboard.

    Raises:
        NoticeError: a package has none, or is not installed.
    """
    sections = [f"{'-' * 80}\n{each.title}\n\n{notice(each)}" for each in packages(dashboard)]
    pages = [path.read_text(encoding="utf-8") for path in sorted((dashboard / "notices").glob("*.txt"))]
    return "\n".join([_HEAD, *sections, *(f"{'=' * 80}\n{text}" for text in pages)])


def notice(package: Package) -> str:
    """Return the texts of the licence of a package.

    Raises:
        NoticeError: it has none.
    """
    texts = [text.partition(_OF_TOOLS)[0].strip() for text in _texts_in(package.directory)]
    if not texts and package.licence in _TEXTS:
        texts = [f"{_author(package)}\n\n{_TEXTS[package.licence]}".strip()]
    if not texts:
        raise NoticeError(f"the package {package.name} has no text of its licence {package.licence}")
    return "\n\n".join(texts) + "\n"


def _texts_in(directory: Path) -> Iterator[str]:
    if directory.is_dir():
        for path in sorted(directory.iterdir()):
            if path.is_file() and _NOTICE_FILE.fullmatch(path.name):
                yield path.read_text(encoding="utf-8")


def _author(package: Package) -> str:
    """Return the author that a package names, or nothing."""
    described = json.loads((package.directory / "package.json").read_text(encoding="utf-8")).get("author", "")
    author = described.get("name", "") if isinstance(described, dict) else described
    return f"Copyright (c) {author}" if author else ""
