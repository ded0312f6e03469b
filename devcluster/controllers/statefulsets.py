"""The StatefulSet controller: creates pods in order, scales down in reverse order, and replaces pods by name.

missing pod ─▶ created ─▶ ready ─▶ next ordinal    (Parallel: all at once)
ended pod ─▶ deleted ─▶ created again
surplus pods, and pods of an old template ─▶ deleted, highest ordinal first
"""

import asyncio
from contextlib import suppress

from devcluster.controllers import statefulset_pods as ordinals
from devcluster.controllers.events import Recorder
from devcluster.controllers.statefulset_pods import is_available, is_healthy, is_ready, revision_of
from devcluster.errors import StatusError
from devcluster.formats.objects import Object, is_terminal, is_terminating, labels, meta, owner_uids, spec, status, uid
from devcluster.registry.deletion import DeleteOptions
from devcluster.registry.operations import ObjectAddress, Registry
from devcluster.registry.store import Change, Record
from devcluster.resources import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS

_RETRY_SECONDS = 1.0
_HASH_LABEL = "controller.kubernetes.io/hash"

# Fields that a real controller writes even if they are 0.
_ALWAYS = ("replicas", "availableReplicas", "collisionCount")

Pods = dict[int, Record]


class StatefulSetController:
    """Reconciles each set whenever the set or one of its pods changes, and again later if it is unfinished."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._store = registry.store
        self._feed = registry.store.feed()
        self._recorder = Recorder(registry, "statefulset-controller")
        self._unfinished: set[str] = set()
        self._due: float | None = None
        self._recorded: dict[str, str] = {}

    async def run(self) -> None:
        # The feed has no changes from before the start.
        touched = {uid(record.object) for record in self._store.iterate(STATEFUL_SETS)}
        while True:
            for own in touched:
                self._reconcile(own)
            touched = await self._next()

    async def _next(self) -> set[str]:
        """Wait for changes, and return the uids of the sets to reconcile.

        Unfinished sets, which wait for time to pass or have failed, are due after the retry time.
        """
        now = asyncio.get_running_loop().time
        if not self._unfinished:
            self._due = None
        # The time stays the same over several calls, so that a stream of changes does not postpone it.
        elif self._due is None:
            self._due = now() + _RETRY_SECONDS
        touched: set[str] = set()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._due):
                touched = self._affected_sets(await self._feed.get())
                while not self._feed.empty():
                    touched |= self._affected_sets(self._feed.get_nowait())
        if self._due is not None and self._due <= now():
            self._due = None
            touched |= self._unfinished
        return touched

    def _affected_sets(self, change: Change) -> set[str]:
        record = change.record
        if record.resource is STATEFUL_SETS:
            return {uid(record.object)}
        return set(owner_uids(record.object)) if record.resource is PODS else set()

    def _reconcile(self, own: str) -> None:
        self._unfinished.discard(own)
        record = self._store.by_uid(own)
        # The garbage collector deletes the pods of a deleted set.
        if record is None or record.resource is not STATEFUL_SETS or is_terminating(record.object):
            self._recorded.pop(own, None)
            return
        try:
            current, update = self._revisions(record)
            self._reconcile_pods(record, current, update)
            self._write_status(record, current, update)
        except StatusError as error:
            # `_next` returns the set again after the retry time.
            self._unfinished.add(own)
            self._record_once(record, str(error))

    def _record_once(self, record: Record, message: str) -> None:
        if self._recorded.get(uid(record.object)) != message:
            self._recorded[uid(record.object)] = message
            self._recorder.record(record, "Warning", "FailedCreate", message)

    def _pods(self, record: Record) -> Pods:
        found: Pods = {}
        for dependent in self._store.dependents(uid(record.object)):
            number = ordinals.ordinal_of(record.object, dependent.object) if dependent.resource is PODS else None
            if number is not None:
                found[number] = dependent
        return found

    def _revisions(self, record: Record) -> tuple[Record, Record]:
        """Return the current revision and the update revision of the set."""
        mine = [
            revision
            for revision in self._store.dependents(uid(record.object))
            if revision.resource is CONTROLLER_REVISIONS
        ]
        data = ordinals.template_data(record.object)
        newest = max((revision.object.get("revision", 0) for revision in mine), default=0)
        update = next((revision for revision in mine if revision.object.get("data") == data), None)
        if update is None:
            update = self._create_revision(record, data, newest + 1)
        # A set that returns to an earlier template uses its revision again, which becomes the newest.
        elif update.object.get("revision", 0) < newest:
            update = self._set_revision(update, newest + 1)
        named = status(record.object).get("currentRevision")
        return next((revision for revision in mine if revision.name == named), update), update

    def _create_revision(self, record: Record, data: Object, number: int) -> Record:
        name = ordinals.revision_name(record.object, data)
        revision: Object = {
            "metadata": {
                "name": name,
                "labels": {**labels(spec(record.object)["template"]), _HASH_LABEL: name.rpartition("-")[2]},
                "ownerReferences": [ordinals.owner(record.object)],
            },
            "data": data,
            "revision": number,
        }
        return self._registry.create(ObjectAddress(CONTROLLER_REVISIONS, record.namespace), revision)

    def _set_revision(self, revision: Record, number: int) -> Record:
        def change(obj: Object) -> Object:
            obj["revision"] = number
            return obj

        return self._registry.update(ObjectAddress(CONTROLLER_REVISIONS, revision.namespace, revision.name), change)

    def _reconcile_pods(self, record: Record, current: Record, update: Record) -> None:
        """Create, replace and delete pods as far as the order of the set allows now."""
        found = spec(record.object)
        first = ordinals.start(record.object)
        wanted = range(first, first + found["replicas"])
        ordered = found["podManagementPolicy"] == "OrderedReady"
        pods = self._pods(record)
        for number in wanted:
            settled = self._reconcile_ordinal(record, number, pods.get(number), (current, update))
            # With OrderedReady, the next ordinal waits for this one to be available.
            if ordered and not settled:
                return
        if not self._scale_down(record, pods, wanted, ordered=ordered):
            return
        self._roll_out(record, pods, wanted, update)

    def _reconcile_ordinal(
        self, record: Record, number: int, pod: Record | None, revisions: tuple[Record, Record]
    ) -> bool:
        """Create or replace one pod, and return whether the next ordinal may follow."""
        if pod is None:
            self._create(record, number, revisions)
            return False
        if is_terminal(pod.object) and not is_terminating(pod.object):
            self._delete(record, pod)
            # An ended pod is deleted without a grace period, so its name is free at once.
            if self._store.get(PODS, pod.namespace, pod.name) is None:
                self._create(record, number, revisions)
            return False
        if is_terminating(pod.object):
            return False
        seconds = int(spec(record.object).get("minReadySeconds", 0))
        # No change announces that minReadySeconds have passed, so the set is reconciled again after the retry time.
        if is_ready(pod.object) and not is_available(pod.object, seconds):
            self._unfinished.add(uid(record.object))
        return is_available(pod.object, seconds)

    def _create(self, record: Record, number: int, revisions: tuple[Record, Record]) -> None:
        current, update = revisions
        strategy = spec(record.object)["updateStrategy"]
        partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
        # Pods below the partition keep the current revision.
        chosen = current if strategy["type"] == "RollingUpdate" and number < partition else update
        made = ordinals.make_pod(record.object, number, ordinals.template_of(chosen.object), chosen.name)
        name = meta(made)["name"]
        what = f"Create Pod {name} in StatefulSet {record.name}"
        try:
            self._registry.create(ObjectAddress(PODS, record.namespace), made)
        except StatusError as error:
            raise StatusError(error.code, error.reason, f"{what} failed error: {error.message}") from error
        # After a success, the same failure is recorded again.
        self._recorded.pop(uid(record.object), None)
        self._recorder.record(record, "Normal", "SuccessfulCreate", f"{what} successful")

    def _delete(self, record: Record, pod: Record) -> None:
        self._registry.delete(ObjectAddress(PODS, pod.namespace, pod.name), DeleteOptions(uid=uid(pod.object)))
        message = f"Delete Pod {pod.name} in StatefulSet {record.name} successful"
        self._recorder.record(record, "Normal", "SuccessfulDelete", message)

    def _scale_down(self, record: Record, pods: Pods, wanted: range, *, ordered: bool) -> bool:
        """Delete surplus pods, the highest ordinal first, and return whether none is left."""
        surplus = [pods[number] for number in sorted(pods, reverse=True) if number not in wanted]
        for pod in surplus:
            if not is_terminating(pod.object):
                self._delete(record, pod)
            # With OrderedReady, one pod is deleted at a time.
            if ordered:
                return False
        return not surplus

    def _roll_out(self, record: Record, pods: Pods, wanted: range, update: Record) -> None:
        """Delete the pod with the highest ordinal that has an old template, if all pods above it are healthy."""
        strategy = spec(record.object)["updateStrategy"]
        if strategy["type"] != "RollingUpdate":
            return
        partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
        for number in reversed(wanted):
            pod = pods.get(number)
            if pod is None or number < partition:
                return
            if revision_of(pod.object) != update.name and not is_terminating(pod.object):
                self._delete(record, pod)
                return
            if not is_healthy(pod.object):
                return

    def _write_status(self, record: Record, current: Record, update: Record) -> None:
        wanted = self._status(record, current, update)

        def change(obj: Object) -> Object:
            obj["status"] = {key: value for key, value in wanted.items() if value or key in _ALWAYS}
            return obj

        with suppress(StatusError):
            self._registry.update(ObjectAddress(STATEFUL_SETS, record.namespace, record.name, "status"), change)

    def _status(self, record: Record, current: Record, update: Record) -> Object:
        pods = [pod.object for pod in self._pods(record).values()]
        seconds = int(spec(record.object).get("minReadySeconds", 0))
        living = [revision_of(pod) for pod in pods if not is_terminating(pod)]
        replicas, ready = len(pods), sum(is_ready(pod) for pod in pods)
        updated = living.count(update.name)
        through = spec(record.object)["updateStrategy"]["type"] == "RollingUpdate" and updated == replicas == ready
        source = update if through else current
        return {
            "observedGeneration": meta(record.object)["generation"],
            "replicas": replicas,
            "readyReplicas": ready,
            "availableReplicas": sum(is_available(pod, seconds) for pod in pods),
            "currentReplicas": living.count(source.name),
            "updatedReplicas": updated,
            "currentRevision": source.name,
            "updateRevision": update.name,
            "collisionCount": 0,
        }
