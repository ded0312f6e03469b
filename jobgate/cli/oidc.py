"""Sign-in at the OIDC issuer of a gateway with a device code (RFC 8628).

issuer: device code ─▶ the user confirms in a browser ─▶ gateway: device code to token ─▶ context
"""

import os
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import msgspec

from jobgate.client import (
    OverloadedError,
    ProblemError,
    RetryPolicy,
    UnavailableError,
    UnreachableError,
    config,
    wire,
)
from jobgate.client.proxies import proxy_of
from jobgate.client.renewal import exchange
from jobgate.client.types import Oidc, OidcToken

_INTERVAL: Final = 5.0  # seconds between two polls, unless the issuer says otherwise
_SLOWER: Final = 5.0  # what SlowDown adds, as in RFC 8628
# The longest pause after polls without an answer. RFC 8628 recommends to double the pause after each of them.
_LONGEST: Final = 60.0
_TRANSIENT: Final = (UnreachableError, UnavailableError, OverloadedError)
# A poll is repeated after its interval only.
_ONCE: Final = RetryPolicy(attempts=1)
_TIMEOUT: Final = 30.0
_SLOW_DOWN: Final = "SlowDown"
_WAITS: Final = frozenset({"AuthorizationPending", _SLOW_DOWN})


class SignInError(config.ContextError):
    """The sign-in at the issuer has failed. The message is for the user."""


class _Device(msgspec.Struct):
    """The answer of a device authorization endpoint."""

    device_code: str
    user_code: str
    verification_uri: str
    expires_in: float
    verification_uri_complete: str | None = None
    interval: float = _INTERVAL


def find_issuer(gateway: config.Context) -> Oidc | None:
    """Return the issuer of the gateway; None if it has none."""
    with config.connect(gateway) as client:
        try:
            found = client.send(wire.Call(method="GET", path=f"{wire.API}/oidc", answer=Oidc))
        except ProblemError as error:
            if error.status in {401, 404}:  # an older gateway
                return None
            raise
    return found if found.enabled else None


def sign_in(
    gateway: config.Context,
    issuer: Oidc,
    announce: Callable[[str], None],
    pause: Callable[[float], None] = time.sleep,
) -> OidcToken:
    """Sign the user in: announce where to confirm the code, and wait for the confirmation.

    A gateway or an issuer that does not answer for some time is asked again until the code expires.

    Raises:
        SignInError: the issuer has no device codes, refuses one, or the user has not confirmed it in time.
    """
    device = _begin(gateway, issuer)
    announce(_instruction(device))
    interval = max(1.0, device.interval)
    next_pause, waited, failure = interval, 0.0, ""
    while waited < device.expires_in:
        pause(next_pause)
        begun = time.monotonic()
        try:
            return exchange(gateway, {"deviceCode": device.device_code}, _ONCE)
        except _TRANSIENT as error:
            failure = f": {error}"
            waited += next_pause + time.monotonic() - begun
            next_pause = max(interval, min(2 * next_pause, _LONGEST))
        except ProblemError as error:
            if error.code not in _WAITS:
                raise
            failure = ""
            waited += next_pause + time.monotonic() - begun
            interval += _SLOWER if error.code == _SLOW_DOWN else 0.0
            next_pause = interval
    raise SignInError(f"the sign-in was not confirmed in time{failure}; run the command again")


def _begin(gateway: config.Context, issuer: Oidc) -> _Device:
    import httpx2  # noqa: PLC0415 - the help of a command does not need it

    from jobgate.client.transports import make_transport  # noqa: PLC0415

    if issuer.device_authorization_endpoint is None:
        raise SignInError("the issuer of this gateway has no device codes, or cannot be reached; give --token")
    form = {"client_id": issuer.client_id or "", "scope": " ".join(issuer.scopes)}
    try:
        proxy = proxy_of(issuer.device_authorization_endpoint, os.environ)
        with httpx2.Client(transport=make_transport(proxy, gateway.ca_file), timeout=_TIMEOUT) as client:
            answer = client.post(issuer.device_authorization_endpoint, data=form)
        answer.raise_for_status()
        return msgspec.json.decode(answer.content, type=_Device)
    except (httpx2.HTTPError, msgspec.MsgspecError) as error:
        raise SignInError(f"the issuer {issuer.issuer} gives no device code: {error}") from None


def _instruction(device: _Device) -> str:
    address = device.verification_uri_complete or device.verification_uri
    shown = (address, device.user_code)
    # They are printed on a terminal, which interprets control characters.
    if not all(text.isprintable() for text in shown) or urlsplit(address).scheme not in {"http", "https"}:
        raise SignInError("the issuer has answered with an address that is not valid")
    return f"open {address} in a browser and confirm the code {device.user_code}"
