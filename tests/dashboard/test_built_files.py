"""The built files, and the unit tests of the dashboard, which need Node and no browser."""

import gzip
import re
import subprocess
import sys

import pytest

from app.api.dashboard import built_files
from tools.dashboard import BUILT, INSTALLED, ROOT

FIRST_VIEW_BYTES = 250_000


@pytest.fixture(autouse=True)
def built() -> None:
    if not (BUILT / "index.html").exists() or not INSTALLED.exists():
        pytest.skip("the dashboard is not built: `make setup` builds it")


def test_the_first_view_is_small() -> None:
    """The page, and what it loads before it shows the table of jobs. Other views load their code when they open."""
    files = built_files()
    page = files["index.html"].body
    first = [path for path in re.findall(r'(?:src|href)="\./([^"]+)"', page.decode()) if path in files]
    assert any(path.endswith(".js") for path in first)
    assert any(path.endswith(".css") for path in first)
    assert sum(len(gzip.compress(body)) for body in (page, *(files[path].body for path in first))) <= FIRST_VIEW_BYTES


def test_built_files_contain_no_inline_code_and_no_source_maps() -> None:
    page = built_files()["index.html"].body.decode()
    assert not re.search(r"<script>|<script [^>]*>[^<]|<style|\son\w+=|style=", page)
    assert not [path for path in built_files() if path.endswith(".map")]


def test_built_files_create_no_html_and_no_style_elements_that_the_policy_forbids() -> None:
    """A refused assignment throws, and React then removes the page."""
    sinks = re.compile(
        r"\.(?:inner|outer)HTML=[^,;)}]{1,20}|insertAdjacentHTML|document\.write\(|head\.(?:pre|ap)pend\("
    )
    code = "".join(file.body.decode() for path, file in built_files().items() if path.endswith(".js"))
    assert set(sinks.findall(code)) == {
        ".innerHTML=`<script><\\/script>`",  # React, for an element <script>, which the page does not have
        ".innerHTML=n",  # React, for dangerouslySetInnerHTML, which biome forbids
    }


def test_the_lock_file_contains_no_address_of_a_registry() -> None:
    text = (ROOT / "dashboard" / "package-lock.json").read_text(encoding="utf-8")
    assert '"integrity"' in text
    assert '"resolved"' not in text


def test_the_unit_tests_pass() -> None:
    command = [sys.executable, "-m", "tools.dashboard", "test"]
    ran = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert re.search(r"Tests\s+[0-9]+ passed", ran.stdout), ran.stdout[-4000:]
