"""The saved login of this user, with a token that is valid: the token of an OIDC issuer is renewed before it ends."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from jobgate.client import config, wire
from jobgate.client.errors import JobgateError
from jobgate.client.retries import RetryPolicy
from jobgate.client.types import OidcToken

# A token that ends sooner is renewed: a command may take some minutes.
_EARLY: Final = timedelta(minutes=5)


def current_context(
    *,
    server: str | None = None,
    namespace: str | None = None,
    context: str | None = None,
    renews: bool = True,
    warn: Callable[[str], None] = lambda _: None,
) -> config.Context:
    """Return the gateway that the arguments, the environment and the file of contexts select.

    A token that ends soon is renewed if `renews`. `warn` is called if the file cannot take the renewed token.

    Raises:
        ContextError: the file, the name of the context, the address or the token is not valid.
    """
    file = config.contexts_file(os.environ)
    contexts = config.load(file)
    chosen = config.resolve(contexts, os.environ, server=server, namespace=namespace, context=context)
    if not renews:
        return chosen
    return renew(chosen, file, config.name_of(contexts, os.environ, context), warn)


def context_of(url: str | None, *, token: str | None, namespace: str | None, ca_file: str | None) -> config.Context:
    """Return the gateway of a client: the given one, otherwise that of the environment or of `jobgate login`."""
    if url is None:
        chosen = current_context(namespace=namespace)
    else:
        chosen = config.Context(server=url.rstrip("/"), namespace=namespace or config.DEFAULT_NAMESPACE)
    return msgspec.structs.replace(chosen, token=token or chosen.token, ca_file=ca_file or chosen.ca_file)


def exchange(gateway: config.Context, body: Mapping[str, Any], retries: RetryPolicy | None = None) -> OidcToken:
    """Return the token that the issuer of a gateway gives for a device code or a refresh token."""
    call = wire.Call(
        method="POST",
        path=f"{wire.API}/oidc/token",
        answer=OidcToken,
        headers={"Content-Type": wire.JSON},
        content=msgspec.json.encode(body),
        is_repeatable=False,  # a code and many refresh tokens can be used once
    )
    # The request says by its body who it is for. A token that has ended would refuse it.
    anonymous = config.Context(server=gateway.server, ca_file=gateway.ca_file)
    with config.connect(anonymous, retries) as client:
        answer = client.exchange(call)
    found = wire.decode(answer.content, call.answer)
    return msgspec.structs.replace(found, expires_at=_by_own_clock(found.expires_at, answer.headers.get("Date")))


def _by_own_clock(time: datetime, date: str | None) -> datetime:
    """Return a time of the gateway by the clock of this machine, which may be wrong. `date` is when it answered."""
    try:
        return time if date is None else time + (_now() - parsedate_to_datetime(date))
    except (ValueError, OverflowError):
        return time


def with_token(context: config.Context, token: OidcToken) -> config.Context:
    """Return the context with this token, and with its refresh token or else the former one."""
    return msgspec.structs.replace(
        context,
        token=config.checked_token(token.token),
        refresh_token=token.refresh_token or context.refresh_token,
        expires_at=token.expires_at,
    )


def renew(context: config.Context, file: Path, name: str | None, warn: Callable[[str], None]) -> config.Context:
    """Return the context with a token that is valid for some minutes, if it can be renewed.

    `name` is its name in the file, which then has the new token too. If the file cannot be written, only the result has
    the token, and `warn` is called.
    """
    if name is None or not _is_due(context):
        return context
    # Commands at the same time: a refresh token can often be used once, so the others use what the first has got.
    with _hold_lock(file):
        saved = config.load(file)
        current = saved.contexts.get(name, context)
        if _is_due(current):
            try:
                current = with_token(current, exchange(context, {"refreshToken": current.refresh_token}))
            except JobgateError:
                return context  # the command goes on with the old token, whose error says what to do
            try:
                config.save(file, config.replace_context(saved, name, current))
            except config.ContextError as error:
                warn(f"the renewed token is not saved: {error}; the next command may need `jobgate login`")
    return msgspec.structs.replace(
        context, token=current.token, refresh_token=current.refresh_token, expires_at=current.expires_at
    )


@contextmanager
def _hold_lock(file: Path) -> Iterator[None]:
    """Hold the lock of the file of contexts, unless its directory cannot be written or has no locks."""
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            lock = held.enter_context(file.with_name(f"{file.name}.lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_due(context: config.Context) -> bool:
    if context.refresh_token is None or context.expires_at is None:
        return False
    return context.expires_at - _now() < _EARLY


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - the client shares no clock with the gateway
