"""A bounded queue that serves its keys in turn, so that a key with many entries cannot delay a key with one."""

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Entry = TypeVar("_Entry")


class FairQueue(Generic[_Key, _Entry]):
    """Holds at most `capacity` entries. Entries of the same key leave in the order of their arrival.

    A full queue has room for a key as long as another key has more than one entry above it: the newest entry of a key
    with the most entries is dropped ("longest queue drop"). So a key with few entries is refused only when all keys
    have equally few.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError("a queue holds at least one entry")
        self._capacity = capacity
        self._entries: OrderedDict[_Key, deque[_Entry]] = OrderedDict()  # in the order in which the keys are served
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def push(self, key: _Key, entry: _Entry) -> _Entry | None:
        """Add an entry. Return the entry that the queue does not hold for lack of room: this one, or another key's."""
        dropped = None
        if self._size >= self._capacity:
            longest = self._longest(key)
            if longest is None:
                return entry
            dropped = self._entries[longest].pop()
            self._size -= 1
        self._entries.setdefault(key, deque()).append(entry)
        self._size += 1
        return dropped

    def pop(self) -> _Entry:
        """Remove the oldest entry of the key whose turn it is, which is then the last in turn.

        Raises:
            IndexError: the queue is empty.
        """
        if not self._entries:
            raise IndexError("the queue is empty")
        key, entries = next(iter(self._entries.items()))
        entry = entries.popleft()
        self._size -= 1
        if entries:
            self._entries.move_to_end(key)
        else:
            del self._entries[key]
        return entry

    def pop_first(self, is_wanted: Callable[[_Key, _Entry], bool]) -> _Entry | None:
        """Remove the oldest entry of a key, if it is wanted: of the first such key in turn. That key is then the last.

        Return None if no key has such an entry.
        """
        for key, entries in self._entries.items():
            if is_wanted(key, entries[0]):
                self._entries.move_to_end(key, last=False)
                return self.pop()
        return None

    def first(self, key: _Key) -> _Entry | None:
        """Return the oldest entry of a key."""
        entries = self._entries.get(key)
        return entries[0] if entries else None

    def has_first(self, is_wanted: Callable[[_Key, _Entry], bool]) -> bool:
        """Return whether the oldest entry of any key is wanted."""
        return any(is_wanted(key, entries[0]) for key, entries in self._entries.items())

    def remove(self, key: _Key, entry: _Entry) -> bool:
        """Remove an entry before its turn. Return whether the queue held it."""
        entries = self._entries.get(key)
        if entries is None or entry not in entries:
            return False
        entries.remove(entry)
        self._size -= 1
        if not entries:
            del self._entries[key]
        return True

    def _longest(self, key: _Key) -> _Key | None:
        """Return a key with the most entries, if it has at least two more than `key`.

        With only one more, the two keys would exchange their places, and nothing would be fairer.
        """
        own = len(self._entries.get(key, ()))
        # A key with at least the average has no claim. So the requests of the key that fills the queue are answered
        # without a search through all keys.
        if own * len(self._entries) >= self._capacity:
            return None
        longest = max(self._entries, key=lambda each: len(self._entries[each]))
        return longest if len(self._entries[longest]) >= own + 2 else None
