"""The controller that deletes the contents of a deleted namespace, and then the namespace."""

from contextlib import suppress

from devcluster.errors import StatusError
from devcluster.formats.objects import Object, is_terminating, meta, set_condition, spec, uid
from devcluster.registry.deletion import DeleteOptions
from devcluster.registry.operations import ObjectAddress, Registry
from devcluster.registry.store import Change, ChangeType, Record
from devcluster.resources import EVENTS, NAMESPACES


class NamespaceController:
    """Empties terminating namespaces, and reports what remains in their conditions."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._store = registry.store
        self._feed = registry.store.feed()

    async def run(self) -> None:
        for record in list(self._store.iterate(NAMESPACES)):
            self._reconcile(record.name)
        while True:
            change = await self._feed.get()
            if _matters(change):
                # The change is that of an object in the namespace, or of the namespace itself.
                self._reconcile(change.record.namespace or change.record.name)

    def _reconcile(self, name: str) -> None:
        record = self._store.get(NAMESPACES, "", name)
        if record is None or not is_terminating(record.object):
            return
        with suppress(StatusError):
            for left in self._contents(name):
                if not is_terminating(left.object):
                    options = DeleteOptions(uid=uid(left.object), propagation="Background")
                    self._registry.delete(ObjectAddress(left.resource, name, left.name), options)
            # Objects without finalizers and grace periods are gone after the deletions above.
            left_over = list(self._contents(name))
            if left_over:
                self._report_remaining(record, left_over)
            else:
                self._finalize(record)

    def _contents(self, name: str) -> list[Record]:
        rows = [row for row in self._store.catalog.rows if row.namespaced and row is not EVENTS]
        # Events come last, because the deletion of other objects causes Events.
        return [record for row in (*rows, EVENTS) for record in self._store.iterate(row, name)]

    def _report_remaining(self, record: Record, left_over: list[Record]) -> None:
        kinds = sorted({left.resource.key for left in left_over})
        listed = ", ".join(f"{key}. has some resource instances remaining" for key in kinds)
        waiting = sorted({name for left in left_over for name in meta(left.object).get("finalizers") or []})

        def change(namespace: Object) -> Object:
            set_condition(
                namespace,
                "NamespaceContentRemaining",
                "True",
                reason="SomeResourcesRemain",
                message=f"Some resources are remaining: {listed}",
            )
            if waiting:
                set_condition(
                    namespace,
                    "NamespaceFinalizersRemaining",
                    "True",
                    reason="SomeFinalizersRemain",
                    message=f"Some content in the namespace has finalizers remaining: {', '.join(waiting)}",
                )
            return namespace

        self._registry.update(ObjectAddress(NAMESPACES, "", record.name, "status"), change)

    def _finalize(self, record: Record) -> None:
        def change(namespace: Object) -> Object:
            namespace["spec"] = {
                **spec(namespace),
                "finalizers": [name for name in spec(namespace).get("finalizers") or [] if name != "kubernetes"],
            }
            return namespace

        # With its last finalizer, the registry removes the namespace.
        self._registry.update(ObjectAddress(NAMESPACES, "", record.name, "finalize"), change)


def _matters(change: Change) -> bool:
    # Other deletions matter because the deleted object may be the last one of its namespace.
    if change.record.resource is NAMESPACES:
        return change.type is not ChangeType.DELETED
    return change.type is ChangeType.DELETED and bool(change.record.namespace)
