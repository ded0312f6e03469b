"""Reads the claims of a verified token of an OIDC issuer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from app.domain.errors import shorten

LEEWAY: Final = 10.0
"""Seconds by which the clocks of the issuer and of the gateway may differ."""
_MAX_NAME: Final = 128
_MAX_SUBJECT: Final = 255  # OpenID Connect Core 1.0, 2
_MAX_GROUPS: Final = 2000  # a token of 16 KiB has no room for more
# 9999-01-01: later times cannot be represented as a date in every zone.
_LATEST: Final = 253_370_764_800


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimNames:
    """The claims of a token that contain the name and the groups of its user.

    Args:
        name: the claims with the name of the user. The first one that a token has is used, otherwise `sub`.
        groups: the claim with the groups. A name with dots that no claim has is a path: `realm_access.roles`.
    """

    name: Sequence[str] = ("preferred_username", "email")
    groups: str = "groups"


class InvalidClaims(ValueError):  # noqa: N818 - a message for the user
    """The claims do not permit the use of the token now. The message is for its user."""


def expiry(claims: Mapping[str, Any], now: datetime) -> datetime:
    """Return the time until which a token is accepted: its expiry and the leeway.

    Raises:
        InvalidClaims: the token has expired, is not valid yet, or does not say when it expires.
    """
    seconds = now.timestamp()
    expires = _time(claims, "exp")
    if expires is None:
        raise InvalidClaims("the token has no time of expiry")
    if seconds >= expires + LEEWAY:
        raise InvalidClaims("the token has expired")
    if (begins := _time(claims, "nbf")) is not None and seconds < begins - LEEWAY:
        raise InvalidClaims("the token is not valid yet")
    return datetime.fromtimestamp(expires + LEEWAY, UTC)


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LATEST:
        raise InvalidClaims(f"the claim {name} of the token is not a time")
    return float(value)


def subject_of(claims: Mapping[str, Any]) -> str:
    """Return the id of the user at the issuer.

    Raises:
        InvalidClaims: the token names no user.
    """
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject:
        raise InvalidClaims("the token has no sub")
    if len(subject) > _MAX_SUBJECT:
        raise InvalidClaims(f"the sub of the token has more than {_MAX_SUBJECT} characters")
    return subject


def name_of(claims: Mapping[str, Any], names: ClaimNames) -> str:
    """Return the name of the user, in a form for records."""
    found = (claims.get(name) for name in names.name)
    return shorten(next((name for name in found if isinstance(name, str) and name), subject_of(claims)), _MAX_NAME)


def groups_of(claims: Mapping[str, Any], names: ClaimNames) -> frozenset[str]:
    """Return the groups of the user. A text is one group, a list is several. Other values are ignored."""
    value = claims.get(names.groups)
    if value is None:
        value = claims
        for step in names.groups.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
    listed = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return frozenset(group for group in listed[:_MAX_GROUPS] if isinstance(group, str))
