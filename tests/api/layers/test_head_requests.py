"""HEAD answers as GET does, without the body."""

import asyncio

import pytest

from tests.support.gateways.gateway import Gateway, jobs_path, until_followed
from tests.support.kinds.every_kind import Collection

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Headers whose values differ between two requests for the same thing.
VOLATILE = {"date", "x-request-id", "jobgate-observed-at"}


async def compare(gateway: Gateway, url: str, **headers: str) -> int:
    """Return the status of both answers, after a check that they have the same headers and that HEAD has no body."""
    head = await gateway.client.head(url, headers=headers)
    async with gateway.client.stream("GET", url, headers=headers) as get:
        assert head.status_code == get.status_code, url
        assert head.content == b""
        volatile = VOLATILE | (
            {"content-length", "transfer-encoding"} if "content-length" not in get.headers else set()
        )
        if url == "/metrics":
            volatile = VOLATILE | {"content-length"}
        shown = [{key: value for key, value in answer.headers.items() if key not in volatile} for answer in (head, get)]
        assert shown[0] == shown[1], url
    return head.status_code


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("/livez", 200),
        ("/readyz", 200),
        ("/metrics", 200),
        ("/openapi.json", 200),
        ("/api/v1/kinds", 200),
        ("/api/v1/jobs", 200),
        ("/api/v1/jobs?nothing=1", 400),
        ("/api/v1/jobs/watch", 200),
        ("/api/v1/usage?format=csv", 200),
        ("/nothing", 404),
        (jobs_path("team", "none"), 404),
        (jobs_path("team", "none", "logs"), 404),
        (jobs_path("team", "batch", "pause"), 405),
    ],
)
async def test_head_is_answered_like_get(url: str, status: int, shared_gateway: Gateway) -> None:
    async with asyncio.timeout(60):
        assert await compare(shared_gateway, url) == status


async def test_head_reads_every_kind(of: Collection) -> None:
    await of.submit()
    tag = (await of.get("one")).headers["etag"]
    # Otherwise the position of the feed in the headers of lists can change between two requests.
    await until_followed(of.gateway)
    async with asyncio.timeout(60):
        for more in ([], ["one"], ["one", "status"], ["one", "history"], ["one", "events"], ["one", "watch"]):
            assert await compare(of.gateway, of.path(*more)) == 200
        assert await compare(of.gateway, of.path("one"), **{"If-None-Match": tag}) == 304
        refused = await of.gateway.client.head(of.path("one"), headers={"If-None-Match": "no tag"})
    assert (refused.status_code, refused.content) == (400, b"")


async def test_head_does_not_submit(of: Collection) -> None:
    await of.gateway.client.request("HEAD", of.path(), json=of.manifest())
    assert await of.names() == []
