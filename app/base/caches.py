"""A cache with a limit, which drops what was not used for longest."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final, Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")

ENTRY_BYTES: Final = 256
"""What an entry takes about, beside its value, in a cache whose limit is in bytes."""


class BoundedCache(Generic[_Key, _Value]):
    """Keeps the most recently used values whose sizes are at most `limit` together, and always the newest value.

    Without sizes, `limit` is a number of values. `on_drop` is called with each value that exceeds the limit. The cache
    is thread-safe.
    """

    def __init__(self, limit: int, *, on_drop: Callable[[_Value], object] | None = None) -> None:
        self._limit = limit
        self._on_drop = on_drop
        self._size = 0
        self._entries: OrderedDict[_Key, tuple[_Value, int]] = OrderedDict()
        # Threads that work for the event loop use the same caches.
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: _Key) -> _Value | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: _Key, value: _Value, size: int = 1) -> None:
        """Store a value in place of the former one of the key, if any."""
        dropped = []
        with self._lock:
            _, replaced = self._entries.pop(key, (None, 0))
            self._entries[key] = value, size
            self._size += size - replaced
            # One value may exceed the limit by itself. Without it, each use would compute it again.
            while self._size > self._limit and len(self._entries) > 1:
                _, (oldest, freed) = self._entries.popitem(last=False)
                self._size -= freed
                dropped.append(oldest)
        if self._on_drop is not None:
            for each in dropped:
                self._on_drop(each)

    def pop(self, key: _Key) -> _Value | None:
        """Remove the value of a key and return it, if there is one."""
        with self._lock:
            value, size = self._entries.pop(key, (None, 0))
            self._size -= size
            return value
