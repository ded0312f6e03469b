"""The objects that a reflector keeps in memory, indexed by uid, by name, and by the value of one label.

A change is reported only by the value of the label, not by its content. The receiver reads the present objects here.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Generic, TypeVar

from app.k8s.codec import HasMetadata

T = TypeVar("T", bound=HasMetadata)

OnChange = Callable[[str], None]


class ReflectorStore(Generic[T]):
    """A sink of a reflector. `on_change` gets the value of the label of each object that changed."""

    def __init__(self, label: str, on_change: OnChange) -> None:
        self._label = label
        self._on_change = on_change
        self._by_uid: dict[str, T] = {}
        self._uid_by_name: dict[tuple[str, str], str] = {}
        self._uids_by_label: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self._by_uid)

    def all(self) -> Collection[T]:
        """Return a live view of all objects. Do not await while iterating over it."""
        return self._by_uid.values()

    def get(self, uid: str) -> T | None:
        return self._by_uid.get(uid)

    def named(self, namespace: str, name: str) -> T | None:
        """Return the object with this name."""
        uid = self._uid_by_name.get((namespace, name))
        return None if uid is None else self._by_uid[uid]

    def labelled(self, value: str) -> list[T]:
        """Return the objects with this value of the indexed label."""
        return [self._by_uid[uid] for uid in self._uids_by_label.get(value, ())]

    def count(self, value: str) -> int:
        """Return how many objects have this value of the indexed label."""
        return len(self._uids_by_label.get(value, ()))

    def replaced(self, objects: Sequence[T]) -> None:
        before = self._by_uid
        changed = {self._value(obj) for obj in _difference(before, objects)}
        self._by_uid, self._uid_by_name, self._uids_by_label = {}, {}, {}
        for obj in objects:
            self._insert(obj)
        self._tell(changed)

    def applied(self, obj: T) -> None:
        # If the label has changed, both its former and its new value are reported.
        changed = {self._value(obj)}
        holder = self.named(obj.metadata.namespace, obj.metadata.name)
        if holder is not None and holder.metadata.uid != obj.metadata.uid:
            # The event is that of an older object, and the newer one has its name by now.
            if holder.metadata.version > obj.metadata.version:
                return
            # Two objects cannot have one name: the older one was deleted, and the event of its deletion is missing.
            changed.add(self._remove(holder))
        previous = self._by_uid.get(obj.metadata.uid)
        if previous is not None:
            changed.add(self._remove(previous))
        self._insert(obj)
        self._tell(changed)

    def deleted(self, obj: T) -> None:
        previous = self._by_uid.get(obj.metadata.uid)
        if previous is not None:
            self._tell({self._remove(previous)})

    def _value(self, obj: T) -> str:
        return obj.metadata.labels.get(self._label, "")

    def _insert(self, obj: T) -> None:
        metadata = obj.metadata
        self._by_uid[metadata.uid] = obj
        self._uid_by_name[metadata.namespace, metadata.name] = metadata.uid
        self._uids_by_label.setdefault(self._value(obj), set()).add(metadata.uid)

    def _remove(self, obj: T) -> str:
        metadata, value = obj.metadata, self._value(obj)
        del self._by_uid[metadata.uid]
        # A newer object may have the name already.
        if self._uid_by_name.get((metadata.namespace, metadata.name)) == metadata.uid:
            del self._uid_by_name[metadata.namespace, metadata.name]
        uids = self._uids_by_label[value]
        uids.discard(metadata.uid)
        if not uids:
            del self._uids_by_label[value]
        return value

    def _tell(self, values: Iterable[str]) -> None:
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
