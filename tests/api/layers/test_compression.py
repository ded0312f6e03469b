"""Answers are compressed for clients that accept gzip, and their ETags work in either form."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from app.api.answers.conditional import gzip_tag, matches_tag
from app.api.http_settings import HttpSettings
from app.api.layers.compression import accepts_gzip
from tests.api.long_requests.test_watch import stream, take
from tests.support.gateways.gateway import Gateway, jobs_path, manifest, running_gateway
from tests.support.kinds.every_kind import PATCH, Collection
from tests.support.postgres import fresh_database

GZIP = {"Accept-Encoding": "gzip, deflate"}
PLAIN = {"Accept-Encoding": "identity"}


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", False),
        ("identity", False),
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0, br", False),
        ("x-gzip-like", False),
    ],
)
def test_a_client_accepts_gzip(header: str, *, expected: bool) -> None:
    assert accepts_gzip(header.encode()) is expected


def test_the_tag_of_the_compressed_form_is_another_and_matches() -> None:
    assert gzip_tag('"ab-1-s"') == '"ab-1-s--gzip"'
    assert matches_tag('"x", W/"ab-1-s--gzip"', '"ab-1-s"')
    assert not matches_tag('"ab-1--gzip"', '"ab-1-s"')
    assert not matches_tag('"ab-1-s--gzip--gzip"', '"ab-1-s"')


async def large(of: Collection) -> str:
    """Submit an object of about 10 KiB and return its path."""
    document = of.manifest()
    document["metadata"] |= {"annotations": {"notes": "all work and no play " * 500}}
    assert (await of.post(document)).status_code == 201
    return of.path("one")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_long_answer_is_compressed_and_its_tag_works(of: Collection) -> None:
    client, path = of.gateway.client, await large(of)
    plain, compressed = await client.get(path, headers=PLAIN), await client.get(path, headers=GZIP)
    assert "content-encoding" not in plain.headers
    assert compressed.headers["content-encoding"] == "gzip"
    assert compressed.json() == plain.json()
    assert int(compressed.headers["content-length"]) < int(plain.headers["content-length"]) / 4
    assert compressed.headers["etag"] == gzip_tag(plain.headers["etag"])
    assert {"Accept-Encoding"} <= {name.strip() for name in plain.headers["vary"].split(",")}
    assert plain.headers["vary"] == compressed.headers["vary"]
    for accepting in (PLAIN, GZIP):
        for known in (plain, compressed):
            tag = known.headers["etag"]
            again = await client.get(path, headers=accepting | {"If-None-Match": tag})
            assert (again.status_code, again.content) == (304, b"")
            assert "content-encoding" not in again.headers
            if accepting is GZIP:
                assert again.headers["etag"] == tag
    edited = await client.patch(
        path, json={"metadata": {"labels": {"a": "b"}}}, headers=PATCH | {"If-Match": compressed.headers["etag"]}
    )
    assert edited.status_code in (200, 202), edited.text
    stale = await client.patch(path, json={}, headers=PATCH | {"If-Match": compressed.headers["etag"]})
    assert stale.status_code == 412


@pytest.mark.asyncio(loop_scope="module")
async def test_short_answers_and_streams_are_not_compressed(of: Collection) -> None:
    await of.submit()
    status = await of.get("one", "status", **GZIP)
    assert "content-encoding" not in status.headers
    async with stream(of.gateway, of.path("one", "watch"), **GZIP) as source:
        assert (await take(source, 1))[0].name == "ready"


@pytest.mark.asyncio(loop_scope="module")
async def test_the_openapi_document_and_problems_are_compressed(shared_gateway: Gateway) -> None:
    answer = await shared_gateway.client.get("/openapi.json", headers=GZIP)
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.json()["openapi"].startswith("3.")
    wrong: dict[str, Any] = manifest() | {f"field-{number}-{'x' * 60}": 1 for number in range(20)}
    refused = await shared_gateway.client.post(jobs_path(), json=wrong, headers=GZIP)
    assert (refused.status_code, refused.headers["content-encoding"]) == (422, "gzip")
    assert len(refused.json()["errors"]) == 20


@pytest_asyncio.fixture
async def uncompressed(postgres_server_url: str, database_template: str) -> AsyncIterator[Gateway]:
    settings = HttpSettings(gzip_min_bytes=0)
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        running_gateway(url, settings=settings) as running,
    ):
        yield running


async def test_compression_can_be_disabled(uncompressed: Gateway) -> None:
    answer = await uncompressed.client.get("/openapi.json", headers=GZIP)
    assert (answer.status_code, "content-encoding" in answer.headers) == (200, False)
