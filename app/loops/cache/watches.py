"""Watches that say which SampleSet to look at, and nothing else."""

from collections.abc import Callable, Sequence

from app.clock import Clock
from app.domain import labels
from app.domain.objects import Object
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT
from app.k8s.reflector import Reflector, ResourceSource
from app.k8s.resources import PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET


class Waker:
    """A sink that tells the uid of the set, by label, of whatever has changed."""

    def __init__(self, on_change: Callable[[str], None]) -> None:
        self._on_change = on_change

    def replaced(self, objects: Sequence[Object]) -> None:
        for obj in objects:
            self.applied(obj)

    def applied(self, obj: Object) -> None:
        if uid := obj.metadata.labels.get(labels.SAMPLE_SET_UID):
            self._on_change(uid)

    def deleted(self, obj: Object) -> None:
        self.applied(obj)


def reflectors(
    api: KubeApi, clock: Clock, installation: str, namespaces: Sequence[str], on_change: Callable[[str], None]
) -> list[Reflector[Object]]:
    """One for each resource in each namespace. A set is looked at now and then without them, too."""
    selector = f"{labels.INSTALLATION}={installation},{labels.SAMPLE_SET_UID}"
    return [
        Reflector(
            ResourceSource(api, resource, OBJECT, namespace=namespace, label_selector=selector),
            Waker(on_change),
            clock,
        )
        for namespace in namespaces or (None,)
        for resource in (POD, STATEFUL_SET, PERSISTENT_VOLUME_CLAIM)
    ]
