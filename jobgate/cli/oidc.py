"""Sign-in at the OIDC issuer of a gateway with a device code (RFC 8628), and the renewal of its tokens.

issuer: device code ─▶ the user confirms in a browser ─▶ gateway: device code to token ─▶ context
"""

import contextlib
import fcntl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from jobgate.cli import connection
from jobgate.client import (
    JobgateError,
    OverloadedError,
    ProblemError,
    RetryPolicy,
    UnavailableError,
    UnreachableError,
    wire,
)
from jobgate.client.types import Oidc, OidcToken

# A token that ends sooner is renewed before a command: a command may take some minutes.
_EARLY: Final = timedelta(minutes=5)
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


class SignInError(connection.ContextError):
    """The sign-in at the issuer has failed. The message is for the user."""


class _Device(msgspec.Struct):
    """The answer of a device authorization endpoint."""

    device_code: str
    user_code: str
    verification_uri: str
    expires_in: float
    verification_uri_complete: str | None = None
    interval: float = _INTERVAL


def offered(server: str) -> Oidc | None:
    """Return the issuer of the gateway; None if it has none."""
    with connection.connect(connection.Context(server=server)) as client:
        try:
            found = client.send(wire.Call(method="GET", path=f"{wire.API}/oidc", answer=Oidc))
        except ProblemError as error:
            if error.status in {401, 404}:  # an older gateway
                return None
            raise
    return found if found.enabled else None


def sign_in(
    server: str,
    issuer: Oidc,
    announce: Callable[[str], None],
    pause: Callable[[float], None] = time.sleep,
) -> OidcToken:
    """Sign the user in: announce where to confirm the code, and wait for the confirmation.

    A gateway or an issuer that does not answer for some time is asked again until the code expires.

    Raises:
        SignInError: the issuer has no device codes, refuses one, or the user has not confirmed it in time.
    """
    device = _begin(issuer)
    announce(_instruction(device))
    interval = max(1.0, device.interval)
    next_pause, waited, failure = interval, 0.0, ""
    while waited < device.expires_in:
        pause(next_pause)
        begun = time.monotonic()
        try:
            return _exchange(server, {"deviceCode": device.device_code}, _ONCE)
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


def _begin(issuer: Oidc) -> _Device:
    import httpx2  # noqa: PLC0415 - the help of a command does not need it

    if issuer.device_authorization_endpoint is None:
        raise SignInError("the issuer of this gateway has no device codes, or cannot be reached; give --token")
    form = {"client_id": issuer.client_id or "", "scope": " ".join(issuer.scopes)}
    try:
        answer = httpx2.post(issuer.device_authorization_endpoint, data=form, timeout=_TIMEOUT)
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


def _exchange(server: str, body: Mapping[str, Any], retries: RetryPolicy | None = None) -> OidcToken:
    call = wire.Call(
        method="POST",
        path=f"{wire.API}/oidc/token",
        answer=OidcToken,
        headers={"Content-Type": "application/json"},
        content=msgspec.json.encode(body),
        is_repeatable=False,  # a code and many refresh tokens can be used once
    )
    with connection.connect(connection.Context(server=server), retries) as client:
        return client.send(call)


def with_token(context: connection.Context, token: OidcToken) -> connection.Context:
    """Return the context with this token, and with its refresh token or else the former one."""
    return msgspec.structs.replace(
        context,
        token=connection.checked_token(token.token),
        refresh_token=token.refresh_token or context.refresh_token,
        expires_at=token.expires_at,
    )


def renewed(
    context: connection.Context, file: Path, name: str | None, warn: Callable[[str], None]
) -> connection.Context:
    """Return the context with a token that is valid for some minutes, if it can be renewed.

    `name` is its name in the file, which then has the new token too. If the file cannot be written, only the result has
    the token, and `warn` is called.
    """
    if name is None or not _is_due(context):
        return context
    # Commands at the same time: a refresh token can often be used once, so the others use what the first has got.
    with _locked(file):
        saved = connection.load(file)
        current = saved.contexts.get(name, context)
        if _is_due(current):
            try:
                current = with_token(current, _exchange(context.server, {"refreshToken": current.refresh_token}))
            except JobgateError:
                return context  # the command goes on with the old token, whose error says what to do
            try:
                connection.save(file, connection.replaced(saved, name, current))
            except connection.ContextError as error:
                warn(f"the renewed token is not saved: {error}; the next command may need `jobgate login`")
    return msgspec.structs.replace(
        context, token=current.token, refresh_token=current.refresh_token, expires_at=current.expires_at
    )


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold the lock of the file of contexts, unless its directory cannot be written or has no locks."""
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            lock = held.enter_context(file.with_name(f"{file.name}.lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_due(context: connection.Context) -> bool:
    if context.refresh_token is None or context.expires_at is None:
        return False
    now = datetime.now(UTC)  # noqa: TID251 - the client shares no clock with the gateway
    return context.expires_at - now < _EARLY
