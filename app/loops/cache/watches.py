"""Watches that trigger reconciles of SampleSets. Nothing else is taken from them."""

from collections.abc import Callable, Sequence

from app.base.clock import Clock
from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Object
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT
from app.k8s.resources import PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from app.k8s.watching.reflector import Reflector, ResourceSource


class SetChangeSink:
    """A reflector's sink that reports the uid of the set, from a label, for every changed object."""

    def __init__(self, on_change: Callable[[str], None]) -> None:
        self._on_change = on_change

    def replaced(self, objects: Sequence[Object]) -> None:
        # Objects that vanished during a gap are not in the list. The regular reconcile of their set finds that out.
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
    """Return a reflector for each watched resource in each namespace."""
    # Claims report when a volume is bound, StatefulSets when servers are ready, pods when they move.
    selector = f"{labels.INSTALLATION}={installation},{labels.SAMPLE_SET_UID}"
    return [
        Reflector(
            ResourceSource(api, resource, OBJECT, namespace=namespace, label_selector=selector),
            SetChangeSink(on_change),
            clock,
        )
        for namespace in namespaces or (None,)
        for resource in (POD, STATEFUL_SET, PERSISTENT_VOLUME_CLAIM)
    ]
