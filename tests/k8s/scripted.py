"""A cluster of a few pods whose lists and watches go wrong by script."""

import random
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field

from app.domain.kubernetes.objects import Metadata, Pod
from app.k8s.codec import ListPage
from app.k8s.errors import BrokenAnswer, KubeGone, KubeServerError, KubeTooManyRequests, SilentStream, Unreachable
from app.k8s.session.watch_events import WatchEvent, WatchEventType
from tests.k8s.support import ManualClock

JOB = "job"


class Quiet(BaseException):
    """The script is over and everything was delivered: what ends a reflector that never ends."""


def pod(uid: str, version: int, name: str = "", job: str = "j") -> Pod:
    metadata = Metadata(name=name or uid, namespace="ns", uid=uid, resource_version=str(version), labels={JOB: job})
    return Pod(metadata=metadata)


def added(uid: str, version: int) -> WatchEvent[Pod]:
    return WatchEvent(WatchEventType.ADDED, pod(uid, version))


def deleted(uid: str, version: int) -> WatchEvent[Pod]:
    return WatchEvent(WatchEventType.DELETED, pod(uid, version))


def bookmark(version: int) -> WatchEvent[Pod]:
    return WatchEvent(WatchEventType.BOOKMARK, Pod(metadata=Metadata(resource_version=str(version))))


@dataclass
class Cluster:
    """Pods by name, and the history of what happened to them."""

    pods: dict[str, Pod] = field(default_factory=dict)
    history: list[WatchEvent[Pod]] = field(default_factory=list)
    version: int = 10
    oldest: int = 10
    born: int = 0

    def mutate(self, name: str, what: str) -> None:
        self.version += 1
        present = self.pods.get(name)
        if present is None:
            self.born += 1
            self._put(WatchEventType.ADDED, pod(f"u{self.born}", self.version, name, job=name[0]))
        elif what == "delete":
            del self.pods[name]
            gone = pod(present.metadata.uid, self.version, name, job=name[0])
            self.history.append(WatchEvent(WatchEventType.DELETED, gone))
        else:
            self._put(WatchEventType.MODIFIED, pod(present.metadata.uid, self.version, name, job=name[0]))

    def _put(self, event_type: WatchEventType, obj: Pod) -> None:
        self.pods[obj.metadata.name] = obj
        self.history.append(WatchEvent(event_type, obj))

    def compact(self) -> None:
        self.oldest = self.version

    def since(self, version: int) -> list[WatchEvent[Pod]]:
        return [event for event in self.history if event.object.metadata.version > version]


@dataclass
class Step:
    """What the next list or watch does, and what happens in the cluster meanwhile."""

    fault: str
    changes: list[tuple[str, str]]
    cut: int
    seed: int
    reorder: bool = False
    repeat: bool = False


class ScriptedSource:
    """Serves a Cluster through a script of faults, then faithfully once, then raises Quiet."""

    def __init__(self, cluster: Cluster, steps: Iterator[Step], clock: ManualClock) -> None:
        self.cluster = cluster
        self._steps = steps
        self._clock = clock
        self._listed = 0
        self._snapshot: list[Pod] = []
        self._calm = False

    def _step(self) -> Step:
        step = next(self._steps, None)
        if step is None:
            self._calm = True
            return Step("", [], 0, 0)
        for name, what in step.changes:
            self.cluster.mutate(name, what)
        return step

    async def list_page(self, continue_token: str, limit: int) -> ListPage[Pod]:
        step = self._step()
        fail(step.fault)
        if not continue_token:
            self._listed = self.cluster.version
            self._snapshot = list(self.cluster.pods.values())
        elif step.fault == "expired":
            raise KubeGone(410, "Expired", "the continue token is too old")
        start, size = int(continue_token or 0), 2 if limit else 1_000
        end = start + size
        rest = str(end) if end < len(self._snapshot) else ""
        return ListPage(items=tuple(self._snapshot[start:end]), resource_version=str(self._listed), continue_token=rest)

    async def watch(
        self, resource_version: str, timeout_seconds: int, idle: float, opened: Callable[[], None]
    ) -> AsyncGenerator[WatchEvent[Pod], None]:
        assert timeout_seconds >= 300
        step = self._step()
        fail(step.fault)
        opened()
        if step.fault == "compact":
            self.cluster.compact()
        if int(resource_version) < self.cluster.oldest:
            raise KubeGone(410, "Expired", "too old resource version")
        events = self._distorted(self.cluster.since(int(resource_version)), step)
        for event in events:
            yield event
        self._clock.seconds += 1.0 + step.cut
        if self._calm:
            raise Quiet
        end(step.fault, idle)

    def _distorted(self, events: list[WatchEvent[Pod]], step: Step) -> list[WatchEvent[Pod]]:
        if self._calm:
            return events
        chance = random.Random(step.seed)
        delivered = events[: step.cut]
        if step.reorder:
            delivered = reordered(delivered, chance)
        if step.repeat:
            past = self.cluster.since(self._listed)
            known = [e for e in past if not delivered or e in delivered or e not in events]
            delivered = [e for d in delivered for e in (d, chance.choice(known), d)]
            delivered = only_after_their_original(delivered)
        if delivered and step.fault == "bookmark":
            delivered = [*delivered, bookmark(max(e.object.metadata.version for e in delivered))]
        return delivered


def reordered(events: list[WatchEvent[Pod]], chance: random.Random) -> list[WatchEvent[Pod]]:
    """Another order, in which each object's own events keep theirs."""
    queues: dict[str, list[WatchEvent[Pod]]] = {}
    for event in events:
        queues.setdefault(event.object.metadata.uid, []).append(event)
    order = [event.object.metadata.uid for event in events]
    chance.shuffle(order)
    return [queues[uid].pop(0) for uid in order]


def only_after_their_original(events: list[WatchEvent[Pod]]) -> list[WatchEvent[Pod]]:
    """Repeats come late, never early: an event ahead of its turn would be a reordering within the stream."""
    kept: list[WatchEvent[Pod]] = []
    highest = 0
    for position, event in enumerate(events):
        version = event.object.metadata.version
        if position % 3 == 0:
            highest = max(highest, version)
        if version <= highest:
            kept.append(event)
    return kept


def fail(fault: str) -> None:
    errors = {
        "gone": KubeGone(410, "Expired", "too old resource version"),
        "busy": KubeTooManyRequests(429, "TooManyRequests", "later", retry_after=7),
        "error": KubeServerError(500, "InternalError", "etcd is unwell"),
        "refused": Unreachable("connection refused"),
    }
    if fault in errors:
        raise errors[fault]


def end(fault: str, idle: float) -> None:
    errors = {
        "late gone": KubeGone(410, "Expired", "too old resource version"),
        "silence": SilentStream(f"nothing came for {idle} s"),
        "cut": BrokenAnswer("a line cut in half"),
        "late error": KubeServerError(500, "InternalError", "decoding failed"),
    }
    if fault in errors:
        raise errors[fault]
