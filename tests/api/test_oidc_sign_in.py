"""Sign-in by OIDC: what clients need to know, and the exchange of codes for tokens."""

import asyncio
from typing import Any

import httpx2
import jwt
import pytest

from tests.support.gateway import Gateway
from tests.support.oidc_issuer import (
    CLIENT,
    running_issuer,
)
from tests.support.oidc_site import (
    OIDC,
    TOKEN,
    Site,
    problem,
    running_site,
    settings_of,
)
from tests.support.waiting import until


async def test_what_clients_need_to_sign_in(site: Site) -> None:
    assert (await site.get(OIDC)).json() == {
        "enabled": True,
        "issuer": site.issuer.url,
        "clientId": CLIENT,
        "scopes": ["openid", "offline_access"],
        "authorizationEndpoint": f"{site.issuer.url}/authorize",
        "deviceAuthorizationEndpoint": f"{site.issuer.url}/device",
    }


async def test_without_an_issuer_there_is_no_sign_in(closed_gateway: Gateway) -> None:
    found = (await closed_gateway.client.get(OIDC)).json()
    assert (found["enabled"], found["issuer"]) == (False, None)
    assert (await closed_gateway.client.post(TOKEN, json={"refreshToken": "r"})).status_code == 404


async def test_a_code_yields_a_token_and_then_the_refresh_token_the_next(site: Site) -> None:
    answer = await site.post(**await site.code())
    found = answer.json()
    assert answer.headers["cache-control"] == "no-store"
    assert (await site.get(Authorization=f"Bearer {found['token']}")).json()["name"] == "ada"
    second = (await site.post(refreshToken=found["refreshToken"])).json()
    assert (await site.get(Authorization=f"Bearer {second['token']}")).status_code == 200
    refused = await problem(await site.post(refreshToken=found["refreshToken"]), 401)
    assert refused["code"] == "SignInRefused"
    assert "invalid_grant" in refused["detail"]
    assert "internal" not in refused["detail"]


async def test_a_token_for_an_api_is_the_access_token(database_url: str) -> None:
    async with running_issuer() as issuer, running_site(database_url, issuer, oidc=settings_of(issuer, "api")) as site:
        issuer.user["groups"] = ["team"]
        found = (await site.post(**await site.code())).json()
        assert jwt.decode(found["token"], options={"verify_signature": False})["aud"] == "api"
        assert (await site.get(**issuer.bearer())).status_code == 401


async def test_a_device_code_waits_for_the_user(site: Site) -> None:
    async with httpx2.AsyncClient() as client:
        device = (await client.post(f"{site.issuer.url}/device", data={"client_id": CLIENT})).json()
    site.issuer.device_answers = ["authorization_pending", "slow_down", "access_denied"]
    for status, code in ((409, "AuthorizationPending"), (409, "SlowDown"), (401, "SignInRefused")):
        assert (await problem(await site.post(deviceCode=device["device_code"]), status))["code"] == code
    assert (await site.post(deviceCode=device["device_code"])).status_code == 200


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"codeVerifier": "w" * 43}, 401, "SignInRefused"),
        ({"nonce": "m" * 22}, 401, "SignInRefused"),
        ({"code": "unknown"}, 401, "SignInRefused"),
        ({"redirectUri": "https://evil.example/"}, 422, "InvalidRedirect"),
        ({"redirectUri": "javascript:alert(1)"}, 422, "InvalidRedirect"),
        ({"redirectUri": "http://[::1"}, 422, "InvalidRedirect"),
        ({"refreshToken": "both"}, 422, "InvalidManifest"),
        ({"codeVerifier": None}, 422, "InvalidManifest"),
        ({"codeVerifier": "short"}, 422, "InvalidManifest"),
        ({"clientId": "other"}, 422, "InvalidManifest"),
        ({"code": "x" * 20_000}, 422, "InvalidManifest"),
        ({"code": "x" * 70_000}, 413, "TooLarge"),
    ],
)
async def test_a_wrong_exchange_is_refused(site: Site, change: dict[str, Any], status: int, code: str) -> None:
    found = await problem(await site.post(**(await site.code() | change)), status)
    assert found["code"] == code


async def test_a_user_without_a_grant_gets_no_token(site: Site) -> None:
    site.issuer.user["groups"] = []
    assert (await problem(await site.post(**await site.code()), 403))["code"] == "NoGrant"


async def test_a_slow_issuer_holds_few_sign_ins(site: Site) -> None:
    site.issuer.held = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        requests = [group.create_task(site.post(refreshToken=f"r-{number}")) for number in range(40)]
        await until(
            lambda: sum(request.done() for request in requests) == 8, what="sign-ins above the limit are refused"
        )
        for request in requests:
            if request.done():
                assert (await problem(request.result(), 429))["code"] == "TooManySignIns"
        site.issuer.held.set()
    assert sum(request.result().status_code == 429 for request in requests) == 8
