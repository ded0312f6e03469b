"""Remembers JSON values that passed a check, so that equal values need not be checked again."""

import hashlib
from typing import Final

import msgspec

from app.base.caches import BoundedCache

_MAX_VALUES: Final = 4096  # each takes about 256 bytes: a digest and its place in the cache


class CheckedValues:
    """The digests of the values that passed one check most recently.

    The result of the check must depend on these values alone. Only values without an error are remembered: an error has
    a pointer into the document of its request. A digest of 256 bits cannot be forged, so that the check of a security
    policy may rely on it. The class is thread-safe.
    """

    def __init__(self, max_values: int = _MAX_VALUES) -> None:
        self._digests: BoundedCache[bytes, bool] = BoundedCache(max_values)

    def __contains__(self, digest: bytes | None) -> bool:
        return digest is not None and self._digests.get(digest) is True

    def add(self, digest: bytes | None) -> None:
        if digest is not None:
            self._digests.put(digest, value=True)


def digest_of(value: object) -> bytes | None:
    """Return a digest that no two different JSON values share; None for a value that is too deep to be encoded.

    Objects whose fields have another order are different values.
    """
    try:
        return hashlib.sha256(msgspec.json.encode(value)).digest()
    except (ValueError, OverflowError, RecursionError):
        return None
