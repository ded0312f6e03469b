"""A gateway that accepts the tokens of an issuer on loopback."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from app.domain.access.grants import read_group_grants
from app.services.oidc.issuer_settings import OidcSettings
from tests.support.gateways.gateway import NAMESPACE, Gateway, running_gateway
from tests.support.gateways.oidc_issuer import CLIENT, FakeIssuer, challenge_of, running_issuer
from tests.support.waiting import until

WHOAMI, OIDC, TOKEN = "/api/v1/whoami", "/api/v1/oidc", "/api/v1/oidc/token"
GRANTS = f"team=submitter:{NAMESPACE}; lab=viewer:lab; ops=admin:*"
VERIFIER = "v" * 43
NONCE = "n" * 22


def settings_of(issuer: FakeIssuer, audience: str = CLIENT, grants: str = GRANTS) -> OidcSettings:
    return OidcSettings(
        issuer=issuer.url,
        client_id=CLIENT,
        audience=audience,
        scopes="openid offline_access",
        grants=read_group_grants(grants),
    )


@dataclass(frozen=True, slots=True)
class Site:
    """A gateway that accepts the tokens of an issuer."""

    issuer: FakeIssuer
    gateway: Gateway

    async def get(self, path: str = WHOAMI, **headers: str) -> httpx2.Response:
        return await self.gateway.client.get(path, headers=headers)

    async def post(self, **body: Any) -> httpx2.Response:
        return await self.gateway.client.post(TOKEN, json=body)

    async def code(self, redirect_uri: str | None = None, **more: str) -> dict[str, str]:
        """Sign in at the issuer as a browser does, and return the body that exchanges the code."""
        redirect = redirect_uri or f"{self.gateway.url}/"
        asked = {
            "response_type": "code",
            "client_id": CLIENT,
            "redirect_uri": redirect,
            "state": "s",
            "nonce": NONCE,
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
        }
        async with httpx2.AsyncClient() as client:
            answer = await client.get(f"{self.issuer.url}/authorize", params=asked)
        code = httpx2.URL(answer.headers["location"]).params["code"]
        return {"code": code, "codeVerifier": VERIFIER, "redirectUri": redirect, "nonce": NONCE} | more


@asynccontextmanager
async def running_site(
    database_url: str, issuer: FakeIssuer, audience: str = CLIENT, **options: Any
) -> AsyncIterator[Site]:
    """Run a gateway that accepts the tokens of the issuer. It may not have reached the issuer yet."""
    oidc = settings_of(issuer, audience)
    async with running_gateway(database_url, closed=True, oidc=oidc, **options) as gateway:
        yield Site(issuer, gateway)


@asynccontextmanager
async def ready_site(database_url: str, audience: str = CLIENT, **options: Any) -> AsyncIterator[Site]:
    """Run an issuer whose user is in the group team, and a gateway that has reached the issuer."""
    async with running_issuer() as issuer, running_site(database_url, issuer, audience, **options) as site:
        sign_in = site.gateway.services.sign_in
        assert sign_in is not None
        await until(lambda: sign_in.issuer.metadata is not None, what="the gateway has reached the issuer")
        issuer.user["groups"] = ["team"]
        yield site


async def problem(answer: httpx2.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    body: dict[str, Any] = answer.json()
    return body
