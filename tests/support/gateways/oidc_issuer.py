"""An OIDC issuer on loopback: discovery, keys, authorization that asks nothing, tokens and device codes."""

import asyncio
import hashlib
import json
import secrets
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import urlencode

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, rsa

CLIENT = "jobgate"
RSA_KEY, EC_KEY = "rsa-1", "ec-1"


@cache
def rsa_key(_name: str) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@cache
def ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def now() -> int:
    return int(datetime.now(UTC).timestamp())  # noqa: TID251 - a test is its own clock


def jwk(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, kid: str, **more: str) -> dict[str, Any]:
    if isinstance(key, rsa.RSAPrivateKey):
        public = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        public = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**public, "kid": kid, "use": "sig", **more}


def challenge_of(verifier: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


@dataclass
class FakeIssuer:
    """The state of the issuer, which a test may change at any time.

    Args:
        user: claims of the user who signs in.
        lifetime: seconds for which tokens are valid.
        keys: the published keys.
        requests: counts requests by path.
        device_answers: errors of the token endpoint before it accepts a device code.
        replies: bodies that replace those of a path.
    """

    url: str
    user: dict[str, Any] = field(default_factory=lambda: {"sub": "u-1", "preferred_username": "ada"})
    lifetime: int = 3600
    keys: list[dict[str, Any]] = field(
        default_factory=lambda: [jwk(rsa_key(RSA_KEY), RSA_KEY), jwk(ec_key(), EC_KEY, alg="ES256")]
    )
    signs_with: str = RSA_KEY
    requests: Counter[str] = field(default_factory=Counter)
    device_answers: list[str] = field(default_factory=list)
    replies: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    held: asyncio.Event | None = None
    codes: dict[str, Mapping[str, str]] = field(default_factory=dict)
    refresh_tokens: set[str] = field(default_factory=set)
    device_codes: set[str] = field(default_factory=set)

    def claims(self, **more: Any) -> dict[str, Any]:
        """The claims of a token that is valid now; None removes one."""
        claims = {"iss": self.url, "aud": CLIENT, "iat": now(), "exp": now() + self.lifetime} | self.user | more
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, header: Mapping[str, Any] | None = None, **more: Any) -> str:
        """A signed token; None removes a field of its header."""
        fields = {"kid": self.signs_with} | dict(header or {})
        fields = {name: value for name, value in fields.items() if value is not None}
        if self.signs_with == EC_KEY:
            return jwt.encode(self.claims(**more), ec_key(), "ES256", fields)
        return jwt.encode(self.claims(**more), rsa_key(self.signs_with), "RS256", fields)

    def bearer(self, **more: Any) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token(**more)}"}

    @web.middleware
    async def _changed(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests[request.path] += 1
        if self.held is not None:
            await self.held.wait()
        if request.path in self.replies:
            status, body = self.replies[request.path]
            return web.Response(status=status, body=body, content_type="application/json")
        answer: web.StreamResponse = await handler(request)
        return answer

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._changed])
        app.add_routes(
            [
                web.get("/.well-known/openid-configuration", self._discovery),
                web.get("/keys", self._keys),
                web.get("/authorize", self._authorize),
                web.post("/token", self._token),
                web.post("/device", self._device),
            ]
        )
        return app

    async def _discovery(self, _: web.Request) -> web.Response:
        return web.json_response(
            {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/keys",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "device_authorization_endpoint": f"{self.url}/device",
            }
        )

    async def _keys(self, _: web.Request) -> web.Response:
        return web.json_response({"keys": self.keys})

    async def _authorize(self, request: web.Request) -> web.Response:
        asked = request.query
        assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT)
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe()
        self.codes[code] = dict(asked)
        location = f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state'], 'iss': self.url})}"
        raise web.HTTPFound(location)

    async def _device(self, request: web.Request) -> web.Response:
        assert (await request.post())["client_id"] == CLIENT
        code = secrets.token_urlsafe()
        self.device_codes.add(code)
        return web.json_response(
            {
                "device_code": code,
                "user_code": "WDJB-MJHT",
                "verification_uri": f"{self.url}/activate",
                "verification_uri_complete": f"{self.url}/activate?user_code=WDJB-MJHT",
                "expires_in": 600,
                "interval": 1,
            }
        )

    async def _token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        error, nonce = self._refusal(form)
        if error:
            return web.json_response({"error": error, "error_description": "internal detail"}, status=400)
        refresh = secrets.token_urlsafe()
        self.refresh_tokens.add(refresh)
        return web.json_response(
            {
                "id_token": self.token(None, **({"nonce": nonce} if nonce else {})),
                "access_token": self.token(aud="api"),
                "refresh_token": refresh,
                "token_type": "Bearer",
                "expires_in": self.lifetime,
            }
        )

    def _refusal(self, form: Mapping[str, str]) -> tuple[str, str]:
        """Return why the form is refused, and the nonce of its code; each may be empty."""
        if form.get("client_id") != CLIENT:
            return "invalid_client", ""
        match form.get("grant_type"):
            case "authorization_code":
                asked = self.codes.pop(form["code"], None)
                is_right = asked is not None and (asked["redirect_uri"], asked["code_challenge"]) == (
                    form["redirect_uri"],
                    challenge_of(form["code_verifier"]),
                )
                return ("", asked.get("nonce", "")) if asked is not None and is_right else ("invalid_grant", "")
            case "refresh_token":
                is_known = form["refresh_token"] in self.refresh_tokens
                self.refresh_tokens.discard(form["refresh_token"])  # each is used once
                return ("" if is_known else "invalid_grant"), ""
            case "urn:ietf:params:oauth:grant-type:device_code":
                if self.device_answers:
                    return self.device_answers.pop(0), ""
                return ("" if form["device_code"] in self.device_codes else "expired_token"), ""
        return "unsupported_grant_type", ""


@asynccontextmanager
async def running_issuer(port: int = 0) -> AsyncIterator[FakeIssuer]:
    """Run an issuer on loopback."""
    issuer = FakeIssuer(url="")
    runner = web.AppRunner(issuer.application(), access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        issuer.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield issuer
    finally:
        if issuer.held is not None:
            issuer.held.set()
        await runner.cleanup()


def unsigned(header: Mapping[str, Any], claims: Mapping[str, Any], signature: bytes = b"") -> str:
    """A token with any header and signature."""
    parts = (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    return ".".join(urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)
