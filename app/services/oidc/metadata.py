"""Reads what an issuer publishes: its discovery document and its keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jwt

from app.services.oidc.http import IssuerUnavailable
from app.services.oidc.issuer_settings import is_safe

# Only asymmetric algorithms: every reader of the public keys could sign with `none`, or with HMAC and a key as secret.
_ALGORITHMS: Final[Mapping[str, frozenset[str]]] = {
    "RSA": frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
    "EC": frozenset({"ES256", "ES384", "ES512"}),
    "OKP": frozenset({"EdDSA"}),
}
ALGORITHMS: Final = frozenset().union(*_ALGORITHMS.values())
DISCOVERY_PATH: Final = "/.well-known/openid-configuration"
_MAX_KEYS: Final = 100
_MIN_RSA_BITS: Final = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerMetadata:
    """The endpoints of an issuer. An empty text stands for an endpoint that the issuer does not have."""

    keys: str
    token: str
    authorization: str
    device_authorization: str


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key, and the algorithms that it verifies."""

    id: str | None
    key: Any
    algorithms: frozenset[str]


def metadata_of(document: Mapping[str, Any], issuer: str) -> IssuerMetadata:
    """Read a discovery document (OpenID Connect Discovery 1.0, RFC 8628).

    Raises:
        IssuerUnavailable: it is that of another issuer, or lacks an endpoint.
    """
    if document.get("issuer") != issuer:
        raise IssuerUnavailable("the discovery document names another issuer")

    def endpoint(name: str, *, required: bool = False) -> str:
        url = document.get(name)
        if isinstance(url, str) and is_safe(url):
            return url
        if required or url is not None:
            raise IssuerUnavailable(f"the discovery document has no valid {name}")
        return ""

    return IssuerMetadata(
        keys=endpoint("jwks_uri", required=True),
        token=endpoint("token_endpoint", required=True),
        authorization=endpoint("authorization_endpoint"),
        device_authorization=endpoint("device_authorization_endpoint"),
    )


def keys_of(document: Mapping[str, Any]) -> Sequence[SigningKey]:
    """Return the keys of a JWK set (RFC 7517) that verify signatures. Keys of unknown types and weak ones are left out.

    Raises:
        IssuerUnavailable: the document is not a JWK set.
    """
    listed = document.get("keys")
    if not isinstance(listed, list):
        raise IssuerUnavailable("the keys of the issuer are not a JWK set")
    found = (_signing_key(each) for each in listed[:_MAX_KEYS])
    return tuple(key for key in found if key is not None)


def _signing_key(jwk: Any) -> SigningKey | None:
    if not isinstance(jwk, dict) or jwk.get("use", "sig") != "sig":
        return None
    operations = jwk.get("key_ops", ["verify"])
    if not isinstance(operations, list) or "verify" not in operations:
        return None
    algorithms = _ALGORITHMS.get(str(jwk.get("kty")), frozenset())
    if "alg" in jwk:
        algorithms &= {jwk["alg"]} if isinstance(jwk["alg"], str) else set()
    key_id = jwk.get("kid")
    if not algorithms or not (key_id is None or isinstance(key_id, str)):
        return None
    try:
        key = jwt.PyJWK(jwk).key
        # RFC 7518, 3.3. The size of an EC key is that of its curve.
        is_strong = jwk["kty"] != "RSA" or key.key_size >= _MIN_RSA_BITS
        return SigningKey(key_id, key, algorithms) if is_strong else None
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
