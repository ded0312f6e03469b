"""Authenticates callers with tokens of the issuer, beside those with tokens of jobgate."""

import hashlib
from collections.abc import Collection, Mapping
from typing import Final

from typing_extensions import override

from app.base.caches import BoundedCache
from app.base.clock import Clock
from app.db.installation import tokens
from app.domain.access.actors import Actor
from app.domain.access.claims import groups_of, name_of
from app.domain.access.grants import grants_of
from app.domain.errors import Forbidden
from app.services.access import Access, Principal, bearer
from app.services.oidc.issuer import Issuer
from app.services.oidc.issuer_settings import OidcSettings
from app.services.oidc.verification import MAX_LENGTH, verify

# An entry has about 1 KiB.
_MAX_CACHED: Final = 4096
_ID_PREFIX: Final = "oidc:"  # no id of a stored token contains a colon


class OidcAccess:
    """Verifies tokens of the issuer, and caches verified ones until they expire or the keys of the issuer change."""

    def __init__(self, settings: OidcSettings, issuer: Issuer, clock: Clock) -> None:
        self._settings = settings
        self._issuer = issuer
        self._clock = clock
        self._cached: BoundedCache[bytes, tuple[int, Principal]] = BoundedCache(_MAX_CACHED)

    async def principal_of(self, token: str) -> Principal:
        """Return the user with this token.

        Raises:
            Unauthenticated: the token is not valid.
            Forbidden: no group of the user has a grant.
            IssuerUnavailable: the keys of the issuer are not known yet.
        """
        key = hashlib.sha256(token.encode()).digest()  # the cache holds no secrets
        generation, principal = self._cached.get(key) or (0, None)
        if principal is None or generation != self._issuer.generation or principal.has_expired(self._clock.now()):
            principal = await self._verify(token)
            self._cached.put(key, (self._issuer.generation, principal))
        return principal

    async def _verify(self, token: str) -> Principal:
        settings = self._settings
        found = await verify(token, self._issuer, settings.bearer, self._clock.now())
        grants = grants_of(groups_of(found.claims, settings.claims), settings.grants)
        if not grants:
            raise Forbidden("your user is known, but none of its groups has a grant at this gateway", code="NoGrant")
        # A digest, because the length and the characters of a subject are not limited.
        subject = hashlib.sha256(f"{settings.issuer}\0{found.subject}".encode()).hexdigest()
        return Principal(
            id=f"{_ID_PREFIX}{subject[:32]}",
            actor=Actor.user(settings.issuer, found.subject, name_of(found.claims, settings.claims)),
            grants=grants,
            expires_at=found.expires_at,
            is_revocable=False,  # the rights of a user change with the next token
        )


class TokenOrOidcAccess(Access):
    """Accepts tokens of jobgate and of the issuer. Their form says which of them a token is."""

    def __init__(self, stored: Access, oidc: OidcAccess) -> None:
        self._stored = stored
        self._oidc = oidc

    @override
    async def authenticate(self, authorization: str | None) -> Principal:
        token = bearer(authorization, MAX_LENGTH)
        if token.startswith(f"{tokens.PREFIX}_"):
            return await self._stored.authenticate(authorization)
        return await self._oidc.principal_of(token)

    @override
    async def current(self, principals: Collection[Principal]) -> Mapping[Principal, Principal]:
        return await self._stored.current(principals)
