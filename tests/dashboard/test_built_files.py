"""The built files, and the unit tests of the dashboard, which need Node and no browser."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.api.pages.dashboard import read_built_files
from tools import notices, offline_notices
from tools.dashboard import BUILT, DASHBOARD, ROOT, run_npm

FIRST_VIEW_BYTES = 250_000


@pytest.fixture(autouse=True)
def built() -> None:
    if not (BUILT / "index.html").exists() or not (DASHBOARD / "node_modules" / ".package-lock.json").exists():
        pytest.skip("the dashboard is not built: `make setup` builds it")


def test_the_first_view_is_small() -> None:
    """The page, and what it loads before it shows the table of jobs. Other views load their code when they open."""
    files = read_built_files()
    page = files["index.html"].body
    first = [path for path in re.findall(r'(?:src|href)="\./([^"]+)"', page.decode()) if path in files]
    assert any(path.endswith(".js") for path in first)
    assert any(path.endswith(".css") for path in first)
    assert sum(len(gzip.compress(body)) for body in (page, *(files[path].body for path in first))) <= FIRST_VIEW_BYTES


def test_built_files_contain_no_inline_code_and_no_source_maps() -> None:
    page = read_built_files()["index.html"].body.decode()
    assert not re.search(r"<script>|<script [^>]*>[^<]|<style|\son\w+=|style=", page)
    assert not [path for path in read_built_files() if path.endswith(".map")]


def test_built_files_create_no_html_and_no_style_elements_that_the_policy_forbids() -> None:
    """A refused assignment throws, and React then removes the page."""
    sinks = re.compile(
        r"\.(?:inner|outer)HTML=[^,;)}]{1,20}|insertAdjacentHTML|document\.write\(|head\.(?:pre|ap)pend\("
    )
    code = "".join(file.body.decode() for path, file in read_built_files().items() if path.endswith(".js"))
    assert set(sinks.findall(code)) == {
        ".innerHTML=`<script><\\/script>`",  # React, for an element <script>, which the page does not have
        ".innerHTML=n",  # React, for dangerouslySetInnerHTML, which biome forbids
    }


@pytest.mark.parametrize("place", ["dashboard", "tools/azurite"])
def test_the_lock_file_contains_no_address_of_a_registry(place: str) -> None:
    text = (ROOT / place / "package-lock.json").read_text(encoding="utf-8")
    assert '"integrity"' in text
    assert '"resolved"' not in text


def test_every_bundled_package_has_its_notice(tmp_path: Path) -> None:
    """The source maps of a build name every file whose code it contains."""
    run_npm("run", "build", "--", "--sourcemap", "--emptyOutDir", f"--outDir={tmp_path}")
    maps = [json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "assets").glob("*.map")]
    files = {source for each in maps for source in each["sources"]}
    bundled = {found[1] for file in files if (found := re.search(r".*node_modules/((?:@[^/]+/)?[^/]+)/", file))}
    assert {"react", "react-dom", "lucide-react", "@codemirror/view"} <= bundled
    text = read_built_files()[notices.NAME].body.decode()
    titles = set(re.findall(r"^-{80}\n(\S+) \S+ \(", text, re.MULTILINE))
    assert bundled | {*notices.BUILDERS} <= titles
    # Style sheets have no source maps.
    assert "uplot" in titles
    for package in notices.packages(DASHBOARD):
        section = text.partition(f"\n{package.title}\n\n")[2].partition("\n" + "-" * 80)[0]
        assert re.search(r"permi(t|ssion)|licen[cs]e", section, re.IGNORECASE), package.name
    assert "Copyright (c) Meta Platforms" in text
    assert read_built_files()[notices.NAME].media_type == "text/plain; charset=utf-8"


def test_the_notices_are_those_of_the_files_of_swagger_ui_and_redoc() -> None:
    """Only the source maps at npm name the packages inside of these files: tools/offline_notices.py reads them."""
    text = offline_notices.TARGET.read_text(encoding="utf-8")
    assert text in read_built_files()[notices.NAME].body.decode()
    directory = offline_notices.offline_files()
    assert {path.name for path in directory.iterdir()} == {*offline_notices.FILES, "favicon.png"}
    for name in offline_notices.FILES:
        assert f"    {offline_notices.checksum(directory / name)}  {name}\n" in text, "see tools/offline_notices.py"
    titles = set(re.findall(r"^(\S+) \d\S+ \(", text, re.MULTILINE))
    # Packages that comments of these files name.
    assert {"swagger-ui", "redoc", "react-dom", "dompurify", "classnames", "js-yaml", "buffer", "mark.js"} <= titles
    assert len(titles) == 179
    for section in text.split("-" * 80)[1:]:
        assert re.search(r"permi(t|ssion)|licen[cs]e|free and unencumbered", section, re.IGNORECASE), section[:200]


def test_the_names_of_bundled_packages_are_those_of_source_maps_and_sizes(tmp_path: Path) -> None:
    for path in offline_notices.FILES.values():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        sources = [f"webpack://a/./node_modules/@a/{Path(path).stem}/x.js", "webpack://a/./src/own.js"]
        (tmp_path / f"{path}.map").write_text(json.dumps({"sources": sources}))
    worker = tmp_path / "redoc" / "bundles" / "1.worker.js"
    worker.touch()
    worker.with_name("1.worker.js.map").write_text('{"sources": ["webpack://a/../node_modules/lunr/lunr.js"]}')
    (tmp_path / "swagger-ui-dist" / "log.bundle-sizes.swagger-ui.txt").write_text("ramda: 1 KB (5%)\n<self>: 3 MB\n")
    names = offline_notices.bundled(tmp_path)
    assert names == {
        *("swagger-ui", "redoc", "@a/swagger-ui-bundle", "@a/swagger-ui", "@a/redoc.standalone", "lunr", "ramda")
    }


def test_a_package_without_a_notice_fails_the_build(tmp_path: Path) -> None:
    entry = {"version": "1.0.0", "license": "BSD-3-Clause"}
    lock = {"packages": {"": {}, "node_modules/@a/b": entry, "node_modules/c": entry | {"dev": True}}}
    (tmp_path / "package-lock.json").write_text(json.dumps(lock))
    directory = tmp_path / "node_modules" / "@a" / "b"
    directory.mkdir(parents=True)
    with pytest.raises(notices.NoticeError, match="@a/b has no text of its licence BSD-3-Clause"):
        notices.notices(tmp_path)
    (directory / "LICENSE.txt").write_text("Redistribution is permitted.")
    (directory / "NOTICE").write_text("By A.")
    assert notices.notices(tmp_path).endswith("@a/b 1.0.0 (BSD-3-Clause)\n\nRedistribution is permitted.\n\nBy A.\n")
    entry["license"] = "MIT"
    for path in directory.iterdir():
        path.unlink()
    (tmp_path / "package-lock.json").write_text(json.dumps(lock))
    (directory / "package.json").write_text('{"author": {"name": "A"}}')
    assert "Copyright (c) A\n\nPermission is hereby granted" in notices.notices(tmp_path)


def test_the_unit_tests_pass() -> None:
    command = [sys.executable, "-m", "tools.dashboard", "test"]
    ran = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert re.search(r"Tests\s+[0-9]+ passed", ran.stdout), ran.stdout[-4000:]
