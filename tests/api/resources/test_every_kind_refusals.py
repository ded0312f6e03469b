"""The requests that the API refuses for every kind."""

from typing import Any

import pytest

from tests.support.kinds.every_kind import PATCH, Collection, list_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("change", "pointer", "code"),
    [
        ({"spec": {"nothing": 1}}, "/spec/nothing", "UnknownField"),
        ({"extra": 1}, "/extra", "UnknownField"),
        ({"apiVersion": "example.com/v0"}, "/apiVersion", "UnknownKind"),
        ({"kind": "Nothing"}, "/kind", "UnknownKind"),
        ({"metadata": {}}, "/metadata/name", "Required"),
        ({"metadata": {"name": "A_b"}}, "/metadata/name", "InvalidName"),
        ({"metadata": {"generateName": "A_b"}}, "/metadata/generateName", "InvalidName"),
        ({"metadata": {"name": "one", "namespace": "elsewhere"}}, "/metadata/namespace", "NamespaceMismatch"),
        ({"metadata": {"name": "one", "labels": {"jobgate.dev/x": "y"}}}, "/metadata/labels", "Reserved"),
    ],
)
async def test_invalid_manifests_are_refused_with_pointers(
    change: dict[str, Any], pointer: str, code: str, of: Collection
) -> None:
    answer = await of.post(of.manifest() | change)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = {(error["pointer"].partition("/jobgate")[0], error["code"]) for error in answer.json()["errors"]}
    assert (pointer, code) in found
    if of.kind == "SampleSet":
        assert "job" not in answer.text.lower().replace("jobgate", "")


async def test_malformed_lists_are_refused_with_pointers(of: Collection) -> None:
    answer = await of.post(list_of(of.manifest(), list_of(of.manifest()), 1))
    assert answer.status_code == 422, answer.text
    found = [(error["pointer"], error["code"], error["accepted"]) for error in answer.json()["errors"]]
    assert found == [("/items/1/kind", "NestedList", "a manifest"), ("/items/2", "InvalidType", "an object")]
    assert answer.json()["detail"] == "the manifests cannot be read"


async def test_an_edit_cannot_change_the_identity(of: Collection) -> None:
    await of.submit()
    for patch, pointer in (
        ({"metadata": {"name": "two"}}, "/metadata/name"),
        ({"kind": "Other"}, "/kind"),
        ({"apiVersion": "example.com/v0"}, "/apiVersion"),
    ):
        answer = await of.patch(patch)
        assert (answer.status_code, answer.json()["code"]) == (422, "ImmutableField"), answer.text
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


REFUSED: list[tuple[str, str, dict[str, str], bytes, int, str]] = [
    # method, end of the URL, headers, body, status and code of the answer
    ("GET", "?nothing=1", {}, b"", 400, "UnknownParameter"),
    ("GET", "?pageToken=abc", {}, b"", 400, "InvalidPageToken"),
    ("GET", "?pageSize=0", {}, b"", 400, "InvalidParameter"),
    ("GET", "?phase=Nothing", {}, b"", 400, "InvalidParameter"),
    ("GET", "?labelSelector=a%3D%3D%3D", {}, b"", 400, "InvalidSelector"),
    ("GET", "?createdAfter=2026-01-01T00:00:00", {}, b"", 400, "InvalidTime"),
    ("GET", "/none", {}, b"", 404, "NotFound"),
    ("GET", "/none/status", {}, b"", 404, "NotFound"),
    ("GET", "/none/history", {}, b"", 404, "NotFound"),
    ("GET", "/none/events", {}, b"", 404, "NotFound"),
    ("GET", "/none/watch", {}, b"", 404, "NotFound"),
    ("DELETE", "/none", {}, b"", 404, "NotFound"),
    ("PUT", "/none", JSON, b"{}", 404, "NotFound"),
    ("PATCH", "/none", PATCH, b"{}", 404, "NotFound"),
    ("PATCH", "/none", JSON, b"{}", 415, "UnsupportedMediaType"),
    ("POST", "/none", JSON, b"{}", 405, "MethodNotAllowed"),
    ("POST", "", JSON, b"{", 400, "MalformedDocument"),
    ("POST", "", {"Content-Type": "text/plain"}, b"{}", 415, "UnsupportedMediaType"),
    ("POST", "", JSON | {"Idempotency-Key": "a b"}, b"{}", 400, "InvalidParameter"),
    ("POST", "?dryRun=Some", JSON, b"{}", 400, "InvalidParameter"),
    ("POST", "?force=true", JSON, b"{}", 400, "UnknownParameter"),
]


async def test_invalid_requests_are_refused(of: Collection) -> None:
    for method, url, headers, body, status, code in REFUSED:
        answer = await of.gateway.client.request(method, of.path() + url, headers=headers, content=body)
        received = (answer.status_code, answer.json()["code"], answer.headers["content-type"])
        assert received == (status, code, "application/problem+json"), (method, url, answer.text)
