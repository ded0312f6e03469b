"""Idempotency-Keys of requests, before the answers under them are known."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from app.db.objects.idempotency import IdempotencyKey, KeyPlace


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
    def place(self) -> KeyPlace:
        return self.scope, self.key

    def with_answer(self, answer: bytes) -> IdempotencyKey:
        """Return the key as it is stored with the answer to the request."""
        return IdempotencyKey(scope=self.scope, key=self.key, fingerprint=self.fingerprint, answer=answer)


def fingerprint(body: object, query: Mapping[str, str]) -> str:
    """Return a hash that two requests share if body and query mean the same, whatever the order of fields."""
    return hashlib.sha256(msgspec.json.encode([body, query], order="deterministic")).hexdigest()
