"""Verifies tokens of the issuer: signature, issuer, audience and times."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

import jwt
from jwt.types import Options

from app.domain.access.claims import InvalidClaims, expiry, subject_of
from app.domain.errors import Unauthenticated
from app.services.oidc.issuer import Issuer
from app.services.oidc.metadata import ALGORITHMS

MAX_LENGTH: Final = 16 * 1024
"""The most characters of a token, which leave room for 200 groups with long names."""
# The times are checked with the clock of the process.
_OPTIONS: Final[Options] = {
    "require": ["exp", "iss", "aud", "sub"],
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
}
_MALFORMED: Final = "the token is neither a token of jobgate nor a signed JWT"
# The message of the first matching error. Those of the library may quote the token.
_MESSAGES: Final[Mapping[type[jwt.PyJWTError], str]] = {
    jwt.InvalidAudienceError: "the token is for another audience",
    jwt.InvalidIssuerError: "the token is of another issuer",
    jwt.MissingRequiredClaimError: "the token lacks one of the claims exp, iss, aud and sub",
    jwt.InvalidSignatureError: "the signature of the token is not valid",
}


class Verified(NamedTuple):
    claims: Mapping[str, Any]
    subject: str
    expires_at: datetime


async def verified(token: str, issuer: Issuer, audience: str, now: datetime) -> Verified:
    """Return the claims of a token for the audience.

    Raises:
        Unauthenticated: the token is not valid. The message says why and quotes nothing.
        IssuerUnavailable: the keys of the issuer are not known yet.
    """
    key_id, algorithm = _header(token)
    key = await issuer.key(key_id, algorithm)
    try:
        claims = jwt.decode(
            token, key.key, algorithms=[algorithm], audience=audience, issuer=issuer.url, options=_OPTIONS
        )
        return Verified(claims, subject_of(claims), expiry(claims, now))
    except jwt.PyJWTError as error:
        raise _invalid(
            next((text for kind, text in _MESSAGES.items() if isinstance(error, kind)), _MALFORMED)
        ) from None
    except InvalidClaims as error:
        raise _invalid(str(error)) from None
    except (ValueError, TypeError, RecursionError):
        raise _invalid(_MALFORMED) from None


def _header(token: str) -> tuple[str | None, str]:
    """Return the key id and the algorithm that a token names. Nothing of it is verified yet."""
    if len(token) > MAX_LENGTH:
        raise _invalid("the token is too long")
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise _invalid(_MALFORMED) from None
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise _invalid(f"the algorithm of the token is not accepted; accepted: {', '.join(sorted(ALGORITHMS))}")
    return header.get("kid"), algorithm


def _invalid(message: str) -> Unauthenticated:
    return Unauthenticated(message, code="InvalidToken")
