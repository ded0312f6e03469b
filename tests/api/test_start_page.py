"""The entry of a gateway for browsers and for other clients."""

import re
from pathlib import Path

import httpx2
import pytest

from app.api.pages import dashboard
from app.api.pages.start import DOCS_PATH
from tests.support.gateways.gateway import Gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


async def test_programs_get_an_index_of_paths_that_exist(shared_gateway: Gateway) -> None:
    answer = await shared_gateway.client.get("/")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    index = answer.json()
    assert index["name"] == "jobgate"
    assert index["resources"].keys() == {"jobs", "samplesets", "samplejobs"}
    paths = [value for value in (*index.values(), *index["resources"].values()) if str(value).startswith("/")]
    assert len(paths) == 9
    for path in paths:
        assert (await shared_gateway.client.get(path)).status_code == 200, path


async def test_a_browser_gets_the_dashboard(shared_gateway: Gateway) -> None:
    answer = await shared_gateway.client.get("/", headers=BROWSER)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.headers["vary"].startswith("Accept")
    assert answer.headers["cache-control"] == "private, no-cache"
    assert "jobgate" in answer.text


async def test_without_its_files_the_dashboard_says_that_it_was_not_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(dashboard, "bundled_directory", lambda name: tmp_path / name)
    dashboard.read_built_files.cache_clear()
    try:
        page = bytes(dashboard.dashboard_page().body).decode()
    finally:
        dashboard.read_built_files.cache_clear()
    assert "was not built" in page
    assert 'href="docs"' in page


async def test_files_with_a_digest_in_their_name_are_kept_by_browsers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    built = tmp_path / "dashboard" / "built"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text("page")
    (built / "icon.svg").write_text("<svg/>")
    (built / "assets" / "index-1a2b.js").write_text("script")
    monkeypatch.setattr(dashboard, "bundled_directory", lambda name: tmp_path / name)
    dashboard.read_built_files.cache_clear()
    try:
        files = dict(dashboard.read_built_files())
    finally:
        dashboard.read_built_files.cache_clear()
    assert {path: file.media_type for path, file in files.items()} == {
        "index.html": "text/html",
        "icon.svg": "image/svg+xml",
        "assets/index-1a2b.js": "text/javascript",
    }
    assert "immutable" in files["assets/index-1a2b.js"].headers["Cache-Control"]
    assert "immutable" not in files["icon.svg"].headers["Cache-Control"]


async def test_the_documentation_needs_no_other_server(shared_gateway: Gateway) -> None:
    client = shared_gateway.client
    page = await client.get(DOCS_PATH, headers=BROWSER)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    linked = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert not [link for link in linked if "//" in link]
    files = [link for link in linked if not link.startswith("data:")]
    assert files == ["docs/swagger-ui.css", "openapi.json", "docs/swagger-ui-bundle.js", "docs/start.js"]
    for file in files:
        answer = await client.get(f"/{file}", headers={"Accept-Encoding": "gzip"})
        assert answer.status_code == 200, file
        media_type = {"css": "text/css", "js": "text/javascript", "json": "application/json"}[file.rpartition(".")[2]]
        assert answer.headers["content-type"].startswith(media_type)
        assert answer.headers["x-content-type-options"] == "nosniff"
    bundle = (await client.get("/docs/swagger-ui-bundle.js")).text
    assert "SwaggerUIBundle" in bundle
    assert (await client.get("/docs/none.js")).status_code == 404


async def test_the_page_runs_no_code_of_other_origins(shared_gateway: Gateway) -> None:
    for path, headers in ((DOCS_PATH, {}), ("/", BROWSER)):
        page = await shared_gateway.client.get(path, headers=headers)
        assert_only_own_code(page)


def assert_only_own_code(page: httpx2.Response) -> None:
    policy = dict(part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert not re.search(r"<script>|<script [^>]*>[^<]", page.text)
