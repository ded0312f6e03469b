"""A method that a path does not have is refused with all methods of the path in `Allow`."""

import re
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx2
import pytest

from app.running.application import create_app
from tests.support.documents.openapi import METHODS

_NAMES: Final = {"uid": "00000000-0000-4000-8000-000000000000", "job_id": "ns.name"}
# Routes that are matched before the documented template, or in addition to it.
_OVERLAPPING: Final = {
    "/api/v1/namespaces/ns/jobs/batch": {"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"},
    "/api/v1/jobs/watch": {"GET", "HEAD"},
}


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(create_app())
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
        yield client


def methods_by_path() -> dict[str, set[str]]:
    """Return the documented methods of one address for each path of the document, by address."""
    paths: dict[str, Any] = create_app().openapi()["paths"]
    found = {}
    for template in paths:
        address = re.sub(
            r"{(\w+)}", lambda match: _NAMES.get(match[1], "ns" if match[1] == "namespace" else "x"), template
        )
        templates = [other for other in paths if re.fullmatch(re.sub(r"{\w+}", "[^/]+", other), address)]
        methods = {method.upper() for other in templates for method in METHODS & set(paths[other])}
        found[address] = methods | ({"HEAD"} if "GET" in methods else set())
    return found


async def test_allow_has_all_methods_of_a_path(client: httpx2.AsyncClient) -> None:
    expected = methods_by_path()
    assert expected.items() >= _OVERLAPPING.items()
    for address, methods in expected.items():
        answer = await client.request("TRACE", address)
        assert answer.status_code == 405, (address, answer.text)
        assert set(answer.headers["allow"].split(", ")) == methods, address


async def test_upstreams_methods_are_answered_as_by_upstream(client: httpx2.AsyncClient) -> None:
    for method, status in (("PUT", 501), ("PATCH", 501), ("TRACE", 405), ("OPTIONS", 405)):
        answer = await client.request(method, "/v2alpha1/job/ns.name/replicas")
        assert (answer.status_code, answer.json()["success"]) == (status, False), method
        assert set(answer.headers["allow"].split(", ")) == {"DELETE", "GET", "HEAD", "POST"}
