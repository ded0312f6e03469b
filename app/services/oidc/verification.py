"""Verifies tokens of the issuer: signature, issuer, audience, type and times."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import jwt
from jwt.types import Options

from app.domain.access.claims import InvalidClaims, expiry, subject_of
from app.domain.access.token_types import ExpectedToken
from app.domain.errors import Unauthenticated
from app.services.oidc.issuer import Issuer
from app.services.oidc.metadata import ALGORITHMS, SigningKey

MAX_LENGTH: Final = 16 * 1024
"""The most characters of a token, which leave room for 200 groups with long names."""
# The times are checked with the clock of the process.
_OPTIONS: Final[Options] = {
    "require": ["exp", "iss", "aud", "sub"],
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
}
_WRONG_SIGNATURE: Final = "the signature of the token is not valid"
_MALFORMED: Final = "the token is neither a token of jobgate nor a signed JWT"
# The message of the first matching error. Those of the library may quote the token.
_MESSAGES: Final[Mapping[type[jwt.PyJWTError], str]] = {
    jwt.InvalidAudienceError: "the token is for another audience",
    jwt.InvalidIssuerError: "the token is of another issuer",
    jwt.MissingRequiredClaimError: "the token lacks one of the claims exp, iss, aud and sub",
}


class Verified(NamedTuple):
    claims: Mapping[str, Any]
    subject: str
    expires_at: datetime


async def verify(token: str, issuer: Issuer, expected: ExpectedToken, now: datetime) -> Verified:
    """Return the claims of a token of the expected use and audience.

    Raises:
        Unauthenticated: the token is not valid. The message says why and quotes nothing.
        IssuerUnavailable: the keys of the issuer are not known yet.
    """
    header = _header(token)
    try:
        claims = await _verify_signature(token, header, issuer, expected.audience)
        expected.require(header, claims)
        return Verified(claims, subject_of(claims), expiry(claims, now))
    except jwt.PyJWTError as error:
        raise _invalid(
            next((text for kind, text in _MESSAGES.items() if isinstance(error, kind)), _MALFORMED)
        ) from None
    except InvalidClaims as error:
        raise _invalid(str(error)) from None
    except (ValueError, TypeError, RecursionError):
        raise _invalid(_MALFORMED) from None


async def _verify_signature(token: str, header: Mapping[str, Any], issuer: Issuer, audience: str) -> Mapping[str, Any]:
    """Return the claims if a key of the issuer verifies the token. If no known key does, there may be a new one.

    A key id cannot tell whether the key is a new one: it is optional, and some issuers give a new key the old id.
    """
    key_id, algorithm = header.get("kid"), header["alg"]
    try:
        return _claims(token, issuer.keys(key_id, algorithm), algorithm, issuer.url, audience)
    except _NoKeyFits:
        before = issuer.generation
        await issuer.refresh_for_unknown_key()
        if issuer.generation == before:
            issuer.require_keys()
            raise
        return _claims(token, issuer.keys(key_id, algorithm), algorithm, issuer.url, audience)


def _claims(token: str, keys: Sequence[SigningKey], algorithm: str, issuer: str, audience: str) -> Mapping[str, Any]:
    """Return the claims of a token with a signature of one of the keys.

    Raises:
        _NoKeyFits: it has a signature of none of them.
        PyJWTError: its claims are not valid.
    """
    for key in keys:
        try:
            return jwt.decode(
                token, key.key, algorithms=[algorithm], audience=audience, issuer=issuer, options=_OPTIONS
            )
        except (jwt.InvalidSignatureError, jwt.InvalidKeyError):
            continue
    raise _NoKeyFits(_WRONG_SIGNATURE if keys else "the token is not signed with a key of the issuer")


class _NoKeyFits(InvalidClaims):
    """No known key has signed the token."""


def _header(token: str) -> Mapping[str, Any]:
    """Return the header of a token, whose algorithm is an accepted one. Nothing of it is verified yet."""
    if len(token) > MAX_LENGTH:
        raise _invalid("the token is too long")
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise _invalid(_MALFORMED) from None
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise _invalid(f"the algorithm of the token is not accepted; accepted: {', '.join(sorted(ALGORITHMS))}")
    return header


def _invalid(message: str) -> Unauthenticated:
    return Unauthenticated(message, code="InvalidToken")
