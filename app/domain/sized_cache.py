"""A cache of derived values with a limit on the memory that they take."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class SizedCache(Generic[_Key, _Value]):
    """Keeps the most recently used values, up to `max_bytes` together. The newest value is kept whatever its size is.

    The cache is thread-safe.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[_Key, tuple[_Value, int]] = OrderedDict()
        # The threads of app/offload.py and the event loop use one cache.
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

    def put(self, key: _Key, value: _Value, size: int) -> None:
        """Store a value of `size` bytes, and drop the least recently used values beyond the limit."""
        with self._lock:
            replaced = self._entries.pop(key, None)
            self._bytes += size - (replaced[1] if replaced else 0)
            self._entries[key] = value, size
            # One value may exceed the limit by itself. Dropping it would compute it again at every use.
            while self._bytes > self._max_bytes and len(self._entries) > 1:
                _, (_, dropped) = self._entries.popitem(last=False)
                self._bytes -= dropped
