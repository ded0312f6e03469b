"""Sign-in by OIDC: what clients need to know, and the exchange of codes for tokens."""

import asyncio
from ipaddress import ip_network
from typing import Any

import httpx2
import jwt
import pytest

from app.api.http_settings import HttpSettings
from app.http_server.forwarding import TrustedProxies
from app.services.oidc import sign_in as sign_in_module
from tests.support.gateways.gateway import Gateway
from tests.support.gateways.oidc_issuer import (
    CLIENT,
)
from tests.support.gateways.oidc_site import (
    OIDC,
    TOKEN,
    Site,
    problem,
    ready_site,
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
    async with ready_site(database_url, "api") as site:
        found = (await site.post(**await site.code())).json()
        assert jwt.decode(found["token"], options={"verify_signature": False})["aud"] == "api"
        assert (await site.get(**site.issuer.bearer())).status_code == 401


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
        ({"code": "x" * 15_500}, 422, "InvalidManifest"),
        ({"code": "x" * 17_000}, 413, "TooLarge"),
    ],
)
async def test_a_wrong_exchange_is_refused(site: Site, change: dict[str, Any], status: int, code: str) -> None:
    found = await problem(await site.post(**(await site.code() | change)), status)
    assert found["code"] == code


async def test_a_user_without_a_grant_gets_no_token(site: Site) -> None:
    site.issuer.user["groups"] = []
    assert (await problem(await site.post(**await site.code()), 403))["code"] == "NoGrant"


async def test_a_slow_issuer_holds_few_sign_ins_and_leaves_room_for_renewals(site: Site) -> None:
    renewal = (await site.post(**await site.code())).json()["refreshToken"]
    before = site.issuer.requests["/token"]
    site.issuer.held = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        bogus = [group.create_task(site.post(refreshToken=f"r-{number}")) for number in range(40)]
        await until(lambda: site.issuer.requests["/token"] - before == 32, what="the sign-ins have used their room")
        # A renewal with the token of the gateway does not wait for them.
        renewed = group.create_task(site.post(refreshToken=renewal))
        await until(lambda: site.issuer.requests["/token"] - before == 33, what="the renewal is in progress")
        assert not any(request.done() for request in bogus)
        site.issuer.held.set()
    assert renewed.result().status_code == 200
    # Waiting is no reason for a refusal.
    assert {request.result().status_code for request in bogus} == {401}


async def test_clients_that_nobody_knows_cannot_block_renewals(site: Site) -> None:
    signed_in = [(await site.post(**await site.code())).json()["refreshToken"] for _ in range(3)]
    flood = asyncio.Event()

    async def attack() -> None:
        while not flood.is_set():
            await site.post(refreshToken="bogus")

    async with asyncio.TaskGroup() as group:
        for _ in range(64):
            group.create_task(attack())
        await until(lambda: site.issuer.requests["/token"] > 10, what="the flood has begun")
        for number in range(30):
            answer = await site.post(refreshToken=signed_in[number % 3])
            assert answer.status_code == 200, answer.text
            signed_in[number % 3] = answer.json()["refreshToken"]
        flood.set()


async def test_a_broken_seal_causes_no_request_to_the_issuer(site: Site) -> None:
    sealed = (await site.post(**await site.code())).json()["refreshToken"]
    prefix, user, seal, token = sealed.split(".", 3)
    before = site.issuer.requests["/token"]
    for wrong in (f"{prefix}.{user}.{seal[::-1]}.{token}", f"{prefix}.{user}x.{seal}.{token}", f"{sealed}x", "jgr..é."):
        assert (await problem(await site.post(refreshToken=wrong), 401))["code"] == "SignInRefused"
    assert site.issuer.requests["/token"] == before
    assert token in site.issuer.refresh_tokens


async def test_a_refresh_token_without_a_seal_works_and_gets_one(site: Site) -> None:
    site.issuer.refresh_tokens.add("of an older gateway")
    found = (await site.post(refreshToken="of an older gateway")).json()
    assert found["refreshToken"].startswith("jgr.")
    assert (await site.post(refreshToken=found["refreshToken"])).status_code == 200


async def test_only_the_address_that_floods_is_refused(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in_module, "_PER_SECOND", 1000.0)
    monkeypatch.setattr(sign_in_module, "_MAX_WAITING", 20)
    settings = HttpSettings(proxies=TrustedProxies((ip_network("127.0.0.0/8"),)))
    async with ready_site(database_url, settings=settings) as site:
        issuer = site.issuer
        issuer.refresh_tokens.add("real")
        issuer.held = asyncio.Event()

        async def send(token: str, address: str) -> httpx2.Response:
            return await site.gateway.client.post(
                TOKEN, json={"refreshToken": token}, headers={"X-Forwarded-For": f"192.0.2.1, {address}"}
            )

        async def has_started(count: int) -> None:
            await until(lambda: issuer.requests["/token"] == count, what="the request has started")

        async with asyncio.TaskGroup() as group:
            # Addresses of one /64 network are one client. 32 of its requests are in progress, one is the next to start.
            flood = []
            for number in range(33):
                flood.append(group.create_task(send("bogus", f"2001:db8::{number:x}")))
                await has_started(min(number + 1, 32))
            flood += [group.create_task(send("bogus", "2001:db8::1")) for _ in range(30)]
            await until(lambda: sum(request.done() for request in flood) == 10, what="the flood has filled the queue")
            known = group.create_task(send("real", "198.51.100.7"))
            await until(lambda: sum(request.done() for request in flood) == 11, what="the flood leaves a place")
            issuer.held.set()
        assert known.result().status_code == 200
        refused = [request.result() for request in flood if request.result().status_code != 401]
        assert len(refused) == 11
        assert {(await problem(answer, 429))["code"] for answer in refused} == {"TooManySignIns"}
