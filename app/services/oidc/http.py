"""Requests to the issuer, with limits on the time and the size of answers."""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import aiohttp

from app.domain.errors import Unavailable

_TIMEOUT: Final = aiohttp.ClientTimeout(total=5.0)
# Discovery documents have a few KiB, sets of keys up to 20 KiB.
_MAX_BYTES: Final = 512 * 1024


class IssuerUnavailable(Unavailable):
    """The issuer does not answer, or its answer is not one that OIDC describes."""

    default_code = "IssuerUnavailable"


class IssuerAnswer(NamedTuple):
    status: int
    body: Mapping[str, Any]


async def call(url: str, form: Mapping[str, str] | None = None) -> IssuerAnswer:
    """Send a GET, or a POST of the form, and return the JSON object of the answer.

    Raises:
        IssuerUnavailable: there is no answer in time, or it is too large or not a JSON object.
    """
    method = "GET" if form is None else "POST"
    try:
        # A session for each request, because there are a few in an hour. It honours the proxy of the environment.
        async with (
            aiohttp.ClientSession(timeout=_TIMEOUT, trust_env=True, cookie_jar=aiohttp.DummyCookieJar()) as session,
            # A redirect could lead the request to another host.
            session.request(
                method, url, data=form, headers={"Accept": "application/json"}, allow_redirects=False
            ) as answer,
        ):
            body = await _read(answer)
            return IssuerAnswer(answer.status, _object(body))
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise IssuerUnavailable(f"the issuer cannot be reached: {type(error).__name__}") from error


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    found = bytearray()
    async for chunk in answer.content.iter_any():
        found += chunk
        if len(found) > _MAX_BYTES:
            raise IssuerUnavailable("the answer of the issuer is too large")
    return bytes(found)


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise IssuerUnavailable("the answer of the issuer is not a JSON object")
    return value
