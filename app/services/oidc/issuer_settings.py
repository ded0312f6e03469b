"""The settings of the sign-in by OIDC."""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from app.domain.access.claims import ClaimNames
from app.domain.access.grants import GroupGrants
from app.domain.access.token_types import ExpectedToken, TokenUse

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def is_safe(url: str) -> bool:
    """Return whether the URL uses TLS, or is on this machine."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """An issuer, jobgate's client there, and the rights of its users.

    Args:
        issuer: the `iss` of tokens. Its discovery document is below this URL.
        client_id: a public client.
        audience: the `aud` of tokens. If it is the client id, users send ID tokens, otherwise access tokens.
        scopes: what sign-ins request, separated by spaces.
        claims: the claims that name users and their groups.
        grants: the rights of each group.
    """

    issuer: str
    client_id: str
    audience: str
    scopes: str
    grants: GroupGrants
    claims: ClaimNames = field(default_factory=ClaimNames)

    @property
    def uses_id_tokens(self) -> bool:
        return self.audience == self.client_id

    @property
    def id_token(self) -> ExpectedToken:
        """The token that a sign-in proves."""
        return ExpectedToken(TokenUse.ID, self.client_id)

    @property
    def bearer(self) -> ExpectedToken:
        """The token with which clients send requests."""
        return self.id_token if self.uses_id_tokens else ExpectedToken(TokenUse.ACCESS, self.audience)
