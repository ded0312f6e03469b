"""The objects that a reflector keeps in memory, by uid, by name, and by one indexed value, such as that of a label.

A change is reported only by the indexed value, not by its content. The receiver reads the present objects here.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Generic, TypeVar

from app.k8s.codec import HasMetadata

T = TypeVar("T", bound=HasMetadata)

OnChange = Callable[[str], None]


def by_label(label: str) -> Callable[[HasMetadata], str]:
    """Return an index by the value of a label."""
    return lambda obj: obj.metadata.labels.get(label, "")


def by_name(obj: HasMetadata) -> str:
    return obj.metadata.name


class ReflectorStore(Generic[T]):
    """A sink of a reflector. `index` returns the indexed value of an object; empty if it has none.

    `on_change` gets the indexed value of each object that changed.
    """

    def __init__(self, index: Callable[[T], str], on_change: OnChange) -> None:
        self._index = index
        self._on_change = on_change
        self._by_uid: dict[str, T] = {}
        self._uid_by_name: dict[tuple[str, str], str] = {}
        self._uids_by_value: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self._by_uid)

    def all(self) -> Collection[T]:
        """Return a live view of all objects. Do not await while iterating over it."""
        return self._by_uid.values()

    def get(self, uid: str) -> T | None:
        return self._by_uid.get(uid)

    def get_by_name(self, namespace: str, name: str) -> T | None:
        """Return the object with this name."""
        uid = self._uid_by_name.get((namespace, name))
        return None if uid is None else self._by_uid[uid]

    def get_by_index(self, value: str) -> list[T]:
        """Return the objects with this indexed value."""
        return [self._by_uid[uid] for uid in self._uids_by_value.get(value, ())]

    def count(self, value: str) -> int:
        """Return how many objects have this indexed value."""
        return len(self._uids_by_value.get(value, ()))

    def replaced(self, objects: Sequence[T]) -> None:
        before = self._by_uid
        changed = {self._index(obj) for obj in _difference(before, objects)}
        self._by_uid, self._uid_by_name, self._uids_by_value = {}, {}, {}
        for obj in objects:
            self._insert(obj)
        self._report(changed)

    def applied(self, obj: T) -> None:
        # If the indexed value has changed, both the former and the new one are reported.
        changed = {self._index(obj)}
        holder = self.get_by_name(obj.metadata.namespace, obj.metadata.name)
        if holder is not None and holder.metadata.uid != obj.metadata.uid:
            # The event is that of an older object, and a newer one has its name now.
            if holder.metadata.version > obj.metadata.version:
                return
            # Two objects cannot have one name: the older one was deleted, and the event of its deletion is missing.
            changed.add(self._remove(holder))
        previous = self._by_uid.get(obj.metadata.uid)
        if previous is not None:
            changed.add(self._remove(previous))
        self._insert(obj)
        self._report(changed)

    def deleted(self, obj: T) -> None:
        previous = self._by_uid.get(obj.metadata.uid)
        if previous is not None:
            self._report({self._remove(previous)})

    def _insert(self, obj: T) -> None:
        metadata = obj.metadata
        self._by_uid[metadata.uid] = obj
        self._uid_by_name[metadata.namespace, metadata.name] = metadata.uid
        self._uids_by_value.setdefault(self._index(obj), set()).add(metadata.uid)

    def _remove(self, obj: T) -> str:
        metadata, value = obj.metadata, self._index(obj)
        del self._by_uid[metadata.uid]
        # A newer object may have the name already.
        if self._uid_by_name.get((metadata.namespace, metadata.name)) == metadata.uid:
            del self._uid_by_name[metadata.namespace, metadata.name]
        uids = self._uids_by_value[value]
        uids.discard(metadata.uid)
        if not uids:
            del self._uids_by_value[value]
        return value

    def _report(self, values: Iterable[str]) -> None:
        for value in values:
            if value:
                self._on_change(value)


def _difference(before: dict[str, T], after: Sequence[T]) -> Iterable[T]:
    """Yield every object that was added or deleted, and both states of every object with another version."""
    vanished = dict(before)
    for obj in after:
        previous = vanished.pop(obj.metadata.uid, None)
        if previous is None:
            yield obj
        elif previous.metadata.version != obj.metadata.version:
            yield previous
            yield obj
    yield from vanished.values()
