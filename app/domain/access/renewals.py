"""Refresh tokens as the gateway passes them on: with the user to whom it has given them, and a seal.

The seal proves without a request to the issuer that this installation has given the token to a user. So a client that
has never signed in cannot use up the room for renewals.
"""

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Final

_PREFIX: Final = "jgr"
# Each purpose of the key has its own prefix.
_PURPOSE: Final = b"jobgate.dev/refresh-token\0"


@dataclass(frozen=True, slots=True)
class Renewal:
    """A refresh token of the issuer. `user` is the id of the user to whom the gateway gave it; None if it did not."""

    token: str = field(repr=False)
    user: str | None = None


class BrokenSeal(ValueError):  # noqa: N818 - the state of a token
    """The text has the form of a sealed refresh token, but this installation has not sealed it."""


def seal(key: bytes, user: str, token: str) -> str:
    """Return the refresh token with the id of its user and a seal under the key of the installation."""
    return f"{_PREFIX}.{user}.{_seal(key, user, token)}.{token}"


def unseal(key: bytes, text: str) -> Renewal:
    """Return the refresh token of a text. One without a seal is unchanged, and has no user.

    Raises:
        BrokenSeal: the seal is not valid.
    """
    prefix, *rest = text.split(".", 3)
    if prefix != _PREFIX or len(rest) != 3:
        return Renewal(text)
    user, seal, token = rest
    if not hmac.compare_digest(_seal(key, user, token).encode(), seal.encode(errors="replace")):
        raise BrokenSeal("this installation has not given out this refresh token")
    return Renewal(token, user)


def _seal(key: bytes, user: str, token: str) -> str:
    return hmac.new(key, _PURPOSE + f"{user}\0{token}".encode(errors="replace"), hashlib.sha256).hexdigest()
