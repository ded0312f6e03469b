"""Tokens of an OIDC issuer: which are accepted, and what they permit."""

import asyncio
import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Callable
from typing import Final

import jwt
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives import serialization

from app.base.backoff import ExponentialBackoff
from app.services.limits.long_request_limits import LongRequestLimits
from app.services.oidc import issuer as issuer_module
from tests.support.gateways.gateway import NAMESPACE, jobs_path, manifest, until_open
from tests.support.gateways.oidc_issuer import (
    EC_KEY,
    RSA_KEY,
    FakeIssuer,
    ec_key,
    jwk,
    now,
    rsa_key,
    running_issuer,
    unsigned,
)
from tests.support.gateways.oidc_site import (
    OIDC,
    Site,
    problem,
    ready_site,
    running_site,
)
from tests.support.postgres import fresh_database
from tests.support.waiting import until


@pytest.mark.parametrize("key", [RSA_KEY, EC_KEY])
async def test_a_user_has_the_rights_of_all_its_groups(site: Site, key: str) -> None:
    site.issuer.signs_with = key
    site.issuer.user["groups"] = ["team", "lab", "unknown"]
    expires = now() + 600
    found = (await site.get(**site.issuer.bearer(exp=expires))).json()
    assert found["name"] == "ada"
    assert (found["role"], found["namespaces"], found["administers"]) == ("submitter", ["lab", NAMESPACE], False)
    assert found["grants"] == [
        {"role": "submitter", "namespaces": [NAMESPACE]},
        {"role": "viewer", "namespaces": ["lab"]},
    ]
    assert found["expiresAt"] is not None
    for namespace, status in ((NAMESPACE, 201), ("lab", 403), ("other", 404)):
        answer = await site.gateway.client.post(
            jobs_path(namespace), json=manifest(namespace), headers=site.issuer.bearer()
        )
        assert answer.status_code == status, answer.text


async def test_tokens_of_jobgate_are_accepted_beside_them(site: Site) -> None:
    found = (await site.get(**await site.gateway.token("viewer", "lab"))).json()
    assert (found["name"], found["expiresAt"]) == ("a viewer", None)
    assert (await problem(await site.get(Authorization="Bearer jg_a_b"), 401))["code"] == "InvalidToken"


async def test_a_user_without_a_grant_is_told_so(site: Site) -> None:
    site.issuer.user["groups"] = ["others"]
    found = await problem(await site.get(**site.issuer.bearer()), 403)
    assert found["code"] == "NoGrant"
    assert "others" not in found["detail"]


def hmac_with_public_key(issuer: FakeIssuer) -> str:
    """A token whose HMAC key is the published key of the issuer."""
    public = rsa_key(RSA_KEY).public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    unsigned_part = unsigned({"alg": "HS256", "typ": "JWT", "kid": RSA_KEY}, issuer.claims()).rpartition(".")[0]
    signature = urlsafe_b64encode(hmac.digest(pem, unsigned_part.encode(), "sha256")).rstrip(b"=").decode()
    return f"{unsigned_part}.{signature}"


def other_key(issuer: FakeIssuer) -> str:
    return jwt.encode(issuer.claims(), rsa_key("attacker"), "RS256", {"kid": RSA_KEY})


def own_key_in_header(issuer: FakeIssuer) -> str:
    header = {"kid": "mine", "jwk": jwk(rsa_key("attacker"), "mine"), "jku": "http://127.0.0.1:1/keys"}
    return jwt.encode(issuer.claims(), rsa_key("attacker"), "RS256", header)


def changed_payload(issuer: FakeIssuer) -> str:
    header, _, signature = issuer.token().split(".")
    payload = urlsafe_b64encode(json.dumps(issuer.claims(groups=["ops"])).encode()).rstrip(b"=").decode()
    return f"{header}.{payload}.{signature}"


HOSTILE: Final[dict[str, tuple[Callable[[FakeIssuer], str], str]]] = {
    "alg none": (lambda issuer: unsigned({"alg": "none", "typ": "JWT"}, issuer.claims()), "algorithm"),
    "alg None": (lambda issuer: unsigned({"alg": "None", "kid": RSA_KEY}, issuer.claims()), "algorithm"),
    "HMAC with the public key": (hmac_with_public_key, "algorithm"),
    "signed by another key": (other_key, "signature"),
    "its own key in the header": (own_key_in_header, "key of the issuer"),
    "unknown key": (
        lambda issuer: jwt.encode(issuer.claims(), rsa_key(RSA_KEY), "RS256", {"kid": "nobody"}),
        "key of the issuer",
    ),
    "no key id, and two keys": (
        lambda issuer: jwt.encode(issuer.claims(), rsa_key("attacker"), "RS256"),
        "signature",
    ),
    "algorithm of another key": (
        lambda issuer: jwt.encode(issuer.claims(), ec_key(), "ES256", {"kid": RSA_KEY}),
        "key of the issuer",
    ),
    "changed payload": (changed_payload, "signature"),
    "no signature": (lambda issuer: issuer.token().rpartition(".")[0] + ".", "signature"),
    "expired": (lambda issuer: issuer.token(exp=now() - 60), "has expired"),
    "never expires": (lambda issuer: issuer.token(exp=None), "lacks one"),
    "expiry is text": (lambda issuer: issuer.token(exp="tomorrow"), "exp"),
    "expiry is beyond all dates": (lambda issuer: issuer.token(exp=10**300), "exp"),
    "not valid yet": (lambda issuer: issuer.token(nbf=now() + 600), "not valid yet"),
    "other issuer": (lambda issuer: issuer.token(iss="https://evil.example"), "another issuer"),
    "issuer with a slash": (lambda issuer: issuer.token(iss=f"{issuer.url}/"), "another issuer"),
    "other audience": (lambda issuer: issuer.token(aud="other"), "another audience"),
    "other audiences": (lambda issuer: issuer.token(aud=["other", "third"]), "another audience"),
    "no audience": (lambda issuer: issuer.token(aud=None), "lacks one"),
    "no subject": (lambda issuer: issuer.token(sub=None), "lacks one"),
    "empty subject": (lambda issuer: issuer.token(sub=""), "sub"),
    "subject is a number": (lambda issuer: issuer.token(sub=7), "neither"),
    "unknown critical header": (
        lambda issuer: jwt.encode(
            issuer.claims(), rsa_key(RSA_KEY), "RS256", {"kid": RSA_KEY, "crit": ["b64"], "b64": False}
        ),
        "neither",
    ),
    "algorithm is a list": (lambda issuer: unsigned({"alg": ["RS256"]}, issuer.claims(), b"x"), "algorithm"),
    "key id is a list": (lambda issuer: unsigned({"alg": "RS256", "kid": []}, issuer.claims(), b"x"), "neither"),
    "payload is a list": (lambda _: jwt.api_jws.encode(b"[]", rsa_key(RSA_KEY), "RS256", {"kid": RSA_KEY}), "neither"),
    "header is nested deeply": (lambda _: f"{urlsafe_b64encode(b'[' * 9000).decode()}.e30.x", "neither"),
    "logout token": (lambda issuer: issuer.token({"typ": "logout+jwt"}), "another type"),
    "logout token without a type": (
        lambda issuer: issuer.token(events={"http://schemas.openid.net/event/backchannel-logout": {}}),
        "event",
    ),
    "logout token of Keycloak": (lambda issuer: issuer.token(typ="Logout"), "another type"),
    "access token": (lambda issuer: issuer.token({"typ": "at+jwt"}), "another type"),
    "access token with its whole type": (lambda issuer: issuer.token({"typ": "Application/AT+JWT"}), "another type"),
    "access token of Keycloak": (lambda issuer: issuer.token(typ="Bearer"), "another type"),
    "refresh token of Keycloak": (lambda issuer: issuer.token(typ="Refresh"), "another type"),
    "client assertion": (lambda issuer: issuer.token({"typ": "client-authentication+jwt"}), "another type"),
    "proof of possession": (lambda issuer: issuer.token({"typ": "dpop+jwt"}), "another type"),
    "security event": (lambda issuer: issuer.token({"typ": "secevent+jwt"}), "another type"),
    "type is a number": (lambda issuer: issuer.token({"typ": 7}), ""),
    "of another client": (lambda issuer: issuer.token(azp="other"), "another client"),
    "of another client, for several": (lambda issuer: issuer.token(aud=["jobgate", "other"], azp="other"), "client"),
    "for several clients": (lambda issuer: issuer.token(aud=["jobgate", "other"]), "another client"),
    "client is a list": (lambda issuer: issuer.token(azp=["jobgate"]), "another client"),
    "never issued": (lambda issuer: issuer.token(iat=None), "iat"),
    "long subject": (lambda issuer: issuer.token(sub="x" * 256), "255"),
    "text": (lambda _: "secret", "neither"),
    "dots": (lambda _: "..", "neither"),
    "too long": (lambda issuer: issuer.token(pad="x" * 20_000), "form"),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def attacked(postgres_server_url: str, database_template: str) -> AsyncIterator[Site]:
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        ready_site(url) as running,
    ):
        yield running


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", HOSTILE)
async def test_a_hostile_token_is_refused_with_the_reason_and_without_its_content(attacked: Site, case: str) -> None:
    make, reason = HOSTILE[case]
    assert (await attacked.get(**attacked.issuer.bearer())).status_code == 200
    token = make(attacked.issuer)
    found = await problem(await attacked.get(Authorization=f"Bearer {token}"), 401)
    assert found["code"] == "InvalidToken"
    assert reason in found["detail"]
    for part in filter(lambda part: len(part) > 8, token.split(".")):
        assert part not in json.dumps(found)


async def test_unknown_keys_cause_few_requests_to_the_issuer(site: Site) -> None:
    before = site.issuer.requests["/keys"]
    tokens = [jwt.encode(site.issuer.claims(), rsa_key(RSA_KEY), "RS256", {"kid": f"made-up-{n}"}) for n in range(30)]
    answers = await asyncio.gather(*(site.get(Authorization=f"Bearer {token}") for token in tokens))
    assert {answer.status_code for answer in answers} == {401}
    assert site.issuer.requests["/keys"] - before == 1


async def test_a_new_key_is_found_and_a_withdrawn_one_is_forgotten(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuer_module, "_UNKNOWN_KEY_INTERVAL", 0.0)
    old = site.issuer.bearer()
    assert (await site.get(**old)).status_code == 200
    site.issuer.keys = [jwk(rsa_key("rsa-2"), "rsa-2")]
    site.issuer.signs_with = "rsa-2"
    assert (await site.get(**site.issuer.bearer())).status_code == 200
    # The cache of verified tokens does not outlive the keys.
    assert (await problem(await site.get(**old), 401))["code"] == "InvalidToken"


@pytest.mark.parametrize("kid", [None, "constant"])
async def test_a_new_key_that_no_id_announces_is_found(
    site: Site, monkeypatch: pytest.MonkeyPatch, kid: str | None
) -> None:
    monkeypatch.setattr(issuer_module, "_UNKNOWN_KEY_INTERVAL", 0.0)

    def published(*names: str) -> list[dict[str, object]]:
        keys = [jwk(rsa_key(name), kid or "") for name in names]
        return keys if kid else [{name: value for name, value in key.items() if name != "kid"} for key in keys]

    site.issuer.keys = published("rsa-2")
    site.issuer.signs_with = "rsa-2"
    old = {"Authorization": f"Bearer {site.issuer.token({'kid': kid})}"}
    assert (await site.get(**old)).status_code == 200
    # Both keys are published while tokens of both are in use.
    site.issuer.keys = published("rsa-2", "rsa-3")
    site.issuer.signs_with = "rsa-3"
    new = {"Authorization": f"Bearer {site.issuer.token({'kid': kid})}"}
    assert (await site.get(**new)).status_code == 200
    assert (await site.get(**old)).status_code == 200
    site.issuer.keys = published("rsa-3")
    unknown = jwt.encode(site.issuer.claims(), rsa_key("rsa-4"), "RS256", {"kid": kid} if kid else {})
    gone = {"Authorization": f"Bearer {unknown}"}
    assert (await problem(await site.get(**gone), 401))["code"] == "InvalidToken"
    assert (await site.get(**new)).status_code == 200
    assert (await problem(await site.get(**old), 401))["code"] == "InvalidToken"


@pytest.mark.parametrize(
    ("header", "claims", "status"),
    [
        ({"typ": "at+jwt"}, {}, 200),
        ({"typ": "application/at+jwt"}, {"azp": "a program", "aud": ["api", "other"]}, 200),
        ({"typ": "JWT"}, {"typ": "Bearer", "azp": "a program"}, 200),
        ({"typ": None}, {}, 200),
        ({"typ": "logout+jwt"}, {}, 401),
        ({"typ": "JWT"}, {"typ": "ID"}, 401),
        ({"typ": "JWT"}, {"typ": "Offline"}, 401),
        ({"typ": "JWT"}, {"events": {}}, 401),
    ],
)
async def test_access_tokens_have_their_own_rules(
    database_url: str, header: dict[str, str | None], claims: dict[str, object], status: int
) -> None:
    async with ready_site(database_url, "api") as site:
        token = site.issuer.token(header, **({"aud": "api"} | claims))
        assert (await site.get(Authorization=f"Bearer {token}")).status_code == status


async def test_verified_tokens_are_accepted_while_the_issuer_is_away(site: Site) -> None:
    assert (await site.get(**site.issuer.bearer())).status_code == 200
    site.issuer.replies = dict.fromkeys(("/keys", "/token", "/.well-known/openid-configuration"), (500, b"broken"))
    assert (await site.get(**site.issuer.bearer(jti="another"))).status_code == 200
    unknown = jwt.encode(site.issuer.claims(), rsa_key(RSA_KEY), "RS256", {"kid": "new"})
    assert (await site.get(Authorization=f"Bearer {unknown}")).status_code == 401
    assert (await problem(await site.post(refreshToken="r"), 503))["code"] == "IssuerUnavailable"


BAD_ANSWERS: Final[dict[str, dict[str, tuple[int, bytes]]]] = {
    "an error": {"/.well-known/openid-configuration": (500, b"{}")},
    "no JSON": {"/.well-known/openid-configuration": (200, b"<html>")},
    "another issuer": {"/.well-known/openid-configuration": (200, b'{"issuer": "https://evil.example"}')},
    "an endpoint without TLS": {
        "/.well-known/openid-configuration": (
            200,
            b'{"issuer": "ISSUER", "jwks_uri": "http://evil.example/", "token_endpoint": "ISSUER/token"}',
        )
    },
    "endless keys": {"/keys": (200, b'{"keys": "' + b"x" * 1_000_000 + b'"}')},
    "keys of no form": {"/keys": (200, b'{"keys": [1, {}, {"kty": "RSA", "n": "x"}, {"kty": "oct", "k": "eA"}]}')},
    "keys that are no list": {"/keys": (200, b'{"keys": {}}')},
}


@pytest.mark.parametrize("case", BAD_ANSWERS)
async def test_an_issuer_with_bad_answers_delays_nobody_else(database_url: str, case: str) -> None:
    async with running_issuer() as issuer:
        replies = BAD_ANSWERS[case]
        issuer.replies = {
            path: (status, body.replace(b"ISSUER", issuer.url.encode())) for path, (status, body) in replies.items()
        }
        issuer.user["groups"] = ["team"]
        async with running_site(database_url, issuer) as site:
            assert (await site.get(**await site.gateway.token("viewer", NAMESPACE))).status_code == 200
            assert (await site.get(**issuer.bearer())).status_code in (401, 503)
            assert (await site.get(OIDC)).json()["enabled"] is True


async def test_a_slow_issuer_delays_nobody_else_and_is_waited_for(database_url: str) -> None:
    async with running_issuer() as issuer:
        issuer.held = asyncio.Event()
        issuer.user["groups"] = ["team"]
        async with running_site(database_url, issuer) as site, asyncio.TaskGroup() as group:
            waiting = group.create_task(site.get(**issuer.bearer()))
            await until(
                lambda: issuer.requests["/.well-known/openid-configuration"] >= 2, what="the keys are asked for"
            )
            assert (await site.get(**await site.gateway.token("viewer", NAMESPACE))).status_code == 200
            assert (await site.get(OIDC)).json()["authorizationEndpoint"] is None
            issuer.held.set()
            assert (await waiting).status_code == 200


async def test_a_gateway_starts_before_its_issuer(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuer_module, "_RETRY", ExponentialBackoff(first=0.05, longest=0.05))
    async with running_issuer() as issuer:
        issuer.replies = {"/.well-known/openid-configuration": (503, b"")}
        issuer.user["groups"] = ["team"]
        async with running_site(database_url, issuer) as site:
            found = await problem(await site.get(**issuer.bearer()), 503)
            assert found["code"] == "IssuerUnavailable"
            issuer.replies = {}

            async def is_known() -> bool:
                return (await site.get(OIDC)).json()["authorizationEndpoint"] is not None

            await until(is_known, what="the issuer was reached")
            assert (await site.get(**issuer.bearer())).status_code == 200


async def test_a_stream_ends_when_its_token_expires(database_url: str) -> None:
    limits = LongRequestLimits(recheck=0.05)
    async with ready_site(database_url, long_requests=limits) as site:
        issuer = site.issuer
        stays, ends = issuer.bearer(), issuer.bearer(exp=now() - 3)  # the leeway is 10 s
        path = "/api/v1/jobs/watch"
        async with (
            site.gateway.client.stream("GET", path, headers=stays) as staying,
            site.gateway.client.stream("GET", path, headers=ends) as ending,
        ):
            assert (staying.status_code, ending.status_code) == (200, 200)
            text = "".join([chunk async for chunk in ending.aiter_text()])
            assert "the token has expired" in text
            await until_open(site.gateway, 1)
