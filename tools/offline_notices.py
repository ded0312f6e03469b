"""Writes the licence notices of Swagger UI and ReDoc, whose built files the package fastapi_offline contains.

    python -m tools.offline_notices

The files name the packages whose code they contain only in their source maps, which npm has. This module installs them
from npm, and accepts only those with the same files. Run it after an upgrade of fastapi_offline, with the versions
below: a test compares the files with the checksums in the notices.
"""

import hashlib
import importlib.util
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools import notices
from tools.dashboard import DASHBOARD, run_npm

TARGET: Final = DASHBOARD / "notices" / "swagger-ui-and-redoc.txt"
# Each file of fastapi_offline, and where npm has it.
FILES: Final = {
    "swagger-ui-bundle.js": "swagger-ui-dist/swagger-ui-bundle.js",
    "swagger-ui.css": "swagger-ui-dist/swagger-ui.css",
    "redoc.standalone.js": "redoc/bundles/redoc.standalone.js",
}
_BUILT: Final = ("swagger-ui-dist@5.32.6", "swagger-ui@5.32.6", "redoc@2.5.3")
# Packages whose code their builds add, at the versions of their package.json files.
_ADDED: Final = (
    *("react@18", "react-dom@18", "process@0.11", "stream-browserify@3", "deepmerge@4", "tachyons-sass@4", "tslib@2"),
    *("styled-components@5", "mobx@6", "core-js@3", "style-loader@3", "css-loader@5", "lodash.noop@3", "unfetch@4"),
    *(
        "@redocly/workerize-loader@1",
        "@braintree/sanitize-url",
        "cookie@0",
        "events@3",
        "has-proto",
        "is-plain-object@5",
    ),
    *("object-inspect", "qs", "side-channel", "stampit", "traverse@0.6"),
)
_INSTALL: Final = ("install", "--ignore-scripts", "--no-audit", "--no-fund", "--legacy-peer-deps", "--loglevel=error")
# Where two of these packages state their licence, which their package.json files do not.
_LICENCES: Final = {"decko": "MIT", "format": "MIT", "stickyfill": "MIT"}
_TITLE: Final = re.compile(r"\A\W*(the )?(mit|isc|bsd)[^\n]*licen[cs]e[^\n]*\n", re.IGNORECASE)
# An origin in one of the texts, without the address of a host that also serves packages.
_FORGE: Final = re.compile(r"https://codeberg[.]\w+/([\w/-]+)")
_HEAD: Final = """\
The pages that show the API with Swagger UI or ReDoc contain code of the packages below. The package fastapi_offline, of
which jobgate serves the files of Swagger UI, has these files with the following SHA-256 checksums:

{checksums}

Packages with one text of a licence are listed before it, each with its copyright notices.
"""


class DifferentFileError(Exception):
    """npm has another file than fastapi_offline. The text names it."""


def offline_files() -> Path:
    """Return the directory of the files of fastapi_offline."""
    package = importlib.util.find_spec("fastapi_offline")
    assert package is not None, "the package is a dependency"
    assert package.origin is not None, "the package has files"
    return Path(package.origin).parent / "static"


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def bundled(modules: Path) -> set[str]:
    """Return the names of the packages whose code the files contain, as their source maps and lists of sizes say."""
    names = {"swagger-ui", "redoc"}
    maps = [*(modules / each for each in FILES.values()), *(modules / "redoc" / "bundles").glob("*.worker.js")]
    for path in (path.with_name(f"{path.name}.map") for path in maps):
        sources = json.loads(path.read_text(encoding="utf-8"))["sources"]
        names |= {found[1] for each in sources if (found := re.search(r".*node_modules/((?:@[^/]+/)?[^/]+)/", each))}
    sizes = (modules / "swagger-ui-dist" / "log.bundle-sizes.swagger-ui.txt").read_text(encoding="utf-8")
    return names | set(re.findall(r"^([^<:\n]+): ", sizes, re.MULTILINE))


def render(modules: Path, names: set[str], checksums: str) -> str:
    """Return the notices of these packages, those with the same text of a licence together."""
    titles: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for package in sorted(_packages(modules, names)):
        lines = _text(package, modules).strip().splitlines()
        rights = [line.strip() for line in lines if re.match(r"\W*(copyright (\(c\)|©|\d)|\(c\))", line, re.IGNORECASE)]
        body = "\n".join(line for line in lines if line.strip() not in rights).strip()
        body = _FORGE.sub(r"\1 at Codeberg", body)
        key = " ".join(re.findall(r"\w+", _TITLE.sub("", body).lower()))
        texts.setdefault(key, body)
        titles.setdefault(key, []).append("\n    ".join([package.title, *rights]))
    sections = (f"{'-' * 80}\n" + "\n".join(titles[key]) + f"\n\n{texts[key]}\n" for key in titles)
    return "\n".join([_HEAD.format(checksums=checksums), *sections])


def _text(package: notices.Package, modules: Path) -> str:
    try:
        return notices.notice(package)
    except notices.NoticeError:
        # The text of this licence is the same for all.
        if package.licence != "Apache-2.0":
            raise
        return (modules / "swagger-ui" / "LICENSE").read_text(encoding="utf-8")


def _packages(modules: Path, names: set[str]) -> Iterator[notices.Package]:
    for name in names:
        described = json.loads((modules / name / "package.json").read_text(encoding="utf-8"))
        licence = described.get("license") or _LICENCES[name]
        yield notices.Package(name, described["version"], licence, modules / name)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "package.json").write_text("{}")
        run_npm(*_INSTALL, f"--prefix={directory}", *_BUILT, *_ADDED)
        modules = Path(directory) / "node_modules"
        for name, path in FILES.items():
            if checksum(modules / path) != checksum(offline_files() / name):
                raise DifferentFileError(f"{name} of fastapi_offline is not that of {', '.join(_BUILT)}")
        checksums = "\n".join(f"    {checksum(offline_files() / name)}  {name}" for name in FILES)
        TARGET.parent.mkdir(exist_ok=True)
        TARGET.write_text(render(modules, bundled(modules), checksums), encoding="utf-8")


if __name__ == "__main__":
    main()
