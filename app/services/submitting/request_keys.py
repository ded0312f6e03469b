"""Idempotency-Keys of requests: what a repetition is, how long it waits for the first request, and what it gets."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from app.base.clock import Clock
from app.db.objects.idempotency import IdempotencyKey, KeyConflict, KeyId, KeyInFlight, Replayed
from app.db.objects.submission import Answer
from app.domain.errors import Conflict, FieldError, InvalidManifest

_WAIT: Final = 10.0  # seconds to wait for another request with the same key
_POLL: Final = 0.05  # seconds between two tries


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestKey:
    """An Idempotency-Key of a request.

    Args:
        scope: the principal and the route. Keys of different scopes never conflict.
        key: the value of the header.
        fingerprint: the hash of the request, which tells a repetition from another request.
    """

    scope: str
    key: str
    fingerprint: str

    @property
    def id(self) -> KeyId:
        return self.scope, self.key

    def with_answer(self, answer: bytes) -> IdempotencyKey:
        """Return the key as it is stored with the answer to the request."""
        return IdempotencyKey(scope=self.scope, key=self.key, fingerprint=self.fingerprint, answer=answer)


def fingerprint(body: object, query: Mapping[str, str]) -> str:
    """Return a hash that two requests share if body and query mean the same, whatever the order of fields."""
    return hashlib.sha256(msgspec.json.encode([body, query], order="deterministic")).hexdigest()


async def past_same_key(store: Callable[[], Awaitable[Mapping[int, Answer]]], clock: Clock) -> Mapping[int, Answer]:
    """Repeat `store` while another request with the same key is running, up to a time limit."""
    deadline = clock.monotonic() + _WAIT
    while True:
        # Not only a read: if the other request fails, this one takes its place.
        refused = await store()
        if not isinstance(refused.get(0), KeyInFlight) or clock.monotonic() >= deadline:
            return refused
        await asyncio.sleep(_POLL)


def earlier_answer(first: Answer | None) -> Replayed | None:
    """Return the stored answer if the request is a repetition, given the answer about its first object.

    Raises:
        InvalidManifest: the key was used for another request.
        Conflict: another request with the key is still running.
    """
    match first:
        case Replayed():
            return first
        case KeyConflict():
            raise _key_reused()
        case KeyInFlight():
            detail = "another request with this Idempotency-Key is still running: repeat this one later"
            raise Conflict(detail, code="KeyInFlight")
        case _:
            return None


def _key_reused() -> InvalidManifest:
    error = FieldError(
        pointer="/header/Idempotency-Key",
        code="IdempotencyKeyReused",
        detail="the key was used for a request with another body or query",
        accepted="a new key, or the same request",
    )
    return InvalidManifest(
        "the Idempotency-Key was used for another request", code="IdempotencyKeyReused", errors=[error]
    )
