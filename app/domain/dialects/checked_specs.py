"""Remembers the specs of accepted manifests, so that a spec that many jobs share is read and checked once."""

import hashlib
from typing import Any, Final, NamedTuple

import msgspec

from app.domain.plan import Manifest
from app.domain.sized_cache import SizedCache

# Bytes of JSON. Typed specs take about twelve times as much memory, so this bounds them at about 6 MiB.
_MAX_BYTES: Final = 512 * 1024
_ENTRY_BYTES: Final = 1024  # the overhead of a spec besides its JSON
# The checks of a text with a variable depend on the name of the job.
_VARIABLE: Final = b"$("


class SpecDigest(NamedTuple):
    """A kind and a posted spec of it, which the digest stands for. `size` is the number of bytes of its JSON."""

    kind: str
    digest: bytes
    size: int


class CheckedSpec(NamedTuple):
    """A typed spec, and the JSON of the spec as it is stored, which is decoded faster than it is made."""

    spec: Any
    stored: bytes


class CheckedSpecs:
    """The specs that passed the checks of their kind most recently, within a limit of memory.

    All of them were checked with the same limits. A digest of 256 bits cannot be forged. The class is thread-safe.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._specs: SizedCache[SpecDigest, CheckedSpec] = SizedCache(max_bytes)

    def get(self, digest: SpecDigest | None) -> CheckedSpec | None:
        return None if digest is None else self._specs.get(digest)

    def put(self, digest: SpecDigest | None, spec: Any, stored: Manifest) -> None:
        if digest is not None:
            text = msgspec.json.encode(stored)
            self._specs.put(digest, CheckedSpec(spec, text), _ENTRY_BYTES + digest.size)


def spec_digest(kind: str, posted: object) -> SpecDigest | None:
    """Return a digest that no two different specs share; None for a spec that must be checked for each job.

    Specs whose fields have another order are different.
    """
    try:
        text = msgspec.json.encode(posted)
    except (ValueError, OverflowError, RecursionError):
        return None
    return None if _VARIABLE in text else SpecDigest(kind, hashlib.sha256(text).digest(), len(text))
