"""A cache of rendered views with a bound in bytes."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, Protocol, TypeVar

CACHE_BYTES: Final = 64 * 1024 * 1024
# Bytes that an entry takes beside its body.
_OVERHEAD: Final = 256
# An entry that exceeds this share of the cache is not kept, because it would displace too many others.
_LARGEST_SHARE: Final = 8


class Sized(Protocol):
    """An entry of the cache. Its body determines its size."""

    @property
    def body(self) -> bytes: ...


_Entry = TypeVar("_Entry", bound=Sized)


class RenderCache(Generic[_Entry]):
    """Keeps the most recently used entries. The bound is in bytes, because jobs differ in size by a factor of 1000."""

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()

    def get(self, key: Hashable) -> _Entry | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: Hashable, entry: _Entry) -> None:
        if key in self._entries or len(entry.body) > self._max_bytes // _LARGEST_SHARE:
            return
        self._entries[key] = entry
        self._bytes += len(entry.body) + _OVERHEAD
        while self._bytes > self._max_bytes:
            _, dropped = self._entries.popitem(last=False)
            self._bytes -= len(dropped.body) + _OVERHEAD
