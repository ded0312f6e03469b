"""Exchanges the code, refresh token or device code that a client received from the issuer for a token.

A page may send requests only to its own origin, so the gateway sends its request to the token endpoint. It is no proxy:
the endpoint and the client id are fixed, and an answer is passed on only if the gateway accepts its token.
"""

import asyncio
import hmac
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from app.clock import Clock
from app.db.engine import Database
from app.domain.errors import Conflict, TooManyRequests, Unauthenticated, shorten
from app.services.access import Access, TokenAccess
from app.services.oidc.access import OidcAccess, TokenOrOidcAccess
from app.services.oidc.http import IssuerAnswer, IssuerUnavailable
from app.services.oidc.issuer import Issuer
from app.services.oidc.settings import OidcSettings
from app.services.oidc.verification import MAX_LENGTH, verified
from app.services.pacing import Pacer

# Exchanges of one process. Each takes 5 s at most, so a slow issuer holds few requests.
_AT_ONCE: Final = 32
_PER_SECOND: Final = 20.0
_CODE_TYPE: Final = "urn:ietf:params:oauth:grant-type:device_code"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A form for the token endpoint, without the client id. `nonce` is what the ID token must repeat, if given."""

    form: Mapping[str, str] = field(repr=False)
    nonce: str | None = None

    @classmethod
    def of_code(cls, code: str, verifier: str, redirect_uri: str, nonce: str | None) -> "Exchange":
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": redirect_uri,
        }
        return cls(form=form, nonce=nonce)

    @classmethod
    def of_refresh_token(cls, token: str) -> "Exchange":
        return cls(form={"grant_type": "refresh_token", "refresh_token": token})

    @classmethod
    def of_device_code(cls, code: str) -> "Exchange":
        return cls(form={"grant_type": _CODE_TYPE, "device_code": code})


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A token that the gateway accepts, and the refresh token if the issuer has given one."""

    token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    expires_at: datetime


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


def token_access(db: Database, clock: Clock, settings: OidcSettings | None) -> tuple[Access, SignIn | None]:
    """Return the access with tokens of jobgate, and of an issuer if one is configured, and the sign-in there."""
    stored = TokenAccess(db, clock)
    if settings is None:
        return stored, None
    issuer = Issuer(settings.issuer, clock)
    access = OidcAccess(settings, issuer, clock)
    return TokenOrOidcAccess(stored, access), SignIn(settings, issuer, access, clock)
