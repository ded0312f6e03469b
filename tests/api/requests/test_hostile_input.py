"""Invalid requests are answered with a bounded 4xx that names the place and what is accepted. They store nothing."""

import json
from typing import Any

import httpx2
import pytest

from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, manifest

pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = "application/json"
YAML = "application/yaml"
TEXT = json.dumps(manifest())
LISTS = b'{"apiVersion": "v1", "kind": "List", "items": [' * 9 + b"{}" + b"]}" * 9


def changed(**spec: Any) -> bytes:
    return json.dumps(manifest(**spec)).encode()


def worker(**fields: Any) -> bytes:
    """Return the manifest with changed fields of its first task."""
    document = manifest()
    document["spec"]["replicaSpecs"][0] |= fields
    return json.dumps(document).encode()


def template(metadata: Any = None, **spec: Any) -> bytes:
    pod = manifest()["spec"]["replicaSpecs"][0]["template"]["spec"] | spec
    return worker(template={"spec": pod} | ({"metadata": metadata} if metadata else {}))


def named(name: Any, **metadata: Any) -> bytes:
    return json.dumps(manifest() | {"metadata": {"name": name} | metadata}).encode()


def replaced(old: str, new: str) -> bytes:
    assert old in TEXT
    return TEXT.replace(old, new, 1).encode()


CASES: dict[str, tuple[str, bytes, int, str, str]] = {
    # name: content type, body, status, pointer, code
    "NaN": (JSON, replaced('"replicas": 2', '"replicas": NaN'), 400, "/spec/replicaSpecs/0/replicas", "NotANumber"),
    "1e999": (JSON, replaced('"replicas": 2', '"replicas": 1e999'), 400, "/spec/replicaSpecs/0/replicas", "OutOfRange"),
    "lone surrogate": (
        JSON,
        replaced('"true"', '"\\ud800"'),
        400,
        "/spec/replicaSpecs/0/template/spec/containers/0/command/0",
        "LoneSurrogate",
    ),
    "NUL": (
        JSON,
        replaced('"true"', '"\\u0000"'),
        400,
        "/spec/replicaSpecs/0/template/spec/containers/0/command/0",
        "NulCharacter",
    ),
    "duplicate key": (
        JSON,
        replaced('"name": "hello"', '"name": "hello", "name": "x"'),
        400,
        "/metadata/name",
        "DuplicateKey",
    ),
    "not JSON": (JSON, b"{", 400, "", "MalformedJson"),
    "empty": (JSON, b"", 400, "", "EmptyBody"),
    "not an object": (JSON, b"[]", 422, "", "InvalidType"),
    "not UTF-8": (JSON, b'{"kind": "\xff"}', 400, "", "InvalidUtf8"),
    "deep nesting": (JSON, b'{"a":' * 50_000 + b"1" + b"}" * 50_000, 400, "", "TooManyKeys"),
    "deep lists": (JSON, b"[" * 50_000 + b"]" * 50_000, 400, "", "TooDeep"),
    "long number": (JSON, replaced('"replicas": 2', '"replicas": ' + "9" * 5000), 400, "", "NumberTooLong"),
    "unknown keys": (JSON, json.dumps({f"k{n}": n for n in range(20_000)}).encode(), 400, "", "TooManyKeys"),
    "many unknown keys": (
        JSON,
        json.dumps(manifest() | {f"k{n}": n for n in range(5000)}).encode(),
        422,
        "/k0",
        "UnknownField",
    ),
    "YAML bomb": (
        YAML,
        b"a: &a " + b"[" + b"x, " * 1000 + b"]\nb: &b [" + b"*a, " * 1000 + b"]\n",
        400,
        "",
        "TooManyValues",
    ),
    "YAML tag": (YAML, b"kind: !!python/object/apply:os.system [x]\n", 400, "/kind", "TagNotSupported"),
    "an alias of itself": (YAML, b"kind: &x [*x]\n", 400, "/kind/0", "InvalidAlias"),
    "Norway": (YAML, b"kind: no\n", 422, "/kind", "UnknownKind"),
    "two documents": (YAML, b"kind: a\n---\nkind: b\n", 422, "/items/0/kind", "UnknownKind"),
    "too many documents": (YAML, b"--- a\n" * 101, 400, "", "TooManyDocuments"),
    "a list in a list": (JSON, LISTS, 422, "/items/0/kind", "NestedList"),
    "a list of anything": (JSON, b'{"apiVersion": "v1", "kind": "List", "items": {"a": 1}}', 422, "/items", "Required"),
    "no kind": (JSON, b'{"apiVersion": "v1"}', 422, "/kind", "Required"),
    "misspelt kind": (JSON, replaced('"GenericJob"', '"GenricJob"'), 422, "/kind", "UnknownKind"),
    "unknown version": (JSON, replaced("/v1beta1", "/v9"), 422, "/apiVersion", "UnknownKind"),
    "no metadata": (
        JSON,
        json.dumps({k: v for k, v in manifest().items() if k != "metadata"}).encode(),
        422,
        "/metadata",
        "Required",
    ),
    "no name": (JSON, json.dumps(manifest() | {"metadata": {}}).encode(), 422, "/metadata/name", "Required"),
    "long name": (JSON, named("a" * 64), 422, "/metadata/name", "InvalidName"),
    "name too long for its pods": (JSON, named("a" * 60), 422, "/spec/replicaSpecs/0/type", "NameTooLong"),
    "upper-case name": (JSON, named("Hello"), 422, "/metadata/name", "InvalidName"),
    "number for a name": (JSON, named(7), 422, "/metadata/name", "InvalidType"),
    "other namespace": (JSON, named("a", namespace="other"), 422, "/metadata/namespace", "NamespaceMismatch"),
    "bad label": (JSON, named("a", labels={"a b": "c"}), 422, "/metadata/labels/a b", "InvalidLabel"),
    "our label": (
        JSON,
        named("a", labels={"jobgate.dev/job-uid": "c"}),
        422,
        "/metadata/labels/jobgate.dev~1job-uid",
        "Reserved",
    ),
    "unknown annotation of ours": (
        JSON,
        named("a", annotations={"jobgate.dev/ttl": "1"}),
        422,
        "/metadata/annotations/jobgate.dev~1ttl",
        "UnknownField",
    ),
    "million replicas": (JSON, worker(replicas=1_000_000), 422, "/spec/replicaSpecs/0/replicas", ""),
    "negative replicas": (JSON, worker(replicas=-1), 422, "/spec/replicaSpecs/0/replicas", "OutOfRange"),
    "misspelt field": (JSON, worker(replica=3), 422, "/spec/replicaSpecs/0/replica", "UnknownField"),
    "misspelt pod field": (
        JSON,
        template(hostNetwrok=True),
        422,
        "/spec/replicaSpecs/0/template/spec/hostNetwrok",
        "UnknownField",
    ),
    "template with our label": (
        JSON,
        template({"labels": {"jobgate.dev/attempt": "1"}}),
        422,
        "/spec/replicaSpecs/0/template/metadata/labels/jobgate.dev~1attempt",
        "",
    ),
    "template with owner": (
        JSON,
        template({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b"}]}),
        422,
        "/spec/replicaSpecs/0/template/metadata/ownerReferences",
        "",
    ),
    "template with finalizer": (
        JSON,
        template({"finalizers": ["a/b"]}),
        422,
        "/spec/replicaSpecs/0/template/metadata/finalizers",
        "",
    ),
    "pod over 1 MiB": (
        JSON,
        template(containers=[{"name": "main", "image": "a", "args": ["$(rank)" + "x" * 1024] * 1100}]),
        422,
        "",
        "",
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_invalid_bodies_are_refused_with_pointers(case: str, shared_gateway: Gateway) -> None:
    content_type, body, status, pointer, code = CASES[case]
    answer = await shared_gateway.client.post(jobs_path(), content=body, headers={"Content-Type": content_type})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    errors = [(error["pointer"], error["code"]) for error in problem["errors"]]
    if pointer:
        assert pointer in [found for found, _ in errors], errors
    if code:
        assert (pointer, code) in errors, errors
    listed = [error for error in problem["errors"] if error["code"] != "TooManyErrors"]
    assert all(error.get("accepted") for error in listed), listed
    assert len(answer.content) < 16_000
    assert len(errors) <= 20
    assert (await shared_gateway.client.get("/api/v1/jobs")).json() == {
        "items": [],
        "nextPageToken": None,
        "view": "full",
    }


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 415),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/json; charset=utf-16"}, 415),
        ({"Content-Type": "application/json; charset=UTF-8"}, 200),
        ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, 415),
        ({"Content-Type": "application/json", "Content-Encoding": "identity"}, 200),
        ({"Content-Type": "application/json", "Idempotency-Key": "a b"}, 400),
        ({"Content-Type": "application/json", "Idempotency-Key": "k" * 256}, 400),
    ],
)
async def test_headers_of_a_submission_are_checked(
    headers: dict[str, str], status: int, shared_gateway: Gateway
) -> None:
    answer = await shared_gateway.client.post(jobs_path() + "?dryRun=All", content=TEXT.encode(), headers=headers)
    assert answer.status_code == status, answer.text
    if status != 200:
        assert answer.json()["errors"][0]["pointer"].startswith("/header/")


async def test_bodies_over_the_limit_are_refused(shared_gateway: Gateway) -> None:
    declared = await shared_gateway.client.post(jobs_path(), content=b"x" * (10 << 20), headers={"Content-Type": JSON})
    assert declared.status_code == 413
    assert declared.json()["code"] == "TooLarge"

    async def chunks() -> Any:
        for _ in range(10):
            yield b" " * (1 << 20)

    undeclared = await shared_gateway.client.post(jobs_path(), content=chunks(), headers={"Content-Type": JSON})
    assert undeclared.status_code == 413

    async def last_byte_too_many() -> Any:
        yield b" " * (3 << 20)
        yield b" "

    barely = await shared_gateway.client.post(jobs_path(), content=last_byte_too_many(), headers={"Content-Type": JSON})
    assert barely.status_code == 413


async def test_errors_do_not_repeat_values(shared_gateway: Gateway) -> None:
    container = {"name": "main", "image": "a", "env": [{"name": "PASSWORD", "value": {"hunter2": "hunter2"}}]}
    answer = await shared_gateway.client.post(
        jobs_path(), content=template(containers=[container]), headers={"Content-Type": JSON}
    )
    assert answer.status_code == 422
    assert "hunter2" not in answer.text


@pytest.mark.parametrize(
    ("query", "pointer", "code"),
    [
        ("labelSelector=a%20b%20c", "/query/labelSelector", "InvalidSelector"),
        ("labelSelector=a+in+(", "/query/labelSelector", "InvalidSelector"),
        ("labelSelector=%00", "/query/labelSelector", "InvalidSelector"),
        ("pageToken=!!", "/query/pageToken", "InvalidPageToken"),
        ("pageToken=e30", "/query/pageToken", "InvalidPageToken"),
        ("pageToken=" + "A" * 2000, "/query/pageToken", "InvalidPageToken"),
        ("pageSize=0", "/query/pageSize", "InvalidParameter"),
        ("pageSize=x", "/query/pageSize", "InvalidParameter"),
        ("pageSize=9223372036854775808", "/query/pageSize", "InvalidParameter"),
        ("phase=Happy", "/query/phase/0", "InvalidParameter"),
        ("uid=1", "/query/uid/0", "InvalidParameter"),
        ("createdAfter=yesterday", "/query/createdAfter", "InvalidParameter"),
        ("createdAfter=0", "/query/createdAfter", "InvalidParameter"),
        ("createdAfter=1767225600.5", "/query/createdAfter", "InvalidParameter"),
        ("createdAfter=2026-01-01T00:00:00", "/query/createdAfter", "InvalidTime"),
        ("search=%00", "/query/search", "InvalidParameter"),
        ("kind=%00", "/query/kind", "InvalidParameter"),
        ("fase=Running", "/query/fase", "UnknownParameter"),
        ("search=a&search=b", "/query/search", "RepeatedParameter"),
        ("&".join(["uid=6b0f5f3a-0d1c-4c5e-9c4f-3a7b0f0b8f5e"] * 101), "/query/uid", "TooMany"),
    ],
)
async def test_invalid_query_parameters_are_refused(
    query: str, pointer: str, code: str, shared_gateway: Gateway
) -> None:
    answer = await shared_gateway.client.get(f"/api/v1/jobs?{query}")
    assert answer.status_code == 400, answer.text
    assert [(error["pointer"], error["code"]) for error in answer.json()["errors"]] == [(pointer, code)]
    assert all(error["accepted"] for error in answer.json()["errors"])


@pytest.mark.parametrize("offset", ["+02:00", "+0200"])
async def test_a_lost_plus_of_an_offset_is_named(offset: str, shared_gateway: Gateway) -> None:
    async def answer(text: str) -> httpx2.Response:
        return await shared_gateway.client.get(f"/api/v1/jobs?createdAfter=2026-01-01T00:00:00{text}")

    assert (await answer(offset.replace("+", "%2B"))).status_code == 200
    for fraction in ("", ".25"):
        [error] = (await answer(fraction + offset)).json()["errors"]
        assert error["detail"].endswith("the + of its offset is a space in a query: send %2B")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/api/v1/jobs/not-a-uid", 400),
        ("GET", "/api/v1/jobs/6b0f5f3a-0d1c-4c5e-9c4f-3a7b0f0b8f5e", 404),
        ("GET", jobs_path("Team"), 400),
        ("GET", jobs_path("a%00b"), 400),
        ("GET", jobs_path(NAMESPACE, "a%00b"), 400),
        ("GET", jobs_path(NAMESPACE, "nobody"), 404),
        ("GET", jobs_path(NAMESPACE, "nobody", "logs"), 404),
        ("GET", jobs_path(NAMESPACE, "x" * 300), 400),
        ("DELETE", jobs_path(NAMESPACE, "nobody"), 404),
        ("PUT", jobs_path(), 405),
        ("POST", jobs_path(NAMESPACE, "nobody", "pause"), 404),
    ],
)
async def test_invalid_paths_are_refused(method: str, path: str, status: int, shared_gateway: Gateway) -> None:
    answer = await shared_gateway.client.request(method, path)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
