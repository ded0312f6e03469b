"""Remembers the specs of accepted manifests, so that a spec that many jobs share is read and checked once."""

import hashlib
from typing import Any, Final, NamedTuple

import msgspec

from app.base.caches import BoundedCache
from app.domain.plan import Manifest

# Bytes of JSON. Typed specs take about twelve times as much memory, so this bounds them at about 6 MiB. A spec that
# would take more than a quarter is not kept, because the cache keeps its newest value whatever its size.
_MAX_BYTES: Final = 512 * 1024
_SHARE: Final = 4
_ENTRY_BYTES: Final = 1024  # the overhead of a spec besides its JSON
# The checks of a text with a variable depend on the name of the job.
_VARIABLE: Final = b"$("


class SpecDigest(NamedTuple):
    """A kind and a posted spec of it, which the digest stands for."""

    kind: str
    digest: bytes


class CheckedSpec(NamedTuple):
    """A typed spec, and the JSON of its stored form. To decode the JSON is faster than to derive it from the spec."""

    spec: Any
    stored: bytes


class CheckedSpecs:
    """The specs that passed the checks of their kind most recently, within a limit of memory.

    All of them were checked with the same limits. A digest of 256 bits cannot be forged. The class is thread-safe.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._most = max_bytes // _SHARE
        self._specs: BoundedCache[SpecDigest, CheckedSpec] = BoundedCache(max_bytes)

    def get(self, digest: SpecDigest | None) -> CheckedSpec | None:
        return None if digest is None else self._specs.get(digest)

    def put(self, digest: SpecDigest | None, spec: Any, stored: Manifest) -> None:
        if digest is not None:
            text = msgspec.json.encode(stored)
            size = _ENTRY_BYTES + len(text)
            if size <= self._most:
                self._specs.put(digest, CheckedSpec(spec, text), size)


def spec_digest(kind: str, posted: object) -> SpecDigest | None:
    """Return a digest that no two specs with different JSON share; None for a spec that must be checked for each job.

    Specs whose fields have another order are different.
    """
    try:
        text = msgspec.json.encode(posted)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
    return None if _VARIABLE in text else SpecDigest(kind, hashlib.sha256(text).digest())
