"""Exchanges the code, refresh token or device code that a client received from the issuer for a token.

A page may send requests only to its own origin, so the gateway sends its request to the token endpoint. It is no proxy:
the endpoint and the client id are fixed, and an answer is passed on only if the gateway accepts its token.
"""

import asyncio
import hmac
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from app.clock import Clock
from app.domain.errors import Conflict, TooManyRequests, Unauthenticated, shorten
from app.services.oidc.access import OidcAccess
from app.services.oidc.exchange import Exchange, SignedIn
from app.services.oidc.http import IssuerAnswer, IssuerUnavailable
from app.services.oidc.issuer import Issuer
from app.services.oidc.settings import OidcSettings
from app.services.oidc.verification import MAX_LENGTH, verified
from app.services.pacing import Pacer

# Exchanges of one process. Each takes 5 s at most, so a slow issuer holds few requests.
_AT_ONCE: Final = 32
_PER_SECOND: Final = 20.0

log = logging.getLogger(__name__)


class SignIn:
    """Signs users in at the issuer."""

    def __init__(self, settings: OidcSettings, issuer: Issuer, access: OidcAccess, clock: Clock) -> None:
        self.settings = settings
        self.issuer = issuer
        self._access = access
        self._clock = clock
        self._pacer = Pacer(clock, _PER_SECOND)
        self._running = 0

    async def run(self) -> None:
        """Read the metadata and keys of the issuer until cancelled."""
        await self.issuer.run()

    async def exchange(self, exchange: Exchange) -> SignedIn:
        """Return the token for a code, refresh token or device code.

        Raises:
            Unauthenticated: the issuer refuses the code, or the gateway refuses its token.
            Forbidden: no group of the user has a grant.
            Conflict: the user has not confirmed the device code yet.
            TooManyRequests: too many sign-ins are in progress.
            IssuerUnavailable: the issuer does not answer as described by OIDC.
        """
        with self._counted():
            await asyncio.sleep(self._pacer.delay())
            answer = await self.issuer.exchange({**exchange.form, "client_id": self.settings.client_id})
        if answer.status != 200:
            raise _refusal(answer)
        token = await self._token(answer.body, exchange.nonce)
        principal = await self._access.principal_of(token)
        assert principal.expires_at is not None, "tokens of an issuer expire"
        refresh_token = _text(answer.body, "refresh_token")
        return SignedIn(token=token, refresh_token=refresh_token, expires_at=principal.expires_at)

    async def _token(self, body: Mapping[str, Any], nonce: str | None) -> str:
        id_token = _text(body, "id_token")
        if nonce is not None:
            if id_token is None:
                raise IssuerUnavailable("the issuer has returned no ID token: JOBGATE_OIDC_SCOPES needs openid")
            found = await verified(id_token, self.issuer, self.settings.client_id, self._clock.now())
            # The nonce ties the token to this sign-in: a code of another one is refused.
            if not hmac.compare_digest(str(found.claims.get("nonce", "")).encode(), nonce.encode()):
                raise Unauthenticated("the sign-in does not belong to this tab: sign in again", code="SignInRefused")
        token = id_token if self.settings.uses_id_tokens else _text(body, "access_token")
        if token is None:
            kind = "ID" if self.settings.uses_id_tokens else "access"
            raise IssuerUnavailable(f"the issuer has returned no {kind} token")
        return token

    @contextmanager
    def _counted(self) -> Iterator[None]:
        if self._running >= _AT_ONCE:
            raise TooManyRequests("too many sign-ins are in progress: send the request again", code="TooManySignIns")
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1


def _text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    return value if isinstance(value, str) and 0 < len(value) <= MAX_LENGTH else None


def _refusal(answer: IssuerAnswer) -> Exception:
    error = shorten(str(answer.body.get("error", "")))
    if error == "authorization_pending":
        return Conflict("the user has not confirmed the sign-in yet", code="AuthorizationPending")
    if error == "slow_down":
        return Conflict("the requests come too fast: add 5 s to the interval", code="SlowDown")
    # The description may contain details for operators only.
    description = shorten(str(answer.body.get("error_description", "")), 300)
    log.info("the issuer refuses a sign-in: status %d, error %s, %s", answer.status, error, description)
    if 400 <= answer.status < 500 and error:
        return Unauthenticated(f"the issuer refuses the sign-in: {error}", code="SignInRefused")
    return IssuerUnavailable(f"the issuer has answered a sign-in with the status {answer.status}")
