"""The share of one request. Code that works for a request uses it without knowing the request."""

import asyncio
from collections.abc import Awaitable, Hashable, MutableMapping
from contextvars import ContextVar
from typing import Any, Final

from app.base.caches import BoundedCache
from app.fairness.answer_memory import Client, HeldAnswer, answer_memory
from app.fairness.slices import Slices

# Credentials whose callers are remembered.
_MAX_KNOWN: Final = 10_000


class FairShares:
    """What the requests of one server share: the slices of its event loop, and its memory for answers.

    A request counts for its address, until its credential has been verified once: from then on, requests with this
    credential count for its token or user. Invented credentials therefore get no shares.
    """

    def __init__(self) -> None:
        self.slices = Slices()
        self.memory = answer_memory()
        # By the hash of the credential, which is secret.
        self._known: BoundedCache[int, Hashable] = BoundedCache(_MAX_KNOWN)

    def share(self, address: str, credential: bytes | None, client: Client) -> "Share":
        """Return the share of a request. `client` is its connection."""
        digest = None if credential is None else hash(credential)
        caller = None if digest is None else self._known.get(digest)
        return Share(self, address if caller is None else caller, digest, client)

    def remember(self, digest: int, caller: Hashable) -> None:
        self._known.put(digest, caller)


class Share:
    """The share of one request."""

    def __init__(self, shares: FairShares, key: Hashable, digest: int | None, client: Client) -> None:
        self.answer = HeldAnswer(shares.memory, key, client)
        self._shares = shares
        self._digest = digest

    def next_slice(self) -> Awaitable[None]:
        return self._shares.slices.next(self.answer.key)

    def identify(self, caller: str) -> None:
        """Count further work for the caller. Bytes that are held already stay with the key before."""
        if self._digest is None or not caller or caller == self.answer.key:  # an open gateway knows no callers
            return
        self._shares.remember(self._digest, caller)
        if not self.answer.held:
            self.answer.key = caller


SHARE: Final = "jobgate.share"
"""The key of the share of a request in its ASGI scope."""

CURRENT: Final[ContextVar[Share | None]] = ContextVar("share", default=None)
"""The share of the request that this task works for. Tasks that a request starts inherit it."""


def caller() -> Hashable:
    """Return the caller that this task works for; None if it works for no request."""
    share = CURRENT.get()
    return None if share is None else share.answer.key


def next_slice() -> Awaitable[None]:
    """Let other work run, and return when the next slice of this request may begin.

    Await it between the parts of long work, each of which takes less than a millisecond.
    """
    share = CURRENT.get()
    return asyncio.sleep(0) if share is None else share.next_slice()


async def begin(scope: MutableMapping[str, Any]) -> None:
    """Begin a request with its first slice, once its share has left its ASGI scope. `release` ends it.

    The connection keeps the scope, and the share refers to the connection. Other servers than jobgate give no share.
    """
    share = scope.pop(SHARE, None)
    if share is not None:
        CURRENT.set(share)
        await share.next_slice()


async def hold(count: int) -> None:
    """Wait until this request may hold this number of bytes. It holds them until it ends or waits for something else.

    Raises:
        NoRoomError: there was no room in time.
    """
    share = CURRENT.get()
    if share is not None and count > share.answer.held:
        await share.answer.hold(count)


def release() -> None:
    """Release the bytes of this request: it begins to wait or to send pieces, or it ends."""
    share = CURRENT.get()
    if share is not None:
        share.answer.release()


def begin_sending(count: int) -> None:
    """Hold only this number of bytes, which wait for the client from now on: those of an answer, or of a part of it."""
    share = CURRENT.get()
    if share is not None:
        share.answer.resize(count)
        share.answer.begin_sending()


def identify(verified: str) -> None:
    """Count the work of this request for its caller, whose credential has been verified."""
    share = CURRENT.get()
    if share is not None:
        share.identify(verified)
