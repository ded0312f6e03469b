"""Exchanges the code, refresh token or device code that a client received from the issuer for a token.

A page may send requests only to its own origin, so the gateway sends its request to the token endpoint. It is no proxy:
the endpoint and the client id are fixed, and an answer is passed on only if the gateway accepts its token.
"""

import asyncio
import hmac
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import structlog

from app.base.clock import Clock
from app.domain.access.renewals import BrokenSeal, Renewal, seal, unseal
from app.domain.errors import Conflict, TooManyRequests, Unauthenticated, shorten
from app.services.limits.rate_limiter import RateLimiter
from app.services.limits.turns import Overloaded, Turns
from app.services.oidc.access import OidcAccess
from app.services.oidc.exchange import Exchange, SignedIn
from app.services.oidc.http import IssuerAnswer, IssuerUnavailable
from app.services.oidc.issuer import Issuer
from app.services.oidc.issuer_settings import OidcSettings
from app.services.oidc.verification import MAX_LENGTH, verify

# Exchanges of one lane that the issuer works on. Each takes 5 s at most, so a slow issuer holds few requests.
_AT_ONCE: Final = 32
# Exchanges of one lane that start in a second: an issuer may refuse a gateway that sends many wrong codes.
_PER_SECOND: Final = 20.0
# Exchanges of one lane that wait: as many as can start in the time that clients wait for an answer.
_MAX_WAITING: Final = 200
_MAX_WAIT: Final = 10.0  # seconds

log = structlog.get_logger(__name__)


class _Lane:
    """Exchanges that share a limit. Those that wait start in turn: of each key in turn, the oldest."""

    def __init__(self, work: str, clock: Clock) -> None:
        self._turns = Turns(work, at_once=1, max_waiting=_MAX_WAITING, max_seconds=_MAX_WAIT)
        self._rate_limiter = RateLimiter(clock, _PER_SECOND)
        self._room = asyncio.Semaphore(_AT_ONCE)

    @asynccontextmanager
    async def place(self, key: str) -> AsyncIterator[None]:
        """Run the block when there is room for an exchange of this key.

        Raises:
            TooManyRequests: too many exchanges wait. The block did not start.
        """
        try:
            # The turn is that to start, so an exchange that waits takes no room from those in progress.
            async with self._turns.turn(key):
                await asyncio.sleep(self._rate_limiter.delay())
                await self._room.acquire()
        except Overloaded:
            raise TooManyRequests("too many sign-ins wait: send the request again", code="TooManySignIns") from None
        try:
            yield
        finally:
            self._room.release()


class SignIn:
    """Signs users in at the issuer.

    A renewal with a sealed refresh token has a lane of its own, in which users take turns. All other exchanges may come
    from a client that nobody knows: in their lane, the addresses of clients take turns.
    """

    def __init__(self, settings: OidcSettings, issuer: Issuer, access: OidcAccess, clock: Clock, key: bytes) -> None:
        self.settings = settings
        self.issuer = issuer
        self._access = access
        self._clock = clock
        self._key = key
        self._sign_ins = _Lane("sign-ins", clock)
        self._renewals = _Lane("renewals", clock)

    async def run(self) -> None:
        """Read the metadata and keys of the issuer until cancelled."""
        await self.issuer.run()

    async def renew(self, refresh_token: str, site: str) -> SignedIn:
        """Return the token for a refresh token, as `exchange`."""
        try:
            renewal = unseal(self._key, refresh_token)
        except BrokenSeal as error:
            raise Unauthenticated(f"{error}: sign in again", code="SignInRefused") from None
        return await self.exchange(Exchange.of_refresh_token(renewal.token), site, renewal)

    async def exchange(self, exchange: Exchange, site: str, renewal: Renewal | None = None) -> SignedIn:
        """Return the token for a code, refresh token or device code. `site` is the network of the client.

        Raises:
            Unauthenticated: the issuer refuses the code, or the gateway refuses its token.
            Forbidden: no group of the user has a grant.
            Conflict: the user has not confirmed the device code yet.
            TooManyRequests: too many sign-ins wait.
            IssuerUnavailable: the issuer does not answer as described by OIDC.
        """
        known = renewal.user if renewal is not None else None
        async with self._sign_ins.place(site) if known is None else self._renewals.place(known):
            answer = await self.issuer.exchange({**exchange.form, "client_id": self.settings.client_id})
        if answer.status != 200:
            raise _refusal(answer)
        token = await self._token(answer.body, exchange.nonce)
        principal = await self._access.principal_of(token)
        assert principal.expires_at is not None, "tokens of an issuer expire"
        # Without a new refresh token, the old one stays valid (RFC 6749, 6); one without a seal gets one.
        refresh_token = _text(answer.body, "refresh_token") or (renewal.token if renewal and known is None else None)
        return SignedIn(
            token=token,
            refresh_token=seal(self._key, principal.id, refresh_token) if refresh_token else None,
            expires_at=principal.expires_at,
        )

    async def _token(self, body: Mapping[str, Any], nonce: str | None) -> str:
        id_token = _text(body, "id_token")
        if nonce is not None:
            if id_token is None:
                raise IssuerUnavailable("the issuer has returned no ID token: JOBGATE_OIDC_SCOPES needs openid")
            found = await verify(id_token, self.issuer, self.settings.id_token, self._clock.now())
            # The nonce ties the token to this sign-in: a code of another one is refused.
            if not hmac.compare_digest(str(found.claims.get("nonce", "")).encode(), nonce.encode()):
                raise Unauthenticated("the sign-in does not belong to this tab: sign in again", code="SignInRefused")
        token = id_token if self.settings.uses_id_tokens else _text(body, "access_token")
        if token is None:
            kind = "ID" if self.settings.uses_id_tokens else "access"
            raise IssuerUnavailable(f"the issuer has returned no {kind} token")
        return token


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
    log.info("oidc.sign_in_refused", status=answer.status, error=error, description=description)
    if 400 <= answer.status < 500 and error:
        return Unauthenticated(f"the issuer refuses the sign-in: {error}", code="SignInRefused")
    return IssuerUnavailable(f"the issuer has answered a sign-in with the status {answer.status}")
