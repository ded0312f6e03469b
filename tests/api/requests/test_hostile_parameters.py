"""Every parameter of the OpenAPI document with values that the database, an index or a clock cannot represent.

Such a value is either harmless or answered 400 with the place of the parameter, before it reaches PostgreSQL.
"""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

import httpx2
import pytest
import pytest_asyncio

from app.api.requests import paging
from tests.support.documents.openapi import committed_document, operations
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Percent-encoded, as the target of a request contains them.
_TEXTS: Final = (
    "",
    "%00",
    "a%00b",
    "%ED%A0%80",  # a lone surrogate, as UTF-8 would encode it
    "%FF",
    "%F4%90%80%80",  # beyond the last character of Unicode
    quote("\N{RIGHT-TO-LEFT OVERRIDE}\N{PILE OF POO}" * 40),
    "%25",
    "x" * 5000,
)
_NUMBERS: Final = (
    *("-1", "0", "1", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "1" + "0" * 400),
    *("1e400", "nan", "-Infinity", "%D9%A1", "1_0", "+1", "0x10"),  # %D9%A1 is a digit of another script
)
_TIMES: Final = (
    *("9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59.999999-23:59", "9999-12-31T23:59:59Z"),
    *("0001-01-01T00:00:00%2B14:00", "0001-01-01T00:00:00%2B23:59", "0001-01-01T00:00:00Z"),
    *("0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "-0001-01-01T00:00:00Z", "2026-02-30T00:00:00Z"),
    *("2016-12-31T23:59:60Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00%2B24:00", "2026-01-01"),
)
_LISTS: Final = (
    *("00000000-0000-0000-0000-000000000000", "{6b0f5f3a-0d1c-4c5e-9c4f-3a7b0f0b8f5e}", "urn:uuid:" + "f" * 32),
    *(quote("a in (b,c)"), quote("a=" + "b" * 64), quote("a\0b=c"), "a%3D%ED%A0%80", quote("!")),
    *(
        "*",
        '"a"',
        'W/"a"',
        '"',
        "1.1",
        "9" * 18 + "." + "9" * 18,
        "9" * 19 + ".1",
        "-1.-1",
        "wait=99999999999999999999",
    ),
    *("bytes=0-", "bytes=99999999999999999999-", "True", "on"),
)
VALUES: Final = _TEXTS + _NUMBERS + _TIMES + _LISTS
# What a page token can contain in place of a number, a time or a uid.
_FORGED: Final[tuple[Any, ...]] = (
    *(-1, 2**31, 2**62, 2**63, 2**64, 10**30, 1.5, True, None, "", "\0", "\ud800", "x" * 300, []),
    *(
        "9999-12-31T23:59:59-14:00",
        "0001-01-01T00:00:00+14:00",
        "2026-01-01T00:00:00",
        "00000000-0000-0000-0000-000000000000",
    ),
)
DIGEST: Final = "the digest of every query"
REFUSED: Final = frozenset({400, 401, 403, 404, 405, 409, 412, 415, 422, 428})

OPERATIONS: Final = {
    f"{method.upper()} {path}": operation
    for method, path, operation in operations(committed_document())
    # Samplesets and samplejobs have the routes of jobs, and routes by uid those by name.
    if not re.search("/oidc/|/sample|{uid}/", path)
}


class Objects:
    """A job and a SampleSet with enough rows for several pages."""

    def __init__(self, gateway: Gateway, job: dict[str, Any]) -> None:
        self.gateway = gateway
        self.uid = job["uid"]

    def path(self, name: str, place: str = "", value: str = "") -> str:
        """Return the path of an operation with the value in one place, and valid values in all others."""
        method, template = name.split()
        # A deletion would take the objects away from other tests.
        job, uid = ("nobody", str(uuid4())) if method == "DELETE" else ("hello", self.uid)
        valid = {"namespace": NAMESPACE, "name": job, "uid": uid, "job_id": f"{NAMESPACE}.{job}", place: value}
        return re.sub(r"\{(\w+)\}", lambda found: valid[found[1]], template)

    async def head(self, method: str, target: str, headers: list[tuple[bytes, bytes]] | None = None) -> httpx2.Response:
        """Send a request without a body. Return the answer, of a stream only the head."""
        request = self.gateway.client.build_request(method, target, headers=headers)
        answer = await self.gateway.client.send(request, stream=True)
        if not answer.headers.get("content-type", "").startswith(("text/event-stream", "text/plain")):
            await answer.aread()
        await answer.aclose()
        return answer


@pytest_asyncio.fixture(loop_scope="module")
async def objects(shared_gateway: Gateway) -> Objects:
    path = jobs_path()
    for name in ("second", "hello"):
        if not (await shared_gateway.client.get(f"{path}?name={name}")).json()["items"]:
            await shared_gateway.submit(name, replicas=3)
    return Objects(shared_gateway, (await shared_gateway.client.get(f"{path}/hello")).json())


def sent(parameter: dict[str, Any], value: str) -> tuple[str, list[tuple[bytes, bytes]]]:
    """Return the query and the headers that contain the value."""
    if parameter["in"] == "query":
        return f"?{parameter['name']}={value}", []
    raw = bytes(value, "latin-1", "replace").replace(b"%00", b"").replace(b"%ED%A0%80", b"\xed\xa0\x80")
    return "", [(parameter["name"].encode(), raw.replace(b"%FF", b"\xff"))]


@pytest.mark.parametrize("name", sorted(OPERATIONS))
async def test_no_parameter_reaches_what_cannot_represent_it(name: str, objects: Objects) -> None:
    method = name.split(maxsplit=1)[0]
    wrong = []
    for parameter in OPERATIONS[name].get("parameters", ()):
        for value in VALUES:
            if parameter["in"] == "path":
                query, headers = "", list[tuple[bytes, bytes]]()
                target = objects.path(name, parameter["name"], quote(value, safe="%") or "%20")
            else:
                query, headers = sent(parameter, value)
                target = objects.path(name) + query
            fault = fault_of(await objects.head(method, target, headers))
            if fault:
                wrong.append((parameter["name"], value[:60], fault))
    assert not wrong


def fault_of(answer: httpx2.Response) -> str | None:
    """Return what is wrong with an answer to an invalid value, if anything."""
    if answer.status_code < 400:
        return None
    problem = answer.json()
    # A gateway without a cluster cannot read logs or check a dry run.
    if problem["code"] in ("NoCluster", "ClusterUnreachable"):
        return None
    if problem["code"] == "NotStorable" or answer.status_code not in REFUSED:
        return f"{answer.status_code} {problem['code']}: {problem['detail']}"
    if answer.status_code == 400 and not all(error.get("accepted") for error in problem.get("errors", ())):
        return f"{problem['errors']} does not say what is accepted"
    return None


PAGED: Final = sorted(
    name
    for name, operation in OPERATIONS.items()
    if any(parameter["name"] == "pageToken" for parameter in operation.get("parameters", ()))
)


def forged() -> Iterator[dict[str, Any]]:
    """Yield documents of page tokens with one wrong field each."""
    uid = "6b0f5f3a-0d1c-4c5e-9c4f-3a7b0f0b8f5e"
    for valid in (
        {"created_at": "2026-01-01T00:00:00Z", "uid": uid},
        {"seq": 1},
        {"attempt": 1, "task": "worker", "rank": 0, "number": 0},
    ):
        for field in valid:
            for value in _FORGED:
                yield {"question": DIGEST, **valid, field: value}


@pytest.mark.parametrize("name", PAGED)
async def test_forged_page_tokens_are_refused_or_harmless(
    name: str, objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "query_digest", lambda _: DIGEST)
    wrong = []
    for document in forged():
        token = base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()
        answer = await objects.head("GET", f"{objects.path(name)}?pageSize=1&pageToken={token}")
        fault = fault_of(answer)
        if fault or answer.status_code not in (200, 400):
            wrong.append((document, fault or answer.status_code))
    assert not wrong
